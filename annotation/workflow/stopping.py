"""Stop labelling a planned sample once its interval is narrow enough or the rule of its audit has decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from math import ceil

from django.db import transaction
from django.db.models import Max

from annotation import clock
from annotation.models import Assignment, Person, SamplePlan, SampleStop, Submission, Trajectory
from annotation.models.states import FINAL, final_verdict, with_state
from annotation.records import Verdict
from annotation.workflow.annotating import return_expired_leases
from annotation.workflow.guards import Conflict, Role, lock_submission, record, require_member, require_unfrozen

ANYTIME = "anytime"
AUDIT = "audit"  # the sample of an audit that a rule decides
LOOK_EVERY = 10  # labels: the change of the width after a single label would tell its verdict
SAME = 1e-12  # differences of rounding
Widths = Callable[[Sequence[int], int], float | None]  # labels (n,) and trajectories N to the half width
Requirement = Callable[[SamplePlan], None]  # raises Conflict if the rule does not let labelling stop


def may_stop(plan: SamplePlan) -> bool:
    return plan.rule.get("rule") in (ANYTIME, AUDIT)


def read_labels(plan: SamplePlan) -> list[int]:
    """Return the final labels in the order of the plan, up to the first trajectory without one: 1 for a success."""
    drawn = Trajectory.objects.filter(submission=plan.submission_id, planned_item__position__isnull=False)
    rows = with_state(drawn).order_by("planned_item__position")
    decided = takewhile(lambda row: row.state in FINAL and not row.adjudicating, rows)
    return [int(final_verdict(row) is Verdict.SUCCESS) for row in decided]


def look(labels: Sequence[int]) -> Sequence[int]:
    """Return the labels of the last look: every tenth."""
    return labels[: len(labels) // LOOK_EVERY * LOOK_EVERY]


def stop_sampling(person: Person, submission: Submission, require_enough: Requirement) -> SampleStop:
    """Leave out the places after the last started one, if there are enough labels.

    The others are completed as usual: the rules hold at every number of labels. Raises Conflict.
    """
    with transaction.atomic():
        rows = Trajectory.objects.filter(submission=submission).order_by("pk")  # before the submission, as everywhere
        list(rows.select_for_update(no_key=True, of=("self",)).values_list("pk"))
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        plan = _require_stoppable(submission)
        require_enough(plan)
        return_expired_leases(submission)
        labelled = count_started(submission)
        if labelled >= sum(plan.labels.values()):
            raise Conflict("All drawn trajectories are started, so none can be left out.", "nothing_to_stop")
        stop = SampleStop.objects.create(plan=plan, labelled=labelled, stopped_by=person, stopped_at=clock.now())
        submission.trajectories.filter(planned_item__position__gte=labelled).update(open_slots=0)
        record(submission, member, "sampling_stopped", labelled=labelled)
        return stop


def count_started(submission: Submission) -> int:
    """Return the places of the order up to the last one that somebody has started."""
    started = Assignment.objects.filter(trajectory__submission=submission)
    last = started.aggregate(last=Max("trajectory__planned_item__position"))["last"]
    return 0 if last is None else 1 + last


def is_narrow(half_width: float | None, wanted: float) -> bool:
    return half_width is not None and half_width <= wanted + SAME


def _require_stoppable(submission: Submission) -> SamplePlan:
    plan = SamplePlan.objects.filter(submission=submission).first()
    if plan is None or not may_stop(plan):
        raise Conflict("No sample plan of this submission allows labelling to stop early.", "stop_not_planned")
    if SampleStop.objects.filter(plan=plan).exists():
        raise Conflict("Labelling of this sample has already stopped.", "already_stopped")
    return plan


def describe_progress(labelled: int, at_most: int, half_width: float | None, wanted: float) -> str:
    """Return how narrow the interval is; without the rate, so that nobody learns verdicts."""
    now = "no interval yet" if half_width is None else f"half width {100 * round_up(half_width):.1f} points"
    return f"After {labelled:,} of at most {at_most:,} labelled trajectories: {now}, goal {100 * wanted:g}."


def round_up(half_width: float) -> float:
    """Return the half width rounded up to 0.001, so that one that is too wide never looks like the goal."""
    return ceil(half_width * 1000 - SAME) / 1000


def require_narrow(plan: SamplePlan, measure: Widths) -> None:
    """Raise Conflict if the half width by ``measure`` is larger than the rule requires."""
    labels, wanted = look(read_labels(plan)), plan.rule["half_width"]
    half_width = measure(labels, plan.items.count())
    if not is_narrow(half_width, wanted):
        progress = describe_progress(len(labels), sum(plan.labels.values()), half_width, wanted)
        raise Conflict(f"The interval is too wide to stop. {progress}", "interval_too_wide")
