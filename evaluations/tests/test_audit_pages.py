"""The auditor's desk in pages, commands and API: opening, drawing, deciding, and the printed report."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests import testing
from evaluations.models import Audit
from evaluations.signing import published
from evaluations.tests.audited import auditor, bundle, client_of, relabel, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def uploaded(path: Path) -> SimpleUploadedFile:
    return SimpleUploadedFile("careful.evidence.zip", path.read_bytes(), "application/zip")


def text(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.content.decode()[:2000]
    return str(answer.content.decode())


def posted(client: Client, name: str, audit: Audit, sent: dict[str, Any]) -> Any:
    return client.post(reverse(name, args=[audit.pk]), sent, content_type="application/json")


def run(*words: Any) -> tuple[str, str, int]:
    out, err = StringIO(), StringIO()
    try:
        call_command(*(str(word) for word in words), stdout=out, stderr=err)
    except CommandError as error:
        return out.getvalue(), f"{err.getvalue()}{error}", error.returncode
    return out.getvalue(), err.getvalue(), 0


# --- opening ---------------------------------------------------------------------------------------------------------


def test_a_bundle_is_opened_on_the_page(amy: Client, frozen: Submission, tmp_path: Path) -> None:
    sent = {"bundle": uploaded(bundle(frozen, tmp_path)), "keys": json.dumps(published())}

    taken = amy.post(reverse("open-audit"), sent)
    assert "Waiting for a worker" in text(amy.get(taken["Location"]))
    work()

    audit = Audit.objects.get()
    address = reverse("audit", args=[audit.pk])
    assert f'<b>Opened</b> as <a href="{address}">' in text(amy.get(taken["Location"]))
    page = text(amy.get(address))
    assert "careful.evidence.zip" in page
    assert audit.manifest in page
    assert "a key of this instance" in page
    assert "final_verdicts" in page
    assert "careful.evidence.zip" in text(amy.get(reverse("audits")))


def test_imported_submission_has_its_tasks_and_record_but_no_path(amy: Client, audit: Audit) -> None:
    tasks = reverse("submission-tasks", args=[audit.submission_id])
    assert amy.get(reverse("submission", args=[audit.submission_id]))["Location"] == tasks

    page = text(amy.get(tasks))
    last = audit.submission.events.order_by("-sequence").first()
    assert last is not None
    for shown in ("Frozen 20", "trajectories have a final verdict", "Draw 1:", last.hash, "read-only"):
        assert shown in page
    for name in ("people", "submission-settings", "export", "evidence", "freeze", "submission-draw"):
        assert f'"{reverse(name, args=[audit.submission_id])}"' not in page


def test_a_refused_bundle_says_why_and_what_was_checked(amy: Client, bundles: dict[str, Path], tmp_path: Path) -> None:
    data = bundles["files"].read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[:-100])

    taken = amy.post(reverse("open-audit"), {"bundle": uploaded(tmp_path / "cut.zip")})
    work()

    assert "was cut off" in text(amy.get(taken["Location"]))
    assert Audit.objects.count() == 0


def test_a_bundle_that_is_too_large_for_the_page_names_the_command(
    amy: Client, bundles: dict[str, Path], settings: Any
) -> None:
    settings.WEBVERDICT_MAX_UPLOAD_BYTES = 1000

    page = text(amy.post(reverse("open-audit"), {"bundle": uploaded(bundles["files"])}), 400)

    assert "import_audit" in page


def test_who_maintains_nothing_has_no_desk() -> None:
    dave = client_of(testing.person("dave"))

    assert dave.get(reverse("audits")).status_code == 403
    assert dave.post(reverse("open-audit")).status_code == 403
    assert dave.post(reverse("api-audits")).status_code == 403


# --- the desk --------------------------------------------------------------------------------------------------------


def test_the_sample_is_drawn_on_the_page(amy: Client, audit: Audit) -> None:
    page = text(amy.post(reverse("draw-sample", args=[audit.pk]), {"size": 1, "seed": "mine"}, follow=True))

    audit.refresh_from_db()
    assert "Sample drawn" in page
    assert (audit.size, audit.seed) == (1, "mine")
    assert audit.sample is not None
    page = text(amy.get(reverse("judge-runs", args=[audit.sample.pk])))
    assert reverse("imported-judgments", args=[audit.sample.benchmark.slug]) not in page
    assert "0 of 3" in text(amy.get(reverse("audit", args=[audit.pk])))
    assert text(amy.post(reverse("draw-sample", args=[audit.pk]), {"size": 1}), 409)


def test_a_sample_that_cannot_be_drawn_is_refused_on_the_page(amy: Client, audit: Audit) -> None:
    for size in ("many", "3"):
        text(amy.post(reverse("draw-sample", args=[audit.pk]), {"size": size}), 400)

    assert audit.sample is None


def test_a_decision_is_made_on_the_page(amy: Client, audit: Audit) -> None:
    sent = {"outcome": "reject", "reason": "Two labels are copies."}

    page = text(amy.post(reverse("decide-audit", args=[audit.pk]), sent, follow=True))

    assert "Two labels are copies." in page
    assert "rejected" in text(amy.get(reverse("audits")))
    text(amy.post(reverse("decide-audit", args=[audit.pk]), {"outcome": "reject"}), 400)


def test_archived_audit_is_in_no_list_until_it_is_restored(amy: Client, audit: Audit) -> None:
    events = audit.submission.events.count()
    link = reverse("audit", args=[audit.pk])

    assert "Audit archived." in text(amy.post(reverse("archive-audit", args=[audit.pk]), follow=True))
    assert link not in text(amy.get(reverse("audits")))
    assert link in text(amy.get(reverse("audits"), {"archived": 1}))
    assert amy.get(reverse("api-audits")).json()["results"] == []
    assert [row["id"] for row in amy.get(reverse("api-audits"), {"archived": "true"}).json()["results"]] == [audit.pk]
    assert "Lists do not show this audit." in text(amy.get(link))

    assert "Audit restored." in text(amy.post(reverse("restore-audit", args=[audit.pk]), follow=True))
    assert link in text(amy.get(reverse("audits")))
    assert audit.submission.events.count() == events


@pytest.mark.parametrize("address", ["archive-audit", "restore-audit"])
def test_only_auditors_archive_and_restore(audit: Audit, address: str) -> None:
    other = client_of(testing.person("mira", is_staff=True))
    assert other.post(reverse(address, args=[audit.pk])).status_code == 404


def test_another_auditor_is_added_on_the_page(amy: Client, audit: Audit) -> None:
    bea = auditor("bea")

    page = text(amy.post(reverse("add-auditor", args=[audit.pk]), {"person": bea.pk}, follow=True))

    assert "bea can now read this audit, as U2" in page


def test_stand_ins_are_offered_nowhere(amy: Client, audit: Audit) -> None:
    stand_in = Person.objects.filter(stand_in=True).first()
    assert stand_in is not None

    assert stand_in.username not in text(amy.get(reverse("audit", args=[audit.pk])))
    text(amy.post(reverse("add-auditor", args=[audit.pk]), {"person": stand_in.pk}), 400)


def test_the_desk_shows_what_came_of_the_sample(amy: Client, audit: Audit) -> None:
    amy.post(reverse("draw-sample", args=[audit.pk]), {"size": 2})
    sample = audit.sample
    assert sample is not None
    assert "Judged otherwise" not in text(amy.get(reverse("audit", args=[audit.pk])))
    relabel(sample, {"task_0001": 0})

    page = text(amy.get(reverse("audit", args=[audit.pk])))

    assert "50.0" in page  # one of two
    row = audit.submission.trajectories.get(task__external_id="task_0001")
    assert reverse("submission-trajectory", args=[row.pk]) in page


# --- the report ------------------------------------------------------------------------------------------------------


def test_the_report_tells_all_by_pseudonyms(amy: Client, audit: Audit) -> None:
    amy.post(reverse("draw-sample", args=[audit.pk]), {"size": 2, "seed": "mine"})
    assert audit.sample is not None
    relabel(audit.sample, {"task_0001": 0})
    amy.post(reverse("decide-audit", args=[audit.pk]), {"outcome": "query", "reason": "Why is task 1 a success?"})

    page = text(amy.get(reverse("audit-report", args=[audit.pk])))
    printed = page[page.index("<article") : page.index("</article>")]

    for words in (audit.manifest, "mine", "queried", "by U1", "Why is task 1 a success?", "blind_order", "Cohen"):
        assert words in printed
    assert re.findall(r"\b(?:amy|erin|finn|gita|hugo|alice|mira|carol)\b", printed) == []


def test_the_report_of_a_fresh_audit_says_that_nothing_was_done_yet(amy: Client, audit: Audit) -> None:
    page = text(amy.get(reverse("audit-report", args=[audit.pk])))

    assert "None was drawn." in page
    assert "Nothing yet." in page


# --- commands --------------------------------------------------------------------------------------------------------


def test_the_commands_open_draw_and_tell(frozen: Submission, tmp_path: Path) -> None:
    auditor()
    keys = tmp_path / "keys.json"
    path = bundle(frozen, tmp_path)
    keys.write_text(json.dumps(published()))

    out, err, code = run("import_audit", path, "--as", "amy", "--keys", keys)

    assert (err, code) == ("", 0)
    audit = Audit.objects.get()
    assert f"audit {audit.pk}: submission {audit.submission_id}" in out
    assert audit.key_trusted
    out, err, code = run("draw_audit_sample", audit.pk, "--size", 2, "--seed", "mine")
    assert (err, code) == ("", 0)
    assert "2 trajectories drawn with the seed mine, chosen by the auditor" in out
    told = run("audit_report", audit.pk)[0]
    assert "not frozen" in told
    assert f"manifest  {audit.manifest} (SHA-256)\nkey       {audit.key_id}, the submitter's" in told
    assert all(finding["says"] in told for finding in audit.findings)
    assert audit.sample is not None
    relabel(audit.sample, {"task_0001": 0})
    told = json.loads(run("audit_report", audit.pk, "--json")[0])
    assert (told["result"]["agreement"]["hits"], told["result"]["n"]) == (1, 2)
    drawn = {"submission": audit.sample.pk, "size": 2, "seed": "mine", "nonce": "", "seed_chosen": True}
    drawn["tolerance"] = None
    assert told["sample"] == drawn
    assert (told["samples_drawn"], told["other_bundles"]) == (1, [])
    assert "task_0001" in run("audit_report", audit.pk)[0]


def test_the_commands_refuse_with_the_reason(bundles: dict[str, Path], tmp_path: Path) -> None:
    auditor()
    (tmp_path / "no.zip").write_bytes(b"nothing")
    testing.person("dave")

    assert run("import_audit", tmp_path / "no.zip", "--as", "amy")[1:] == (
        "The bundle was not opened. It is not a zip file, or it was cut off; download it again.",
        1,
    )
    assert run("import_audit", tmp_path / "gone.zip", "--as", "amy")[2] == 2
    assert run("import_audit", bundles["files"], "--as", "nobody")[2] == 2
    assert run("import_audit", bundles["files"], "--as", "dave")[2] == 1
    assert run("audit_report", 10**9)[2] == 2
    run("import_audit", bundles["files"], "--as", "amy")
    assert run("draw_audit_sample", Audit.objects.get().pk, "--size", 99)[1:] == ("Draw 1 to 2 trajectories.", 2)


# --- API -------------------------------------------------------------------------------------------------------------


def test_the_api_opens_draws_and_decides(amy: Client, bundles: dict[str, Path]) -> None:
    made = amy.post(reverse("api-audits"), {"bundle": uploaded(bundles["files"])})
    assert made.status_code == 202, made.content
    work()
    audit = Audit.objects.get()
    assert amy.get(made["Location"]).json()["audit"] == audit.pk
    assert [each["id"] for each in amy.get(reverse("api-audits")).json()["results"]] == [audit.pk]

    drawn = posted(amy, "api-audit-sample", audit, {"size": 2})
    assert (drawn.status_code, drawn.json()["sample"]) == (201, audit.sample and audit.sample.pk)
    again = posted(amy, "api-audit-sample", audit, {"size": 2})
    assert again.status_code == 409

    decision = {"outcome": "accept", "reason": "All is well."}
    decided = posted(amy, "api-audit-decisions", audit, decision)
    assert decided.status_code == 201
    told = amy.get(reverse("api-audit", args=[audit.pk])).json()
    assert (told["decision"], told["result"]) == ("accept", None)
    assert {each["result"] for each in told["findings"]} == {"pass", "note"}
    assert audit.sample is not None
    relabel(audit.sample)
    assert amy.get(reverse("api-audit", args=[audit.pk])).json()["result"]["agreement"]["value"] == 1.0


def test_the_api_says_what_is_wrong_with_a_bundle(amy: Client, tmp_path: Path) -> None:
    sent = {"bundle": SimpleUploadedFile("x.zip", b"nothing")}

    taken = amy.post(reverse("api-audits"), sent)
    work()

    told = amy.get(taken["Location"]).json()
    assert (told["stage"], told["audit"]) == ("finished", None)
    assert "not a zip file" in told["refused"]
