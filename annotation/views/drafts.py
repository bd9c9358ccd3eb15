"""Saving what is being typed, for scripts (JSON) and for plain forms (a redirect)."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from annotation import workflow
from annotation.forms import LabelForm
from annotation.models import Trajectory
from annotation.views.answers import Request
from annotation.views.viewer import number


def save(request: Request, trajectory: Trajectory, back: str) -> HttpResponse:
    """Save the posted form as the person's draft and say what a label would still lack."""
    key_points = list(workflow.key_points_of(trajectory).values_list("pk", flat=True))
    form = LabelForm(request.POST, key_points)
    version = number(request.POST.get("version")) or 0
    script = request.accepts("application/json") and not request.accepts("text/html")
    try:
        draft = workflow.save_draft(request.user, trajectory, form.typed(), version)
    except workflow.StaleDraft as stale:
        return _stale(request, stale, form, script, back)
    if not script:
        messages.success(request, "Draft saved.")
        return redirect(f"{back}?step={number(request.POST.get('step')) or 0}")
    missing = form.missing(trajectory.steps.count())
    return JsonResponse(
        {
            "version": draft.version,
            "saved_at": draft.saved_at.isoformat(),
            "missing": [{"where": problem.where, "message": problem.message} for problem in missing],
        }
    )


def _stale(request: Request, stale: workflow.StaleDraft, form: LabelForm, script: bool, back: str) -> HttpResponse:
    here: dict[str, Any] = form.typed()
    there: dict[str, Any] = stale.current.content
    if script:
        body = {"message": str(stale), "version": stale.current.version, "here": here, "there": there}
        return JsonResponse(body, status=409)
    rows = [(name, here.get(name, ""), there.get(name, "")) for name in sorted({*here, *there})]
    return render(request, "annotation/stale_draft.html", {"rows": rows, "back": back}, status=409)
