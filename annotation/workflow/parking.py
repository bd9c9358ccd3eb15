"""Labels that were submitted and can still be undone: a draft with the time at which it becomes a label."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction

from annotation import clock
from annotation.label_fields import LabelContent
from annotation.models import Assignment, Draft, Label, Person, Trajectory
from annotation.workflow.annotating import JUST_SUBMITTED, require_assignment, resume, submit
from annotation.workflow.guards import (
    LABEL_SUBMITTED,
    Conflict,
    Incomplete,
    Role,
    check_note,
    lease,
    lock_trajectory,
    require_complete,
    require_member,
    require_unfrozen,
)

log = logging.getLogger(__name__)
ReadDraft = Callable[[Draft, Trajectory], tuple[LabelContent, str | None]]  # the label, and the note of its flag


def park(
    person: Person, trajectory: Trajectory, typed: dict[str, Any], content: LabelContent, flag_note: str | None = None
) -> Assignment:
    """Check a label as `submit` does, and save it as a draft that becomes a label after ``UNDO_SECONDS``.

    ``typed`` is the draft of ``content`` and ``flag_note``. Parking the same draft again changes nothing, because the
    first response may have been lost. No event is recorded: nothing is decided yet.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        assignment = row.assignments.filter(annotator=person).first()
        if assignment is not None and assignment.lease_expires_at is None:
            submit(person, row, content, flag_note)
            return assignment
        draft = Draft.objects.filter(trajectory=row, author=person).first()
        if assignment is not None and assignment.submit_at is not None:
            if draft is not None and draft.content == typed:
                return assignment
            raise Conflict(JUST_SUBMITTED, LABEL_SUBMITTED)
        require_unfrozen(submission)
        assignment = assignment or resume(member, row)
        if not settings.UNDO_SECONDS:
            submit(person, row, content, flag_note)
            return assignment
        require_complete(row, content, Role.ANNOTATOR)
        check_note(flag_note or "")
        draft = draft or Draft(trajectory=row, author=person, version=0)
        draft.content, draft.version, draft.saved_at = typed, draft.version + 1, clock.now()
        draft.save()
        assignment.submit_at = clock.now() + timedelta(seconds=settings.UNDO_SECONDS)
        assignment.lease_expires_at, assignment.put_off_until = assignment.submit_at + lease(), None
        assignment.save(update_fields=["submit_at", "lease_expires_at", "put_off_until"])
        return assignment


def undo_submit(person: Person, trajectory: Trajectory) -> bool:
    """Undo a submit, so that its draft can be edited again; return False if it is already a label."""
    with lock_trajectory(trajectory) as (row, submission):
        require_member(person, submission, Role.ANNOTATOR)
        assignment = require_assignment(person, row)
        if assignment.submit_at is not None:
            _unpark(assignment)
        return assignment.lease_expires_at is not None


def submit_parked(assignment: Assignment, read: ReadDraft) -> Label | None:
    """Turn the draft of a parked assignment into a label if its time has come; return the label, or None.

    A draft that is no longer complete, or whose author may no longer submit it, becomes an ordinary draft again.
    """
    with lock_trajectory(assignment.trajectory) as (row, _):
        parked = (
            row.assignments.filter(pk=assignment.pk, submit_at__lte=clock.now()).select_related("annotator").first()
        )
        if parked is None:
            return None  # undone, or another process was first
        person = parked.annotator
        draft = Draft.objects.filter(trajectory=row, author=person).first()
        try:
            with transaction.atomic():
                if draft is None:
                    raise Incomplete([])
                return submit(person, row, *read(draft, row), submitted_at=draft.saved_at)
        except (Incomplete, Conflict, PermissionDenied) as refused:
            log.warning("The parked label of assignment %s was not submitted: %s", parked.pk, refused)
            _unpark(parked)
            return None


def _unpark(assignment: Assignment) -> None:
    assignment.submit_at, assignment.lease_expires_at = None, clock.now() + lease()
    assignment.save(update_fields=["submit_at", "lease_expires_at"])
