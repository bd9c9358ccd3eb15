"""Where a judge is good and where it is not: kinds of cases, key points, scores, and the cases where it differs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from annotation import workflow
from annotation.label_fields import LabelContent
from annotation.models import KeyPoint, Person, Step, Submission, Trajectory
from annotation.records import Finding, FindingContent, Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.cases import of_benchmark, of_submission, reported_submissions
from evaluations.comparison import (
    GROUPS,
    Bin,
    Judged,
    Label2,
    Row,
    breakdowns,
    cited_steps,
    compare,
    differences,
    find_judgments,
)
from evaluations.comparison.breakdowns import MOST_INTERVALS, calibration, groups
from evaluations.comparison.evidence import findings, key_points
from evaluations.comparison.rows import pair_cases
from evaluations.measures import JUDGE_MEASURES
from evaluations.tests import builders as results
from evaluations.tests.hand_made import case, told
from judges.scorer import KeyPointEvidence, Score, StepEvidence
from judges.tests.rows import judge_row, judgment_row, run_row


def shown(rows: list[Row]) -> list[tuple[str, int, int]]:
    """Name, compared, agreed; under exclusion."""
    return [
        (row.name, row.n, row.measures["agreement"].hits or 0) for row in rows if row.human_label_2 is Label2.EXCLUDED
    ]


# --- kinds of cases --------------------------------------------------------------------------------------------------


def grouped(*pairs: tuple[Any, int]) -> dict[str, list[Row]]:
    cases = [one for one, _ in pairs]
    return groups(pair_cases(cases, {one.key: told(verdict) for one, verdict in pairs}))


def test_the_largest_groups_have_intervals_and_all_have_values(db: Any) -> None:
    large = [case(number, number % 2, website=f"shop {number // 2}") for number in range(2 * MOST_INTERVALS)]
    small = case(100, 1, website="a small one")
    found = grouped(*((one, 1) for one in [*large, small]))["website"]
    assert len(found) == 2 * (MOST_INTERVALS + 1)  # both rules for label 2
    bare = [row for row in found if row.measures["agreement"].low is None]
    assert {row.name for row in bare} == {"a small one"}
    for row in bare:
        assert (row.measures["agreement"].value, row.measures["recall"].value, row.measures["f1"].value) == (
            1.0,
            1.0,
            1.0,
        )
        assert all(row.measures[name].low is None for name in JUDGE_MEASURES)


def test_levels_stand_as_they_grow_and_what_is_not_known_at_the_end(db: Any) -> None:
    levels = ["", "hard", "unusual", "easy", "medium", "easy"]
    found = grouped(*((case(number, 1, level=level), number % 2) for number, level in enumerate(levels)))
    assert list(found) == list(GROUPS)
    assert shown(found["level"]) == [
        ("easy", 2, 2),
        ("medium", 1, 0),
        ("hard", 1, 1),
        ("unusual", 1, 0),
        ("not known", 1, 0),
    ]


def test_a_breakdown_has_every_name_under_both_rules(db: Any) -> None:
    found = grouped((case(0, 2, website="b"), 1), (case(1, 1, website="a"), 1))
    assert [(row.name, row.human_label_2, row.n) for row in found["website"]] == [
        ("a", Label2.EXCLUDED, 1),
        ("a", Label2.NOT_SUCCESS, 1),
        ("b", Label2.EXCLUDED, 0),
        ("b", Label2.NOT_SUCCESS, 1),
    ]


def test_only_failures_have_a_failure_type(db: Any) -> None:
    found = grouped(
        (case(0, 0, failure_type="range_not_exact"), 0),
        (case(1, 0, failure_type="range_not_exact"), 1),
        (case(2, 0), 0),
        (case(3, 1), 1),
    )
    assert shown(found["failure type"]) == [("range_not_exact", 2, 1), ("not known", 1, 1)]


def test_lengths_and_screenshots_fall_into_buckets_and_labels_alone_have_none(frozen: Submission) -> None:
    one, two = frozen.trajectories.order_by("position")
    Step.objects.bulk_create(Step(trajectory=two, index=index, action="wait") for index in range(3, 6))
    cases = [*of_submission(frozen), case(7, 1)]
    found = groups(pair_cases(cases, {each.key: told(1) for each in cases}))
    assert shown(found["trajectory length"]) == [("1-5", 1, 1), ("6-10", 1, 1), ("not known", 1, 1)]
    assert shown(found["screenshots"]) == [("1-5", 2, 2), ("not known", 1, 1)]
    Step.objects.filter(trajectory=one).update(screenshot=None)
    Step.objects.bulk_create(Step(trajectory=two, index=index, action="wait") for index in range(6, 41))
    found = groups(pair_cases(cases, {each.key: told(1) for each in cases}))
    assert shown(found["trajectory length"])[1] == ("41 and more", 1, 1)
    assert shown(found["screenshots"])[0] == ("0", 1, 1)


# --- scores ----------------------------------------------------------------------------------------------------------


def calibrated(*pairs: tuple[float | None, int]) -> list[Bin]:
    cases = [case(number, human) for number, (_, human) in enumerate(pairs)]
    said = {one.key: told(1, score=score) for one, (score, _) in zip(cases, pairs, strict=True)}
    return calibration(pair_cases(cases, said), said)


def test_scores_from_0_to_1_have_ten_equal_bins_and_empty_ones_are_left_out() -> None:
    found = calibrated((0.0, 0), (0.05, 1), (0.1, 0), (0.95, 1), (1.0, 1), (1.0, 2))
    assert [(each.low, each.high, each.success.hits, each.success.n) for each in found] == [
        (0.0, 0.1, 1, 2),
        (0.1, 0.2, 0, 1),
        (0.9, 1.0, 2, 3),  # label 2 is no success
    ]
    assert [each.score for each in found] == pytest.approx([0.025, 0.1, 2.95 / 3])


def test_a_few_other_scores_have_a_bin_each() -> None:
    found = calibrated((1.0, 0), (5.0, 1), (5.0, 0), (3.0, 1))
    assert [(each.low, each.high, each.success.value) for each in found] == [(1, 1, 0), (3, 3, 1), (5, 5, 0.5)]


def test_many_other_scores_have_bins_of_about_as_many_cases() -> None:
    found = calibrated(*((float(score), int(score > 50)) for score in range(1, 101)))
    assert [each.success.n for each in found] == [10] * 10
    assert [(each.low, each.high) for each in found][:2] == [(1, 11), (11, 21)]
    assert (found[-1].high, found[4].success.value, found[5].success.value) == (100, 0, 1)


def test_a_judge_without_scores_is_not_calibrated_and_unscored_cases_are_left_out() -> None:
    assert calibrated((None, 1), (None, 0)) == []
    one = case(0, 1)
    said = {one.key: Judged(None, None, score=0.5)}
    assert calibration(pair_cases([one], said), said) == []


# --- cited steps -----------------------------------------------------------------------------------------------------


def judge_says(submission: Submission, **fields: Any) -> int:
    """A judgment of the first trajectory with this evidence; its primary key."""
    evidence = Score(Verdict.FAILURE, **fields).evidence()
    item = run_row(submission).items.get(trajectory__position=0)
    return judgment_row(item, 0, evidence=evidence).pk


def test_the_step_that_is_cited_is_the_most_relevant_screenshot_that_was_kept(submission: Submission) -> None:
    steps = (
        StepEvidence(0, 3, kept=True),
        StepEvidence(1, 5, kept=False),
        StepEvidence(3, 4, kept=True),
        StepEvidence(2, 4, kept=True),
        StepEvidence(4, None, kept=True),
    )
    points = (KeyPointEvidence("of 16 GB", Finding.MET, (6,)),)
    assert list(cited_steps([judge_says(submission, steps=steps, key_points=points)]).values()) == [2]


def test_without_such_a_screenshot_it_is_the_first_step_named_for_a_key_point(submission: Submission) -> None:
    points = (KeyPointEvidence("a"), KeyPointEvidence("b", Finding.MET, (6, 2)), KeyPointEvidence("c", None, (1,)))
    steps = (StepEvidence(1, 5, kept=False),)
    pk = judge_says(submission, steps=steps, key_points=points)
    assert cited_steps([pk]) == {pk: 6}


def test_a_judgment_may_cite_nothing_and_step_0_is_a_step(submission: Submission) -> None:
    assert cited_steps([judge_says(submission)]) == {}
    pk = judge_says(submission, steps=(StepEvidence(0, 3, kept=True),))
    assert cited_steps([pk]) == {pk: 0}


# --- differences -----------------------------------------------------------------------------------------------------


def test_differences_are_where_one_says_success_and_the_other_does_not(frozen: Submission) -> None:
    run = run_row(frozen)
    one, two = run.items.order_by("trajectory__position")
    judgment_row(one, 2)  # people: success
    judgment_row(two, 1)
    found = compare(judge_row(), of_submission(frozen), "", benchmark="shops")
    (difference,) = found.differences
    assert (difference.case.task_id, difference.case.final, difference.judged.verdict) == ("task_0000", 1, 2)
    assert difference.judged.step == 1
    assert differences(judge_row(), of_submission(frozen), benchmark="shops") == found.differences
    assert found.as_json()["differences"] == [
        {
            "task_id": "task_0000",
            "agent": "Careful Agent",
            "trajectory": one.trajectory_id,
            "human": 1,
            "judge": 2,
            "step": 1,
            "judgment": one.judgment.pk,
            "task_version": 1,
        }
    ]


def test_label_2_of_people_and_failure_of_the_judge_are_no_difference_and_unscored_is_none(db: Any) -> None:
    cases = [case(number, human) for number, human in enumerate((2, 2, 0, 1))]
    said = {one.key: told(verdict) for one, verdict in zip(cases, (0, 1, 2, None), strict=True)}
    assert [one.case for one in breakdowns.differences(pair_cases(cases, said), said)] == [cases[1]]


# --- key points ------------------------------------------------------------------------------------------------------

GB, SORTED = "at least 16 GB", "cheapest by sorting"
MET, UNMET, UNCLEAR = Finding.MET, Finding.UNMET, Finding.UNCLEAR


def content(trajectory: Trajectory, verdict: int, said: dict[str, Finding]) -> LabelContent:
    found = tuple(FindingContent(point.pk, said[point.text], 0) for point in workflow.key_points_of(trajectory))
    reason = "It was asked for in other words."
    return testing.content(trajectory, verdict, findings=found, exception_reason=reason)


@shared_rows
def unanimous(submission: Submission, people: dict[str, Person]) -> Submission:
    """Everything is labelled as a success, and nothing was drawn; all found GB unmet, and chen SORTED unclear."""
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=0)
    submission.refresh_from_db()
    for name, second in (("alice", MET), ("bob", MET), ("chen", UNCLEAR)):
        while (held := workflow.claim(people[name], submission)) is not None:
            workflow.submit(people[name], held.trajectory, content(held.trajectory, 1, {GB: UNMET, SORTED: second}))
    workflow.draw_spot_checks(people["mira"], submission)
    return workflow.freeze(people["mira"], submission)


def by_position(submission: Submission) -> list[dict[str, bool]]:
    cases = of_submission(submission)
    assert all(each.final is not None for each in cases)
    return [findings(cases)[each.trajectory] for each in cases]


def test_people_s_finding_is_the_one_that_all_labels_share(unanimous: Submission) -> None:
    assert by_position(unanimous) == [{GB.casefold(): False}] * 2


def test_the_finding_of_the_last_adjudication_goes_before_those_of_the_labels(
    unanimous: Submission, people: dict[str, Person]
) -> None:
    workflow.reopen_submission(people["mira"], unanimous, "Something was overlooked.")
    one, _ = unanimous.trajectories.order_by("position")
    for said in ({GB: MET, SORTED: MET}, {GB: UNCLEAR, SORTED: UNMET}):
        workflow.reopen(people["mira"], one, "Look again.")
        workflow.open_adjudication(people["carol"], one)
        workflow.decide(people["carol"], one, content(one, 1, said))
    assert by_position(unanimous) == [{SORTED.casefold(): False}, {GB.casefold(): False}]


def test_retired_key_points_count_no_more(unanimous: Submission) -> None:
    KeyPoint.objects.filter(text=GB).update(retired_at=timezone.now())
    assert by_position(unanimous) == [{}, {}]


def test_a_key_point_that_not_every_label_speaks_about_is_not_shared(
    submission: Submission, people: dict[str, Person]
) -> None:
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=0)
    submission.refresh_from_db()
    late, said = "in the colour asked for", {GB: MET, SORTED: MET, "in the colour asked for": MET}
    for name in ("alice", "bob", "chen"):
        while (held := workflow.claim(people[name], submission)) is not None:
            workflow.submit(people[name], held.trajectory, content(held.trajectory, 1, said))
        for trajectory in submission.trajectories.all() if name == "alice" else ():
            KeyPoint.objects.create(task=trajectory.task, position=9, text=late, accepted_at=timezone.now())
    workflow.draw_spot_checks(people["mira"], submission)
    assert by_position(submission) == [{GB.casefold(): True, SORTED.casefold(): True}] * 2


def test_what_a_review_finds_is_not_read_for_labels_made_elsewhere(unanimous: Submission) -> None:
    one = unanimous.trajectories.get(position=0)
    assert findings([case(0, 1, trajectory=one.pk, submission=unanimous.pk)]) == {}


def test_key_points_that_both_decided_are_compared_whatever_their_white_space_and_case(frozen: Submission) -> None:
    run = run_row(frozen)  # people: all four met
    one, two = run.items.order_by("trajectory__position")
    listed = (
        KeyPointEvidence(" At least\n16 gb", Finding.MET),
        KeyPointEvidence("at least 16 GB", Finding.UNMET),  # there twice: the first counts
        KeyPointEvidence("cheapest by sorting", Finding.UNMET),
        KeyPointEvidence("nobody asked for this", Finding.UNMET),
    )
    judgment_row(one, 0, evidence=Score(Verdict.FAILURE, key_points=listed).evidence())
    unclear = (KeyPointEvidence(GB, Finding.UNCLEAR), KeyPointEvidence(SORTED))
    judgment_row(two, 1, evidence=Score(Verdict.SUCCESS, key_points=unclear).evidence())
    found = compare(judge_row(), of_submission(frozen), "", benchmark="shops").key_points
    assert found.table == ((0, 0), (1, 1))  # [unmet, met by people][unmet, met by the judge]
    assert (found.agreement.hits, found.agreement.n) == (1, 2)
    assert found.kappa.value == 0  # people say met throughout: no agreement beyond chance


def test_key_points_without_anything_in_common_are_undefined(frozen: Submission) -> None:
    cases = of_submission(frozen)
    assert "no key point" in key_points(cases, {}).agreement.undefined
    judge_says(frozen, key_points=(KeyPointEvidence("nobody asked for this", Finding.MET),))
    assert key_points(cases, find_judgments(judge_row(), cases)).kappa.undefined


def test_findings_of_labels_that_were_revised_are_the_last_ones(
    submission: Submission, people: dict[str, Person]
) -> None:
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=0)
    submission.refresh_from_db()
    for name in ("alice", "bob", "chen"):
        held = workflow.claim(people[name], submission)
        while held is not None:
            trajectory = held.trajectory
            wrong = {GB: UNMET if name == "alice" else MET, SORTED: MET}
            workflow.submit(people[name], trajectory, content(trajectory, 1, wrong))
            if name == "alice":
                right = content(trajectory, 1, {GB: MET, SORTED: MET})
                workflow.revise(people[name], trajectory, right, "I misread it.")
            held = workflow.claim(people[name], submission)
    workflow.draw_spot_checks(people["mira"], submission)
    assert by_position(submission) == [{GB.casefold(): True, SORTED.casefold(): True}] * 2


# --- all of it -------------------------------------------------------------------------------------------------------


def test_without_details_only_the_judgments_are_read_and_the_figures_are_the_same(db: Any) -> None:
    benchmark = results.reviewed(2, 20)
    judge = results.judged(benchmark, accuracy=0.6)
    cases = of_benchmark(benchmark, reported_submissions(benchmark))
    whole, few = (compare(judge, cases, "", benchmark="reviewed", details=details) for details in (True, False))
    assert (few.rows, few.overall, few.averages, few.costs) == (whole.rows, whole.overall, whole.averages, whole.costs)
    assert (few.groups, few.calibration, few.differences) == ({}, [], [])
    assert whole.groups
    assert whole.calibration
    assert whole.key_points.agreement.n > 20
    assert len(whole.differences) == whole.overall[1].confusion.fp + whole.overall[1].confusion.fn
    again = compare(judge, cases, "", benchmark="reviewed", said=find_judgments(judge, cases))
    assert again == whole


def test_the_json_has_everything_and_no_number_that_is_none(db: Any) -> None:
    benchmark = results.reviewed(2, 20)
    judge = results.judged(benchmark, repetitions=2)
    cases = of_benchmark(benchmark, reported_submissions(benchmark))
    found = compare(judge, cases, "all of it", benchmark="reviewed").as_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["benchmark"], found["scope"], found["judge"]) == ("reviewed", "all of it", "webjudge")
    assert found["fingerprint"] == judge.fingerprint
    assert set(found["groups"]) == set(GROUPS)
    assert {row["name"] for row in found["groups"]["level"]} == {"easy", "medium", "hard"}
    assert found["flips"]["n"] > 20
    assert found["costs"]["judgments"] == sum(len(one.repeated) for one in find_judgments(judge, cases).values())
    assert found["costs"]["judgments"] > found["overall"][1]["n"] + found["overall"][1]["unscored"]
    for row in (*found["rows"], *found["overall"]):
        assert row["n"] == row["tp"] + row["fp"] + row["tn"] + row["fn"]
        assert row["agreement"] == row["accuracy"]
        undefined = {name for name, value in row.items() if value is None}
        assert undefined == set(row["undefined"])
