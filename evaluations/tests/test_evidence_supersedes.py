"""A bundle may state which one it replaces, by command, API and page; without that it is as it was."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Person, Submission
from annotation.tests.test_api_submissions import get as api_get
from annotation.tests.test_api_submissions import problem
from evaluations.evidence import writing
from evaluations.tests.hand_made_bundle import sha256
from evaluations.tests.test_evidence_export import get, package
from evaluations.tests.test_export_commands import run
from evaluations.verifier.main import main

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
People = dict[str, Person]
REASON = "Task 4 changed."
ONE = "ab" * 32


def manifest_of(path: Path) -> bytes:
    with zipfile.ZipFile(path) as bundle:
        return bundle.read("MANIFEST.json")


def test_bundle_without_a_replaced_one_has_the_bytes_of_before(frozen: Submission, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    writing.write(writing.prepare(frozen, supersedes=" ", reason=" "), path)
    assert sorted(json.loads(manifest_of(path))) == ["files", "format"]


def test_command_page_and_api_write_the_same_statement_and_it_is_signed(
    frozen: Submission, people: People, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    assert run("export_evidence", frozen.pk, "--output", first)[2] == 0
    replaced = sha256(manifest_of(first))
    _, err, code = run("export_evidence", frozen.pk, "--output", second, "--supersedes", replaced, "--reason", REASON)
    assert (err, code) == ("", 0)
    assert json.loads(manifest_of(second))["supersedes"] == {"manifest": replaced, "reason": REASON}
    by_page = get(people["mira"], "evidence-file", frozen, supersedes=replaced.upper(), reason=f" {REASON}\n")
    by_api = api_get(people["mira"], f"/submissions/{frozen.pk}/evidence", supersedes=replaced, reason=REASON)
    sizes = {int(by_page["Content-Length"]), int(by_api["Content-Length"]), second.stat().st_size}
    assert {by_page.getvalue(), by_api.getvalue()} == {second.read_bytes()}
    assert sizes == {len(second.read_bytes())}
    assert main([str(second), "--against", str(first)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f'NOTE supersedes It replaces the bundle with the manifest {replaced}: "{REASON}"' in out
    assert "PASS other_bundle " in out


@pytest.mark.parametrize(
    ("supersedes", "reason", "where"),
    [("ab", REASON, "supersedes"), (ONE, "", "reason"), (ONE, " \u200b", "reason"), ("", REASON, "supersedes")],
)
def test_malformed_statement_is_refused_everywhere(
    supersedes: str, reason: str, where: str, frozen: Submission, people: People, tmp_path: Path
) -> None:
    output = tmp_path / "bundle.zip"
    _, err, code = run(
        "export_evidence", frozen.pk, "--output", output, f"--supersedes={supersedes}", "--reason", reason
    )
    assert (code, output.exists()) == (2, False)
    assert err
    given = {"supersedes": supersedes, "reason": reason}
    told = problem(api_get(people["mira"], f"/submissions/{frozen.pk}/evidence", **given), 400)
    assert [each["where"] for each in told["errors"]] == [where]
    answer = get(people["mira"], "evidence-file", frozen, **given)
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [where]
    assert "<details open><summary>Replace an earlier bundle" in answer.content.decode()


def test_reason_that_names_a_member_is_refused(frozen: Submission, people: People, tmp_path: Path) -> None:
    Person.objects.filter(username="alice").update(last_name="Liddell")
    arguments: list[Any] = [frozen.pk, "--output", tmp_path / "bundle.zip", "--supersedes", ONE]
    arguments += ["--reason", "Liddell was ill."]
    _, err, code = run("export_evidence", *arguments)
    assert code == 1
    assert "The reason why it replaces a bundle contains a person's name" in err
    assert run("export_evidence", *arguments, "--accept-names")[2] == 0


def test_page_offers_the_statement(frozen: Submission, people: People) -> None:
    answer = get(people["mira"], "evidence", frozen).content.decode()
    assert 'name="supersedes"' in answer
    assert "<details><summary>Replace an earlier bundle" in answer
    assert package(get(people["mira"], "evidence-file", frozen, supersedes="", reason="")).read("MANIFEST.json")
