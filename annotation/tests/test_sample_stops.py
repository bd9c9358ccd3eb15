"""Planned samples whose rule lets labelling stop early: the rule, who may stop, and what is left out then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, IntegrityError, transaction

from annotation import progress, queue, workflow
from annotation.models import Assignment, Person, SamplePlan, SampleStop, Submission, Trajectory
from annotation.models.states import State, state_of
from annotation.tests.testing import adjudicate_all, bare_submission, cast, content, label_all, plan_terms
from annotation.workflow import integrity, stopping

pytestmark = pytest.mark.django_db
RULE = {"rule": "anytime", "half_width": 0.3}
Made = tuple[Submission, dict[str, Person]]


def terms_of(submission: Submission, **changes: Any) -> workflow.PlanTerms:
    tasks = submission.trajectories.values_list("task__external_id", flat=True)
    base: dict[str, Any] = {"strata": dict.fromkeys(tasks, "all"), "labels": {"all": 6}, "rule": RULE}
    return plan_terms(submission, **(base | changes))


def narrow(labels: Sequence[int], total: int) -> float | None:
    """A half width that two labels make narrow enough."""
    return 0.3 if len(labels) >= 2 else 0.4 if labels else None


def enough(plan: SamplePlan) -> None:
    stopping.require_narrow(plan, narrow)


@pytest.fixture(autouse=True)
def look_after_each_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples here are too small for a look after every tenth label."""
    monkeypatch.setattr(stopping, "LOOK_EVERY", 1)


@pytest.fixture
def made() -> Made:
    submission = bare_submission(10, steps=2)
    people = cast(submission)
    workflow.make_plan(people["mira"], submission, terms_of(submission))
    submission.refresh_from_db()
    return submission, people


def at(submission: Submission, position: int) -> Trajectory:
    return submission.trajectories.get(planned_item__position=position)


def label_first(submission: Submission, people: dict[str, Person], number: int, verdict: int = 1) -> None:
    for name in ("alice", "bob", "chen"):
        for _ in range(number):
            held = workflow.claim(people[name], submission)
            assert held is not None
            workflow.submit(people[name], held.trajectory, content(held.trajectory, verdict))


def decide(submission: Submission, people: dict[str, Person]) -> None:
    workflow.draw_spot_checks(people["mira"], submission)
    adjudicate_all(people["carol"], submission)


# --- the rule ---------------------------------------------------------------------------------------------------------


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("plan_rule_unknown", {"rule": {"rule": "anytime"}}),
    ("plan_rule_unknown", {"rule": {"rule": "anytime", "half_width": 0.1, "peek": 2}}),
    ("plan_rule_unknown", {"rule": {"rule": "fixed", "half_width": 0.1}}),
    ("plan_rule_unknown", {"rule": {}}),
    *(
        ("plan_rule_unusable", {"rule": {"rule": "anytime", "half_width": width}})
        for width in (0, 0.5, -0.1, float("nan"), True, "0.1", None)
    ),
    ("plan_rule_of_runs", {"estimand": "agent"}),
]


@pytest.mark.parametrize(("code", "changes"), WRONG)
def test_unusable_rule_is_refused(code: str, changes: dict[str, Any]) -> None:
    submission = bare_submission(10)
    with pytest.raises(workflow.Incomplete) as refused:
        workflow.make_plan(cast(submission)["mira"], submission, terms_of(submission, **changes))
    assert [problem.code for problem in refused.value.problems] == [code]


def test_rule_is_refused_for_several_strata() -> None:
    submission = bare_submission(10)
    with pytest.raises(workflow.Incomplete) as refused:
        workflow.make_plan(cast(submission)["mira"], submission, plan_terms(submission, rule=RULE))
    assert [problem.code for problem in refused.value.problems] == ["plan_rule_of_strata"]


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_stop_leaves_out_what_nobody_has_started(made: Made) -> None:
    submission, people = made
    label_first(submission, people, 2)
    decide(submission, people)
    workflow.claim(people["alice"], submission)  # the third place
    stop = workflow.stop_sampling(people["mira"], submission, enough)
    assert (stop.labelled, stop.stopped_by) == (3, people["mira"])
    assert submission.events.get(kind="sampling_stopped").payload == {"labelled": 3}
    states = [state_of(at(submission, place)) for place in range(2, 6)]
    assert states == [State.IN_REVIEW, *[State.NOT_DRAWN] * 3]
    assert progress.count_done([submission.pk])[submission.pk] == {"trajectories": 10, "to_label": 3, "labels": 6}
    assert queue.count_own(people["bob"], submission) == (2, 3)
    assert integrity.problems(submission) == []
    assert workflow.claim(people["bob"], submission).trajectory == at(submission, 2)  # type: ignore[union-attr]
    for way in (workflow.claim_this, lambda person, row: workflow.submit(person, row, content(row))):
        with pytest.raises(workflow.Conflict, match="labelling stopped before it"):
            way(people["chen"], at(submission, 3))


