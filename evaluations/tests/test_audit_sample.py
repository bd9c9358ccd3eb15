"""The sample of an audit: drawn once by a seed, labelled again as any submission, and compare_verdicts."""

from __future__ import annotations

import hashlib
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from scipy.stats import hypergeom

from annotation import ingest, redactions, workflow
from annotation.models import Agent, Membership, Person, Submission, Trajectory
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow import Conflict, Incomplete, integrity
from evaluations import cases
from evaluations.agreement import agreement
from evaluations.auditing import actions
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.auditing.results import compare_verdicts, estimate_wrong, find_related_bundles, result
from evaluations.models import Audit, AuditDecision
from evaluations.statistics import wilson
from evaluations.tests.audited import add_people, audit_of, auditor, bundle, relabel
from evaluations.tests.checks import check
from evaluations.tests.finished import finish
from evaluations.verifier.findings import Result

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@shared_rows
def audit(folder: Path) -> Audit:
    """Of five trajectories: task 0 a dispute that became a success, task 4 a failure, the others successes."""
    submission = testing.submission(folder, trajectories=5)
    people = testing.cast(submission)
    workflow.configure(people["mira"], submission, spot_check_rate=0.0)
    finish(people, submission, {"task_0000": [1, 0, 2], "task_0004": [0, 0, 0]})
    submission.refresh_from_db()
    return audit_of(submission, folder.parent)


def tasks(submission: Submission) -> list[str]:
    return list(submission.trajectories.order_by("position").values_list("task__external_id", flat=True))


@pytest.fixture
def covered(tmp_path: Path) -> Audit:
    """Of two trajectories; one picture came covered, after a first redaction of it that covered more."""
    submission = testing.submission(tmp_path / "package", trajectories=2)
    people = testing.cast(submission)
    finish(people, submission, {})
    picture = submission.trajectories.get(position=0).steps.get(index=0).screenshot
    for boxes in ([[0, 0, 9, 9], [20, 20, 5, 5]], [[0, 0, 9, 9]]):
        workflow.redact(people["mira"], submission, picture, boxes, "An address.")
    submission.refresh_from_db()
    return audit_of(submission, tmp_path)


# --- drawing ---------------------------------------------------------------------------------------------------------


def test_the_draw_can_be_repeated_from_its_seed_as_that_of_spot_checks(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 3, "a seed")

    generator = random.Random("a seed")
    ranked = sorted((generator.random(), f"task_000{number}") for number in range(5))
    assert tasks(sample) == sorted(task for _, task in ranked[:3])
    audit.refresh_from_db()
    assert (audit.seed, audit.size, audit.sample) == ("a seed", 3, sample)
    assert audit.drawn_at is not None


def test_a_seed_that_nobody_gives_is_made_and_recorded(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)

    audit.refresh_from_db()
    assert len(audit.nonce) == 64
    assert audit.seed == hashlib.sha256((audit.manifest + audit.nonce).encode()).hexdigest()
    assert not audit.seed_chosen
    event = sample.events.get(kind="imported")
    drawn = {"manifest": audit.manifest, "seed": audit.seed, "nonce": audit.nonce, "size": 2}
    assert event.payload["sample_of"] == drawn


def test_a_seed_that_was_typed_is_told_as_chosen(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2, " mine ")

    audit.refresh_from_db()
    assert (audit.seed, audit.nonce, audit.seed_chosen) == ("mine", "", True)
    assert sample.events.get(kind="imported").payload["sample_of"]["nonce"] == ""


def test_the_sample_is_spot_checked_however_little_the_submission_was(audit: Audit) -> None:
    assert audit.submission.spot_check_rate == 0.0

    assert actions.draw(audit, auditor(), 2).spot_check_rate == 0.10


def test_the_sample_is_spot_checked_as_much_as_the_submission_was(audit: Audit) -> None:
    Submission.objects.filter(pk=audit.submission_id).update(spot_check_rate=0.5)

    assert actions.draw(audit, auditor(), 2).spot_check_rate == 0.5


def test_without_pictures_nothing_is_labelled_again(audit: Audit, tmp_path: Path) -> None:
    original = Submission.objects.get(audited=False)
    other = open_bundle(bundle(original, tmp_path, screenshots="digests"), auditor())

    with pytest.raises(Conflict, match=r"15 of 15 steps.*with its screenshots"):
        actions.draw(other, auditor(), 2)
    assert other.sample is None


