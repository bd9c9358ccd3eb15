"""Comments on trajectories after the freeze, and questions about the guidelines before it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from annotation import access, workflow
from annotation.models import Membership, Submission, Trajectory
from annotation.records import Problem
from annotation.views.answers import Request, act, paginate
from annotation.views.comparing import pseudonyms
from annotation.views.viewer import number

Role = Membership.Role
MOST_FIRST = 5  # questions on a page with another list
MOST_COMMENTS = 50  # on a page
PAGES = {Role.ANNOTATOR: "trajectory", Role.ADJUDICATOR: "adjudication", Role.MAINTAINER: "submission-trajectory"}

# --- comments --------------------------------------------------------------------------------------------------------


def load_comments(request: Request, trajectory: Trajectory) -> dict[str, Any]:
    """Return the comments, each with its author's pseudonym; nothing for people who may not read them."""
    found = access.comments_for(request.user, trajectory)
    if found is None:
        return {}
    names = pseudonyms(trajectory)
    own = names.get(request.user.pk, "")
    maintains = access.role_in(request.user, trajectory.submission) is Role.MAINTAINER
    pages = Paginator(found, MOST_COMMENTS)
    # The newest are on the last page, which is shown first.
    page = pages.get_page(request.GET.get("page") or pages.num_pages)
    shown = [(names.get(row.author_id, ""), row) for row in page]
    return {"comments": shown, "comments_page": page, "commenter": own, "maintains": maintains}


@act
def comment(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, *PAGES)
    step = request.POST.get("step", "").strip()
    if step and number(step) is None:
        raise workflow.Incomplete([Problem("step_unknown", "Enter the step as a number.", "step")])
    workflow.write_comment(request.user, found, request.POST.get("text", ""), number(step))
    messages.success(request, "Comment added.")
    return _to_comments(request, found, number(step))


@act
def delete_comment(request: Request, pk: int) -> HttpResponse:
    found = access.comment_for(request.user, pk)
    workflow.delete_comment(found)
    messages.success(request, "Comment deleted.")
    return _to_comments(request, found.trajectory, found.step)


def _to_comments(request: Request, trajectory: Trajectory, step: int | None) -> HttpResponse:
    role = access.role_in(request.user, trajectory.submission)
    if role is None:
        return redirect("home")  # somebody who was deactivated has deleted a comment
    shown = "" if step is None else f"?step={step}"
    return redirect(f"{reverse(PAGES[role], args=[trajectory.pk])}{shown}#comments")


# --- questions -------------------------------------------------------------------------------------------------------


def load_questions(request: Request, submission: Submission) -> dict[str, Any]:
    """Return a page of the questions that the person may read: open ones first, then the latest answers."""
    found = access.questions_for(request.user, submission).order_by(F("answered_at").desc(nulls_first=True), "-pk")
    return {"submission": submission, "questions": paginate(request, found, 20)}


def load_first_questions(request: Request, submission: Submission) -> dict[str, Any]:
    """Return the first of `load_questions` and whether there are more, for a page with another list."""
    found = load_questions(request, submission)["questions"].paginator.page(1)
    return {"questions": found.object_list[:MOST_FIRST], "more_questions": found.paginator.count > MOST_FIRST}


@act
def ask(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.ANNOTATOR, Role.ADJUDICATOR)
    workflow.ask_question(request.user, found, request.POST.get("text", ""))
    messages.success(request, "Question sent to the maintainer.")
    return redirect(f"{reverse('submission-guidelines', args=[pk])}#questions")


@act
def answer_question(request: Request, pk: int) -> HttpResponse:
    found = access.question_for(request.user, pk)
    private = request.POST.get("to") == "asker"
    workflow.answer_question(request.user, found, request.POST.get("answer", ""), private=private)
    messages.success(request, "Question answered.")
    return redirect("reports", found.submission_id)
