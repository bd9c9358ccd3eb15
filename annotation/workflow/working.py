"""Drafts, activity and reports to the maintainer, saved during work. They are not decisions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from annotation import clock, queue
from annotation.models import Activity, Adjudication, Assignment, Draft, Membership, Person, Report, Trajectory
from annotation.workflow.guards import (
    LABEL_SUBMITTED,
    Conflict,
    Role,
    StaleDraft,
    extend_lease,
    lock_trajectory,
    record_for,
    require_member,
    require_reason,
    require_unfrozen,
)

MOST_SECONDS = 120.0  # per activity report; the page sends one every 20 s, so a longer gap was not work


def save_draft(
    person: Person, trajectory: Trajectory, content: dict[str, Any], version: int, *, revising: bool = False
) -> Draft:
    """Save a draft and extend the lease; ``version`` is that of the draft which the page loaded (0 for none).

    Raises StaleDraft, and overwrites nothing, if another window has saved other content since. ``revising``: the form
    revises a submitted label.
    """
    with transaction.atomic():
        require_unfrozen(trajectory.submission)
        if not Trajectory.objects.select_for_update(no_key=True, of=("self",)).filter(pk=trajectory.pk):
            raise Conflict("This trajectory was deleted.")
        now = clock.now()
        draft = Draft.objects.filter(trajectory=trajectory, author=person).first()
        # Another window has submitted since, so this window is older than the label.
        is_older = not revising or (draft is None and version > 0)
        submitted = queue.SUBMITTED if is_older else Q(submit_at__isnull=False)
        if trajectory.assignments.filter(submitted, annotator=person).exists():
            raise Conflict("You have already submitted your label. Revise it instead.", LABEL_SUBMITTED)
        if draft is not None and draft.version != version and draft.content != content:
            raise StaleDraft(draft)
        if draft is None:
            draft = Draft(trajectory=trajectory, author=person, version=1)
        elif draft.content != content:
            draft.version += 1
        draft.content, draft.saved_at = content, now
        draft.save()
        extend_lease(person, trajectory)
        return draft


def delete_old_drafts(before: datetime) -> int:
    """Delete drafts that were saved before then; return their number.

    Those of reserved trajectories stay: one may be about to become a label, or belong to an open adjudication.
    """
    old, deleted = Draft.objects.filter(saved_at__lt=before), 0
    reserved = Assignment.objects.filter(
        trajectory=OuterRef("trajectory"), annotator=OuterRef("author"), lease_expires_at__isnull=False
    )
    opened = Adjudication.objects.filter(
        trajectory=OuterRef("trajectory"), adjudicator=OuterRef("author"), decided_at__isnull=True
    )
    for pk in set(old.values_list("trajectory", flat=True)):
        with transaction.atomic():
            list(Trajectory.objects.filter(pk=pk).select_for_update(no_key=True))  # it may be deleted meanwhile
            deleted += old.filter(~Exists(reserved), ~Exists(opened), trajectory=pk).delete()[0]
    return deleted


def record_activity(
    person: Person, trajectory: Trajectory, seconds: float, steps: Iterable[int], *, revising: bool = False
) -> datetime | None:
    """Add active seconds and opened steps, extend the lease, and return its end (None if there is no lease).

    Adds at most the seconds since the last report, so two windows or a fast clock add nothing extra. Adds nothing if
    the submission is frozen, if the label is submitted and the person is not ``revising`` it, or if the adjudicator
    has not opened the trajectory.
    """
    with transaction.atomic():
        member = require_member(person, trajectory.submission, Role.ANNOTATOR, Role.ADJUDICATOR)
        if not _is_deciding(member, trajectory, revising):
            return None
        count, now = trajectory.steps.count(), clock.now()
        Activity.objects.get_or_create(trajectory=trajectory, person=person, defaults={"last_at": now})
        activity = Activity.objects.select_for_update().get(trajectory=trajectory, person=person)
        first = activity.seconds == 0 and not activity.steps
        since = MOST_SECONDS if first else (now - activity.last_at).total_seconds()
        activity.seconds += max(0.0, min(seconds, since, MOST_SECONDS))
        activity.steps = sorted({*activity.steps, *(step for step in steps if 0 <= step < count)})
        activity.last_at = now
        activity.save()
        return extend_lease(person, trajectory) if seconds > 0 else _load_lease(person, trajectory)


def has_submitted(person: Person, trajectory: Trajectory) -> bool:
    return trajectory.assignments.filter(queue.SUBMITTED, annotator=person).exists()


def _is_deciding(member: Membership, trajectory: Trajectory, revising: bool) -> bool:
    if member.submission.frozen_at is not None:
        return False
    if member.role == Role.ADJUDICATOR:
        return trajectory.adjudications.filter(adjudicator=member.person, decided_at__isnull=True).exists()
    submitted = Q(lease_expires_at__isnull=True) if revising else queue.SUBMITTED
    return trajectory.assignments.filter(submitted, annotator=member.person).exists() == revising


def _load_lease(person: Person, trajectory: Trajectory) -> datetime | None:
    held = Assignment.objects.filter(trajectory=trajectory, annotator=person)
    return held.values_list("lease_expires_at", flat=True).first()


def report(person: Person, trajectory: Trajectory, kind: Report.Kind, note: str) -> Report:
    """Report a problem that only the maintainer can fix. A second report of the same kind adds nothing."""
    unclear = kind == Report.Kind.GUIDELINE_UNCLEAR  # only adjudicators may report this
    roles = (Role.ADJUDICATOR,) if unclear else (Role.ANNOTATOR, Role.ADJUDICATOR)
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, *roles)
        require_unfrozen(submission)
        found, made = Report.objects.get_or_create(
            trajectory=row,
            reporter=person,
            kind=kind,
            defaults={"note": require_reason(note, "a report"), "reported_at": clock.now()},
        )
        if made:
            record_for(member, "reported", row, kind=str(kind), note=found.note)
        return found


def settle_report(person: Person, entry: Report, answer: str) -> Report:
    """Mark a report as settled, with the maintainer's answer."""
    with lock_trajectory(entry.trajectory) as (row, submission):
        member = require_member(person, submission, Role.MAINTAINER)
        entry = Report.objects.select_for_update().get(pk=entry.pk)
        if entry.settled_at is not None:
            raise Conflict("This report is already settled.")
        entry.settled_at, entry.settled_by, entry.answer = clock.now(), person, require_reason(answer, "settling")
        entry.save(update_fields=["settled_at", "settled_by", "answer"])
        record_for(member, "report_settled", row, kind=entry.kind, answer=entry.answer)
        return entry
