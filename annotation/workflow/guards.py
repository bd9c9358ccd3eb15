"""Locks, guards and event recording for all transitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation import clock, label_fields, outbox
from annotation.completeness import Asked, missing
from annotation.label_fields import ADJUDICATION_FIELDS, ATTEMPT_FIELDS, LABEL_FIELDS, LabelContent
from annotation.models import (
    Activity,
    Adjudication,
    Assignment,
    Draft,
    KeyPoint,
    Label,
    Membership,
    Person,
    PlannedItem,
    Submission,
    Trajectory,
)
from annotation.models.events import append
from annotation.models.plans import LEFT_OUT
from annotation.protocol import is_blank
from annotation.records import AttemptContent, Problem

Role = Membership.Role


def lease() -> timedelta:
    return timedelta(minutes=settings.LEASE_MINUTES)


def extend_lease(person: Person, trajectory: Trajectory) -> datetime | None:
    """Extend a running lease from now and return its end; None if it has expired or the label is submitted.

    A later end stays, such as that of a trajectory that was put off; work on it at the end of its day resumes it. One
    conditional update needs no lock: it never sets a lease on a slot whose label was submitted meanwhile.
    """
    now, until = clock.now(), clock.now() + lease()
    running = Assignment.objects.filter(trajectory=trajectory, annotator=person, lease_expires_at__gt=now)
    if running.filter(lease_expires_at__lte=until).update(lease_expires_at=until, put_off_until=None):
        return until
    return running.values_list("lease_expires_at", flat=True).first()


TRY_LATER = "Try again in half a minute."
ARCHIVED = "archived"  # `Conflict.code`
NOT_DRAWN = "not_drawn"  # `Conflict.code`
LABEL_SUBMITTED = "label_submitted"  # `Conflict.code`: the person already has a label, maybe from another window


class Conflict(Exception):
    """The state does not allow the action (HTTP 409). ``message`` has advice, ``code`` is for scripts."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class StaleDraft(Conflict):
    """Conflict with a draft that another tab has saved; ``current`` is that draft."""

    def __init__(self, current: Draft) -> None:
        super().__init__("This trajectory was edited in another window.")
        self.current = current


