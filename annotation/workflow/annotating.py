"""Transitions by annotators."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Subquery

from annotation import clock, queue, training
from annotation.label_fields import LabelContent
from annotation.models import (
    Activity,
    Assignment,
    Draft,
    Event,
    Flag,
    HumanAttempt,
    KeyPointFinding,
    Label,
    Membership,
    Person,
    Release,
    Submission,
    Trajectory,
)
from annotation.models.events import digest
from annotation.records import Problem
from annotation.workflow.facts import label_facts
from annotation.workflow.guards import (
    LABEL_SUBMITTED,
    NOT_MEASURED,
    Conflict,
    Incomplete,
    Role,
    check_note,
    extend_lease,
    has_content,
    lease,
    load_measures,
    lock_submission,
    lock_trajectory,
    record_for,
    refuse_left_out,
    require_complete,
    require_member,
    require_reason,
    require_unfrozen,
)
from annotation.workflow.informed import STANDS, has_looked
from annotation.workflow.training import refuse_practice_set, require_admitted

ALREADY_SUBMITTED = "You have already submitted a label for this trajectory. Revise it instead."
JUST_SUBMITTED = "You have just submitted a label for this trajectory. Undo that submit to change it."
FIXED = "This label can no longer be revised."
UNCHANGED = "This revision changes nothing. Change the label, or cancel the revision."
PUT_OFF = timedelta(days=1)
MOST_PUT_OFF = 5  # by a person in a submission: each blocks a slot for a day
AHEAD_LEASE = timedelta(minutes=10)  # reserves the next trajectory for a person who is about to submit


def claim(person: Person, submission: Submission) -> Assignment | None:
    """Extend the person's reservation, or reserve the next trajectory; None if nothing is left for them."""
    return_expired_leases(submission)
    with transaction.atomic():
        member = require_member(person, submission, Role.ANNOTATOR, lock=True)
        held = queue.find_held(person, submission)
        if held is not None and (until := extend_lease(person, held.trajectory)) is not None:
            held.lease_expires_at = until
            return held
        trajectory = queue.lock_next(person, submission)
        if trajectory is None:
            require_admitted(person, submission)
            return None
        submission = lock_submission(submission.pk)
        require_unfrozen(submission)
        require_admitted(person, submission)
        return _assign(member, trajectory)


def claim_ahead(person: Person, trajectory: Trajectory) -> Assignment | None:
    """Reserve the trajectory after ``trajectory``, so that its first screenshots can be preloaded; None if none.

    Its lease is short until `claim` returns it, so that a person who stops here does not block it for long. A person
    has at most one such reservation.
    """
    submission = trajectory.submission
    with transaction.atomic():
        member = require_member(person, submission, Role.ANNOTATOR, lock=True)
        refuse_practice_set(submission)
        held = list(queue.find_all_held(person, submission))
        if all(assignment.trajectory_id != trajectory.pk for assignment in held):
            return None  # the lease of ``trajectory`` has expired
        ahead = next((assignment for assignment in held if assignment.trajectory_id != trajectory.pk), None)
        if ahead is not None:
            return ahead
        chosen = queue.lock_next(person, submission)
        if chosen is None or not training.is_admitted(person, submission):
            return None  # practice was switched on: only the current trajectory may be completed
        submission = lock_submission(submission.pk)
        require_unfrozen(submission)
        return _assign(member, chosen, AHEAD_LEASE)


def claim_this(person: Person, trajectory: Trajectory) -> Assignment:
    """Reserve this trajectory for the person regardless of the queue, for scripts that enter imported reviews."""
    with transaction.atomic():
        member = require_member(person, trajectory.submission, Role.ANNOTATOR, lock=True)
        with lock_trajectory(trajectory) as (row, submission):
            require_unfrozen(submission)
            require_admitted(person, submission)
            refuse_left_out(row)
            given_back = row.releases.filter(annotator=person, lifted_at__isnull=True).exists()
            if row.open_slots == 0 or given_back or row.assignments.filter(annotator=person).exists():
                raise Conflict("This trajectory has no free slot for you.")
            return _assign(member, row)


def _assign(member: Membership, trajectory: Trajectory, held_for: timedelta | None = None) -> Assignment:
    taken = set(trajectory.assignments.values_list("slot", flat=True))
    slot = next(number for number in range(1, len(taken) + 2) if number not in taken)
    assignment = Assignment.objects.create(
        trajectory=trajectory,
        annotator=member.person,
        slot=slot,
        claimed_at=clock.now(),
        lease_expires_at=clock.now() + min(held_for or lease(), lease()),
    )
    record_for(member, "claimed", trajectory, slot=slot)
    return assignment


def _renew_lease(assignment: Assignment) -> Assignment:
    assignment.lease_expires_at, assignment.put_off_until = clock.now() + lease(), None
    assignment.save(update_fields=["lease_expires_at", "put_off_until"])
    return assignment


