"""What every verb stands on: locks, guards, complete decisions, and the record of what happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q

from annotation import clock
from annotation.models import (
    Activity,
    Adjudication,
    Assignment,
    Draft,
    KeyPoint,
    Label,
    Membership,
    Submission,
    Trajectory,
)
from annotation.models.events import append
from annotation.protocol import Asked, is_blank, missing
from annotation.records import AttemptContent, LabelContent, Problem

Role = Membership.Role


def lease() -> timedelta:
    """How long a slot is held after the last sign of work."""
    return timedelta(minutes=settings.LEASE_MINUTES)


def extend_lease(person: Any, trajectory: Trajectory) -> datetime | None:
    """Let a running lease run from now on, and return its end; None when it has run out, or the label is in.

    One conditional update, so that it needs no lock: it never writes a lease onto a slot that was filled meanwhile.
    """
    now = clock.now()
    running = Assignment.objects.filter(trajectory=trajectory, annotator=person, lease_expires_at__gt=now)
    return now + lease() if running.update(lease_expires_at=now + lease()) else None


LABEL_SUBMITTED = "label_submitted"  # code of a refusal: the person has submitted a label, perhaps in another window


class Conflict(Exception):
    """The state does not allow the action (HTTP 409). ``message`` has advice, ``code`` is for scripts."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class StaleDraft(Conflict):
    """Another tab has saved since; ``current`` is what it saved."""

    def __init__(self, current: Draft) -> None:
        super().__init__("This trajectory was edited in another window.")
        self.current = current


class Incomplete(Exception):
    """The content lacks something (HTTP 400); ``problems`` name the fields."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = problems


@contextmanager
def locked(trajectory: Trajectory) -> Iterator[tuple[Trajectory, Submission]]:
    """The trajectory and its submission, both locked, in one transaction that ends with the block.

    Without the key (no_key), as everywhere here: a row that refers to a trajectory can be inserted meanwhile by
    somebody who holds the submission, such as the draw of the spot checks, and neither waits for the other.
    """
    with transaction.atomic():
        rows = Trajectory.objects.select_for_update(no_key=True, of=("self",)).select_related("task")
        row = rows.get(pk=trajectory.pk)
        row.submission = lock_submission(row.submission_id)
        yield row, row.submission


def lock_submission(pk: int) -> Submission:
    return Submission.objects.select_for_update(no_key=True, of=("self",)).select_related("agent").get(pk=pk)


def lock_part(submission: Submission, person: Any) -> tuple[Membership, list[Assignment], list[Adjudication]]:
    """Lock the part of somebody who leaves: their membership, the slots that they hold without a label, and the
    adjudications that they have opened; then the submission, which the membership carries.

    The membership comes first, as in a claim: from here on the person is given nothing more.
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
    return leaving, list(held), list(undecided)


def active_member(person: Any, submission: Submission, *roles: Membership.Role, lock: bool = False) -> Membership:
    """The person's active membership; a superuser without a role becomes a maintainer by acting as one."""
    made_here(submission)
    memberships = Membership.objects.select_for_update() if lock else Membership.objects.all()
    membership = memberships.filter(submission=submission, person=person).first()
    if membership is None and person.is_superuser and Role.MAINTAINER in roles:
        return found(submission, person)
    if membership is None or membership.deactivated_at is not None or membership.role not in roles:
        raise PermissionDenied(f"Only an active {' or '.join(roles)} of this submission may do that.")
    membership.submission, membership.person = submission, person  # known already: two queries less in every verb
    return membership


def made_here(submission: Submission) -> None:
    """Refuse (Conflict) to change what somebody else has made."""
    if submission.audited:
        raise Conflict("This submission is read-only: it came in an evidence bundle.")


def not_frozen(submission: Submission) -> None:
    made_here(submission)
    if submission.frozen_at is not None:
        raise Conflict("The submission is frozen; its maintainer would have to reopen it.")


LONGEST_NOTE = 2000  # characters of a reason or note: the chain keeps it for ever
REASON_TOO_LONG = f"A reason has at most {LONGEST_NOTE:,} characters."


def given_reason(value: str, what: str) -> str:
    """The reason without blanks around it; Incomplete where it says nothing, or is too long (`bounded`)."""
    if is_blank(value):
        raise Incomplete([Problem("reason_missing", f"Say why: {what} needs a reason.", "reason")])
    return bounded(value)