class Incomplete(Exception):
    """Error for incomplete content (HTTP 400); ``problems`` name the fields."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = problems


@contextmanager
def lock_trajectory(trajectory: Trajectory) -> Iterator[tuple[Trajectory, Submission]]:
    """Lock a trajectory and its submission in one transaction that ends with the block.

    All locks of trajectories use ``no_key``: a transaction that has locked the submission, such as the draw of the
    spot checks, can insert rows that refer to the trajectory. Neither transaction waits for the other.
    """
    with transaction.atomic():
        rows = Trajectory.objects.select_for_update(no_key=True, of=("self",)).select_related("task")
        row = rows.filter(pk=trajectory.pk).first()
        if row is None:
            raise Conflict("This trajectory was deleted.")
        row.submission = lock_submission(row.submission_id)
        yield row, row.submission


def lock_submission(pk: int) -> Submission:
    """Lock a submission and return it; ``has_webhooks`` saves most changes the query for webhooks."""
    rows = Submission.objects.select_for_update(no_key=True, of=("self",)).select_related("agent")
    return rows.annotate(has_webhooks=Exists(outbox.webhooks_of(OuterRef("pk"), OuterRef("benchmark")))).get(pk=pk)


def lock_departure(submission: Submission, person: Person) -> tuple[Membership, list[Assignment], list[Adjudication]]:
    """Lock the work of a leaving member; return membership, slots without a label and open adjudications.

    The membership is locked first, as in a claim, so that the person gets no more work; the submission is locked
    last, and is an attribute of the returned membership.
    """
    leaving = Membership.objects.select_for_update().get(submission=submission, person=person)
    held = Assignment.objects.filter(
        annotator=person, trajectory__submission=submission, lease_expires_at__isnull=False
    ).select_related("trajectory__task")
    undecided = Adjudication.objects.filter(
        adjudicator=person, trajectory__submission=submission, decided_at__isnull=True
    ).select_related("trajectory__task")
    touched = Q(pk__in=held.values("trajectory")) | Q(pk__in=undecided.values("trajectory"))
    list(Trajectory.objects.filter(touched).order_by("pk").select_for_update(no_key=True, of=("self",)))
    leaving.submission, leaving.person = lock_submission(submission.pk), person
    if any(assignment.submit_at is not None for assignment in held):
        raise Conflict(f"{person} has just submitted a label, which can still be undone. {TRY_LATER}")
    return leaving, list(held), list(undecided)


def require_member(person: Person, submission: Submission, *roles: Membership.Role, lock: bool = False) -> Membership:
    """Return the active membership; make a superuser without a role a maintainer if ``roles`` allow it."""
    require_writable(submission)
    memberships = Membership.objects.select_for_update() if lock else Membership.objects.all()
    membership = memberships.filter(submission=submission, person=person).first()
    if membership is None and person.is_superuser and Role.MAINTAINER in roles:
        return join_as_maintainer(submission, person)
    if membership is None or membership.deactivated_at is not None or membership.role not in roles:
        raise PermissionDenied(f"Only an active {' or '.join(roles)} of this submission may do that.")
    membership.submission, membership.person = submission, person  # saves two queries in each transition
    return membership


def require_writable(submission: Submission) -> None:
    """Raise Conflict for a submission from an evidence bundle, and for an archived one."""
    if submission.audited:
        raise Conflict("This submission is read-only: it came in an evidence bundle.")
    if submission.archived_at is not None:
        raise Conflict("This submission is archived. Ask its maintainer to restore it.", ARCHIVED)


def require_unfrozen(submission: Submission) -> None:
    require_writable(submission)
    if submission.frozen_at is not None:
        raise Conflict("The submission is frozen. Ask its maintainer to undo the freeze.")


def refuse_left_out(trajectory: Trajectory) -> None:
    """Raise Conflict for a trajectory that is not in the sample: it has no slot in the database."""
    if trajectory.open_slots == 0 and PlannedItem.objects.filter(LEFT_OUT, trajectory=trajectory).exists():
        says = "The sample plan did not draw this trajectory, or labelling stopped before it, so nobody labels it."
        raise Conflict(says, NOT_DRAWN)


LONGEST_NOTE = 2000  # characters of a reason or note, which the chain stores permanently
REASON_TOO_LONG = f"A reason has at most {LONGEST_NOTE:,} characters."


def require_reason(value: str, what: str) -> str:
    """Return the reason without surrounding blanks; raise Incomplete if it is blank or too long."""
    if is_blank(value):
        raise Incomplete([Problem("reason_missing", f"Enter a reason: {what} requires one.", "reason")])
    return check_note(value)


def check_note(value: str) -> str:
    """Return the note without surrounding blanks; raise Incomplete if it is longer than `LONGEST_NOTE`."""
    if len(value.strip()) > LONGEST_NOTE:
        raise Incomplete([Problem("reason_too_long", REASON_TOO_LONG, "reason")])
    return value.strip()


def asked_of(trajectory: Trajectory, role: Membership.Role = Role.ANNOTATOR) -> Asked:
    """Return what a complete label or adjudication of this trajectory must contain."""
    return Asked(
        key_points=tuple(key_points_of(trajectory).values_list("pk", flat=True)),
        steps=trajectory.steps.count(),
        attempt=role == Role.ANNOTATOR and trajectory.submission.asks_attempt,
        process=trajectory.submission.process_labels,
        criterion=role == Role.ADJUDICATOR,
    )


def require_complete(trajectory: Trajectory, content: LabelContent, role: Membership.Role) -> dict[str, Any]:
    """Return the columns of a complete decision; raise Incomplete with everything that is missing."""
    asked = asked_of(trajectory, role)
    problems = missing(content, asked)
    problems += [
        Problem("finding_unknown", "This key point does not belong to the task.", f"finding_{f.key_point}")
        for f in content.findings
        if f.key_point not in asked.key_points
    ]
    problems += _find_misplaced_boxes(trajectory, content)
    if problems:
        raise Incomplete(problems)
    return decision_fields(content, role)


def _find_misplaced_boxes(trajectory: Trajectory, content: LabelContent) -> list[Problem]:
    """Return a problem for each box without its key point, or outside the screenshot of its step."""
    if not content.boxes:
        return []
    texts = {None, *key_points_of(trajectory).values_list("text", flat=True)}
    at = trajectory.steps.filter(index__in={box.step for box in content.boxes})
    sizes = {index: size for index, *size in at.values_list("index", "screenshot__width", "screenshot__height")}
    problems = []
    for box in content.boxes:
        width, height = sizes.get(box.step) or (None, None)
        if box.key_point not in texts:
            message = f"The box at step {box.step} belongs to a key point that the task does not have. Remove it."
            problems.append(Problem("box_unknown", message, "boxes"))
        elif box.x + box.width > (width or 0) or box.y + box.height > (height or 0):
            message = f"The box at step {box.step} is outside the screenshot. Draw it again."
            problems.append(Problem("box_outside", message, "boxes"))
    return problems


def decision_fields(content: LabelContent, role: Membership.Role = Role.ANNOTATOR) -> dict[str, Any]:
    """Return the columns of a decision; those that do not apply to its verdict are empty."""
    declared = ADJUDICATION_FIELDS if role == Role.ADJUDICATOR else LABEL_FIELDS
    return label_fields.store(content, declared.values())


def has_content(decision: Label | Adjudication, content: LabelContent) -> bool:
    """Return whether a decision has this content, ignoring line ends and surrounding blanks."""
    fields = decision_fields(content, Role.ADJUDICATOR if isinstance(decision, Adjudication) else Role.ANNOTATOR)
    stored = {name: getattr(decision, name) for name in fields}
    findings = {(f.key_point_id, f.finding, f.step) for f in decision.findings.all()}
    given = {(f.key_point, f.finding and str(f.finding), f.step) for f in content.findings}
    attempt = getattr(decision, "attempt", None)
    own = attempt and AttemptContent(**{name: getattr(attempt, name) for name in ATTEMPT_FIELDS})
    return (_plain(stored), findings, _plain(asdict(own or AttemptContent()))) == (
        _plain(fields),
        given,
        _plain(asdict(content.attempt or AttemptContent())),
    )


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Normalise texts: a browser sends line ends as CR LF, a script as LF."""
    return {
        name: value.replace("\r\n", "\n").strip() if isinstance(value, str) else value for name, value in fields.items()
    }


