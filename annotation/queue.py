"""Which trajectory a person gets next. It only chooses; `workflow.claim` gives."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from annotation.models import Assignment, Label, Release, Submission, Trajectory
from annotation.models.states import TO_ADJUDICATE, State, with_state

# Hardest first: three-way splits and plain disputes before checks of what people agreed on.
HARDEST_FIRST = [State.REOPENED, State.DISPUTE, State.FLAGGED, State.SPOT_CHECK]


def candidates(person: Any, submission: Submission) -> QuerySet[Trajectory]:
    """Trajectories with an open slot that the person neither holds nor has labelled nor gave back, best first.

    Started trajectories come first (fewest open slots), then the order of the submission.
    """
    mine = Assignment.objects.filter(trajectory=OuterRef("pk"), annotator=person)
    given_back = Release.objects.filter(trajectory=OuterRef("pk"), annotator=person)
    return (
        Trajectory.objects.filter(submission=submission, open_slots__gt=0)
        .filter(~Exists(mine), ~Exists(given_back))
        .order_by("open_slots", "position")
    )


def lock_next(person: Any, submission: Submission) -> Trajectory | None:
    """Choose the next trajectory and lock its row, inside the caller's transaction; None when nothing is left.

    Rows that others are claiming at this instant are passed over. When only such rows are left it waits for them,
    because a row may still have a slot once the other one is done: nobody is told "no work" while there is some.
    """
    open_to_me = candidates(person, submission).select_related("task")
    if not connection.features.has_select_for_update_skip_locked:
        return open_to_me.select_for_update().first()
    while True:
        chosen = open_to_me.select_for_update(skip_locked=True, of=("self",)).first()
        if chosen is None and open_to_me.exists():
            chosen = open_to_me.select_for_update(of=("self",)).first()
        if chosen is not None or not open_to_me.exists():
            return chosen


def held_by(person: Any, submission: Submission) -> Assignment | None:
    """The trajectory that the person is working on: an assignment with a lease and no label, the oldest first."""
    return (
        Assignment.objects.filter(
            annotator=person, trajectory__submission=submission, lease_expires_at__gt=timezone.now()
        )
        .select_related("trajectory")
        .order_by("claimed_at")
        .first()
    )


def own_progress(person: Any, submission: Submission) -> tuple[int, int]:
    """How many trajectories the person has labelled, and how many the submission has; nothing about others."""
    done = Label.objects.filter(
        assignment__annotator=person, assignment__trajectory__submission=submission, revision=1
    ).count()
    return done, submission.trajectories.count()


def to_adjudicate(submission: Submission) -> list[Any]:
    """Trajectories that wait for an adjudicator, hardest first, with their state (see `with_state`)."""
    waiting = with_state(submission.trajectories.select_related("task")).filter(
        state__in=[state.value for state in TO_ADJUDICATE]
    )
    return sorted(waiting, key=lambda t: (HARDEST_FIRST.index(State(t.state)), -_spread(t), t.position))


def _spread(trajectory: Any) -> int:
    return int(trajectory.highest) - int(trajectory.lowest)