def test_other_bundles_of_the_submission_are_told_on_both_sides(audit: Audit, tmp_path: Path) -> None:
    original = Submission.objects.get(audited=False)
    assert find_related_bundles(audit).others == []
    other = open_bundle(bundle(original, tmp_path, screenshots="digests"), auditor("bea"))
    actions.draw(audit, auditor(), 2)

    assert (find_related_bundles(audit).others, find_related_bundles(audit).drawn) == ([other], 1)
    assert (find_related_bundles(other).others, find_related_bundles(other).drawn) == ([audit], 1)
    assert find_related_bundles(other).as_json()["other_bundles"][0]["size"] == 2


def test_a_bundle_of_another_submission_is_not_told(audit: Audit, tmp_path: Path) -> None:
    """The same trajectories under another name: its chain begins otherwise."""
    _, made = ingest.import_submission(
        tmp_path / "package", benchmark=Submission.objects.get(audited=False).benchmark, agent_name="Renamed Agent"
    )
    assert made is not None
    made = finish(testing.cast(made), made, {})
    (tmp_path / "other").mkdir()

    other = audit_of(made, tmp_path / "other")

    assert (find_related_bundles(audit).others, find_related_bundles(other).others) == ([], [])


def test_a_sample_is_drawn_once(audit: Audit) -> None:
    actions.draw(audit, auditor(), 2)

    with pytest.raises(Conflict, match="Each audit has one sample"):
        actions.draw(audit, auditor(), 2)


def test_the_database_refuses_a_second_sample(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)

    with pytest.raises(IntegrityError), transaction.atomic():
        Submission.objects.create(
            benchmark=sample.benchmark,
            agent=Agent.objects.create(name="Another"),
            digest="d",
            sample_of=audit.submission,
        )


@pytest.mark.parametrize("size", [0, 6, -1])
def test_a_sample_is_some_of_the_trajectories(audit: Audit, size: int) -> None:
    with pytest.raises(Incomplete, match="1 to 5"):
        actions.draw(audit, auditor(), size)
    assert audit.sample is None


def test_a_sample_may_be_of_all_of_them(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 5)

    assert tasks(sample) == tasks(audit.submission)
    assert sample.digest == audit.submission.digest


def test_only_an_auditor_draws(audit: Audit) -> None:
    with pytest.raises(PermissionDenied, match="Only an auditor of the submission may draw its sample"):
        actions.draw(audit, auditor("bea"), 2)
    with pytest.raises(PermissionDenied, match="Only an auditor of the submission may draw its sample"):
        actions.draw(audit, testing.person("alice"), 2)
    Person.objects.filter(pk=auditor().pk).update(is_staff=False)
    with pytest.raises(PermissionDenied, match="Only a maintainer of the instance may draw a sample"):
        actions.draw(audit, Person.objects.get(pk=auditor().pk), 2)


def test_a_sample_is_a_submission_of_the_auditor_with_the_same_steps(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 5)

    assert Membership.objects.get(submission=sample).person == auditor()
    assert Membership.objects.get(submission=sample).role == "maintainer"
    assert (sample.benchmark, sample.agent) == (audit.submission.benchmark, audit.submission.agent)
    assert (sample.attempt, sample.audited, sample.frozen_at) == (2, False, None)
    for copy in sample.trajectories.all():
        row = audit.submission.trajectories.get(task=copy.task)
        shown = [[(step.index, step.action, step.screenshot_id) for step in each.steps.all()] for each in (row, copy)]
        assert shown[0] == shown[1] != []
        assert (copy.digest, copy.open_slots) == (row.digest, 3)


def test_the_sample_goes_through_the_whole_protocol(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 3)

    relabel(sample)

    sample.refresh_from_db()
    assert sample.frozen_at is not None
    assert integrity.problems(sample) == []
    assert agreement(cases.of_submission(sample), "sample").overall is not None


# --- who labels it ---------------------------------------------------------------------------------------------------