def put_off(person: Person, trajectory: Trajectory) -> Assignment:
    """Keep the person's reservation for `PUT_OFF`, and offer other trajectories meanwhile; `hold_again` resumes it.

    No event is recorded: only the end of the lease changes. Putting it off again before it is resumed adds no day.
    """
    with lock_trajectory(trajectory) as (row, submission):
        require_member(person, submission, Role.ANNOTATOR)
        require_unfrozen(submission)
        assignment = require_assignment(person, row)
        if assignment.is_submitted:
            raise Conflict(ALREADY_SUBMITTED, LABEL_SUBMITTED)
        if assignment.put_off_until is not None and assignment.put_off_until > clock.now():
            return assignment
        others = queue.find_put_off(person, submission).exclude(pk=assignment.pk).count()
        if others >= MOST_PUT_OFF:
            raise Conflict(f"You have put off {others} trajectories. Resume one of them first.")
        assignment.put_off_until = assignment.lease_expires_at = clock.now() + PUT_OFF
        assignment.save(update_fields=["lease_expires_at", "put_off_until"])
        return assignment


def hold_again(person: Person, trajectory: Trajectory) -> Assignment:
    """Renew the lease of a trajectory; if its slot was already returned, this needs a free one."""
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        require_unfrozen(submission)
        assignment = row.assignments.filter(annotator=person).first() or resume(member, row)
        if assignment.is_submitted:
            raise Conflict("You have already submitted your label, so you need no reservation.", LABEL_SUBMITTED)
        return _renew_lease(assignment)


def return_expired_leases(submission: Submission) -> int:
    """Return slots with expired leases to the queue, and return their number. Drafts stay."""
    expired = Assignment.objects.filter(
        trajectory__submission=submission, lease_expires_at__lte=clock.now(), submit_at__isnull=True
    )
    if not expired.exists():
        return 0
    with transaction.atomic():
        trajectories = Trajectory.objects.filter(pk__in=expired.values("trajectory")).order_by("pk")
        locked = list(trajectories.select_for_update(skip_locked=True, no_key=True, of=("self",)))
        submission = lock_submission(submission.pk)
        if submission.archived_at is not None:
            return 0
        returned = 0
        for assignment in expired.filter(trajectory__in=locked).select_related("trajectory__task", "annotator"):
            member = Membership.objects.get(submission=submission, person=assignment.annotator)
            assignment.delete()
            record_for(member, "lease_expired", assignment.trajectory, slot=assignment.slot)
            returned += 1
        return returned


def submit(
    person: Person,
    trajectory: Trajectory,
    content: LabelContent,
    flag_note: str | None = None,
    *,
    submitted_at: datetime | None = None,
    measured: bool = True,
) -> Label:
    """Create the person's label. It needs an assignment; an expired lease is accepted while a slot is free.

    ``flag_note`` (None for no flag) adds a flag in the same transaction: later the trajectory might already be final.
    Submitting the same label again returns the stored one, because the first response may have been lost.
    ``submitted_at``: the label was parked then, see `parking`. Not ``measured``: a script sent it, so it has no active
    time and no opened steps.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        assignment = row.assignments.filter(annotator=person).first()
        if (
            (label := _find_latest_label(assignment))
            and has_content(label, content)
            and _is_flagged(member, row, flag_note)
        ):
            return label
        require_unfrozen(submission)
        assignment = assignment or resume(member, row)
        if assignment.lease_expires_at is None:
            raise Conflict(ALREADY_SUBMITTED, LABEL_SUBMITTED)
        if assignment.submit_at is not None and submitted_at is None:
            raise Conflict(JUST_SUBMITTED, LABEL_SUBMITTED)
        label = _write_label(assignment, content, 1, "", measured, submitted_at)
        assignment.lease_expires_at = assignment.put_off_until = assignment.submit_at = None
        assignment.save(update_fields=["lease_expires_at", "put_off_until", "submit_at"])
        Draft.objects.filter(trajectory=row, author=person).delete()
        record_for(member, "label_submitted", row, slot=assignment.slot, label=digest(label_facts(label)))
        if flag_note is not None:
            _flag(member, row, flag_note)
        return label


def revise(
    person: Person, trajectory: Trajectory, content: LabelContent, reason: str, *, measured: bool = True
) -> Label:
    """Correct the person's own label while it is still blind: before an adjudication is opened or a draw is made.

    Submitting the same revision again returns the stored one, as in `submit`, which also explains ``measured``.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        latest = _find_latest_label(row.assignments.filter(annotator=person).first())
        unchanged = latest is not None and has_content(latest, content)
        if latest is not None and unchanged and latest.revision > 1 and latest.revision_reason == reason.strip():
            return latest
        require_unfrozen(submission)
        assignment = require_assignment(person, row)
        if latest is None:
            raise Conflict("You have no label to revise.")
        if has_looked(assignment):
            raise Conflict(STANDS)
        if was_in_draw(row):
            raise Conflict(FIXED)
        # Before `was_opened`: a refused request leaves no trace, so its response must not reveal whether somebody has
        # opened the trajectory. This concerns incomplete forms and unchanged labels.
        reason = require_reason(reason, "a revision")
        require_complete(row, content, Role.ANNOTATOR)
        if unchanged:
            raise Incomplete([Problem("label_unchanged", UNCHANGED, "")])
        if was_opened(row):
            raise Conflict(FIXED)
        label = _write_label(assignment, content, latest.revision + 1, reason, measured)
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
    """Return whether an adjudication was ever opened: labels may have been seen, so they cannot change."""
    return Event.objects.filter(
        submission=trajectory.submission, kind="adjudication_opened", payload__task_id=trajectory.task.external_id
    ).exists()


