"""What the checks of a task find in a trajectory, for an adjudicator: computed once opened, which is recorded."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from annotation.views.answers import Request, act_from, page
from judges import network_evidence, trying
from judges.network_evidence import NetworkEvidence
from judges.views.details import read_details
from judges.views.evidence import format_verdict

NONE = "The task has no checks, or they need a network trace and the trajectory has none."


@page
def evidence(request: Request, pk: int) -> HttpResponse:
    """Asked for by the desk, the folded panel, or nothing where there is no evidence; else a page of its own.

    What the checks found is in neither before the person has opened it (`look`).
    """
    found = network_evidence.load_evidence(request.user, pk)
    if found is None and request.htmx:
        return HttpResponse()
    if found is None:
        raise Http404(NONE)
    return _render_evidence(request, found, found.seen)


@act_from("network-evidence")
def look(request: Request, pk: int) -> HttpResponse:
    found = network_evidence.load_evidence(request.user, pk)
    if found is None:
        raise Http404(NONE)
    network_evidence.look(request.user, found)
    return _render_evidence(request, found, True) if request.htmx else redirect("network-evidence", pk)


def _render_evidence(request: Request, found: NetworkEvidence, opened: bool) -> HttpResponse:
    trajectory = found.trajectory
    context: dict[str, Any] = {"trajectory": trajectory, "submission": trajectory.submission, "opened": opened}
    context["traced"] = bool(found.trace)
    context["viewer"] = {"address": reverse("adjudication", args=[trajectory.pk]) + "?"}
    if opened:
        score = trying.run_checks(found.subject)
        context |= {
            "score": score,
            "verdict": format_verdict(score.verdict),
            "details": read_details(dict(score.details)),
        }
    template = "judges/_network_evidence.html" if request.htmx else "judges/network_evidence.html"
    return render(request, template, context)
