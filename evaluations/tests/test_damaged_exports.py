"""Every export reports all of twenty stored screenshots with one changed byte."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from annotation.models import Person, Screenshot, Submission
from annotation.models.events import instant
from annotation.tests import testing
from evaluations.evidence.writing import prepare, write
from evaluations.tests.audited import client_of
from evaluations.tests.checks import check
from evaluations.tests.finished import finish
from evaluations.tests.test_evidence_export import api_get
from evaluations.tests.test_export_commands import run
from evaluations.verifier.findings import Result

FLIPPED = 20


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    """Eight trajectories of three steps each."""
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.submission(tmp_path / "package", trajectories=8)


@pytest.fixture
def frozen(submission: Submission, people: dict[str, Person]) -> Submission:
    return finish(people, submission, {})


@pytest.fixture
def places(frozen: Submission) -> dict[str, tuple[str, int]]:
    """Flip a byte of twenty screenshots; task id and step of each by its digest."""
    damaged = list(Screenshot.objects.order_by("sha256")[:FLIPPED])
    for screenshot in damaged:
        path = Path(default_storage.path(f"originals/{screenshot.sha256[:2]}/{screenshot.sha256}"))
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 0x20
        path.write_bytes(data)
    steps = {screenshot.sha256: screenshot.steps.get() for screenshot in damaged}
    return {sha256: (step.trajectory.task.external_id, step.index) for sha256, step in steps.items()}


def named(text: str) -> set[tuple[str, int]]:
    """Task id and step of every damaged screenshot that a text tells of."""
    return {
        (task_id, int(step)) for task_id, step in re.findall(r"(task_\d+): the screenshot of step (\d+) is dam", text)
    }


def test_check_store_reports_all(places: dict[str, tuple[str, int]]) -> None:
    out, _, code = run("check_store", "--json")
    assert code == 1
    assert {each["sha256"] for each in json.loads(out)["damaged"]} == set(places)


def test_check_submission_reports_all(frozen: Submission, places: dict[str, tuple[str, int]]) -> None:
    _, err, code = run("check_submission", frozen.pk)
    assert code == 1
    assert named(err) == set(places.values())
    assert err.count("damaged or missing file: screenshot_damaged: ") == FLIPPED
    assert err.endswith(f": {FLIPPED} uses of stored files are damaged or missing.")


def test_export_of_trajectories_is_refused_and_reports_all(
    frozen: Submission, places: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    output = tmp_path / "out.zip"
    _, err, code = run("export_submission", frozen.pk, "--format", "trajectories-v2", "--output", output)
    assert code == 1
    assert named(err) == set(places.values())
    assert err.count("refused: screenshot_damaged: ") == FLIPPED
    assert not output.exists()


def test_partial_export_of_trajectories_leaves_damaged_ones_out(
    frozen: Submission, places: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    output = tmp_path / "out.zip"
    words = ("export_submission", frozen.pk, "--format", "trajectories-v2", "--partial", "--output", output)
    _, err, code = run(*words)
    assert code == 0
    assert named(err) == set(places.values())
    package = zipfile.ZipFile(output)
    assert len(json.loads(package.read("partial.json"))["missing"]) == FLIPPED
    intact = {f"task_{number:04d}" for number in range(8)} - {task_id for task_id, _ in places.values()}
    assert {name.partition("/")[0] for name in package.namelist()} == {"partial.json"} | intact


@pytest.mark.parametrize("kind", ["human-label", "labels"])
def test_export_of_labels_warns_of_all(
    frozen: Submission, places: dict[str, tuple[str, int]], tmp_path: Path, kind: str
) -> None:
    """It holds no screenshots, so that it is still right."""
    _, err, code = run("export_submission", frozen.pk, "--format", kind, "--output", tmp_path / "out")
    assert code == 0
    assert named(err) == set(places.values())


@pytest.mark.parametrize("options", [(), ("--partial",), ("--screenshots", "digests")])
def test_evidence_is_refused_and_reports_all(
    frozen: Submission, places: dict[str, tuple[str, int]], tmp_path: Path, options: tuple[str, ...]
) -> None:
    output = tmp_path / "bundle.zip"
    _, err, code = run("export_evidence", frozen.pk, "--output", output, *options)
    assert code == 1
    assert named(err) == set(places.values())
    assert not output.exists()


def test_bundle_of_digests_names_all_damaged_files_and_fails_the_check(
    frozen: Submission, places: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    output = tmp_path / "bundle.zip"
    write(prepare(frozen, screenshots="digests", partial=True), output)
    stated = json.loads(zipfile.ZipFile(output).read("MANIFEST.json"))["stored_files"]
    assert (stated["damaged"], stated["missing"], stated["files"]) == (sorted(places), [], 24)
    finding = next(each for each in check(str(output)) if each.name == "pictures")
    assert finding.result is Result.FAIL
    assert "damaged: 20 of 24 stored files, missing: 0" in finding.says
    assert all(sha256[:12] in finding.says for sha256 in places)


def test_export_command_counts_damaged_files_as_a_failure(
    frozen: Submission, places: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    words = ("export_evidence", frozen.pk, "--output", tmp_path / "bundle.zip", "--screenshots", "digests", "--partial")
    out, err, code = run(*words)
    assert code == 0
    assert f"FAIL screenshots: {FLIPPED} stored files damaged or missing." in err
    assert ", 1 FAIL," in out


def test_pages_and_api_report_all_that_a_check_has_found(
    frozen: Submission, places: dict[str, tuple[str, int]], people: dict[str, Person]
) -> None:
    client, addresses = client_of(people["mira"]), [reverse(name, args=[frozen.pk]) for name in ("export", "evidence")]
    run("check_store")
    for address in addresses:
        assert named(client.get(address).content.decode()) == set(places.values())
    answer = client.get(reverse("api-export-check", args=[frozen.pk])).json()
    assert named(" ".join(problem["message"] for problem in answer["unconvertible"])) == set(places.values())


def test_pages_forget_damage_that_was_repaired(
    frozen: Submission, places: dict[str, tuple[str, int]], people: dict[str, Person], tmp_path: Path
) -> None:
    client, address = client_of(people["mira"]), reverse("export", args=[frozen.pk])
    run("check_store")
    testing.submission(tmp_path / "again", trajectories=8, agent="Importing Agent")  # replaces damaged files
    assert named(client.get(address).content.decode()) == set()


def test_bundle_of_digests_states_when_its_files_were_verified(
    frozen: Submission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, read, opened = tmp_path / "bundle.zip", set(), default_storage.open
    monkeypatch.setattr(default_storage, "open", lambda name, mode: read.add(Path(name).name) or opened(name, mode))
    write(prepare(frozen, screenshots="digests"), output)
    stated = json.loads(zipfile.ZipFile(output).read("MANIFEST.json"))["stored_files"]
    assert read == set(Screenshot.objects.values_list("sha256", flat=True))
    assert instant(frozen.frozen_at) < stated["verified_at"]
    assert (stated["files"], stated["damaged"], stated["missing"]) == (24, [], [])
    finding = next(each for each in check(str(output)) if each.name == "pictures")
    assert finding.result is Result.NOTE
    assert f"All 24 stored files were verified against the digests at {stated['verified_at']}" in finding.says


@pytest.mark.parametrize(
    ("name", "args"), [("export-file", ["trajectories-v2"]), ("evidence-file", [])], ids=["v2", "evidence"]
)
def test_download_is_refused_and_reports_all(
    frozen: Submission, people: dict[str, Person], places: dict[str, tuple[str, int]], name: str, args: list[str]
) -> None:
    client = Client()
    client.force_login(people["mira"])
    response = client.get(reverse(name, args=[frozen.pk, *args]), {"screenshots": "files"})
    assert response.status_code == 409
    assert named(response.content.decode()) == set(places.values())


def test_api_refuses_the_bundle_and_reports_all(
    frozen: Submission, people: dict[str, Person], places: dict[str, tuple[str, int]]
) -> None:
    response = api_get(people["mira"], f"/submissions/{frozen.pk}/evidence", screenshots="digests")
    assert response.status_code == 409
    assert named(response.content.decode()) == set(places.values())
