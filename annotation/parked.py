"""Submit the labels that can no longer be undone."""

from __future__ import annotations

import logging
from datetime import timedelta

from annotation import clock, workflow
from annotation.forms import LabelForm
from annotation.label_fields import LabelContent
from annotation.models import Assignment, Draft, Submission, Trajectory

MOST_AT_ONCE = 100
AGAIN = timedelta(minutes=1)
log = logging.getLogger(__name__)


def submit_due(submission: Submission | None = None) -> int:
    """Submit the parked labels whose time has come, of one submission or of all, and return their number.

    A worker calls this every few seconds. Pages that need these labels call it too, because the worker may be busy.
    A label that fails is tried again after a minute, so that it does not hold up the others.
    """
    due = Assignment.objects.filter(submit_at__lte=clock.now())
    if submission is not None:
        due = due.filter(trajectory__submission=submission)
    submitted = 0
    for assignment in due.select_related("trajectory").order_by("submit_at")[:MOST_AT_ONCE]:
        try:
            submitted += workflow.submit_parked(assignment, read) is not None
        except Exception:
            log.exception("The parked label of assignment %s was not submitted.", assignment.pk)
            later = clock.now() + AGAIN
            Assignment.objects.filter(pk=assignment.pk, submit_at__isnull=False).update(submit_at=later)
    return submitted


def read(draft: Draft, trajectory: Trajectory) -> tuple[LabelContent, str | None]:
    """Return the label of a draft, and the note of its flag or None; raise Incomplete for a malformed draft."""
    form = LabelForm(draft.content, workflow.asked_of(trajectory))
    return form.valid_content(), form.note()
