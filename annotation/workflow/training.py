"""Set known answers and record practice answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from annotation import training
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

KNOWN_FIELDS = ("verdict", "failure_step", "failure_type", "cause")  # of a label, beside its findings
EXCEPTION = "\n\nException: "  # what joins the reason of an exception to the explanation


def refuse_practice_set(submission: Submission) -> None:
    if submission.practice:
        raise Conflict("This is a practice set; it takes no labels.")


def require_admitted(person: Person, submission: Submission) -> None:
    """Refuse (Conflict) to give trajectories of a practice set, and real work to who has yet to pass theirs.

    What somebody holds already when practice is switched on stays theirs; see also `training.is_admitted`.
    """
    refuse_practice_set(submission)
    if not training.is_admitted(person, submission):
        raise Conflict("Practise first: real work is given once you have passed the practice set.")


def set_known_answer(person: Person, trajectory: Trajectory, content: LabelContent) -> KnownAnswer:
    """Say what is right about a trajectory; its reasoning is the explanation. Setting it again replaces it.

    In a submission under review that makes a gold item, and is possible until the first label of the trajectory is
    in: later it would be a judgement of what somebody has said. The event carries a digest, nothing of the answer.
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
            trajectory=row, defaults=fields | {"author": person, "saved_at": timezone.now()}
        )
        facts = fields | {"verdict": int(answer.verdict), "task_id": row.task.external_id}
        record_for(member, "known_answer_set", row, answer=digest(facts))
        return answer


def known_answer_refusal(trajectory: Trajectory) -> str | None:
    """Why a known answer of a trajectory cannot be set (any more); None when it can."""
    submission = trajectory.submission
    if submission.frozen_at is not None:
        return "The submission is frozen; a known answer cannot be set any more."
    if not submission.practice and Label.objects.filter(assignment__trajectory=trajectory).exists():
        return "There is a label of this trajectory already; a known answer has to be there before it."
    return None


def answer_practice(
    person: Person, submission: Submission, trajectory: Trajectory, content: LabelContent, number: int
) -> PracticeAnswer:
    """Answer an item of the practice set of ``submission`` in round ``number``, complete like a label, once a round.

    The answer that completes a round with enough right verdicts is recorded in the chain of the submission.
    """
    with transaction.atomic():
        member = require_member(person, submission, Role.ANNOTATOR, lock=True)
        rows = Trajectory.objects.select_for_update(no_key=True, of=("self",)).select_related("task", "submission")
        row = rows.get(pk=trajectory.pk)
        submission = lock_submission(submission.pk)
        require_unfrozen(submission)
        state = training.load_practice(person, submission)
        if row not in state.items:
            raise PermissionDenied("This trajectory does not belong to the practice set.")
        if number != state.open_round:
            raise Conflict("This round is over. Go on from the practice page.")
        if row.pk in state.rounds.get(number, {}):
            raise Conflict("You have answered this one in this round.")
        said = _as_json(row, content, Role.ANNOTATOR)
        answer = PracticeAnswer.objects.create(
            trajectory=row,
            person=person,
            round=number,
            content=said,
            verdict=said["verdict"],
            right=said["verdict"] == row.known_answer.verdict,
            answered_at=timezone.now(),
        )
        after = training.load_practice(person, submission)
        if (reached := after.reached_in) is not None and not after.recorded:
            facts = {"round": reached, "right": after.right_in(reached), "of": len(after.items)}
            record(submission, member, training.PASSED, **facts, pass_mark=after.mark)
        return answer


def _as_json(trajectory: Trajectory, content: LabelContent, role: Membership.Role) -> dict[str, Any]:
    """A complete decision as JSON can hold it; findings by the key point's id (text)."""
    fields = require_complete(trajectory, content, role)
    fields["verdict"] = int(fields["verdict"])
    fields["findings"] = {str(f.key_point): {"finding": str(f.finding), "step": f.step} for f in content.findings}
    if content.attempt is not None:
        fields["attempt"] = asdict(content.attempt)
    return fields
