"""What the auditor's desk tells and takes, in pages, commands and API: seeds, other bundles, checks, auditors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.tests import testing
from evaluations.auditing import actions
from evaluations.auditing.importing import open_bundle
from evaluations.models import Audit, AuditCheck
from evaluations.tests.audited import add_people, auditor, client_of, relabel, work
from evaluations.tests.test_audit_pages import posted, run, text, uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def pages(client: Client, audit: Audit) -> list[str]:
    return [text(client.get(reverse(name, args=[audit.pk]))) for name in ("audit", "audit-report")]


def tasks(*numbers: int) -> SimpleUploadedFile:
    return SimpleUploadedFile("tasks.json", json.dumps([testing.task(number) for number in numbers]).encode())


# --- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["open-audit", "api-audits"])
def test_a_task_list_goes_with_the_bundle(amy: Client, bundles: dict[str, Path], address: str) -> None:
    amy.post(reverse(address), {"bundle": uploaded(bundles["files"]), "tasks": tasks(0, 1, 7)})
    work()

    told = {each["name"]: each for each in Audit.objects.get().findings}
    assert (told["tasks"]["result"], told["tasks"]["places"]) == ("fail", ["task_0007"])


@pytest.mark.parametrize("address", ["open-audit", "api-audits"])
def test_the_id_of_the_chain_goes_with_the_bundle(amy: Client, bundles: dict[str, Path], address: str) -> None:
    amy.post(reverse(address), {"bundle": uploaded(bundles["files"]), "chain": f" {'AB' * 32}"})
    work()

    told = {each["name"]: each for each in Audit.objects.get().findings}
    assert told["chain_id"]["result"] == "fail"
    assert f"not the given {'ab' * 32}" in told["chain_id"]["says"]


@pytest.mark.parametrize("name", ["keys", "anchors", "tasks", "chain"])
@pytest.mark.parametrize("address", ["open-audit", "api-audits"])
def test_what_cannot_be_read_is_refused_with_its_name(
    amy: Client, bundles: dict[str, Path], address: str, name: str
) -> None:
    value = SimpleUploadedFile("x", b"nonsense") if name in ("anchors", "tasks") else "nonsense"

    answer = amy.post(reverse(address), {"bundle": uploaded(bundles["files"]), name: value})

    called = {"keys": "published keys", "anchors": "published heads", "tasks": "task list", "chain": "64 hex digits"}
    assert called[name] in text(answer, 400)
    assert Audit.objects.count() == 0


@pytest.mark.parametrize(
    "command",
    [
        ("import_submission", "tasks.json", "--agent", "Other"),
        ("import_tasks", "tasks.json"),
        ("import_labels", "tasks.json"),
        ("import_rubrics", "tasks.json"),
        ("import_judgments", "tasks.json", "--judge", "other"),
    ],
    ids=lambda command: command[0],
)
def test_no_command_adds_to_what_came_in_a_bundle(audit: Audit, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "tasks.json").write_bytes(tasks(0).read())
    name, file, *more = command

    with pytest.raises(CommandError, match="imported with an evidence bundle") as refused:
        call_command(name, str(tmp_path / file), "--benchmark", audit.submission.benchmark.slug, *more)

    assert refused.value.returncode == 2


def test_the_command_takes_heads_and_task_list(bundles: dict[str, Path], tmp_path: Path) -> None:
    auditor()
    (tmp_path / "tasks.json").write_bytes(tasks(0, 1, 7).read())
    path = bundles["files"]

    assert run("import_audit", path, "--as", "amy", "--anchors", tmp_path / "gone.jsonl")[2] == 2
    out, err, code = run("import_audit", path, "--as", "amy", "--tasks", tmp_path / "tasks.json")

    assert (err, code) == ("", 0)
    assert "these checks failed: tasks" in out


def test_whose_key_it_is_is_told(amy: Client, audit: Audit) -> None:
    assert all("not known to belong to the submitter" in page for page in pages(amy, audit))


# --- the sample ------------------------------------------------------------------------------------------------------


def test_where_the_seed_comes_from_is_told(amy: Client, audit: Audit) -> None:
    text(amy.post(reverse("draw-sample", args=[audit.pk]), {"size": 2, "seed": ""}, follow=True))
    audit.refresh_from_db()

    assert all(audit.nonce in page and "chosen by the auditor" not in page for page in pages(amy, audit))
    told = amy.get(reverse("api-audit", args=[audit.pk])).json()
    assert (told["nonce"], told["seed_chosen"]) == (audit.nonce, False)
    assert audit.nonce in run("audit_report", audit.pk)[0]


def test_a_seed_that_was_typed_is_told_everywhere(amy: Client, audit: Audit) -> None:
    told = posted(amy, "api-audit-sample", audit, {"size": 2, "seed": "mine"}).json()

    assert (told["nonce"], told["seed_chosen"]) == ("", True)
    assert all("chosen by the auditor" in page for page in pages(amy, audit))
    assert "mine, chosen by the auditor" in run("audit_report", audit.pk)[0]


def test_another_bundle_of_the_submission_is_told_everywhere(
    amy: Client, audit: Audit, bundles: dict[str, Path]
) -> None:
    assert all("other bundle" not in page for page in pages(amy, audit))
    other = open_bundle(bundles["digests"], auditor("bea"))
    actions.draw(audit, auditor(), 2)

    for page in pages(amy, audit):
        assert other.manifest in page
        assert "1 sample of it was drawn in all" in re.sub(r"\s+", " ", page)
    bea = pages(client_of(auditor("bea")), other)
    assert all(audit.manifest in page and "2 trajectories drawn" in page for page in bea)
    beside = amy.get(reverse("api-audit", args=[audit.pk])).json()["beside"]
    assert (beside["samples_drawn"], beside["other_bundles"][0]["manifest"]) == (1, other.manifest)
    assert other.manifest in run("audit_report", audit.pk)[0]


def test_a_bundle_without_pictures_says_on_the_page_what_to_ask_for(amy: Client, bundles: dict[str, Path]) -> None:
    audit = open_bundle(bundles["digests"], auditor())

    answer = amy.post(reverse("draw-sample", args=[audit.pk]), {"size": 1, "seed": ""})

    assert "bundle with its screenshots" in text(answer, 409)


def test_the_report_says_who_labelled_only_when_they_have(amy: Client, audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)
    add_people(sample)
    assert "Each is to be labelled by 3 people" in pages(amy, audit)[1]

    relabel(sample)

    assert "Each was labelled by 3 people" in pages(amy, audit)[1]


# --- the desk --------------------------------------------------------------------------------------------------------


def checked(audit: Audit, findings: list[dict[str, Any]]) -> None:
    """Again, and found was this."""
    row = {"checked_by": audit.opened_by, "checked_at": timezone.now(), "key_trusted": False}
    AuditCheck.objects.create(audit=audit, given=[], findings=findings, **row)


def test_failed_check_is_told_with_its_places_and_what_to_do(amy: Client, audit: Audit) -> None:
    row = audit.submission.trajectories.earliest("pk")
    (first,) = [each for each in audit.findings if each["name"] == "final_verdicts"]
    checked(audit, [first | {"result": "fail", "places": [row.task.external_id, "MANIFEST.json"]}])

    page = text(amy.get(reverse("audit", args=[audit.pk])))
    risks = page[page.index('<ol class="plain risks">') : page.index("What passed")]

    assert ">serious</span>" in risks
    assert f"<b>Failed: {first['title'][0].lower()}{first['title'][1:]}</b>" in risks
    assert "Ask the submitter for the reason." in risks
    assert "2 locations" in risks
    assert f'href="{reverse("submission-trajectory", args=[row.pk])}">{row.task.external_id}</a>' in risks
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_report_on_paper_has_the_places_in_its_text(amy: Client, audit: Audit) -> None:
    checked(audit, [audit.findings[0] | {"result": "fail", "places": ["labels.jsonl", "events.jsonl"]}])

    page = pages(amy, audit)[1]

    assert "labels.jsonl, events.jsonl" in page
    assert "<details" not in page[page.index('<table class="claims">') :]


def test_no_outcome_is_chosen_beforehand(amy: Client, audit: Audit) -> None:
    page = text(amy.get(reverse("audit", args=[audit.pk])))

    assert re.search(r'<select name="outcome"[^>]*>\s*<option value="" selected>Choose…</option>', page)
    text(amy.post(reverse("decide-audit", args=[audit.pk]), {"outcome": "", "reason": "Why."}), 400)


def test_the_command_decides(audit: Audit) -> None:
    testing.person("dave")
    said = ("--outcome", "query", "--reason", "Why is task 1 a success?")

    assert run("decide_audit", audit.pk, *said, "--as", "amy") == (f"audit {audit.pk}: queried.\n", "", 0)

    assert [each.reason for each in audit.decisions.all()] == ["Why is task 1 a success?"]
    assert run("decide_audit", audit.pk, *said, "--as", "dave")[1:] == (
        f"dave cannot read audit {audit.pk}: This is for the auditors of the submission.",
        1,
    )
    assert run("decide_audit", audit.pk, "--outcome", "accept", "--reason", " ", "--as", "amy")[2] == 2
    assert run("decide_audit", audit.pk + 1, *said, "--as", "amy")[2] == 2
    assert audit.decisions.count() == 1


def test_the_api_adds_an_auditor(amy: Client, audit: Audit) -> None:
    testing.person("rita")

    made = posted(amy, "api-auditors", audit, {"username": "rita"})

    assert (made.status_code, made.json()) == (201, {"username": "rita", "pseudonym": "U2"})
    rita = client_of(testing.person("rita"))
    assert rita.get(reverse("api-audit", args=[audit.pk])).status_code == 200
    assert posted(rita, "api-auditors", audit, {"username": "rita"}).status_code == 403
    assert posted(amy, "api-auditors", audit, {"username": "nobody"}).status_code == 400
    stand_in = audit.submission.memberships.filter(person__stand_in=True).earliest("pk").person.username
    assert posted(amy, "api-auditors", audit, {"username": stand_in}).status_code == 400


def test_the_api_adds_nobody_who_labels_the_sample(amy: Client, audit: Audit) -> None:
    add_people(actions.draw(audit, auditor(), 2))

    assert posted(amy, "api-auditors", audit, {"username": "erin"}).status_code == 409
