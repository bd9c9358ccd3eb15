"""An expectation that is being written: what it means, what it says of a trajectory, and checks out of a trace."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from annotation.formats.documents import FormatError
from annotation.models import Task, Trajectory
from annotation.views.answers import Request, act_from, page
from annotation.views.viewer import number
from judges import access, expectations, trying
from judges.expectations import Kind
from judges.forms.expectations import ExpectationForm
from judges.views.details import drawn
from judges.views.editors import editor, kind_of, preview_of
from judges.views.evidence import verdict_text
from judges.views.trace_events import events_of


@act_from("expectation")
def preview(request: Request, pk: int, expected: str) -> HttpResponse:
    """What the posted text means; asked for by htmx while somebody types, else the whole page with the text in it."""
    found, kind = access.expected_task_for(request.user, pk), kind_of(expected)
    text = request.POST.get("text", "")
    if not request.htmx:
        return editor(request, found, kind, _kept(request), text)
    context = {"task": found, "kind": kind.value, "is_rubric": kind is Kind.RUBRIC}
    return render(request, "judges/_preview.html", context | preview_of(request.user, kind, text, found))


@act_from("expectation")
def try_out(request: Request, pk: int, expected: str) -> HttpResponse:
    """Hold the posted checks against the trajectory that is posted, here and now."""
    found, kind = access.expected_task_for(request.user, pk), kind_of(expected)
    if kind is not Kind.NETWORK_CHECKS:
        raise Http404("A rubric is tried by a judge's test, since that asks a model.")
    text, trajectory = request.POST.get("text", ""), _chosen(request, found, request.POST.get("trajectory"))
    tried: dict[str, object] = {"trajectory": trajectory}
    try:
        expectations.parsed(kind, text)
    except FormatError:
        tried["refused"] = True
    else:
        score = trying.tried(trajectory, text)
        tried |= {"score": score, "verdict": verdict_text(score.verdict), "details": drawn(dict(score.details))}
    if not request.htmx:
        return editor(request, found, kind, _kept(request), text, tried=tried)
    return render(request, "judges/_tried.html", {"tried": tried})


@page
def events(request: Request, pk: int, expected: str) -> HttpResponse:
    """The navigations and mutations of the trace of ?trajectory=, each with a check that it would meet."""
    found, kind = access.expected_task_for(request.user, pk), kind_of(expected)
    if kind is not Kind.NETWORK_CHECKS:
        raise Http404("Only checks are made out of a trace.")
    trajectory = _chosen(request, found, request.GET.get("trajectory"))
    told = events_of(trajectory)
    context = {"task": found, "benchmark": found.benchmark, "kind": kind.value, "trajectory": trajectory, "told": told}
    return render(request, f"judges/{'_events' if request.htmx else 'expectation_events'}.html", context)


def _kept(request: Request) -> ExpectationForm:
    """The form as it was sent, without looking for faults: nothing is to be kept yet."""
    return ExpectationForm(initial={name: request.POST.get(name, "") for name in ("text", "why", "after")})


def _chosen(request: Request, task: Task, given: str | None) -> Trajectory:
    """One of the task's trajectories that the person maintains."""
    return get_object_or_404(access.trajectories_of_task(request.user, task), pk=number(given) or 0)
