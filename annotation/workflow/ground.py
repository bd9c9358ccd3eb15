"""What every verb stands on: locks, guards, complete decisions, and the record of what happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from annotation.models import Draft, KeyPoint, Membership, Submission, Trajectory
from annotation.models.events import append
from annotation.protocol import missing
from annotation.records import LabelContent, Problem

Role = Membership.Role


class Conflict(Exception):
    """The state does not allow it (HTTP 409); the message says what to do instead."""


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
    """The trajectory and its submission, both locked, in one transaction that ends with the block."""
    with transaction.atomic():
        row = Trajectory.objects.select_for_update(of=("self",)).select_related("task").get(pk=trajectory.pk)
        row.submission = lock_submission(row.submission_id)
        yield row, row.submission


def lock_submission(pk: int) -> Submission:
    return Submission.objects.select_for_update(no_key=True, of=("self",)).select_related("agent").get(pk=pk)


def active_member(person: Any, submission: Submission, *roles: Membership.Role, lock: bool = False) -> Membership:
    """The person's active membership; a superuser without a role becomes a maintainer by acting as one."""
    memberships = Membership.objects.select_for_update() if lock else Membership.objects.all()
    membership = memberships.filter(submission=submission, person=person).first()
    if membership is None and person.is_superuser and Role.MAINTAINER in roles:
        return found(submission, person)
    if membership is None or membership.deactivated_at is not None or membership.role not in roles:
        raise PermissionDenied(f"Only an active {' or '.join(roles)} of this submission may do that.")
    membership.submission, membership.person = submission, person  # known already: two queries less in every verb
    return membership


def not_frozen(submission: Submission) -> None:
    if submission.frozen_at is not None:
        raise Conflict("The submission is frozen; its maintainer would have to reopen it.")


def given_reason(value: str, what: str) -> str:
    if not value.strip():
        raise Incomplete([Problem("reason_missing", f"Say why: {what} needs a reason.", "reason")])
    return value.strip()


def complete(trajectory: Trajectory, content: LabelContent) -> dict[str, Any]:
    """The columns of a complete decision; raises Incomplete with everything that is missing."""
    key_points = list(key_points_of(trajectory).values_list("pk", flat=True))
    problems = missing(content, key_points, trajectory.steps.count())
    problems += [
        Problem("finding_unknown", "This key point does not belong to the task.", f"finding_{f.key_point}")
        for f in content.findings
        if f.key_point not in key_points
    ]
    if problems:
        raise Incomplete(problems)
    return decision_fields(content)


def decision_fields(content: LabelContent) -> dict[str, Any]:
    """The columns of a decision, with what does not belong to its verdict left empty."""
    failure, not_executable = content.verdict == 0, content.verdict == 2
    return {
        "verdict": content.verdict,
        "reasoning": content.reasoning.strip(),
        "failure_step": content.failure_step if failure else None,
        "failure_type": content.failure_type if failure else "",
        "cause": content.cause if not_executable else "",
        "exception_reason": content.exception_reason.strip() if content.verdict == 1 else "",
    }


def key_points_of(trajectory: Trajectory) -> Any:
    """The key points that a label of this trajectory must speak about."""
    return KeyPoint.objects.filter(task=trajectory.task_id, accepted_at__isnull=False, retired_at__isnull=True)


PSEUDONYM_LETTERS = {Role.ANNOTATOR: "A", Role.ADJUDICATOR: "Q", Role.MAINTAINER: "M"}


def join(submission: Submission, person: Any, role: Membership.Role) -> Membership:
    number = Membership.objects.filter(submission=submission, role=role).count() + 1
    return Membership.objects.create(
        submission=submission, person=person, role=role, pseudonym=f"{PSEUDONYM_LETTERS[Role(role)]}{number}"
    )


def found(submission: Submission, person: Any) -> Membership:
    """Make a person a maintainer of a submission by their own act: bringing it, or running the instance."""
    member = join(submission, person, Role.MAINTAINER)
    record(submission, member, "member_added", member=member.pseudonym, role=member.role)
    return member


def record_for(member: Membership, kind: str, trajectory: Trajectory | None, /, **payload: Any) -> None:
    if trajectory is not None:
        payload["task_id"] = trajectory.task.external_id
    append(member.submission, kind, actor=member.person, pseudonym=member.pseudonym, **payload)


def record(submission: Submission, member: Membership, kind: str, /, **payload: Any) -> None:
    append(submission, kind, actor=member.person, pseudonym=member.pseudonym, **payload)