def test_evidence_of_a_sample_tells_which_pictures_came_covered(covered: Audit, tmp_path: Path) -> None:
    sample = actions.draw(covered, auditor(), 2, "a seed")
    relabel(sample)
    before = redactions.find_current(covered.submission)
    assert len(before) == 1
    again = redactions.find_current(sample)
    assert {original: row.boxes for original, row in again.items()} == {key: [[0, 0, 9, 9]] for key in before}
    assert [row.reason.endswith(": An address.") for row in again.values()] == [True]

    sample.refresh_from_db()
    (tmp_path / "again").mkdir()
    path = bundle(sample, tmp_path / "again")
    failed = [each.name for each in check(str(path)) if each.result is Result.FAIL]
    assert failed == []
    [original] = before
    with zipfile.ZipFile(path) as package:
        [name] = [each for each in package.namelist() if original in each]
        assert name == f"screenshots/{original}.redacted.png"
        assert hashlib.sha256(package.read(name)).hexdigest() == before[original].redacted


def test_a_picture_that_came_covered_is_not_covered_otherwise(covered: Audit) -> None:
    sample = actions.draw(covered, auditor(), 2, "a seed")
    step = sample.trajectories.get(position=0).steps.get(index=0)
    with pytest.raises(Incomplete, match="No step"):
        workflow.redact(auditor(), sample, step.screenshot, [[0, 0, 1, 1]], "More.")


@pytest.mark.parametrize("role", [Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR])
@pytest.mark.parametrize("name", ["bea", "alice", "mira"])
def test_who_read_or_made_the_labels_does_not_label_the_sample(audit: Audit, name: str, role: Any) -> None:
    """bea audits it too; alice and mira took part in the submission itself, on this very instance."""
    actions.add_auditor(auditor(), audit, auditor("bea"))
    sample = actions.draw(audit, auditor(), 2)

    with pytest.raises(Conflict, match="read, the labels"):
        workflow.add_member(auditor(), sample, Person.objects.get(username=name), role)


def test_an_auditor_may_maintain_the_sample_too(audit: Audit) -> None:
    actions.add_auditor(auditor(), audit, auditor("bea"))
    sample = actions.draw(audit, auditor(), 2)

    workflow.add_member(auditor(), sample, auditor("bea"), Membership.Role.MAINTAINER)

    assert sample.memberships.filter(role="maintainer").count() == 2


def test_who_runs_the_instance_does_not_label_the_sample(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)
    root = Person.objects.create_superuser("root", "root@people.example", testing.PASSWORD)

    with pytest.raises(Conflict):
        workflow.add_member(auditor(), sample, root, Membership.Role.ANNOTATOR)


def test_who_labels_the_sample_reads_no_audit_of_the_review_until_it_is_frozen(audit: Audit, tmp_path: Path) -> None:
    sample = actions.draw(audit, auditor(), 2)
    people = add_people(sample)

    with pytest.raises(Conflict, match="when the sample is frozen"):
        actions.add_auditor(auditor(), audit, people["erin"])
    workflow.deactivate_member(auditor(), sample, people["finn"])
    with pytest.raises(Conflict, match="when the sample is frozen"):
        actions.add_auditor(auditor(), audit, people["finn"])  # who could be let in again

    workflow.add_member(auditor(), sample, people["finn"], Membership.Role.ANNOTATOR)
    relabel(sample)
    assert actions.add_auditor(auditor(), audit, people["erin"]).pseudonym == "U2"


def test_who_labels_the_sample_opens_no_other_bundle_of_the_review(audit: Audit, tmp_path: Path) -> None:
    original = Submission.objects.get(audited=False)
    sample = actions.draw(audit, auditor(), 2)
    people = add_people(sample)
    Person.objects.filter(pk=people["erin"].pk).update(is_staff=True)
    people["erin"].refresh_from_db()
    path = bundle(original, tmp_path, screenshots="digests")

    with pytest.raises(AuditRefused, match="label a sample of this audit"):
        open_bundle(path, people["erin"])

    assert Audit.objects.count() == 1
    open_bundle(path, auditor())  # as anybody else may


def test_a_frozen_sample_is_not_reopened(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)
    relabel(sample)

    with pytest.raises(Conflict, match="new labels would not be blind"):
        workflow.reopen_submission(auditor(), sample, "Once more.")


# --- what came of it -------------------------------------------------------------------------------------------------


def test_nothing_is_told_before_the_sample_is_frozen(audit: Audit) -> None:
    assert result(audit) is None
    actions.draw(audit, auditor(), 5)
    assert result(audit) is None


