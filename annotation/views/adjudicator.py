"""The adjudicator's pages: what waits, hardest first, and the desk, with the labels where they may be seen."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from annotation import access, queue, workflow
from annotation.forms import LabelForm, posted_key_points, values_of
from annotation.models import Adjudication, Draft, Membership, Trajectory
from annotation.models.states import State, state_of
from annotation.records import Problem
from annotation.views import desk
from annotation.views.answers import Request, act, page, paged
from annotation.views.comparing import compared, named, pseudonyms
from annotation.views.drafts import save
from annotation.views.viewer import viewer

Role = Membership.Role


@page
def adjudicate(request: Request, pk: int) -> HttpResponse:
    """What waits for an adjudicator; of trajectories to be judged blind nothing but task and state."""
    submission = access.submission_for(request.user, pk, Role.ADJUDICATOR)
    own = Adjudication.objects.filter(adjudicator=request.user, trajectory__submission=submission)
    context = {
        "submission": submission,
        "waiting": paged(request, queue.to_adjudicate(submission), 50),
        "open": own.filter(decided_at__isnull=True).select_related("trajectory__task").order_by("opened_at"),
        "decided": own.filter(decided_at__isnull=False).select_related("trajectory__task").order_by("-decided_at")[:50],
        "draws": submission.spot_check_draws.order_by("number"),
    }
    return render(request, "annotation/adjudicate.html", context)


@act
def draw(request: Request, pk: int) -> HttpResponse:
    submission = access.submission_for(request.user, pk, Role.ADJUDICATOR)
    made = workflow.draw_spot_checks(request.user, submission)
    messages.success(request, f"Drew {len(made.drawn)} of {len(made.population)} unanimous trajectories.")
    return redirect("adjudicate", pk)


@page
def adjudication(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    if request.htmx:
        return desk.step_partial(request, found)
    return _desk(request, found)


@act
def open_one(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    workflow.open_adjudication(request.user, found, request.POST.get("reason", ""))
    return redirect("adjudication", pk)


@act
def decide(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    form = LabelForm(request.POST, posted_key_points(request.POST))
    try:
        if form.errors:
            raise workflow.Incomplete([])
        workflow.decide(request.user, found, form.content())
    except workflow.Incomplete as incomplete:
        return _desk(request, found, refused=incomplete.problems, status=400)
    messages.success(request, f"{found.task.external_id} is decided.")
    return redirect("adjudication", pk)


@act
def leave(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    workflow.leave_adjudication(request.user, found)
    messages.success(request, f"{found.task.external_id} is back in the queue; your draft is kept.")
    return redirect("adjudicate", found.submission_id)


@act
def draft(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    return save(request, found, reverse("adjudication", args=[pk]))


def _desk(
    request: Request, trajectory: Trajectory, refused: list[Problem] | None = None, status: int = 200
) -> HttpResponse:
    adjudications = list(trajectory.adjudications.prefetch_related("findings__key_point").order_by("revision"))
    undecided = next((a for a in adjudications if a.decided_at is None), None)
    decided = [a for a in adjudications if a.decided_at is not None]
    seen = access.may_see_labels(request.user, trajectory)
    names = pseudonyms(trajectory)
    state = state_of(trajectory)
    shown = viewer(request, trajectory, address=reverse("adjudication", args=[trajectory.pk]) + "?")
    context: dict[str, Any] = {
        "trajectory": trajectory,
        "submission": trajectory.submission,
        "viewer": shown,
        "state": state,
        "mine": undecided if undecided and undecided.adjudicator_id == request.user.pk else None,
        "elsewhere": undecided is not None and undecided.adjudicator_id != request.user.pk,
        "waits": state in queue.HARDEST_FIRST,
        "changeable": state is State.ADJUDICATED,
        "decisions": [(names[a.adjudicator_id], named(a)) for a in reversed(decided)],
        "comparison": compared(access.labels_for(request.user, trajectory), trajectory) if seen else None,
        "blind": not seen and access.judged_blind(trajectory),
        "final": trajectory.submission.frozen_at is not None,
    }
    kept = Draft.objects.filter(trajectory=trajectory, author=request.user).first()
    start = kept.content if kept else values_of(decided[-1] if decided else None)
    points = list(workflow.key_points_of(trajectory))
    context |= desk.form_context(request.POST if refused is not None else start, points, shown.count, refused)
    return render(request, "annotation/adjudication.html", context | desk.rules() | {"draft": kept}, status=status)