def test_started_trajectories_are_completed_and_frozen(made: Made) -> None:
    submission, people = made
    label_first(submission, people, 2)
    decide(submission, people)
    workflow.claim(people["alice"], submission)
    workflow.stop_sampling(people["mira"], submission, enough)
    with pytest.raises(workflow.Conflict, match="1 of 3 trajectories have no final verdict"):
        workflow.freeze(people["mira"], submission)
    label_all(people, submission, {})
    decide(submission, people)
    frozen = workflow.freeze(people["mira"], submission)
    assert frozen.events.get(kind="frozen").payload["trajectories"] == 3
    assert Assignment.objects.filter(trajectory__submission=submission).count() == 9


def refused(made: Made, code: str, says: str, measure: Any = narrow) -> None:
    submission, people = made
    with pytest.raises(workflow.Conflict, match=says) as conflict:
        workflow.stop_sampling(people["mira"], submission, lambda plan: stopping.require_narrow(plan, measure))
    assert conflict.value.code == code
    assert not SampleStop.objects.exists()
    assert at(submission, 5).open_slots == 3


def test_stop_needs_the_half_width_of_the_rule(made: Made) -> None:
    submission, people = made
    refused(made, "interval_too_wide", "After 0 of at most 6 labelled trajectories: no interval yet, goal 30.")
    label_first(submission, people, 1)
    decide(submission, people)
    refused(made, "interval_too_wide", "After 1 of at most 6 labelled trajectories: half width 40.0 points, goal 30.")


def test_a_gap_ends_the_look(made: Made) -> None:
    submission, people = made
    label_first(submission, people, 3, verdict=0)
    given: list[Sequence[int]] = []
    refused(made, "interval_too_wide", "After 0 of", lambda labels, total: given.append((total, *labels)))
    workflow.draw_spot_checks(people["mira"], submission)
    adjudicate_all(people["carol"], submission, 0)
    workflow.reopen(people["mira"], at(submission, 1), "Look again.")
    refused(made, "interval_too_wide", "After 1 of", lambda labels, total: given.append((total, *labels)))
    workflow.open_adjudication(people["carol"], at(submission, 1))
    workflow.decide(people["carol"], at(submission, 1), content(at(submission, 1), 1))
    refused(made, "interval_too_wide", "After 3 of", lambda labels, total: given.append((total, *labels)))
    assert given == [(10,), (10, 0), (10, 0, 1, 0)]


def test_stop_needs_something_to_leave_out(made: Made) -> None:
    submission, people = made
    label_first(submission, people, 2)
    decide(submission, people)
    for _ in range(4):
        held = workflow.claim(people["alice"], submission)
        assert held is not None
        workflow.submit(people["alice"], held.trajectory, content(held.trajectory))
    with pytest.raises(workflow.Conflict, match="All drawn trajectories are started") as conflict:
        workflow.stop_sampling(people["mira"], submission, enough)
    assert conflict.value.code == "nothing_to_stop"


def test_second_stop_is_refused(made: Made) -> None:
    submission, people = made
    label_first(submission, people, 2)
    decide(submission, people)
    stop = workflow.stop_sampling(people["mira"], submission, enough)
    with pytest.raises(workflow.Conflict, match="already stopped"):
        workflow.stop_sampling(people["mira"], submission, enough)
    with pytest.raises(IntegrityError), transaction.atomic():
        SampleStop.objects.create(plan=stop.plan, labelled=1, stopped_by=people["mira"], stopped_at=stop.stopped_at)
    with pytest.raises(DatabaseError), transaction.atomic():
        SampleStop.objects.update(labelled=3)
    with pytest.raises(DatabaseError), transaction.atomic():
        SampleStop.objects.all().delete()


@pytest.mark.parametrize("planned", [False, True])
def test_submission_without_the_rule_cannot_stop(planned: bool) -> None:
    submission = bare_submission(10)
    people = cast(submission)
    if planned:
        workflow.make_plan(people["mira"], submission, plan_terms(submission))
    with pytest.raises(workflow.Conflict, match="No sample plan") as conflict:
        workflow.stop_sampling(people["mira"], submission, enough)
    assert conflict.value.code == "stop_not_planned"


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_a_maintainer_can_stop(made: Made, name: str) -> None:
    with pytest.raises(PermissionDenied):
        workflow.stop_sampling(made[1][name], made[0], enough)


def test_changed_stop_is_found(made: Made) -> None:
    submission, people = made
    label_first(submission, people, 2)
    decide(submission, people)
    workflow.stop_sampling(people["mira"], submission, enough)
    event = submission.events.get(kind="sampling_stopped")
    event.payload = {"labelled": 1}
    stated = list(submission.events.exclude(pk=event.pk))
    assert [problem.code for problem in integrity._check_stop(submission, [*stated, event])] == [
        "sampling_stopped_differs"
    ]
    assert integrity._check_stop(submission, stated) != []
