"""The verbs of annotators."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from annotation import queue
from annotation.models import (
    Assignment,
    Draft,
    Event,
    Flag,
    KeyPointFinding,
    Label,
    Membership,
    Release,
    Submission,
    Trajectory,
)
from annotation.models.events import digest
from annotation.records import LabelContent
from annotation.workflow.facts import label_facts
from annotation.workflow.ground import (
    Conflict,
    Role,
    StaleDraft,
    active_member,
    complete,
    given_reason,
    lock_submission,
    locked,
    not_frozen,
    record_for,
)


def lease() -> timedelta:
    return timedelta(minutes=settings.LEASE_MINUTES)


def claim(person: Any, submission: Submission) -> Assignment | None:
    """Give the person the trajectory they are working on, or the next one; None when nothing is left for them."""
    return_expired_leases(submission)
    with transaction.atomic():
        member = active_member(person, submission, Role.ANNOTATOR, lock=True)
        held = queue.held_by(person, submission)
        if held is not None:
            return held
        trajectory = queue.lock_next(person, submission)
        if trajectory is None:
            return None
        submission = lock_submission(submission.pk)
        not_frozen(submission)
        return _assign(member, trajectory)


def claim_this(person: Any, trajectory: Trajectory) -> Assignment:
    """Give the person this very trajectory, past the queue: for scripts that enter reviews made elsewhere."""
    with locked(trajectory) as (row, submission):
        member = active_member(person, submission, Role.ANNOTATOR)
        not_frozen(submission)
        if row.open_slots == 0 or row.assignments.filter(annotator=person).exists():
            raise Conflict("The trajectory has no free slot for this person.")
        return _assign(member, row)


def _assign(member: Membership, trajectory: Trajectory) -> Assignment:
    now = timezone.now()
    taken = set(trajectory.assignments.values_list("slot", flat=True))
    slot = next(number for number in range(1, len(taken) + 2) if number not in taken)
    assignment = Assignment.objects.create(
        trajectory=trajectory,
        annotator=member.person,
        slot=slot,
        claimed_at=now,
        lease_expires_at=now + lease(),
    )
    record_for(member, "claimed", trajectory, slot=slot)
    return assignment


def return_expired_leases(submission: Submission) -> int:
    """Give slots whose lease ran out back to the queue; drafts stay their authors'. Returns how many."""
    expired = Assignment.objects.filter(trajectory__submission=submission, lease_expires_at__lte=timezone.now())
    if not expired.exists():
        return 0
    with transaction.atomic():
        trajectories = Trajectory.objects.filter(pk__in=expired.values("trajectory")).order_by("pk")
        locked = list(trajectories.select_for_update(skip_locked=True, of=("self",)))
        submission = lock_submission(submission.pk)
        returned = 0
        for assignment in expired.filter(trajectory__in=locked).select_related("trajectory__task", "annotator"):
            member = Membership.objects.get(submission=submission, person=assignment.annotator)
            assignment.delete()
            record_for(member, "lease_expired", assignment.trajectory, slot=assignment.slot)
            returned += 1
        return returned


def save_draft(person: Any, trajectory: Trajectory, content: dict[str, Any], version: int) -> Draft:
    """Keep what has been entered; ``version`` is the one the page was loaded with (0 for none). Extends the lease.

    Raises StaleDraft when another window has saved in between; nothing is overwritten then.
    """
    with transaction.atomic():
        Trajectory.objects.select_for_update(of=("self",)).get(pk=trajectory.pk)
        now = timezone.now()
        draft = Draft.objects.filter(trajectory=trajectory, author=person).first()
        if draft is not None and draft.version != version and draft.content != content:
            raise StaleDraft(draft)
        if draft is None:
            draft = Draft(trajectory=trajectory, author=person, version=0)
        draft.content, draft.version, draft.saved_at = content, draft.version + 1, now
        draft.save()
        Assignment.objects.filter(trajectory=trajectory, annotator=person, lease_expires_at__gt=now).update(
            lease_expires_at=now + lease()
        )
        return draft


