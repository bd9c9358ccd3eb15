"""A frozen submission with a planned sample, made through the verbs: five of ten trajectories are drawn and labelled.

The three of "hard" and the two of "easy" are a success by all labels, but the first ones of the order: the first is a
failure by all, the second is a dispute.
"""

from __future__ import annotations

from pathlib import Path

from annotation import workflow
from annotation.models import PlannedItem, Submission
from annotation.tests import testing
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


def drawn_tasks(submission: Submission) -> list[str]:
    """The tasks of the sample in the order of the plan."""
    items = PlannedItem.objects.filter(plan__submission=submission, position__isnull=False)
    return list(items.order_by("position").values_list("trajectory__task__external_id", flat=True))
