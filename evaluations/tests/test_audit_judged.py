"""What judges said, opened with a bundle: the same figures there, and nothing of it among the judges that are here."""

from __future__ import annotations

import copy
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.workflow import Conflict
from evaluations import cases
from evaluations.auditing import actions
from evaluations.auditing.import_context import ImportContext, Rejections
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.auditing.judgments import write_judgments
from evaluations.comparison import list_judges
from evaluations.evidence.bundle import comparison
from evaluations.management.commands.compare import find_judge
from evaluations.measures import JUDGE_MEASURES
from evaluations.models import Audit
from evaluations.tests.audited import add_people, audit_of, auditor, bundle, client_of, judge_lines
from evaluations.tests.forging import Forged
from judges import defining, runs
from judges.models import Judge, JudgeRun, Judgment, RunItem
from judges.ready_judges import RunRefused
from judges.tests.rows import imported_row, judge_row, judgment_row, run_row
from judges.working import leases

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
FAILED = "The endpoint at judges.example did not answer."


Lines = list[dict[str, Any]]
NOT_IN_BUNDLES = {name for name, measure in JUDGE_MEASURES.items() if not measure.verified}


def of_bundle(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in row.keys() - NOT_IN_BUNDLES}
    return kept | {"undefined": {name: why for name, why in row["undefined"].items() if name not in NOT_IN_BUNDLES}}


def opened(audit: Audit) -> tuple[str, str]:
    found = next(each for each in audit.findings if each["name"] == "opened")
    return found["result"], found["says"]


# --- nothing of it is of this instance -------------------------------------------------------------------------------


@pytest.fixture
def audit(frozen: Submission, tmp_path: Path) -> Audit:
    """Of a submission with a run of ``strict`` that is not over, and imported judgments of ``elsewhere``."""
    run = run_row(frozen, judge_row("strict"))
    judgment_row(run.items.earliest("pk"), 1)
    imported_row(frozen.trajectories.get(position=1), 0)
    return audit_of(frozen, tmp_path)


def test_the_rows_of_the_bundle_are_those_of_the_api_the_command_and_the_page(audit: Audit, frozen: Submission) -> None:
    submission = audit.submission
    stated = comparison(frozen)
    assert stated is not None

    client, slug = client_of(auditor()), submission.benchmark.slug
    for judge in stated["judges"]:
        answer = client.get(reverse("api-comparison", args=[submission.pk]), {"judge": judge["judge"]}).json()
        assert ([of_bundle(row) for row in answer["rows"]], answer["fingerprint"]) == (
            judge["rows"],
            judge["fingerprint"],
        )
        out = StringIO()
        call_command("compare", benchmark=slug, submission=submission.pk, judge=judge["judge"], json=True, stdout=out)
        assert json.loads(out.getvalue()) == answer | {"scope": f"submission {submission.pk}: {submission}"}
        page = client.get(reverse("comparison", args=[submission.pk]), {"judge": judge["judge"]}).content.decode()
        assert judge["fingerprint"][:12] in page
    for pk in submission.bundled_judges.values_list("pk", flat=True):
        assert reverse("judge", args=[pk]) not in page
    assert "2 beside people" in client.get(reverse("audit", args=[audit.pk])).content.decode()


def test_judges_that_came_are_none_of_this_instance(audit: Audit) -> None:
    came = Judge.objects.filter(came_with=audit.submission)
    assert sorted(came.values_list("name", flat=True)) == ["elsewhere", "strict"]

    client = client_of(auditor())
    listed = {each["id"] for each in client.get(reverse("api-judges")).json()["results"]}
    assert listed == set(Judge.objects.filter(came_with=None).values_list("pk", flat=True))
    for judge in came:
        assert client.get(reverse("judge", args=[judge.pk])).status_code == 404
        assert client.get(reverse("api-judge", args=[judge.pk])).status_code == 404
        assert defining.find_judge(judge.name).came_with is None
        assert judge.fingerprint == Judge.own.get(name=judge.name).fingerprint
    came.bulk_create([Judge(name="newcomer", version=7, came_with=audit.submission, stated="f" * 64)])
    assert defining.define(None, name="newcomer", scorer="autonomous-eval", model="small-model").version == 1
    with pytest.raises(LookupError, match=r"The judge newcomer@7 does not exist\. Known: elsewhere, newcomer, strict"):
        defining.find_judge("newcomer@7")


