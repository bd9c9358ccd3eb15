"""What a desk's script asks for while somebody works. Pages without script need none of it, but to hold again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from annotation import access, workflow
from annotation.forms import ActivityForm
from annotation.models import Membership, Trajectory
from annotation.screenshots import Rendition
from annotation.views.answers import Request, act, scripted

Role = Membership.Role
FIRST = 2  # pictures of the next trajectory that are fetched ahead, beside the sheet of its strip


@never_cache
@require_safe
def session(request: HttpRequest) -> HttpResponse:
    """Who is signed in here (null for nobody), with a fresh token for the forms of a page that is open already."""
    person = request.user.pk if request.user.is_authenticated else None
    return JsonResponse({"person": person, "csrf": get_token(request)})


@act
def activity(request: Request, pk: int) -> HttpResponse:
    """Add to the time that the person was active here, and to the steps they opened; when their lease ends now."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR, Role.ADJUDICATOR)
    form = ActivityForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"message": "Seconds and steps are numbers."}, status=400)
    given = form.cleaned_data
    until = workflow.record_activity(request.user, found, given["seconds"], given["steps"], revising=given["revising"])
    said = {"lease_expires_at": until.isoformat() if until else None}
    if until is None and access.own_labels(request.user, found).exists():
        said["code"] = workflow.LABEL_SUBMITTED
    return JsonResponse(said)


@act
def ahead(request: Request, pk: int) -> HttpResponse:
    """Hold what comes after this trajectory, and name its first pictures; an empty list when nothing comes."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    held = workflow.claim_ahead(request.user, found)
    return JsonResponse({"pictures": first_pictures(held.trajectory) if held else []})


def first_pictures(trajectory: Trajectory) -> list[str]:
    """The addresses of the pictures that a desk shows first: the large ones, and the sheet of the strip."""
    steps = trajectory.steps.filter(index__lt=FIRST, screenshot__isnull=False).values_list("index", flat=True)
    large = [reverse("picture", args=[trajectory.pk, step, Rendition.DISPLAY]) for step in steps]
    if not large and not trajectory.steps.exists():  # an answer: its text comes with the page
        return []
    return [*large, reverse("sheet", args=[trajectory.pk, 0])]


@act
def hold(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    held = workflow.hold_again(request.user, found)
    if scripted(request) and held.lease_expires_at:
        return JsonResponse({"lease_expires_at": held.lease_expires_at.isoformat()})
    return redirect("trajectory", pk)
