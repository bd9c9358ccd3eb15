"""Pages to align a judge with people: start, progress, looks at the test split, and disagreements side by side."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from annotation.formats.printable import counted
from annotation.models import Benchmark
from annotation.views.answers import Request, act, act_from, page, paginate
from annotation.workflow import Conflict
from evaluations import jobs
from evaluations.forms import AlignmentForm, DisagreementsForm
from evaluations.judge_alignment import disagreements as differing
from evaluations.judge_alignment import forecasting, looks, material, reporting, splitting, starting
from judges.forms.runs import BudgetForm

MEASURES = ("Kappa", "False positive rate", "False negative rate")
NOT_CONFIRMED = "Nothing was counted. Tick the confirmation, then test again."


@page
def alignments(request: Request, slug: str) -> HttpResponse:
    benchmark = starting.find_benchmark(request.user, slug)
    return _render_list(request, benchmark, AlignmentForm(None, starting.find_judges()))


@act_from("alignments")
def start(request: Request, slug: str) -> HttpResponse:
    benchmark = starting.find_benchmark(request.user, slug)
    form = AlignmentForm(request.POST, starting.find_judges())
    if not form.is_valid():
        return _render_list(request, benchmark, form, 400)
    terms = {name: form.cleaned_data[name] for name in ("rounds", "max_cost", "max_calls")}
    try:
        if "estimate" in request.POST:
            found = forecasting.forecast(request.user, form.cleaned_data["judge"], benchmark, terms["rounds"])
            return _render_list(request, benchmark, form, forecast=found)
        made = starting.start(
            request.user, form.cleaned_data["judge"], benchmark, jobs.advance_alignment.delay, **terms
        )
    except Conflict as refused:
        form.add_error(None, str(refused))
        return _render_list(request, benchmark, form, 409)
    messages.success(request, "Alignment started.")
    return redirect("alignment", made.pk)


def _render_list(
    request: Request,
    benchmark: Benchmark,
    form: AlignmentForm,
    status: int = 200,
    forecast: forecasting.Forecast | None = None,
) -> HttpResponse:
    split = splitting.find_split(benchmark)
    context = {
        "benchmark": benchmark,
        "page": paginate(request, starting.find_alignments(request.user, benchmark), 20),
        "form": form,
        "forecast": forecast,
        "split": split,
        "parts": splitting.count_parts(split) if split else {},
        "looked": counted(looks.count_looks(split), "time") if split else "",
        "submissions": starting.find_submissions(request.user, benchmark),
    }
    return render(request, "evaluations/alignments.html", context, status=status)


@page
def alignment(request: Request, pk: int) -> HttpResponse:
    found = starting.find_alignment(request.user, pk)
    shown = reporting.describe(found)
    hidden = shown["reopened"]
    versions = list(found.versions.select_related("judge", "parent").order_by("number"))
    told = [
        (each, reporting.format_changes(None if hidden else each.report), looks.find_reason(each))
        for each in looks.list_looks(found)
    ]
    context = {
        "alignment": found,
        "shown": shown,
        "looked": counted(shown["looks_at_test"], "time"),
        "versions": [
            (
                each,
                dict(zip(MEASURES, changes, strict=True)) if changes else {},
                material.read_criteria(each),
            )
            for each in versions
            for changes in [reporting.format_changes(None if hidden else each.figures, base=not each.number)]
        ],
        "measures": MEASURES,
        "looks": told,
        "testable": found.state == "finished" and any(each.number and each.accepted for each in versions),
        "form": BudgetForm(label_suffix=""),
        "can_resume": found.state == "stopped" or any(reason for *_, reason in told),
    }
    return render(request, "evaluations/alignment.html", context)


@act
def resume(request: Request, pk: int) -> HttpResponse:
    found = starting.find_alignment(request.user, pk)
    form = BudgetForm(request.POST)
    if not form.is_valid():
        raise Conflict("Enter the budget as an amount in US dollars, or leave it empty.")
    starting.resume(request.user, found, jobs.advance_alignment.delay, form.cleaned_data["max_cost"])
    messages.success(request, "Alignment resumed.")
    return redirect("alignment", pk)


@act
def cancel(request: Request, pk: int) -> HttpResponse:
    starting.cancel(request.user, starting.find_alignment(request.user, pk))
    messages.success(request, "Alignment cancelled.")
    return redirect("alignment", pk)


@act
def look(request: Request, pk: int, number: int) -> HttpResponse:
    """Count a look at the test split, and compare the version with the base judge there."""
    if "confirmed" not in request.POST:
        raise Conflict(NOT_CONFIRMED)
    version = differing.find_version(starting.find_alignment(request.user, pk), number)
    made = looks.look(request.user, version)
    jobs.queue_look(made.pk)
    messages.success(request, "Test started. This look is counted.")
    return redirect("alignment", pk)


# --- disagreements ---------------------------------------------------------------------------------------------------


@page
def disagreements(request: Request, pk: int, number: int) -> HttpResponse:
    version = differing.find_version(starting.find_alignment(request.user, pk), number)
    rows = differing.list_rows(version)
    context: dict[str, Any] = {
        "version": version,
        "page": paginate(request, rows, 25),
        "form": DisagreementsForm(None, ()),
    }
    return render(request, "evaluations/disagreements.html", context)


@act_from("disagreements")
def mark(request: Request, pk: int, number: int) -> HttpResponse:
    version = differing.find_version(starting.find_alignment(request.user, pk), number)
    given = _read(request, differing.list_rows(version))
    marked = differing.mark(request.user, version, given["judgments"], given["right"])
    messages.success(request, f"{counted(marked, 'disagreement')} marked.")
    return redirect("disagreements", pk, number)


@act_from("disagreements")
def add_criterion(request: Request, pk: int, number: int) -> HttpResponse:
    """Define a new version of the judge with the criterion, and open it in the editor."""
    version = differing.find_version(starting.find_alignment(request.user, pk), number)
    given = _read(request, differing.list_rows(version))
    made = differing.add_criterion(request.user, version, given["judgments"], given["criterion"])
    messages.success(request, f"{made} defined. Edit its criteria before its first run.")
    return redirect("edit-judge", made.pk)


def _read(request: Request, rows: list[differing.Row]) -> dict[str, Any]:
    form = DisagreementsForm(request.POST, [row.judgment.pk for row in rows])
    if not form.is_valid():
        raise Conflict("Choose disagreements from the list, and a criterion of at most 2,000 characters.")
    return form.cleaned_data