def test_the_command_knows_the_judges_that_came_for_their_benchmark_alone(audit: Audit, frozen: Submission) -> None:
    came = [Judge(name="newcomer", version=7, came_with=audit.submission, stated="f" * 64)]
    Judge.objects.bulk_create(came)
    theirs = audit.submission.benchmark
    assert find_judge("newcomer", theirs) == came[0]
    assert find_judge("strict", theirs).came_with == audit.submission
    assert find_judge("strict@1", frozen.benchmark) == Judge.own.get(name="strict")
    with pytest.raises(CommandError, match="Did you mean newcomer"):
        find_judge("newcomr", theirs)
    with pytest.raises(CommandError, match="Known: elsewhere, strict"):
        find_judge("newcomer", frozen.benchmark)


def test_nothing_that_came_is_run(audit: Audit, people: dict[str, Person], frozen: Submission) -> None:
    judge = Judge.objects.get(came_with=audit.submission, name="strict")
    run = JudgeRun.objects.get(submission=audit.submission)

    for changed in (defining.freeze, lambda judge: defining.change(None, judge, model="x")):
        with pytest.raises(Conflict):
            changed(judge)
    with pytest.raises(RunRefused):
        runs.start(people["mira"], judge, frozen, {})
    assert (run.state, leases.has_free_items(run.pk), run.pk in leases.claim_idle_runs()) == ("stopped", False, False)
    RunItem.objects.create(run=run, trajectory=audit.submission.trajectories.latest("position"))
    assert leases.claim(run.pk, "worker", ()) == []
    client = client_of(auditor())
    assert client.get(reverse("judge-run", args=[run.pk])).status_code == 404
    assert client.get(reverse("judge-runs", args=[audit.submission_id])).status_code == 403


def test_figures_of_this_instance_do_not_count_what_came(
    audit: Audit, frozen: Submission, people: dict[str, Person]
) -> None:
    client = client_of(people["mira"])
    shown = client.get(reverse("judges")).context["rows"]

    assert [(str(judge), made) for group in shown for judge, made, _ in group] == [("elsewhere", 1), ("strict", 1)]
    stated = comparison(frozen)
    assert stated is not None
    assert [each["judge"] for each in stated["judges"]] == ["elsewhere@1", "strict@1"]
    board = client.get(reverse("api-benchmark-judges", args=[frozen.benchmark.slug])).json()
    assert len(board["judges"]) == 2


def test_no_judgment_that_came_is_shown_to_who_labels_the_sample_or_counts_in_it(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)
    assert list_judges(cases.of_submission(sample), benchmark=sample.benchmark.slug) == []
    people = add_people(sample)
    pk, row = audit.submission_id, audit.submission.trajectories.earliest("pk")
    judgment = Judgment.objects.filter(trajectory=row).earliest("pk")
    asked = [
        reverse("comparison", args=[pk]),
        reverse("api-comparison", args=[pk]) + "?judge=strict",
        reverse("printable-report", args=[pk]),
        reverse("trajectory-judgments", args=[row.pk]),
        reverse("judgment", args=[judgment.pk]),
        reverse("judgment-trace", args=[judgment.pk]),
    ]
    for name in ("erin", "hugo"):
        Person.objects.filter(pk=people[name].pk).update(is_superuser=True, is_staff=True)
        client = client_of(Person.objects.get(pk=people[name].pk))
        assert {address: client.get(address).status_code for address in asked} == dict.fromkeys(asked, 404)


# --- what cannot be a row --------------------------------------------------------------------------------------------


def stated(submission: Submission) -> tuple[Lines, Lines]:
    """A run of ``strict``, whose second item failed, and an imported judgment of ``elsewhere``."""
    run = run_row(submission, judge_row("strict"))
    first, second = run.items.order_by("pk")
    judgment_row(first, 1)
    RunItem.objects.filter(pk=second.pk).update(failed_at=run.started_at, error=FAILED)
    imported_row(submission.trajectories.get(position=1), 0)
    return judge_lines(submission)


def test_runs_are_written_in_the_order_of_their_numbers_and_not_one_by_one(frozen: Submission) -> None:
    [line, _], _ = stated(frozen)
    rows = {row.task.external_id: row for row in frozen.trajectories.select_related("task")}
    lines = [line | {"run": number, "repeat": number} for number in (3, 40, 7, *range(100, 130))]
    with CaptureQueriesContext(connection) as queries:
        write_judgments(ImportContext(frozen, Rejections(), trajectories=rows), lines, [])
    written = JudgeRun.objects.filter(judge__came_with=frozen).order_by("pk").values_list("repetitions", flat=True)
    assert list(written) == [3, 7, 40, *range(100, 130)]
    assert len(queries) < 10


