"""The verbs of training: known answers, and what newcomers answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from annotation import training
from annotation.models import KnownAnswer, Label, PracticeAnswer, Submission, Trajectory
from annotation.models.events import digest
from annotation.records import LabelContent
from annotation.workflow.ground import (
    Conflict,
    Role,
    active_member,
    complete,
    lock_submission,
    locked,
    not_frozen,
    record,
    record_for,
)

EXCEPTION = "\n\nException: "  # what joins the reason of an exception to the explanation


def takes_labels(submission: Submission) -> None:
    if submission.practice:
        raise Conflict("This is a practice set; it takes no labels.")


def gives_work(person: Any, submission: Submission) -> None:
    """Refuse (Conflict) to give trajectories of a practice set, and real work to who has yet to pass theirs.

    What somebody holds already when practice is switched on stays theirs; see also `training.admitted`.
    """
    takes_labels(submission)
    if not training.admitted(person, submission):
        raise Conflict("Practise first: real work is given once you have passed the practice set.")


def set_known_answer(person: Any, trajectory: Trajectory, content: LabelContent) -> KnownAnswer:
    """Say what is right about a trajectory; its reasoning is the explanation. Setting it again replaces it.

    In a submission under review that makes a gold item, and is possible until the first label of the trajectory is
    in: later it would be a judgement of what somebody has said. The event carries a digest, nothing of the answer.
    """
    with locked(trajectory) as (row, submission):
        member = active_member(person, submission, Role.MAINTAINER)
        if (reason := known_answer_refusal(row)) is not None:
            raise Conflict(reason)
        said = _said(row, content, Role.MAINTAINER)
        explanation = said["reasoning"] + (EXCEPTION + said["exception_reason"] if said["exception_reason"] else "")
        fields = {name: said[name] for name in ("verdict", "failure_step", "failure_type", "cause", "findings")}
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
    person: Any, submission: Submission, trajectory: Trajectory, content: LabelContent, number: int
) -> PracticeAnswer:
    """Answer an item of the practice set of ``submission`` in round ``number``, complete like a label, once a round.

    The answer that completes a round with enough right verdicts is recorded in the chain of the submission.
    """
    with transaction.atomic():
        member = active_member(person, submission, Role.ANNOTATOR, lock=True)
        rows = Trajectory.objects.select_for_update(no_key=True, of=("self",)).select_related("task", "submission")
        row = rows.get(pk=trajectory.pk)
        submission = lock_submission(submission.pk)
        not_frozen(submission)
        state = training.practice(person, submission)
        if row not in state.items:
            raise PermissionDenied("This trajectory does not belong to the practice set.")
        if number != state.open_round:
            raise Conflict("This round is over. Go on from the practice page.")
        if row.pk in state.rounds.get(number, {}):
            raise Conflict("You have answered this one in this round.")
        said = _said(row, content, Role.ANNOTATOR)
        answer = PracticeAnswer.objects.create(
            trajectory=row,
            person=person,
            round=number,
            content=said,
            verdict=said["verdict"],
            right=said["verdict"] == row.known_answer.verdict,
            answered_at=timezone.now(),
        )
        after = training.practice(person, submission)
        if (reached := after.reached_in) is not None and not after.recorded:
            facts = {"round": reached, "right": after.right_in(reached), "of": len(after.items)}
            record(submission, member, training.PASSED, **facts, pass_mark=after.mark)
        return answer


def _said(trajectory: Trajectory, content: LabelContent, role: Any) -> dict[str, Any]:
    """A complete decision as JSON can hold it; findings by the key point's id (text)."""
    fields = complete(trajectory, content, role)
    fields["verdict"] = int(fields["verdict"])
    fields["findings"] = {str(f.key_point): {"finding": str(f.finding), "step": f.step} for f in content.findings}
    if content.attempt is not None:
        fields["attempt"] = asdict(content.attempt)
    return fields
