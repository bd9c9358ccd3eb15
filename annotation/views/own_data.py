"""What everybody may do about what is kept of them: take it along, and be erased."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from annotation import access, password_limits, privacy, workflow
from annotation.views.answers import Request, act_from, page


@page
def own_data(request: Request) -> HttpResponse:
    data = privacy.data_of(request.user)
    response = JsonResponse(data, json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = 'attachment; filename="webverdict-my-data.json"'
    return response


@page
def erasing(request: Request) -> HttpResponse:
    """What being erased means, before anybody does it."""
    return _erasing(request)


@act_from("erasing")
def erase(request: Request) -> HttpResponse:
    """Erase the own account for good; the password shows that it is not somebody at an open screen."""
    if not password_limits.confirms_password(request, request.POST.get("password", "")):
        return _erasing(request, "This is not your password. Nothing was erased.", 400)
    accepted = {name: request.POST.get(name) == "1" for name in ("accept_texts", "accept_unmaintained")}
    try:
        workflow.erase(request.user, request.user, "at their own wish", **accepted)
    except workflow.NamedInTexts as refusal:
        return _erasing(request, str(refusal), 409, wrong="accept-texts")
    except workflow.LastMaintainer as refusal:
        return _erasing(request, str(refusal), 409, wrong="accept-unmaintained")
    logout(request)
    messages.success(request, "Your account is erased.")
    return redirect("sign-in")


def _erasing(request: Request, problem: str = "", status: int = 200, wrong: str = "password") -> HttpResponse:
    open_parts = access.memberships_of(request.user).filter(submission__frozen_at__isnull=True)
    context = {"problem": problem, "wrong": wrong, "memberships": open_parts}
    context["alone"] = workflow.find_solely_maintained(request.user)
    context["texts"] = [each.describe(whole=False) for each in workflow.find_named_places(request.user)]
    return render(request, "annotation/erasing.html", context, status=status)
