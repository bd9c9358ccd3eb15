"""The builders make what the verbs would have made."""

from __future__ import annotations

from typing import Any

from annotation.completeness import Asked, missing
from annotation.label_fields import LabelContent
from annotation.models import Adjudication, Benchmark, Label, Submission, Trajectory
from annotation.models.states import FINAL, with_state
from annotation.records import Finding, FindingContent, Verdict
from annotation.tests.shared_rows import shared_rows
from evaluations import cases
from evaluations.tests import builders as testing
from judges.models import Judgment, RunItem


@shared_rows
def benchmark() -> Benchmark:
    return testing.reviewed(2, 40)


def content(row: Label | Adjudication, criterion: str) -> LabelContent:
    findings = tuple(FindingContent(f.key_point_id, Finding(f.finding), f.step) for f in row.findings.all())
    return LabelContent(
        verdict=Verdict(row.verdict or 0),
        reasoning=row.reasoning,
        findings=findings,
        failure_step=row.failure_step,
        failure_type=row.failure_type,
        further_failure_types=tuple(row.further_failure_types),
        cause=row.cause,
        criterion=criterion,
    )


def test_every_label_and_decision_is_complete_as_the_protocol_asks(benchmark: Benchmark) -> None:
    rows: list[tuple[Any, Trajectory, str]] = [
        (label, label.assignment.trajectory, "") for label in Label.objects.select_related("assignment__trajectory")
    ]
    rows += [(row, row.trajectory, row.criterion) for row in Adjudication.objects.select_related("trajectory")]
    for row, trajectory, criterion in rows:
        points = tuple(trajectory.task.key_points.values_list("pk", flat=True))
        asked = Asked(points, trajectory.steps.count(), criterion=bool(criterion))
        assert missing(content(row, criterion), asked) == []


def test_everything_is_frozen_with_a_final_verdict_and_every_slot_taken(benchmark: Benchmark) -> None:
    assert cases.reported_submissions(benchmark).count() == 2
    rows = with_state(Trajectory.objects.all())
    assert {row.state for row in rows} == set(FINAL)
    assert {row.open_slots for row in rows} == {0}
    found = cases.of_benchmark(benchmark, cases.reported_submissions(benchmark))
    assert {case.final for case in found} == set(Verdict)
    assert {case.drawn for case in found} == {None, False, True}
    assert len({case.level for case in found}) == 3
    assert len({case.website for case in found}) > 5


def test_what_is_not_frozen_lacks_labels(db: Any) -> None:
    open_one = testing.reviewed(1, 20, frozen=False, annotators=5)
    assert not cases.reported_submissions(open_one).exists()
    found = cases.of_submission(Submission.objects.get())
    assert sum(not case.complete for case in found) == 2
    assert len({label.annotator for case in found for label in case.labels}) == 5


def test_the_same_seed_gives_the_same_labels_and_decisions(db: Any) -> None:
    made = [testing.reviewed(1, 20, seed=seed, slug=slug) for seed, slug in ((1, "one"), (1, "two"), (2, "three"))]
    first, again, other = (
        [([label.verdict for label in case.labels], case.final, case.drawn) for case in cases.of_benchmark(*each)]
        for each in ((benchmark, benchmark.submissions.all()) for benchmark in made)
    )
    assert first == again
    assert first != other


def test_imported_judgments_are_about_everything_and_right_as_often_as_asked(benchmark: Benchmark) -> None:
    testing.labelled_elsewhere(benchmark)
    testing.judged(benchmark, "always", 1.0, unscored=0.0)
    testing.judged(benchmark, "silent", unscored=1.0)
    assert Judgment.objects.filter(judge__name="always").count() == 120
    finals = {case.trajectory: case.final for case in cases.of_benchmark(benchmark, benchmark.submissions.all())}
    for row in Judgment.objects.filter(judge__name="always", trajectory__isnull=False):
        assert (row.verdict == Verdict.SUCCESS) == (finals[row.trajectory_id] == Verdict.SUCCESS)
    assert set(Judgment.objects.filter(judge__name="silent").values_list("verdict", flat=True)) == {None}


def test_a_judge_that_ran_has_items_some_of_which_failed_and_costs(benchmark: Benchmark) -> None:
    testing.judged(benchmark, repetitions=2, failed=0.2)
    done, failed = (RunItem.objects.filter(**{f"{end}_at__isnull": False}) for end in ("done", "failed"))
    assert RunItem.objects.count() == 160
    assert done.count() + failed.count() == 160
    assert 10 < failed.count() < 60
    assert set(Judgment.objects.values_list("item", flat=True)) == set(done.values_list("pk", flat=True))
    assert not Judgment.objects.filter(cost__isnull=True).exists()


def test_labels_made_elsewhere_are_single_double_and_different(benchmark: Benchmark) -> None:
    testing.labelled_elsewhere(benchmark, agents=("X", "Y"))
    found = cases.of_imported(benchmark)
    assert len(found) == 80
    assert {len(case.labels) for case in found} == {1, 2}
    assert any(case.final is None for case in found)