def written(submission: Submission, runs: Lines, judgments: Lines) -> list[str]:
    """Why what of them is left out, when they came with this submission; nothing is kept."""
    rows = {row.task.external_id: row for row in submission.trajectories.select_related("task")}
    context = ImportContext(submission, Rejections(), trajectories=rows)
    with transaction.atomic():
        write_judgments(context, runs, judgments)
        transaction.set_rollback(True)
    return list(context.rejections.reasons.values())


MALFORMED: list[tuple[str, str, dict[str, Any], str]] = [
    ("judgments", "strict@1", {"task_id": "task_0077"}, "a task without a trajectory"),
    ("judgments", "strict@1", {"run": 77}, "its run is not among the runs"),
    ("judgments", "strict@1", {"run": 2}, "its run belongs to another judge"),
    ("judgments", "strict@1", {"fingerprint": "0" * 64}, "its run belongs to another judge"),
    ("judgments", "strict@1", {"repetition": 0}, "this repetition does not exist"),
    ("judgments", "strict@1", {"repetition": 2**53}, "this repetition does not exist"),
    ("judgments", "strict@1", {"judged_at": None}, "it has no time"),
    ("judgments", "strict@1", {"verdict": None}, "either a verdict or a reason"),
    ("judgments", "strict@1", {"reason": "Both."}, "either a verdict or a reason"),
    ("judgments", "strict@1", {"verdict": None, "reason": "x" * 501}, "its reason is too long"),
    ("judgments", "strict@1", {"error": True}, "it failed and has a verdict"),
    ("judgments", "elsewhere@1", {"error": True, "verdict": None, "score": None}, "it failed, without a run"),
    ("runs", "strict", {"judge": "no name"}, "no valid name"),
    ("runs", "strict", {"judge": "x" * 65}, "the name of its judge is too long"),
    ("runs", "strict", {"fingerprint": ""}, "no fingerprint"),
    ("runs", "strict", {"fingerprint": "f" * 65}, "the fingerprint of its judge is too long"),
    ("runs", "strict", {"version": 2**53}, "the version of its judge is too large"),
    ("runs", "strict", {"repeat": None}, "no number of repetitions"),
    ("runs", "strict", {"repeat": 2**53}, "no number of repetitions"),
    ("runs", "strict", {"run": 2}, "its number occurs twice"),
    ("runs", "elsewhere", {"judge": "strict"}, "describes the same judge differently"),
]


def test_what_cannot_be_a_judgment_is_left_out_and_said(frozen: Submission) -> None:
    lines = stated(frozen)
    assert written(frozen, *lines) == []

    for document, judge, change, said in MALFORMED:
        runs, judgments = copy.deepcopy(lines)
        chosen = runs if document == "runs" else judgments
        next(line for line in chosen if line["judge"] == judge).update(change)
        why = written(frozen, runs, judgments)
        assert why, change
        assert said in why[0], change


def test_a_doubled_judgment_is_left_out_and_said_by_the_audit(frozen: Submission, tmp_path: Path) -> None:
    stated(frozen)
    package = Forged(bundle(frozen, tmp_path).read_bytes())
    package.documents["judges/judgments.jsonl"] *= 2
    path = tmp_path / "forged.zip"
    path.write_bytes(package.sealed())

    audit = open_bundle(path, auditor())

    assert opened(audit)[0] == "fail"
    assert "3 could not be opened" in opened(audit)[1]
    assert Judgment.objects.filter(trajectory__submission=audit.submission).count() == 2


def test_judgments_of_another_shape_are_refused(frozen: Submission, tmp_path: Path) -> None:
    stated(frozen)
    data = bundle(frozen, tmp_path).read_bytes()
    for change in ({"verdict": 7}, {"verdict": "1"}, {"score": 1e300}, {"run": -1}, {"error": 1}):
        package = Forged(data)
        package.documents["judges/judgments.jsonl"][0].update(change)
        path = tmp_path / "forged.zip"
        path.write_bytes(package.sealed())
        with pytest.raises(AuditRefused, match="shapes"):
            open_bundle(path, auditor())

    assert not Judge.objects.filter(came_with__isnull=False).exists()


def test_a_bundle_without_judges_brings_none(frozen: Submission, tmp_path: Path) -> None:
    judgment_row(run_row(frozen).items.earliest("pk"), 1)

    audit = audit_of(frozen, tmp_path, judges=False)

    assert opened(audit)[0] == "pass"
    assert not audit.submission.bundled_judges.exists()
    page = client_of(auditor()).get(reverse("comparison", args=[audit.submission_id])).content.decode()
    assert "The evidence bundle has none" in page
