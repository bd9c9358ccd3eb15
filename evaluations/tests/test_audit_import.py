"""A bundle that was opened by an auditor: the same rows, documents and figures as where it came from."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from annotation import screenshots, workflow
from annotation.ingest import ImportStopped
from annotation.models import Benchmark, Event, Membership, Person, Screenshot, Submission
from annotation.records import AttemptContent, StepMark
from annotation.tests import testing
from annotation.workflow import Incomplete, integrity
from evaluations import cases, exports_labels, exports_v2
from evaluations.agreement import agreement
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.auditing.reference_data import parse_reference_data
from evaluations.evidence import trajectories
from evaluations.evidence.bundle import comparison
from evaluations.evidence.documents import documents
from evaluations.evidence.standing import claims
from evaluations.exports import missing_for_export
from evaluations.models import Audit, SigningKey
from evaluations.signing import published
from evaluations.tests.audited import ask_judges, audit_of, auditor, bundle, judge_lines
from evaluations.tests.finished import finish
from evaluations.tests.forging import Forged
from evaluations.tests.hand_made_bundle import KEY
from evaluations.tests.whole_review import whole_review
from evaluations.verifier.checking import Given

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def told(submission: Submission) -> dict[str, Any]:
    """Everything that a bundle would say of a submission, with the steps of its trajectories."""
    return vars(documents(submission, judges=False)) | {"lines": list(trajectories.lines(submission))}


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in one if one[name] != other[name]]


def opened_says(audit: Audit) -> str:
    """What the audit says of what could not be opened."""
    found = next(each for each in audit.findings if each["name"] == "opened")
    assert found["result"] == "fail"
    return str(found["says"])


def forged(submission: Submission, folder: Path) -> Forged:
    return Forged(bundle(submission, folder, judges=False).read_bytes())


def write(folder: Path, data: bytes) -> Path:
    path = folder / "forged.zip"
    path.write_bytes(data)
    return path


# --- the round trip --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pictures", ["files", "digests"])
def test_an_audit_tells_the_same_as_the_submission(tmp_path: Path, pictures: str) -> None:
    submission = whole_review(tmp_path / "package", judged=False)

    audit = audit_of(submission, tmp_path, screenshots=pictures)

    assert differing(told(submission), told(audit.submission)) == []
    assert integrity.problems(audit.submission) == []
    assert {each["result"] for each in audit.findings} == {"pass", "note"}


def test_figures_and_exports_are_those_of_the_submitter(tmp_path: Path) -> None:
    submission = whole_review(tmp_path / "package")
    ask_judges(submission)
    told_of_judges = judge_lines(submission)
    path = bundle(submission, tmp_path)

    audit = open_bundle(path, auditor())

    copy = audit.submission
    figures = [agreement(cases.of_submission(each), "both").as_json() for each in (submission, copy)]
    assert figures[0] == figures[1]
    assert missing_for_export(copy) == missing_for_export(submission) == []
    for export in (exports_labels.human_label, exports_labels.label_lines):
        assert b"".join(export(copy, [])) == b"".join(export(submission, []))
    assert list(exports_v2.members(copy, [])) == list(exports_v2.members(submission, []))
    assert claims(copy) == claims(submission)
    assert_judged_alike(audit, Forged(path.read_bytes())["reports/comparison"], told_of_judges)
    assert judge_lines(submission) == told_of_judges


def assert_judged_alike(audit: Audit, stated: dict[str, Any], told_of_judges: tuple[list[Any], list[Any]]) -> None:
    """The comparison of the bundle, with runs and judgments: only a run that went on there has ended here."""
    assert [each["result"] for each in audit.findings if each["name"] in ("comparison", "opened")] == ["pass", "pass"]
    assert [each["judge"] for each in stated["judges"]] == ["careful-judge@1", "slow@1", "strict@1"]
    strict = stated["judges"][2]["rows"][1]
    assert (strict["unscored"], strict["errors"]) == (1, 1)  # a trajectory each, however often it was asked about
    assert comparison(audit.submission) == stated
    runs, judgments = judge_lines(audit.submission)
    assert judgments == told_of_judges[1]
    assert [line["state"] for line in runs] == ["finished", "finished", "stopped", "imported"]
    assert [line | {"state": "running"} if line["judge"] == "slow" else line for line in runs] == told_of_judges[0]


def test_own_attempts_and_the_second_stage_come_along(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    workflow.configure(people["mira"], submission, protocol_version=2, second_stage=True, process_labels=True)
    attempt = AttemptContent(steps=4, notes="By the filter.", link="https://shop.example/", path="longer", seconds=95)
    boxes = (testing.box("at least 16 GB", 1), testing.box(None, 1))
    marks = (StepMark(0, "unnecessary"),)
    for name in ("alice", "bob", "chen"):
        while (held := workflow.claim(people[name], submission)) is not None:
            said = testing.content(held.trajectory, 0, attempt=attempt, further_failure_types=("loop",))
            workflow.submit(
                people[name], held.trajectory, replace(said, evidence_missing=(2,), boxes=boxes, process=marks)
            )
    row = submission.trajectories.get(position=0)
    judgments = [{"judge": "strict@1", "fingerprint": "f", "judgment": 1, "verdict": 1}]
    workflow.show_judgments(people["alice"], row, judgments)
    workflow.change_verdict(people["alice"], row, 1, "The judge is right.")
    workflow.show_judgments(people["bob"], row, judgments)
    submission.refresh_from_db()
    finish(people, submission, {})
    submission.refresh_from_db()

    audit = audit_of(submission, tmp_path)

    assert differing(told(submission), told(audit.submission)) == []
    assert integrity.problems(audit.submission) == []


def test_answers_come_with_their_kept_pages(tmp_path: Path) -> None:
    submission = testing.answered(tmp_path / "answers")
    people = testing.cast(submission)
    finish(people, submission, {})
    submission.refresh_from_db()

    audit = audit_of(submission, tmp_path)

    assert differing(told(submission), told(audit.submission)) == []
    client = Client()
    client.force_login(auditor())
    page = client.get(reverse("submission-trajectory", args=[audit.submission.trajectories.earliest("pk").pk]))
    assert "Shop 0" in page.content.decode()
    picture = audit.submission.trajectories.earliest("pk").attachments.get(name__endswith=".jpg")
    shown = client.get(reverse("page-picture", args=[picture.trajectory_id, picture.pk, "thumbnail"]))
    assert shown.status_code == 200


def test_people_are_stand_ins_whom_nobody_can_be(frozen: Submission, tmp_path: Path) -> None:
    audit = audit_of(frozen, tmp_path)

    stand_ins = Person.objects.filter(stand_in=True)
    assert sorted(person.username for person in stand_ins) == [
        f"audit-{audit.manifest[:12]}-{name}" for name in ("A1", "A2", "A3", "M1", "Q1")
    ]
    for person in stand_ins:
        assert not person.is_active
        assert not person.has_usable_password()
        assert (person.email, person.first_name, person.last_name) == ("", "", "")


def test_the_opener_is_an_auditor_without_an_event(frozen: Submission, tmp_path: Path) -> None:
    events = frozen.events.count()

    audit = audit_of(frozen, tmp_path)

    member = Membership.objects.get(submission=audit.submission, person=auditor())
    assert (member.role, member.pseudonym) == ("auditor", "U1")
    assert audit.submission.events.count() == events
    assert not audit.submission.events.filter(actor__isnull=False).exists()


def test_a_key_is_trusted_when_it_is_among_the_published_ones(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)

    audit = open_bundle(path, auditor(), Given(json.dumps(published())))

    assert audit.key_trusted
    assert audit.key_id == published()["keys"][0]["key_id"]


def test_without_keys_nobody_says_that_a_key_is_the_submitters(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    SigningKey.objects.all().delete()  # as on another instance

    assert not open_bundle(path, auditor()).key_trusted


def test_without_keys_those_of_this_instance_are_tried(frozen: Submission, tmp_path: Path) -> None:
    audit = audit_of(frozen, tmp_path)

    assert audit.key_trusted
    (signed,) = [each for each in audit.findings if each["name"] == "signature"]
    assert (signed["result"], "of this instance" in signed["says"]) == ("pass", True)


def test_published_heads_and_the_task_list_are_held_against_the_bundle(frozen: Submission, tmp_path: Path) -> None:
    heads = BytesIO(b'{"chain": "%s", "sequence": 0, "head": "%s"}\n' % (b"0" * 64, b"0" * 64))
    tasks = BytesIO(json.dumps([testing.task(0), testing.task(1), testing.task(7)]).encode())

    audit = open_bundle(bundle(frozen, tmp_path), auditor(), parse_reference_data(anchors=heads, tasks=tasks))

    told = {each["name"]: each for each in audit.findings}
    assert (told["tasks"]["result"], told["tasks"]["places"]) == ("fail", ["task_0007"])
    assert "none was given" not in told["anchors"]["says"]


def test_what_is_given_with_a_bundle_is_named_when_it_cannot_be_read() -> None:
    with pytest.raises(Incomplete) as refused:
        parse_reference_data("nonsense", BytesIO(b"\xff\xfe"), BytesIO(b"{}"))

    assert [each.where for each in refused.value.problems] == ["keys", "anchors", "tasks"]


# --- pictures --------------------------------------------------------------------------------------------------------


def test_a_picture_that_did_not_come_is_not_looked_up_here(frozen: Submission, tmp_path: Path) -> None:
    """The submission of this very instance has it, and the auditor must not see it for that."""
    audit = audit_of(frozen, tmp_path, screenshots="digests")
    row = audit.submission.trajectories.earliest("pk")
    client = Client()
    client.force_login(auditor())

    page = client.get(reverse("submission-trajectory", args=[row.pk])).content.decode()

    assert "not in the evidence bundle" in page
    assert client.get(reverse("picture", args=[row.pk, 0, "display"])).status_code == 404
    assert client.get(reverse("sheet", args=[row.pk, 0])).status_code == 200  # of empty places


def test_a_redacted_picture_is_shown_covered_only(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    row = submission.trajectories.get(position=0)
    original = row.steps.get(index=1).screenshot
    workflow.redact(people["mira"], submission, original, [[0, 0, 100, 100]], "An address.")
    finish(people, submission, {})
    submission.refresh_from_db()

    audit = audit_of(submission, tmp_path)

    step = audit.submission.trajectories.get(position=0).steps.get(index=1)
    assert step.withheld["sha256"] == original.sha256
    assert step.screenshot.sha256 == submission.redactions.get().redacted
    assert screenshots.decoded(step.screenshot.sha256).getpixel((50, 50)) == (0, 0, 0)
    assert differing(told(submission), told(audit.submission)) == []


def test_a_file_that_is_no_picture_is_left_out_and_said(frozen: Submission, tmp_path: Path) -> None:
    package = forged(frozen, tmp_path)
    name = package.picture()
    package.files[name] = b"<script>alert(1)</script>"

    audit = open_bundle(write(tmp_path, package.sealed()), auditor())

    assert "cannot be decoded" in opened_says(audit)
    assert audit.submission.trajectories.filter(steps__withheld__isnull=False).exists()


def test_stated_sizes_of_a_picture_make_no_row_of_it(frozen: Submission, tmp_path: Path) -> None:
    """Otherwise an honest import of that picture would get what a stranger claimed of it."""
    package = forged(frozen, tmp_path)
    name = package.picture()
    digest = name.split("/")[1].split(".")[0]
    del package.files[name]
    before = Screenshot.objects.count()

    audit = open_bundle(write(tmp_path, package.sealed()), auditor())

    assert Screenshot.objects.count() == before
    assert audit.submission.trajectories.filter(steps__withheld__sha256=digest).exists()


# --- what is wrong ---------------------------------------------------------------------------------------------------


def rows() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Audit, Submission, Benchmark, Person, Membership, Event))


def test_a_changed_file_is_refused_and_leaves_nothing(frozen: Submission, tmp_path: Path) -> None:
    package = forged(frozen, tmp_path)
    package["labels"][0]["facts"]["reasoning"] = "Another one."
    auditor()
    before = rows()

    with pytest.raises(AuditRefused, match=r"labels\.jsonl") as refused:
        open_bundle(write(tmp_path, package.unsealed()), auditor())

    assert rows() == before
    assert "manifest" in [problem.code for problem in refused.value.problems]


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AuditRefused, match="not a zip file"):
        open_bundle(write(tmp_path, b"nothing"), auditor())


def test_keys_that_are_none_are_refused(frozen: Submission, tmp_path: Path) -> None:
    with pytest.raises(AuditRefused, match="64 hex digits"):
        open_bundle(bundle(frozen, tmp_path), auditor(), Given("nonsense"))


def test_a_bundle_is_opened_once(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    open_bundle(path, auditor())
    auditor("bea")
    before = rows()

    with pytest.raises(AuditRefused, match="already open here"):
        open_bundle(path, auditor("bea"))
    open_bundle(path, auditor())

    assert rows() == before


def test_only_maintainers_of_the_instance_open_bundles(frozen: Submission, tmp_path: Path) -> None:
    with pytest.raises(PermissionDenied):
        open_bundle(bundle(frozen, tmp_path), testing.person("dave"))


def test_a_bundle_that_fails_checks_is_opened_and_says_which(frozen: Submission, tmp_path: Path) -> None:
    package = forged(frozen, tmp_path)
    package["labels"][0]["facts"]["reasoning"] = "Another one."

    audit = open_bundle(write(tmp_path, package.covered()), auditor())

    assert "complete_record" in [each["name"] for each in audit.findings if each["result"] == "fail"]
    assert audit.submission.trajectories.filter(assignments__labels__reasoning="Another one.").exists()
    assert integrity.problems(audit.submission) != []


def a_stranger_labels(package: Forged) -> None:
    package["labels"][0]["annotator"] = "A9"


def somebody_labels_twice(package: Forged) -> None:
    package["labels"][1]["annotator"] = package["labels"][0]["annotator"]


def an_event_is_doubled(package: Forged) -> None:
    package["events"].append(dict(package["events"][-1]))


def a_failure_names_no_step(package: Forged) -> None:
    package["labels"][0]["facts"].update(verdict=0, failure_type="range_not_exact", failure_step=77)


def a_slot_beyond_the_required(package: Forged) -> None:
    package["submission"]["required_labels"] = 2


def a_catalogue_without_the_task(package: Forged) -> None:
    package["catalogue"].pop(0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (a_stranger_labels, "A9, who is not in people.json"),
        (somebody_labels_twice, "has another slot"),
        (an_event_is_doubled, "its number occurs twice"),
        (a_failure_names_no_step, "trajectory does not have its failure step"),
        (a_slot_beyond_the_required, "the trajectory does not have this slot"),
        (a_catalogue_without_the_task, "the catalogue does not have this version"),
    ],
)
def test_what_the_database_would_refuse_is_left_out_and_said(
    frozen: Submission, tmp_path: Path, change: Any, said: str
) -> None:
    package = forged(frozen, tmp_path)
    change(package)

    audit = open_bundle(write(tmp_path, package.sealed(KEY)), auditor())

    assert said in opened_says(audit)


def test_what_no_submission_can_be_is_refused_whole(frozen: Submission, tmp_path: Path) -> None:
    package = forged(frozen, tmp_path)
    package["submission"].update(frozen_at=None, opened_at=package["submission"]["created_at"])
    auditor()
    before = rows()

    with pytest.raises(AuditRefused, match="an impossible record"):
        open_bundle(write(tmp_path, package.sealed()), auditor())

    assert rows() == before


def test_a_full_store_keeps_nothing(frozen: Submission, tmp_path: Path, monkeypatch: Any) -> None:
    path = bundle(frozen, tmp_path)
    auditor()
    before = rows()

    def full(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(default_storage, "exists", lambda name: False)
    monkeypatch.setattr(default_storage, "save", full)
    with pytest.raises(ImportStopped, match="No space"):
        open_bundle(path, auditor())

    assert rows() == before


def test_a_bundle_of_another_version_is_not_blamed_for_its_wording(frozen: Submission, tmp_path: Path) -> None:
    forged = Forged(bundle(frozen, tmp_path).read_bytes())
    forged.files["verify.py"] = b"# the program of another version\n"
    forged["claims"]["claims"][0]["title"] = "All tasks are there"
    path = tmp_path / "older.zip"
    path.write_bytes(forged.sealed())

    audit = open_bundle(path, auditor(), Given(keys=KEY.public_key().public_bytes_raw().hex()))

    results = {each["name"]: each["result"] for each in audit.findings}
    assert results["stated_claims"] == "note"
    assert "fail" not in results.values(), audit.findings
