"""The material of agreement and comparison: what people said about each trajectory, and what became of it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from annotation import catalogue, workflow
from annotation.models import (
    Activity,
    Adjudication,
    Assignment,
    Benchmark,
    Flag,
    Label,
    Membership,
    Person,
    Reopening,
    SpotCheck,
    SpotCheckDraw,
    Submission,
)
from annotation.models.states import State, final_verdict, with_state
from annotation.records import Verdict
from annotation.tests import testing
from annotation.workflow.guards import Conflict
from evaluations import cases
from evaluations.cases import BlindLabel, Case, Rules
from evaluations.tests import builders as bulk

People = dict[str, Person]
HEADER = "annotator,task_id,agent,label\n"


def imported(benchmark: Benchmark, *rows: str) -> None:
    """Labels as from a file; each row is annotator,task_id,agent,label."""
    report = catalogue.import_labels((HEADER + "\n".join(rows)).encode(), "labels.csv", benchmark=benchmark)
    assert not report.rejected, report.as_json()


def said(case: Case) -> list[tuple[str, int]]:
    return [(label.annotator, int(label.verdict)) for label in case.labels]


# --- the rule of the states ------------------------------------------------------------------------------------------


def every_standing() -> Submission:
    """A trajectory for every mixture of labels, flag, draw, decision and reopening, possible or not."""
    labels = ((1, 1), (1, 1, 1), (0, 1, 2))
    mixtures = list(product(labels, (False, True), (None, False, True), (0, 1, 2), (0, 1, 2)))
    submission = testing.bare_submission(len(mixtures))
    who = [testing.person(name) for name in ("alice", "bob", "chen", "carol", "mira")]
    for person, (name, role) in zip(who, [*testing.ROLES.items()][1:], strict=False):
        Membership.objects.create(submission=submission, person=person, role=role, pseudonym=name)
    now = timezone.now()
    draw = SpotCheckDraw.objects.create(
        submission=submission, number=1, seed="s", rate=0.5, population=[], drawn=[], drawn_at=now
    )
    rows = submission.trajectories.order_by("position")
    for row, (verdicts, flagged, selected, decided, asked) in zip(rows, mixtures, strict=True):
        for slot, verdict in enumerate(verdicts, 1):
            held = Assignment.objects.create(trajectory=row, annotator=who[slot - 1], slot=slot, claimed_at=now)
            explained = {"failure_step": 0, "failure_type": "wrong_item", "cause": "blocked"}
            Label.objects.create(assignment=held, verdict=verdict, reasoning="r", created_at=now, **explained)
        if flagged:
            Flag.objects.create(trajectory=row, annotator=who[0], flagged_at=now)
        if selected is not None:
            SpotCheck.objects.create(trajectory=row, draw=draw, selected=selected)
        for revision in range(1, decided + 1):
            Adjudication.objects.create(
                trajectory=row,
                adjudicator=who[3],
                revision=revision,
                blind=False,
                opened_at=now,
                decided_at=now,
                verdict=2 - revision,
                reasoning="r",
                failure_step=0,
                failure_type="wrong_item",
            )
        if asked:
            Reopening.objects.create(trajectory=row, reopened_by=who[4], reason="r", revision=asked, reopened_at=now)
    return submission


def test_states_and_final_verdicts_are_those_of_the_one_rule_whatever_the_rows(db: Any) -> None:
    submission = every_standing()
    found = {case.trajectory: (case.state, case.final) for case in cases.of_population(submission)}
    ruled = with_state(submission.trajectories.all())
    assert found == {row.pk: (State(row.state), final_verdict(row)) for row in ruled}
    assert {state for state, _ in found.values()} == set(State) - {State.NOT_DRAWN}  # needs a plan
    assert {final for _, final in found.values()} == {None, Verdict.FAILURE, Verdict.SUCCESS}


# --- reviewed here ---------------------------------------------------------------------------------------------------


def test_a_case_says_who_said_what_by_pseudonym_and_what_became_of_it(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    testing.adjudicate_all(people["carol"], submission, Verdict.FAILURE)
    disputed, agreed = cases.of_submission(submission)
    assert (disputed.agent, disputed.task_id, disputed.level) == ("Careful Agent", "task_0000", "easy")
    assert disputed.website == "https://shop0.example/"
    assert said(disputed) == [("A1", 1), ("A2", 0), ("A3", 2)]
    assert disputed.labels[1].failure_types == ("range_not_exact",)
    assert (disputed.state, disputed.final, disputed.adjudicated) == (State.ADJUDICATED, 0, 0)
    assert disputed.adjudicated_blind is None
    assert disputed.failure_type == "range_not_exact"
    assert (disputed.complete, disputed.unanimous, disputed.drawn) == (True, False, None)
    assert (agreed.state, agreed.final, agreed.unanimous) == (State.AGREED, None, True)
    assert (agreed.key, agreed.submission) == (agreed.trajectory, submission.pk)


def test_all_failure_types_of_a_label_are_kept_the_main_one_first(submission: Submission, people: People) -> None:
    first = submission.trajectories.order_by("position")[0]
    testing.label(people["alice"], first, 0, further_failure_types=("wrong_item", "not_submitted"))
    [label] = cases.of_submission(submission)[0].labels
    assert label.failure_types == ("range_not_exact", "wrong_item", "not_submitted")


def test_the_seconds_of_activity_come_with_a_label_and_none_where_nothing_measured(
    submission: Submission, people: People
) -> None:
    first = submission.trajectories.order_by("position")[0]
    Activity.objects.create(trajectory=first, person=people["alice"], seconds=41.6, last_at=timezone.now())
    testing.label(people["alice"], first)
    testing.label(people["bob"], first)
    case = cases.of_submission(submission)[0]
    assert case.labels == (BlindLabel("A1", Verdict.SUCCESS, (), 42), BlindLabel("A2", Verdict.SUCCESS, (), None))
    assert not case.complete


def test_a_revised_label_counts_in_its_latest_revision(submission: Submission, people: People) -> None:
    first = submission.trajectories.order_by("position")[0]
    testing.label(people["alice"], first, Verdict.FAILURE)
    workflow.revise(people["alice"], first, testing.content(first, Verdict.SUCCESS), "I misread the price.")
    assert said(cases.of_submission(submission)[0]) == [("A1", 1)]


def test_the_latest_revision_is_blind_because_labels_stand_once_an_adjudicator_has_opened_them(
    submission: Submission, people: People
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 0]})
    first = submission.trajectories.order_by("position")[0]
    workflow.revise(people["chen"], first, testing.content(first, Verdict.NOT_EXECUTABLE), "It was blocked.")
    workflow.open_adjudication(people["carol"], first)
    workflow.leave_adjudication(people["carol"], first)
    with pytest.raises(Conflict, match="can no longer be revised"):
        workflow.revise(people["chen"], first, testing.content(first, Verdict.SUCCESS), "I have heard otherwise.")
    assert said(cases.of_submission(submission)[0]) == [("A1", 1), ("A2", 0), ("A3", 2)]


def test_spot_checks_say_whether_they_were_drawn_and_what_was_decided_blind(
    submission: Submission, people: People
) -> None:
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=0.5)
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission, Verdict.FAILURE)
    drawn, other = sorted(cases.of_submission(submission), key=lambda case: not case.drawn)
    assert (drawn.drawn, drawn.adjudicated_blind, drawn.final) == (True, 0, 0)
    assert (drawn.draw, other.draw) == (1, 1)
    assert (other.drawn, other.adjudicated_blind, other.final, other.state) == (False, None, 1, State.UNANIMOUS)


def test_a_later_adjudication_decides_and_the_first_blind_one_is_kept_beside_it(
    submission: Submission, people: People
) -> None:
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=1.0)
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission, Verdict.FAILURE)
    first = submission.trajectories.order_by("position")[0]
    workflow.open_adjudication(people["carol"], first, "I overlooked step 2.")
    workflow.decide(people["carol"], first, testing.content(first, Verdict.SUCCESS))
    case = cases.of_submission(submission)[0]
    assert (case.adjudicated_blind, case.adjudicated, case.final) == (0, 1, 1)


def test_a_flag_is_seen_in_the_case(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {})
    first = submission.trajectories.order_by("position")[0]
    workflow.flag(people["bob"], first, "Odd.")
    assert [(case.flagged, case.state) for case in cases.of_submission(submission)] == [
        (True, State.FLAGGED),
        (False, State.AGREED),
    ]


def test_the_failure_type_of_unanimous_labels_is_the_main_one_of_most(submission: Submission, people: People) -> None:
    for name, kind in (("alice", "wrong_item"), ("bob", "not_submitted"), ("chen", "wrong_item")):
        held = workflow.claim(people[name], submission)
        assert held is not None
        workflow.submit(people[name], held.trajectory, testing.content(held.trajectory, 0, failure_type=kind))
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=0.0)
    workflow.draw_spot_checks(people["mira"], submission)
    assert cases.of_submission(submission)[0].failure_type == "wrong_item"


# --- a benchmark, and imported labels --------------------------------------------------------------------------


def test_annotators_of_a_benchmark_are_named_with_their_submission(frozen: Submission) -> None:
    [first, _] = cases.of_benchmark(frozen.benchmark, cases.reported_submissions(frozen.benchmark))
    assert [name for name, _ in said(first)] == [f"{frozen.pk}: A1", f"{frozen.pk}: A2", f"{frozen.pk}: A3"]


def test_a_later_attempt_of_an_agent_has_a_name_of_its_own(frozen: Submission) -> None:
    [first, _] = cases.of_submission(frozen)
    Submission.objects.filter(pk=frozen.pk).update(attempt=2)
    [second, _] = cases.of_submission(frozen)
    assert (first.attempt, first.agent_name) == (1, "Careful Agent")
    assert (second.attempt, second.agent, second.agent_name) == (2, "Careful Agent", "Careful Agent (attempt 2)")


def test_the_oldest_submission_comes_first(db: Any) -> None:
    benchmark = bulk.reviewed(2, 2)
    found = cases.of_benchmark(benchmark, cases.reported_submissions(benchmark))
    assert [case.agent for case in found] == ["Agent 01", "Agent 01", "Agent 02", "Agent 02"]


def test_only_frozen_submissions_are_reported_and_none_for_practice(
    submission: Submission, people: People, tmp_path: Path
) -> None:
    practice = testing.practice_set(people, submission, tmp_path / "practice")
    Submission.objects.filter(pk=practice.pk).update(frozen_at=timezone.now())
    assert not cases.reported_submissions(submission.benchmark).exists()
    Submission.objects.filter(pk=submission.pk).update(frozen_at=timezone.now())
    assert list(cases.reported_submissions(submission.benchmark)) == [submission]


def test_imported_labels_come_beside_the_reviewed_cases_but_never_for_them(frozen: Submission) -> None:
    benchmark = frozen.benchmark
    imported(benchmark, "p1,task_0000,Careful Agent,0", "p1,task_0000,Other,0", "p2,task_0000,Other,0")
    reported = cases.reported_submissions(benchmark)
    found = cases.of_benchmark(benchmark, reported)
    assert [(case.agent, case.task_id) for case in found] == [
        ("Careful Agent", "task_0000"),
        ("Careful Agent", "task_0001"),
        ("Other", "task_0000"),
    ]
    assert (found[2].key, found[2].state, found[2].trajectory) == (("task_0000", "Other"), None, None)
    assert cases.of_benchmark(benchmark, reported, imported=False) == found[:2]
    assert [case.agent for case in cases.of_imported(benchmark)] == ["Careful Agent", "Other"]


def test_imported_labels_that_differ_decide_nothing_unless_the_first_listed_counts(db: Any) -> None:
    shops = testing.benchmark(2)
    imported(shops, "p2,task_0000,X,0", "p1,task_0000,X,1", "p1,task_0001,X,2", "p2,task_0001,X,2")
    assert [case.final for case in cases.of_imported(shops)] == [None, Verdict.NOT_EXECUTABLE]
    assert [case.final for case in cases.of_imported(shops, Rules.PUBLISHED)] == [0, Verdict.NOT_EXECUTABLE]
    assert said(cases.of_imported(shops)[0]) == [("p2", 0), ("p1", 1)]


def test_one_imported_label_is_final_but_not_complete(db: Any) -> None:
    shops = testing.benchmark(1)
    imported(shops, "p1,task_0000,X,1")
    [case] = cases.of_imported(shops)
    assert (case.final, case.complete, case.unanimous) == (Verdict.SUCCESS, False, False)


def test_lengths_count_steps_and_different_screenshots(submission: Submission) -> None:
    first, second = submission.trajectories.order_by("position")
    shown = first.steps.get(index=0).screenshot
    first.steps.filter(index=1).update(screenshot=shown)
    second.steps.filter(index__gte=1).update(screenshot=None)
    assert cases.lengths(cases.of_submission(submission)) == {first.pk: (3, 2), second.pk: (3, 1)}
    assert cases.lengths([]) == {}


@pytest.mark.parametrize(("agents", "tasks"), [(1, 3), (4, 30)])
def test_the_queries_do_not_grow_with_the_cases(
    db: Any, agents: int, tasks: int, django_assert_num_queries: Any
) -> None:
    benchmark = bulk.reviewed(agents, tasks)
    bulk.labelled_elsewhere(benchmark)
    with django_assert_num_queries(9):
        found = cases.of_benchmark(benchmark, cases.reported_submissions(benchmark))
    assert len(found) == agents * tasks + tasks
    first = Submission.objects.get(pk=found[0].submission)
    with django_assert_num_queries(7):
        cases.of_submission(first)
    with django_assert_num_queries(1):
        cases.lengths(found)