def was_in_draw(trajectory: Trajectory) -> bool:
    """Return whether a draw was made after the trajectory had all labels: from then on they cannot change.

    A trajectory that was not drawn is never checked again, so nobody would notice a changed verdict. Disputed ones are
    fixed too: otherwise a refusal would tell an annotator that the labels agree. The order of the chain decides,
    because times of rows can be equal, or run backwards when a clock is set.
    """
    events = Event.objects.filter(submission=trajectory.submission)
    last_draw = events.filter(kind="spot_checks_drawn").order_by("-sequence").values("sequence")[:1]
    labels = events.filter(kind="label_submitted", payload__task_id=trajectory.task.external_id)
    return labels.filter(sequence__lt=Subquery(last_draw)).count() >= trajectory.submission.required_labels


def release(person: Person, trajectory: Trajectory, reason: str) -> None:
    """Decline an unlabelled trajectory; it is not offered to the person again, and the draft stays saved."""
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        assignment = require_assignment(person, row)
        if assignment.is_submitted:
            raise Conflict("You have submitted a label, so you cannot decline this trajectory.")
        given = Release.objects.create(
            trajectory=row,
            annotator=person,
            reason=require_reason(reason, "declining a trajectory"),
            released_at=clock.now(),
        )
        assignment.delete()
        record_for(member, "released", row, slot=assignment.slot, reason=given.reason)


def flag(person: Person, trajectory: Trajectory, note: str) -> Flag:
    """Flag a trajectory for the adjudicator, whatever the labels are. Flagging twice changes nothing.

    Raises Conflict after the person has seen judgments: otherwise judges would influence what is adjudicated.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        require_unfrozen(submission)
        if has_looked(require_assignment(person, row)):
            raise Conflict(f"{STANDS} It can no longer be flagged either.")
        return _flag(member, row, note)


def _flag(member: Membership, trajectory: Trajectory, note: str) -> Flag:
    found, made = Flag.objects.get_or_create(
        trajectory=trajectory,
        annotator=member.person,
        defaults={"note": check_note(note), "flagged_at": clock.now()},
    )
    if made:
        record_for(member, "flagged", trajectory, note=found.note)
    return found


def resume(member: Membership, trajectory: Trajectory) -> Assignment:
    """Reserve a free slot for a person whose lease expired during their work; raise Conflict if there is none."""
    refuse_left_out(trajectory)
    require_admitted(member.person, trajectory.submission)
    mine = {"trajectory": trajectory}
    began = (
        Draft.objects.filter(author=member.person, **mine).exists()
        or Activity.objects.filter(person=member.person, **mine).exists()
    )
    given_back = trajectory.releases.filter(annotator=member.person, lifted_at__isnull=True).exists()
    if trajectory.open_slots == 0 or not began or given_back:
        raise Conflict("Your reservation has ended. Your draft is saved.")
    return _assign(member, trajectory)


def _find_latest_label(assignment: Assignment | None) -> Label | None:
    if assignment is None or assignment.lease_expires_at is not None:
        return None
    return assignment.labels.order_by("-revision").first()


def _is_flagged(member: Membership, trajectory: Trajectory, note: str | None) -> bool:
    return note is None or Flag.objects.filter(trajectory=trajectory, annotator=member.person).exists()


def require_assignment(person: Person, trajectory: Trajectory) -> Assignment:
    assignment = trajectory.assignments.filter(annotator=person).first()
    if assignment is None:
        raise Conflict(
            "Your reservation has ended. Your draft is saved, and the queue may offer you this trajectory again."
        )
    return assignment


def _write_label(
    assignment: Assignment,
    content: LabelContent,
    revision: int,
    reason: str,
    measured: bool,
    submitted_at: datetime | None = None,
) -> Label:
    fields = require_complete(assignment.trajectory, content, Role.ANNOTATOR)
    fields |= load_measures(assignment.annotator_id, assignment.trajectory) if measured else NOT_MEASURED
    label = Label.objects.create(
        assignment=assignment,
        revision=revision,
        revision_reason=reason,
        submitted_at=submitted_at,
        created_at=clock.now(),
        **fields,
    )
    if content.attempt is not None:
        HumanAttempt.objects.create(label=label, **asdict(content.attempt))
    KeyPointFinding.objects.bulk_create(
        KeyPointFinding(label=label, key_point_id=f.key_point, finding=str(f.finding), step=f.step)
        for f in content.findings
    )
    return label
