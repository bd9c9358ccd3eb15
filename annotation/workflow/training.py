"""Set known answers and record practice answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet

from annotation import clock, training
from annotation.label_fields import LabelContent
from annotation.models import KnownAnswer, Label, Membership, Person, PracticeAnswer, Submission, Trajectory
from annotation.models.events import digest
from annotation.workflow.guards import (
    Conflict,
    Role,
    lock_submission,
    lock_trajectory,
    record,
    record_for,
    require_complete,
    require_member,
    require_unfrozen,
)

KNOWN_FIELDS = ("verdict", "failure_step", "failure_type", "cause")  # of a label, in addition to its findings
EXCEPTION = "\n\nException: "  # between the explanation and the reason of an exception


def refuse_practice_set(submission: Submission) -> None:
    if submission.practice:
        raise Conflict("This is a practice set; it takes no labels.")


def require_admitted(person: Person, submission: Submission) -> None:
    """Raise Conflict if this is a practice set, or if the person has not yet passed the one of the submission.

    Trajectories that were reserved before practice was switched on stay reserved; see `training.is_admitted`.
    """
    refuse_practice_set(submission)
    if not training.is_admitted(person, submission):
        raise Conflict("Pass the practice set first. After that you get real work.")


def set_known_answer(person: Person, trajectory: Trajectory, content: LabelContent) -> KnownAnswer:
    """Save the known answer of a trajectory, with its reasoning as the explanation, or replace it.

    In a submission under review this makes a gold item. It is possible only before the first label of the trajectory:
    later it would judge that label. The event has only the digest of the answer.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.MAINTAINER)
        if (reason := known_answer_refusal(row)) is not None:
            raise Conflict(reason)
        said = _as_json(row, content, Role.MAINTAINER)
        explanation = said["reasoning"] + (EXCEPTION + said["exception_reason"] if said["exception_reason"] else "")
        fields = {name: said[name] for name in (*KNOWN_FIELDS, "findings")}
        fields["explanation"] = explanation
        answer, _ = KnownAnswer.objects.update_or_create(
            trajectory=row, defaults=fields | {"author": person, "saved_at": clock.now()}
        )
        facts = fields | {"verdict": int(answer.verdict), "task_id": row.task.external_id}
        record_for(member, "known_answer_set", row, answer=digest(facts))
        return answer


def known_answer_refusal(trajectory: Trajectory) -> str | None:
    """Return why the known answer of a trajectory cannot be set; None if it can."""
    submission = trajectory.submission
    if submission.frozen_at is not None:
        return "The submission is frozen, so known answers cannot be set."
    if not submission.practice and Label.objects.filter(assignment__trajectory=trajectory).exists():
        return "This trajectory already has a label. A known answer must be set before the first label."
    return None


def answer_practice(
    person: Person, submission: Submission, trajectory: Trajectory, content: LabelContent, number: int
) -> PracticeAnswer:
    """Save the answer to a practice item of ``submission`` in round ``number``: complete as a label, once a round.

    The answer that completes a round with enough right verdicts is recorded in the chain of the submission.
    """
    with transaction.atomic():
        require_member(person, submission, Role.ANNOTATOR, lock=True)
        rows = Trajectory.objects.select_for_update(no_key=True, of=("self",)).select_related("task", "submission")
        row = rows.get(pk=trajectory.pk)
        locked = {pk: lock_submission(pk) for pk in sorted({submission.pk, *_find_others(person, row.submission_id)})}
        submission = locked[submission.pk]
        require_unfrozen(submission)
        state = training.load_practice(person, submission)
        if row not in state.items:
            raise PermissionDenied("This trajectory does not belong to the practice set.")
        if number != state.open_round:
            raise Conflict("This round has ended. Continue from the practice page.")
        if row.pk in state.rounds.get(number, {}):
            raise Conflict("You have already answered this trajectory in this round.")
        said = _as_json(row, content, Role.ANNOTATOR)
        answer = PracticeAnswer.objects.create(
            trajectory=row,
            person=person,
            round=number,
            content=said,
            verdict=said["verdict"],
            right=said["verdict"] == row.known_answer.verdict,
            answered_at=clock.now(),
        )
        # Answers count wherever the set must be passed, so each of these submissions records it.
        for each in locked.values():
            if each.pk == submission.pk or each.frozen_at is None:
                _record_passed(person, each)
        return answer


def _find_others(person: Person, practice_set: int) -> QuerySet[Any]:
    """Return the unfrozen submissions whose annotators must pass the set, if the person is one of them."""
    own = Membership.objects.filter(person=person, role=Role.ANNOTATOR, deactivated_at__isnull=True)
    others = own.filter(submission__practice_set=practice_set, submission__frozen_at__isnull=True)
    return others.values_list("submission", flat=True)


def _record_passed(person: Person, submission: Submission) -> None:
    member = Membership.objects.get(person=person, submission=submission)
    after = training.load_practice(person, submission)
    if (reached := after.reached_in) is not None and not after.recorded:
        facts = {"round": reached, "right": after.right_in(reached), "of": len(after.items)}
        record(submission, member, training.PASSED, **facts, pass_mark=after.mark)


def _as_json(trajectory: Trajectory, content: LabelContent, role: Membership.Role) -> dict[str, Any]:
    """Return a complete decision as JSON values; findings by the key point's id (text)."""
    fields = require_complete(trajectory, content, role)
    fields["verdict"] = int(fields["verdict"])
    fields["findings"] = {str(f.key_point): {"finding": str(f.finding), "step": f.step} for f in content.findings}
    if content.attempt is not None:
        fields["attempt"] = asdict(content.attempt)
    return fields
