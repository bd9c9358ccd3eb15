"""Comments on trajectories after the freeze, and questions about the guidelines before it.

No event records them: a chain that grew with every comment would change the evidence of a frozen submission.
"""

from __future__ import annotations

from django.db import transaction

from annotation import access, clock
from annotation.models import Comment, Person, Question, Submission, Trajectory
from annotation.protocol import is_blank
from annotation.records import Problem
from annotation.workflow.guards import (
    LONGEST_NOTE,
    Conflict,
    Incomplete,
    Role,
    lock_submission,
    lock_trajectory,
    require_member,
    require_unfrozen,
)

MOST_COMMENTS = 50  # of one person on one trajectory
MOST_OPEN_QUESTIONS = 10  # of one person in one submission


def write_comment(person: Person, trajectory: Trajectory, text: str, step: int | None = None) -> Comment:
    """Comment on a trajectory, or on one of its steps."""
    with lock_trajectory(trajectory) as (row, submission):
        if not access.may_discuss(person, row):
            raise Conflict(
                "You can comment once the submission is frozen and you may see its labels. Nothing was saved."
            )
        require_member(person, submission, Role.ANNOTATOR, Role.ADJUDICATOR, Role.MAINTAINER)
        if step is not None and not row.steps.filter(index=step).exists():
            raise Incomplete([Problem("step_unknown", _describe_steps(row, step), "step")])
        if row.comments.filter(author=person).count() >= MOST_COMMENTS:
            raise Conflict(f"You have {MOST_COMMENTS} comments on this trajectory. Delete one first.")
        written = _require_text(text, "a comment")
        return Comment.objects.create(trajectory=row, author=person, step=step, text=written, written_at=clock.now())


def _describe_steps(trajectory: Trajectory, step: int) -> str:
    count = trajectory.steps.count()
    advice = f"Enter 0 to {count - 1}, or nothing." if count else "Leave the field empty: there are no steps."
    return f"Step {step} does not exist. {advice}"


def delete_comment(comment: Comment) -> None:
    """Delete a comment for good: nothing rests on it, and a name written by mistake must not stay in the database."""
    comment.delete()


def ask_question(person: Person, submission: Submission, text: str) -> Question:
    """Ask the maintainer about the guidelines, until the freeze."""
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        require_member(person, submission, Role.ANNOTATOR, Role.ADJUDICATOR)
        require_unfrozen(submission)
        if submission.questions.filter(asker=person, answered_at__isnull=True).count() >= MOST_OPEN_QUESTIONS:
            raise Conflict(f"{MOST_OPEN_QUESTIONS} of your questions are not answered yet. Wait for an answer.")
        written = _require_text(text, "a question")
        return Question.objects.create(submission=submission, asker=person, text=written, asked_at=clock.now())


def answer_question(person: Person, question: Question, answer: str, *, private: bool = False) -> Question:
    """Answer a question once, to all annotators and adjudicators, or only to the person who asked (``private``)."""
    with transaction.atomic():
        submission = lock_submission(question.submission_id)
        require_member(person, submission, Role.MAINTAINER)
        row = Question.objects.select_for_update().get(pk=question.pk)
        if row.answered_at is not None:
            raise Conflict("This question is already answered.")
        row.answer, row.private = _require_text(answer, "an answer", "answer"), private
        row.answered_at, row.answered_by = clock.now(), person
        row.save(update_fields=["answer", "private", "answered_at", "answered_by"])
        return row


def _require_text(value: str, what: str, where: str = "text") -> str:
    """Return the text with line ends as LF, which browsers count as one character; raise Incomplete if it is unfit."""
    text = value.replace("\r\n", "\n").strip()
    if is_blank(text):
        raise Incomplete([Problem("text_missing", f"Enter {what}.", where)])
    if len(text) > LONGEST_NOTE:
        message = f"Shorten the text: {what} has at most {LONGEST_NOTE:,} characters."
        raise Incomplete([Problem("text_too_long", message, where)])
    return text