NOT_MEASURED: dict[str, Any] = {"active_seconds": None, "steps_seen": None}


def load_measures(person: Person | int, trajectory: Trajectory) -> dict[str, Any]:
    """Return active seconds and opened steps of the person; None if not measured."""
    activity = Activity.objects.filter(trajectory=trajectory, person=person).first()
    if activity is None or (activity.seconds == 0 and not activity.steps):  # as after a resumed adjudication
        return NOT_MEASURED
    return {"active_seconds": round(activity.seconds), "steps_seen": activity.steps}


def key_points_of(trajectory: Trajectory) -> QuerySet[KeyPoint]:
    """Return the current accepted key points, which a label of this trajectory must cover."""
    return KeyPoint.objects.filter(task=trajectory.task_id, accepted_at__isnull=False, retired_at__isnull=True)


PSEUDONYM_LETTERS = {Role.ANNOTATOR: "A", Role.ADJUDICATOR: "Q", Role.MAINTAINER: "M", Role.AUDITOR: "U"}


def join(submission: Submission, person: Person, role: Membership.Role) -> Membership:
    number = Membership.objects.filter(submission=submission, role=role).count() + 1
    return Membership.objects.create(
        submission=submission, person=person, role=role, pseudonym=f"{PSEUDONYM_LETTERS[Role(role)]}{number}"
    )


def join_as_maintainer(submission: Submission, person: Person) -> Membership:
    """Make the person who imports a submission, or an operator, its maintainer, and record it."""
    require_writable(submission)
    member = join(submission, person, Role.MAINTAINER)
    record(submission, member, "member_added", member=member.pseudonym, role=member.role)
    return member


def record_for(member: Membership, kind: str, trajectory: Trajectory | None, /, **payload: Any) -> None:
    if trajectory is not None:
        payload["task_id"] = trajectory.task.external_id
    append(member.submission, kind, actor=member.person, pseudonym=member.pseudonym, **payload)
    outbox.write(member.submission, kind, payload, trajectory)


def record(submission: Submission, member: Membership, kind: str, /, **payload: Any) -> None:
    append(submission, kind, actor=member.person, pseudonym=member.pseudonym, **payload)
    outbox.write(submission, kind, payload)
