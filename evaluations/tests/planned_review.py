"""A frozen submission with a planned sample, made through the verbs: five of ten trajectories are drawn and labelled.

The three of "hard" and the two of "easy" are a success by all labels, but the first ones of the order: the first is a
failure by all, the second is a dispute.
"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from annotation import queue, workflow
from annotation.label_fields import LabelContent
from annotation.models import Person, PlannedItem, Submission, Trajectory
from annotation.tests import testing
from annotation.workflow import stopping
from evaluations import estimating
from evaluations.tests.finished import finish

TRAJECTORIES = 10


def planned_review(folder: Path, *, frozen: bool = True, steps: int = 2) -> Submission:
    submission = testing.submission(folder, trajectories=TRAJECTORIES, steps=steps)
    people = testing.cast(submission)
    workflow.make_plan(people["mira"], submission, testing.plan_terms(submission, labels={"easy": 2, "hard": 3}))
    submission.refresh_from_db()
    if not frozen:
        return submission
    first, second = drawn_tasks(submission)[:2]
    return finish(people, submission, {first: [0, 0, 0], second: [1, 0, 1]})


def stopped_review(folder: Path, *, steps: int = 2, width: float = 0.31, drawn: int = 8) -> Submission:
    """A frozen submission whose sample of eight stopped early: at the fifth place, four of them decided.

    The first two are as in `planned_review`, the others a success. Half widths of 10 runs fall by 0.05 with each label.
    """
    submission = testing.submission(folder, trajectories=TRAJECTORIES, steps=steps, agent="Stopped Agent")
    people = testing.cast(submission)
    terms = testing.plan_terms(
        submission,
        strata=dict.fromkeys(submission.trajectories.values_list("task__external_id", flat=True), "all"),
        labels={"all": drawn},
        rule={"rule": "anytime", "half_width": width},
    )
    workflow.make_plan(people["mira"], submission, terms)
    label_first(submission, people, 4)
    workflow.claim(people["alice"], submission)
    with patch.object(stopping, "LOOK_EVERY", 1):  # the sample is too small for a look after every tenth label
        estimating.stop_sampling(people["mira"], submission)
    submission.refresh_from_db()
    return finish(people, submission, {})


def label_first(submission: Submission, people: dict[str, Person], number: int) -> None:
    """Decide the first places of the order: a failure, a dispute that is a success, and successes."""
    for index, name in enumerate(("alice", "bob", "chen")):
        for place in range(number):
            held = workflow.claim(people[name], submission)
            assert held is not None
            verdict = ([0, 0, 0], [1, 0, 1])[place][index] if place < 2 else 1
            workflow.submit(people[name], held.trajectory, _content(held.trajectory, verdict))
    workflow.draw_spot_checks(people["mira"], submission)
    for waiting in queue.load_queue(submission):
        verdict = int(waiting.task.external_id != drawn_tasks(submission)[0])
        workflow.open_adjudication(people["carol"], waiting)
        workflow.decide(people["carol"], waiting, _content(waiting, verdict))


def _content(trajectory: Trajectory, verdict: int) -> LabelContent:
    return testing.content(trajectory, verdict, **({} if verdict else {"failure_step": 0}))


def drawn_tasks(submission: Submission) -> list[str]:
    """The tasks of the sample in the order of the plan."""
    items = PlannedItem.objects.filter(plan__submission=submission, position__isnull=False)
    return list(items.order_by("position").values_list("trajectory__task__external_id", flat=True))
