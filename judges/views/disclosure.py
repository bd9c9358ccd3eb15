"""The second stage: after their own label, annotators view the judges' evidence, and keep or change their opinion."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from annotation import workflow
from annotation.forms import VERDICT_NAMES, InformedForm
from annotation.records import Verdict
from annotation.views import desk
from annotation.views.answers import Request, act_from, page
from annotation.views.comparing import summarise
from annotation.views.viewer import number, viewer
from judges import disclosure, trying
from judges.disclosure import NetworkEvidence, SecondStage
from judges.models import Judgment
from judges.views.evidence import details_of, format_verdict, read_details, read_evidence


@page
def second_stage(request: Request, pk: int) -> HttpResponse:
    """Show only a warning before the judgments are opened; then one judgment (?of=), next to the trajectory."""
    found = disclosure.load_second_stage(request.user, pk)
    if request.htmx:
        return desk.step_partial(request, found.trajectory, _build_address(request, _find_chosen(request, found)))
    return _render_stage(request, found, InformedForm())


@act_from("second-stage")
def open_second_stage(request: Request, pk: int) -> HttpResponse:
    found = disclosure.load_second_stage(request.user, pk)
    disclosure.open_second_stage(request.user, found.trajectory)
    return redirect("second-stage", pk)


@act_from("second-stage")
def decide(request: Request, pk: int) -> HttpResponse:
    found = disclosure.load_second_stage(request.user, pk)
    form = InformedForm(request.POST)
    if not form.is_valid():
        return _render_stage(request, found, form, 400)
    try:
        disclosure.decide(request.user, found.trajectory, found.label, **form.cleaned_data)
    except workflow.Incomplete as incomplete:
        for problem in incomplete.problems:
            form.add_error(problem.where, problem.message)
        return _render_stage(request, found, form, 400)
    messages.success(request, "Your opinion was saved beside your label.")
    return redirect(
        f"{_build_address(request, _find_chosen(request, found))}step={number(request.GET.get('step')) or 0}"
    )


def _render_stage(request: Request, found: SecondStage, form: InformedForm, status: int = 200) -> HttpResponse:
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
    context |= desk.load_rules(found.trajectory.task.text)
    return render(request, "judges/second_stage.html", context, status=status)


def _build_choices(found: SecondStage, form: InformedForm) -> list[dict[str, Any]]:
    """Return the verdicts to choose from, with the annotator's own verdict first."""
    own, given = Verdict(found.label.verdict), str(form.data.get("verdict", ""))
    return [
        {"value": verdict.value, "name": name, "own": verdict == own, "checked": given == str(verdict.value)}
        for verdict, name in sorted(VERDICT_NAMES.items(), key=lambda pair: (pair[0] != own, pair[0]))
    ]


def _find_chosen(request: Request, found: SecondStage) -> Judgment | None:
    """Return the judgment with the key ?of= among those shown, else the first."""
    wanted = number(request.GET.get("of"))
    return next((one for one in found.judgments if one.pk == wanted), found.judgments[0] if found.judgments else None)


def _build_address(request: Request, chosen: Judgment | None) -> str:
    path = request.path.removesuffix("/look").removesuffix("/decide")
    return f"{path}?of={chosen.pk}&" if chosen is not None else f"{path}?"


# --- network evidence ------------------------------------------------------------------------------------------------


NONE = "The task has no checks, or its checks need a network trace and the trajectory has none."


@page
def network_evidence(request: Request, pk: int) -> HttpResponse:
    """Render the collapsed panel for the desk (htmx), empty if there is no evidence; otherwise a separate page.

    Neither shows the results of the checks before the person has opened them (`open_network_evidence`).
    """
    found = disclosure.load_network_evidence(request.user, pk)
    if found is None and request.htmx:
        return HttpResponse()
    if found is None:
        raise Http404(NONE)
    return _render_evidence(request, found, found.seen)


@act_from("network-evidence")
def open_network_evidence(request: Request, pk: int) -> HttpResponse:
    found = disclosure.load_network_evidence(request.user, pk)
    if found is None:
        raise Http404(NONE)
    disclosure.open_network_evidence(request.user, found)
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
