"""Judgments that were made elsewhere, by benchmark: what there is, and the upload of a file with its report."""

from __future__ import annotations

from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import render

from annotation.models import Benchmark
from annotation.views.answers import Request, act_from, page
from judges import access, imports
from judges.forms.importing import JudgmentsForm
from judges.models import Judge
from judges.scorer import IMPORTED


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
