"""Saving what is being typed, for scripts (JSON) and for plain forms (a redirect)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from annotation import workflow
from annotation.forms import FINDING_FIELD, LabelForm
from annotation.models import Membership, Trajectory
from annotation.views.answers import Request, scripted
from annotation.views.viewer import number


def save(request: Request, trajectory: Trajectory, role: Membership.Role, back: str) -> HttpResponse:
    """Save the posted form as the person's draft and say what is still lacking for a decision in their ``role``."""
    revising = "reason" in request.POST
    asked = replace(workflow.asked_of(trajectory, role), reason=revising)
    form = LabelForm(request.POST, asked)
    version = number(request.POST.get("version")) or 0
    script = scripted(request)
    try:
        draft = workflow.save_draft(request.user, trajectory, form.typed(), version, revising=revising)
    except workflow.StaleDraft as stale:
        return _stale(request, stale, form, script, back)
    if not script:
        messages.success(request, "Draft saved.")
        return redirect(f"{back}?step={number(request.POST.get('step')) or 0}")
    missing = form.missing()
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
    rows = [(in_words(name, form), here.get(name, ""), there.get(name, "")) for name in sorted({*here, *there})]
    return render(request, "annotation/stale_draft.html", {"rows": rows, "back": back}, status=409)


def in_words(name: str, form: LabelForm) -> str:
    """The name of a field as a person would say it; key points by their number on the desk."""
    match = FINDING_FIELD.match(name)
    if match is None:
        return name.replace("_", " ").capitalize()
    pk = int(match[1])
    number = form.asked.key_points.index(pk) + 1 if pk in form.asked.key_points else "that is gone"
    return f"Step of key point {number}" if name.endswith("_step") else f"Key point {number}"