def submit(person: Any, trajectory: Trajectory, content: LabelContent) -> Label:
    """Make the person's label. It needs an assignment; a lease that ran out is no obstacle while the slot is free."""
    with locked(trajectory) as (row, submission):
        member = active_member(person, submission, Role.ANNOTATOR)
        not_frozen(submission)
        assignment = row.assignments.filter(annotator=person).first() or _resume(member, row)
        if assignment.lease_expires_at is None:
            raise Conflict("You have already submitted a label for this trajectory; revise it instead.")
        label = _write_label(assignment, content, revision=1, reason="")
        assignment.lease_expires_at = None
        assignment.save(update_fields=["lease_expires_at"])
        Draft.objects.filter(trajectory=row, author=person).delete()
        record_for(member, "label_submitted", row, slot=assignment.slot, label=digest(label_facts(label)))
        return label


def revise(person: Any, trajectory: Trajectory, content: LabelContent, reason: str) -> Label:
    """Correct the person's own label while it is still blind: before an adjudication has been opened."""
    with locked(trajectory) as (row, submission):
        member = active_member(person, submission, Role.ANNOTATOR)
        not_frozen(submission)
        assignment = _own_assignment(person, row)
        latest = assignment.labels.order_by("-revision").first()
        if latest is None:
            raise Conflict("There is no label of yours to revise yet.")
        if was_opened(row):
            raise Conflict("This label can no longer be revised.")
        label = _write_label(assignment, content, latest.revision + 1, given_reason(reason, "a revision"))
        Draft.objects.filter(trajectory=row, author=person).delete()
        record_for(
            member,
            "label_revised",
            row,
            slot=assignment.slot,
            revision=label.revision,
            label=digest(label_facts(label)),
        )
        return label


def was_opened(trajectory: Trajectory) -> bool:
    """Whether an adjudication was ever opened, and perhaps left again: labels may have been seen, so they stay."""
    return Event.objects.filter(
        submission=trajectory.submission, kind="adjudication_opened", payload__task_id=trajectory.task.external_id
    ).exists()


def release(person: Any, trajectory: Trajectory, reason: str) -> None:
    """Give an unlabelled trajectory back; it is not offered to the person again, and the draft is kept."""
    with locked(trajectory) as (row, submission):
        member = active_member(person, submission, Role.ANNOTATOR)
        assignment = _own_assignment(person, row)
        if assignment.lease_expires_at is None:
            raise Conflict("Your label is in; a labelled trajectory cannot be given back.")
        Release.objects.create(
            trajectory=row,
            annotator=person,
            reason=given_reason(reason, "giving a trajectory back"),
            released_at=timezone.now(),
        )
        assignment.delete()
        record_for(member, "released", row, slot=assignment.slot, reason=reason.strip())


def flag(person: Any, trajectory: Trajectory, note: str) -> Flag:
    """Ask the adjudicator to look at a trajectory, whatever the labels say. Flagging twice changes nothing."""
    with locked(trajectory) as (row, submission):
        member = active_member(person, submission, Role.ANNOTATOR)
        not_frozen(submission)
        _own_assignment(person, row)
        found, made = Flag.objects.get_or_create(
            trajectory=row, annotator=person, defaults={"note": note.strip(), "flagged_at": timezone.now()}
        )
        if made:
            record_for(member, "flagged", row, note=found.note)
        return found


def _resume(member: Membership, trajectory: Trajectory) -> Assignment:
    """A slot for somebody whose lease ran out while they were writing, if one is still free."""
    began = Draft.objects.filter(trajectory=trajectory, author=member.person).exists()
    given_back = trajectory.releases.filter(annotator=member.person).exists()
    if trajectory.open_slots == 0 or not began or given_back:
        raise Conflict("You no longer hold this trajectory; your draft is kept.")
    return _assign(member, trajectory)


def _own_assignment(person: Any, trajectory: Trajectory) -> Assignment:
    assignment = trajectory.assignments.filter(annotator=person).first()
    if assignment is None:
        raise Conflict("You no longer hold this trajectory; your draft is kept, and the queue may offer it again.")
    return assignment


def _write_label(assignment: Assignment, content: LabelContent, revision: int, reason: str) -> Label:
    fields = complete(assignment.trajectory, content)
    label = Label.objects.create(
        assignment=assignment, revision=revision, revision_reason=reason, created_at=timezone.now(), **fields
    )
    KeyPointFinding.objects.bulk_create(
        KeyPointFinding(label=label, key_point_id=f.key_point, finding=str(f.finding), step=f.step)
        for f in content.findings
    )
    return label