def bounded(value: str) -> str:
    """The reason or note without blanks around it; Incomplete where it is longer than `LONGEST_NOTE`, never cut."""
    if len(value.strip()) > LONGEST_NOTE:
        raise Incomplete([Problem("reason_too_long", REASON_TOO_LONG, "reason")])
    return value.strip()


def asked_of(trajectory: Trajectory, role: Membership.Role = Role.ANNOTATOR) -> Asked:
    """What a complete label, or adjudication, of this trajectory has to say."""
    return Asked(
        key_points=tuple(key_points_of(trajectory).values_list("pk", flat=True)),
        steps=trajectory.steps.count(),
        attempt=role == Role.ANNOTATOR and trajectory.submission.asks_attempt,
        criterion=role == Role.ADJUDICATOR,
    )


def complete(trajectory: Trajectory, content: LabelContent, role: Membership.Role) -> dict[str, Any]:
    """The columns of a complete decision; raises Incomplete with everything that is missing."""
    asked = asked_of(trajectory, role)
    problems = missing(content, asked)
    problems += [
        Problem("finding_unknown", "This key point does not belong to the task.", f"finding_{f.key_point}")
        for f in content.findings
        if f.key_point not in asked.key_points
    ]
    if problems:
        raise Incomplete(problems)
    return decision_fields(content)


def decision_fields(content: LabelContent) -> dict[str, Any]:
    """The columns of a decision, with what does not belong to its verdict left empty."""
    failure, not_executable = content.verdict == 0, content.verdict == 2
    further = [code for code in dict.fromkeys(content.further_failure_types) if code != content.failure_type]
    return {
        "verdict": content.verdict,
        "reasoning": content.reasoning.strip(),
        "failure_step": content.failure_step if failure else None,
        "failure_type": content.failure_type if failure else "",
        "further_failure_types": further if failure else [],
        "cause": content.cause if not_executable else "",
        "exception_reason": content.exception_reason.strip() if content.verdict == 1 else "",
        "evidence_missing": sorted(set(content.evidence_missing)),
    }


def has_content(decision: Label | Adjudication, content: LabelContent) -> bool:
    """Return whether a decision has this content, ignoring line ends and surrounding blanks."""
    fields = decision_fields(content)
    if isinstance(decision, Adjudication):
        fields |= {"criterion": content.criterion}
    stored = {name: getattr(decision, name) for name in fields}
    findings = {(f.key_point_id, f.finding, f.step) for f in decision.findings.all()}
    given = {(f.key_point, f.finding and str(f.finding), f.step) for f in content.findings}
    attempt = getattr(decision, "attempt", None)
    own = attempt and AttemptContent(attempt.steps, attempt.notes, attempt.link, attempt.path)
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


def measured(person: Any, trajectory: Trajectory) -> dict[str, Any]:
    """How long the person was active on the trajectory, and the steps they opened; nulls where nothing measured it."""
    activity = Activity.objects.filter(trajectory=trajectory, person=person).first()
    if activity is None:
        return {"active_seconds": None, "steps_seen": None}
    return {"active_seconds": round(activity.seconds), "steps_seen": activity.steps}


def key_points_of(trajectory: Trajectory) -> Any:
    """The key points that a label of this trajectory must speak about."""
    return KeyPoint.objects.filter(task=trajectory.task_id, accepted_at__isnull=False, retired_at__isnull=True)


PSEUDONYM_LETTERS = {Role.ANNOTATOR: "A", Role.ADJUDICATOR: "Q", Role.MAINTAINER: "M", Role.AUDITOR: "U"}


def join(submission: Submission, person: Any, role: Membership.Role) -> Membership:
    number = Membership.objects.filter(submission=submission, role=role).count() + 1
    return Membership.objects.create(
        submission=submission, person=person, role=role, pseudonym=f"{PSEUDONYM_LETTERS[Role(role)]}{number}"
    )


def found(submission: Submission, person: Any) -> Membership:
    """Make a person a maintainer of a submission by their own act: bringing it, or running the instance."""
    made_here(submission)
    member = join(submission, person, Role.MAINTAINER)
    record(submission, member, "member_added", member=member.pseudonym, role=member.role)
    return member


def record_for(member: Membership, kind: str, trajectory: Trajectory | None, /, **payload: Any) -> None:
    if trajectory is not None:
        payload["task_id"] = trajectory.task.external_id
    append(member.submission, kind, actor=member.person, pseudonym=member.pseudonym, **payload)


def record(submission: Submission, member: Membership, kind: str, /, **payload: Any) -> None:
    append(submission, kind, actor=member.person, pseudonym=member.pseudonym, **payload)
