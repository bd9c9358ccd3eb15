"""Pages for a judgment next to its trajectory, its trace, the judgments of a trajectory, and imported judgments."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Count, Q, Sum
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from annotation import access as people_access
from annotation.access import Role
from annotation.models import Benchmark, Trajectory
from annotation.models.states import final_verdict, with_state
from annotation.views import desk
from annotation.views.answers import Request, act_from, page, paginate
from annotation.views.viewer import viewer
from judges import access, imports, robustness, trace
from judges.forms.expectations import JudgmentsForm
from judges.models import Judge, Judgment
from judges.scorer import IMPORTED
from judges.scorers.detail_values import LONGEST
from judges.views.evidence import build_call, details_of, format_verdict, map_steps, read_evidence

MOST_LISTED = 200  # judgments of one trajectory on a page


@page
def judgment(request: Request, pk: int) -> HttpResponse:
    """Show a judgment next to its trajectory, step by step; for htmx, only the step."""
    found = access.find_judgment(request.user, pk)
    assert found.trajectory is not None  # noqa: S101 - find_judgment returns no others
    if request.htmx:
        return desk.step_partial(request, found.trajectory)
    context = {
        "trajectory": found.trajectory,
        "submission": found.trajectory.submission,
        "judgment": found,
        "verdict": format_verdict(found.verdict),
        "change": robustness.name_change(found),
        "imported": json.dumps(found.imported, indent=1, ensure_ascii=False)[:LONGEST] if found.imported else "",
        "evidence": read_evidence(found),
        "details": details_of(found),
        "viewer": viewer(request, found.trajectory),
        "calls": _count_calls(found),
        "decided": _find_final_verdict(request.user, found.trajectory),
        "others": access.find_trajectory_judgments(request.user, found.trajectory).exclude(pk=pk)[:MOST_LISTED],
    }
    context |= _find_neighbours(request.user, found) | desk.load_rules(found.trajectory.task.text)
    return render(request, "judges/judgment.html", context)


@page
def judgment_trace(request: Request, pk: int) -> HttpResponse:
    found = access.find_judgment(request.user, pk)
    assert found.trajectory is not None  # noqa: S101 - find_judgment returns no others
    steps, api = map_steps(found.trajectory), str(found.judge.generation.get("api", "chat"))
    shown = paginate(request, trace.select_calls(found), 50)
    context = {
        "judgment": found,
        "trajectory": found.trajectory,
        "page": shown,
        "calls": [build_call(call, steps, api) for call in shown],
        "address": reverse("judgment", args=[pk]) + "?",
    }
    return render(request, "judges/_trace.html" if request.htmx else "judges/trace.html", context)


@page
def trace_file(request: Request, pk: int) -> HttpResponse:
    found = access.find_judgment(request.user, pk)
    answer = JsonResponse(trace.build_trace(found), json_dumps_params={"indent": 2, "ensure_ascii": False})
    answer["Content-Disposition"] = f'attachment; filename="judgment-{found.pk}.trace.json"'
    return answer


@page
def trajectory_judgments(request: Request, pk: int) -> HttpResponse:
    """List the judgments of a trajectory that the person may see; without htmx, on a separate page."""
    trajectory = people_access.trajectory_for(request.user, pk, Role.ADJUDICATOR, Role.MAINTAINER)
    found = access.find_trajectory_judgments(request.user, trajectory)[:MOST_LISTED]
    context = {
        "trajectory": trajectory,
        "submission": trajectory.submission,
        "judgments": found,
        "maintains": people_access.role_in(request.user, trajectory.submission) is Role.MAINTAINER,
    }
    return render(request, "judges/_judgments.html" if request.htmx else "judges/judgments.html", context)


def _count_calls(found: Judgment) -> dict[str, Any]:
    """Count the calls, those from the cache, failed and pruned ones, and their tokens."""
    gone = Q(pruned_at__isnull=False) | Q(hit=True, hit_of__isnull=True) | Q(hit_of__pruned_at__isnull=False)
    counts = trace.select_calls(found).aggregate(
        made=Count("pk"),
        hits=Count("pk", filter=Q(hit=True)),
        failed=Count("pk", filter=~Q(error="")),
        pruned=Count("pk", filter=gone),
        retries=Sum("retries"),
        prompt=Sum("prompt_tokens"),
        completion=Sum("completion_tokens"),
    )
    return dict(counts)


def _find_final_verdict(person: Any, trajectory: Trajectory) -> str:
    if not people_access.may_see_labels(person, trajectory):
        return ""
    final = final_verdict(with_state(Trajectory.objects.filter(pk=trajectory.pk)).get())
    return "" if final is None else format_verdict(final)


def _find_neighbours(person: Any, found: Judgment) -> dict[str, Any]:
    """Return the links of the page: back, and for a maintainer the previous and next judgment of its run.

    An imported judgment has no run: its neighbours are those of its judge in the same submission.
    """
    assert found.trajectory is not None  # noqa: S101 - find_judgment returns no others
    if people_access.role_in(person, found.trajectory.submission) is not Role.MAINTAINER:
        return {"back": reverse("adjudication", args=[found.trajectory_id])}
    if found.item is None:
        back = {"maintains": True, "back": reverse("submission-trajectory", args=[found.trajectory_id])}
        return back | _find_imported_neighbours(found, found.trajectory)
    beside = Judgment.objects.filter(item__run=found.item.run_id)
    return {
        "maintains": True,
        "back": reverse("judge-run", args=[found.item.run_id]),
        "earlier": beside.filter(item__lt=found.item_id).order_by("-item").first(),
        "later": beside.filter(item__gt=found.item_id).order_by("item").first(),
    }


def _find_imported_neighbours(found: Judgment, trajectory: Trajectory) -> dict[str, Any]:
    beside = Judgment.objects.filter(
        judge=found.judge_id, item__isnull=True, trajectory__submission=trajectory.submission_id
    )
    return {
        "earlier": beside.filter(trajectory__position__lt=trajectory.position)
        .order_by("-trajectory__position")
        .first(),
        "later": beside.filter(trajectory__position__gt=trajectory.position).order_by("trajectory__position").first(),
    }


# --- imported judgments -----------------------------------------------------------------------------------------------


@page
def imported_judgments(request: Request, slug: str) -> HttpResponse:
    return _render_page(request, access.find_benchmark(request.user, slug), JudgmentsForm())


@act_from("imported-judgments")
def import_judgments(request: Request, slug: str) -> HttpResponse:
    found = access.find_benchmark(request.user, slug)
    form = JudgmentsForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_page(request, found, form, status=400)
    given = form.cleaned_data
    outcome = imports.import_judgments(
        given["file"].read(),
        given["file"].name,
        benchmark=found,
        judge=given["judge"],
        agent=given["agent"],
        person=request.user,
    )
    refused = bool(outcome.report.rejected)
    return _render_page(request, found, form if refused else JudgmentsForm(), outcome, 400 if refused else 200)


def _render_page(
    request: Request,
    found: Benchmark,
    form: JudgmentsForm,
    outcome: imports.ImportOutcome | None = None,
    status: int = 200,
) -> HttpResponse:
    here = Q(judgments__task__benchmark=found, judgments__item__isnull=True)
    judges = Judge.own.annotate(
        made=Count("judgments", filter=here),
        unscored=Count("judgments", filter=here & Q(judgments__verdict__isnull=True)),
        linked=Count("judgments", filter=here & Q(judgments__trajectory__isnull=False)),
    )
    context = {
        "benchmark": found,
        "form": form,
        "outcome": outcome,
        "report": outcome.report.as_json() if outcome else None,
        "rows": judges.filter(scorer=IMPORTED, made__gt=0).order_by("name"),
    }
    return render(request, "judges/imported_judgments.html", context, status=status)
