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
from judges.views.details import read_details
from judges.views.editors import build_preview, find_kind, render_editor
from judges.views.evidence import format_verdict
from judges.views.trace_events import list_events


@act_from("expectation")
def preview(request: Request, pk: int, expected: str) -> HttpResponse:
    """What the posted text means; asked for by htmx while somebody types, else the whole page with the text in it."""
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    text = request.POST.get("text", "")
    if not request.htmx:
        return render_editor(request, found, kind, _read_form(request), text)
    context = {"task": found, "kind": kind.value, "is_rubric": kind is Kind.RUBRIC}
    return render(request, "judges/_preview.html", context | build_preview(request.user, kind, text, found))


@act_from("expectation")
def try_out(request: Request, pk: int, expected: str) -> HttpResponse:
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    if kind is not Kind.NETWORK_CHECKS:
        raise Http404("A rubric is tried by a judge's test, since that asks a model.")
    text, trajectory = request.POST.get("text", ""), _find_trajectory(request, found, request.POST.get("trajectory"))
    tried: dict[str, object] = {"trajectory": trajectory}
    try:
        expectations.parse_text(kind, text)
    except FormatError:
        tried["refused"] = True
    else:
        score = trying.try_checks(trajectory, text)
        tried |= {
            "score": score,
            "verdict": format_verdict(score.verdict),
            "details": read_details(dict(score.details)),
        }
    if not request.htmx:
        return render_editor(request, found, kind, _read_form(request), text, tried=tried)
    return render(request, "judges/_tried.html", {"tried": tried})


@page
def events(request: Request, pk: int, expected: str) -> HttpResponse:
    """The navigations and mutations of the trace of ?trajectory=, each with a check that it would meet."""
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    if kind is not Kind.NETWORK_CHECKS:
        raise Http404("Only checks are made out of a trace.")
    trajectory = _find_trajectory(request, found, request.GET.get("trajectory"))
    told = list_events(trajectory)
    context = {"task": found, "benchmark": found.benchmark, "kind": kind.value, "trajectory": trajectory, "told": told}
    return render(request, f"judges/{'_events' if request.htmx else 'expectation_events'}.html", context)


def _read_form(request: Request) -> ExpectationForm:
    """The form as it was sent, without looking for faults: nothing is to be kept yet."""
    return ExpectationForm(initial={name: request.POST.get(name, "") for name in ("text", "why", "after")})


def _find_trajectory(request: Request, task: Task, given: str | None) -> Trajectory:
    return get_object_or_404(access.find_task_trajectories(request.user, task), pk=number(given) or 0)