def test_the_result_compares_final_verdicts(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 5)
    relabel(sample, {"task_0001": 0, "task_0004": 0})
    audit.refresh_from_db()

    found = result(audit)

    assert found is not None
    assert (found.drawn, found.n, found.incomplete, found.of) == (5, 5, 0, 5)
    # Submitted: 0 of task 4, success of tasks 0 to 3; the audit says failure of 1 and 4.
    assert found.table == [[1, 0, 0], [1, 3, 0], [0, 0, 0]]
    assert (found.agreement.hits, found.agreement.n) == (4, 5)
    assert (found.submitted_rate.hits, found.audit_rate.hits) == (4, 3)
    (other,) = found.differing
    assert (other.task_id, other.submitted, other.audit) == ("task_0001", Verdict.SUCCESS, Verdict.FAILURE)
    assert Trajectory.objects.get(pk=other.audited).submission == audit.submission
    assert Trajectory.objects.get(pk=other.sampled).submission == sample


def verdicts(*said: int | None) -> dict[str, tuple[int, Verdict | None]]:
    return {f"t{number}": (number, None if one is None else Verdict(one)) for number, one in enumerate(said)}


def test_kappa_is_that_of_the_table() -> None:
    # p_o = 3/4; shares 1/2, 1/2 by 1/4, 3/4: p_e = 1/8 + 3/8 = 1/2; kappa = (3/4 - 1/2) / (1/2).
    found = compare_verdicts(verdicts(0, 0, 1, 1), verdicts(0, 1, 1, 1))

    assert found.kappa.value == pytest.approx(0.5)


def test_what_has_no_submitted_verdict_is_counted_and_left_out() -> None:
    found = compare_verdicts(verdicts(1, None, 1), verdicts(1, 1))

    assert (found.drawn, found.n, found.incomplete, found.of) == (2, 1, 1, 2)
    assert found.all_submitted_rate.n == 2


def test_wrong_verdicts_are_the_share_that_differs_of_all() -> None:
    # 2 of 20 differ, so 30 of 300. P(X >= 2) reaches 2.5% from 5 wrong ones on, and P(X <= 2) does up to 93.
    found = estimate_wrong(wilson(18, 20), 300)
    assert (found.value, found.low, found.high) == (pytest.approx(30), 5, 93)
    assert (hypergeom.sf(1, 300, [4, 5], 20) >= 0.025).tolist() == [False, True]
    assert (hypergeom.cdf(2, 300, [93, 94], 20) >= 0.025).tolist() == [True, False]


@pytest.mark.parametrize("drawn", [5, 10, 80])
def test_interval_of_wrong_verdicts_holds_their_number_in_95_of_100_samples(drawn: int) -> None:
    found = [estimate_wrong(wilson(drawn - differing, drawn), 100) for differing in range(drawn + 1)]
    for wrong in range(101):
        chances = hypergeom(100, wrong, drawn).pmf(range(drawn + 1))
        held = [chance for chance, each in zip(chances, found, strict=True) if each.low <= wrong <= each.high]  # type: ignore[operator]
        assert sum(held) >= 0.95, wrong


def test_wrong_verdicts_are_known_when_all_are_in_the_sample() -> None:
    found = estimate_wrong(wilson(4, 5), 5)

    assert (found.value, found.low, found.high) == (pytest.approx(1), 1, 1)


def test_without_a_case_nothing_is_estimated() -> None:
    assert estimate_wrong(wilson(0, 0), 5).undefined


# --- the decision ----------------------------------------------------------------------------------------------------


def test_every_decision_is_kept_and_the_newest_holds(audit: Audit) -> None:
    actions.decide(auditor(), audit, "query", "Task 1 looks wrong.")
    actions.decide(auditor(), audit, "accept", "They explained it.")

    assert [each.outcome for each in audit.decisions.all()] == ["query", "accept"]
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditDecision.objects.filter(outcome="query").update(reason="Nothing.")


@pytest.mark.parametrize(("outcome", "reason"), [("accept", "  "), ("perhaps", "Why not.")])
def test_a_decision_has_a_known_outcome_and_a_reason(audit: Audit, outcome: str, reason: str) -> None:
    with pytest.raises(Incomplete):
        actions.decide(auditor(), audit, outcome, reason)


def test_only_an_auditor_decides(audit: Audit) -> None:
    with pytest.raises(PermissionDenied):
        actions.decide(auditor("bea"), audit, "accept", "Fine.")
