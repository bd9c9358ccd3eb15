"""The informed second stage: an annotator whose label is in looks at the judges' evidence, and keeps or changes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from annotation import workflow
from annotation.forms import VERDICT_NAMES, InformedForm
from annotation.records import Verdict
from annotation.views import desk
from annotation.views.answers import Request, act_from, page
from annotation.views.comparing import summarise
from annotation.views.viewer import number, viewer
from judges import second_stage
from judges.models import Judgment
from judges.second_stage import Stage
from judges.views.details import details_of
from judges.views.evidence import format_verdict, read_evidence


@page
def stage(request: Request, pk: int) -> HttpResponse:
    """Before the look a warning and nothing of any judge; then one judgment (?of=), beside the trajectory."""
    found = second_stage.load_stage(request.user, pk)
    if request.htmx:
        return desk.step_partial(request, found.trajectory, _build_address(request, _find_chosen(request, found)))
    return _render_stage(request, found, InformedForm())


@act_from("second-stage")
def look(request: Request, pk: int) -> HttpResponse:
    found = second_stage.load_stage(request.user, pk)
    second_stage.look(request.user, found.trajectory)
    return redirect("second-stage", pk)


@act_from("second-stage")
def decide(request: Request, pk: int) -> HttpResponse:
    found = second_stage.load_stage(request.user, pk)
    form = InformedForm(request.POST)
    if not form.is_valid():
        return _render_stage(request, found, form, 400)
    try:
        second_stage.decide(request.user, found.trajectory, found.label, **form.cleaned_data)
    except workflow.Incomplete as incomplete:
        for problem in incomplete.problems:
            form.add_error(problem.where, problem.message)
        return _render_stage(request, found, form, 400)
    messages.success(request, "Thank you. This is kept beside your label.")
    return redirect(
        f"{_build_address(request, _find_chosen(request, found))}step={number(request.GET.get('step')) or 0}"
    )


def _render_stage(request: Request, found: Stage, form: InformedForm, status: int = 200) -> HttpResponse:
    chosen = _find_chosen(request, found)
    context: dict[str, Any] = {
        "stage": found,
        "trajectory": found.trajectory,
        "submission": found.trajectory.submission,
        "label": summarise(found.label),
        "form": form,
        "choices": _build_choices(found, form),
        "judgment": chosen,
        "viewer": viewer(request, found.trajectory, _build_address(request, chosen)),
    }
    if chosen is not None:
        context |= {"verdict": format_verdict(chosen.verdict), "evidence": read_evidence(chosen)}
        context["details"] = details_of(chosen)
    context |= desk.rules(found.trajectory.task.text)
    return render(request, "judges/second_stage.html", context, status=status)


def _build_choices(found: Stage, form: InformedForm) -> list[dict[str, Any]]:
    """To keep comes first; the others say what would be instead."""
    own, given = Verdict(found.label.verdict), str(form.data.get("verdict", ""))
    return [
        {"value": verdict.value, "name": name, "own": verdict == own, "checked": given == str(verdict.value)}
        for verdict, name in sorted(VERDICT_NAMES.items(), key=lambda pair: (pair[0] != own, pair[0]))
    ]


def _find_chosen(request: Request, found: Stage) -> Judgment | None:
    """The judgment that ?of= numbers among those that were shown, else the first."""
    wanted = number(request.GET.get("of"))
    return next((one for one in found.judgments if one.pk == wanted), found.judgments[0] if found.judgments else None)


def _build_address(request: Request, chosen: Judgment | None) -> str:
    path = request.path.removesuffix("/look").removesuffix("/decide")
    return f"{path}?of={chosen.pk}&" if chosen is not None else f"{path}?"
