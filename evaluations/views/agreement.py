"""How far people agree: of one submission for its maintainers, and of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render

from annotation import progress
from annotation.models import Submission
from annotation.views.answers import Request, page
from evaluations import access, agreement_tables
from evaluations.agreement import GROUPS, Agreement
from evaluations.agreement import agreement as agreement_of
from evaluations.cases import Case
from evaluations.charts import Rates
from evaluations.forms import Filters, FiltersForm
from evaluations.tables import Table
from evaluations.views import agreement_charts
from evaluations.views.files import csv_file

MOST_REASONS = 200  # rows on a page; the CSV file has all


@page
def agreement(request: Request, pk: int) -> HttpResponse:
    submission = access.reported_for(request.user, pk)
    if submission.frozen_at is None:
        if "csv" in request.GET:
            raise Http404("There are no figures before the freeze.")
        return render(request, "evaluations/agreement.html", require_unfrozen(submission))
    filters = Filters.of(request.GET)
    every = access.submission_cases(submission)
    context = {"submission": submission, "form": FiltersForm(filters, every, only=("level", "website"))}
    about = (submission.benchmark.slug, str(submission))
    return _answer(request, filters, every, str(submission), about, context)


@page
def benchmark_agreement(request: Request, slug: str) -> HttpResponse:
    filters = Filters.of(request.GET)
    benchmark, every = access.benchmark_cases(request.user, slug, filters.rules)
    form = FiltersForm(filters, every, only=("agent", "level", "website", "rules"))
    context = {"benchmark": benchmark, "form": form}
    return _answer(request, filters, every, benchmark.name, (benchmark.slug,), context)


def require_unfrozen(submission: Submission) -> dict[str, Any]:
    """What a page of results shows before the freeze: what it waits for, and nothing that a label says."""
    return {"submission": submission, "standing": progress.count_states(submission)}


def _answer(
    request: Request,
    filters: Filters,
    every: Sequence[Case],
    whole: str,
    about: tuple[str, ...],
    context: dict[str, Any],
) -> HttpResponse:
    chosen = filters.applied(every)
    found = agreement_of(chosen, filters.scope(whole), filters.rules)
    tables = agreement_tables.tables(found)
    if wanted := request.GET.get("csv"):
        return csv_file(tables, wanted, *about, "agreement")
    context |= {"filters": filters, "cases": len(every), "chosen": len(chosen)}
    return render(request, "evaluations/agreement.html", context | shown(found, tables))


def shown(found: Agreement, tables: Sequence[Table]) -> dict[str, Any]:
    """Tables by their names (with underscores), the figures of the rows that stand alone, and the pictures."""
    by_name = {table.name.replace("-", "_"): table for table in tables}
    by_name["informed_reasons"] = _first_rows(by_name["informed_reasons"])
    return figures_of(found, by_name) | {
        "agreement": found,
        "tables": by_name,
        "outcomes": agreement_charts.outcomes(found),
        "groups": [_group(kind, found, by_name) for kind in GROUPS if len(found.groups.get(kind, [])) > 1],
        "heat_map": agreement_charts.pairs(found),
        "same_as_final": agreement_charts.same_as_final(found.annotators),
        "confusions": agreement_charts.confusions(found.annotators),
    }


def _first_rows(table: Table) -> Table:
    if len(table.rows) <= MOST_REASONS:
        return table
    note = f"The first {MOST_REASONS} of {len(table.rows):,} opinions. Download the CSV file for all."
    return replace(table, rows=table.rows[:MOST_REASONS], note=note)


def figures_of(found: Agreement, tables: Mapping[str, Table]) -> dict[str, Any]:
    """The rows that stand alone, parted into what is shown together."""
    overall = agreement_tables.figures(tables["overall"])
    listed = agreement_tables.figures(tables["first_against_second"])
    qa = agreement_tables.figures(tables["adjudications"])
    per_label = {column.name for column in agreement_tables.LABEL_ALPHAS}
    coefficients = {column.name for column in agreement_tables.COEFFICIENTS}
    return {
        "counts": [each for each in overall if each[0].kind == "count"],
        "coefficients": [each for each in overall if each[0].name in coefficients],
        "label_alphas": [each for each in overall if each[0].name in per_label],
        "listed": listed[1:],
        "listed_counts": listed[:1],
        "qa_counts": [each for each in qa if each[0].kind == "count"],
        "qa_rates": [each for each in qa if each[0].kind != "count"],
        "extrapolation": agreement_tables.extrapolation(found.adjudications) if found.adjudications else "",
    }


def _group(kind: str, found: Agreement, tables: Mapping[str, Table]) -> tuple[Rates, Table]:
    return agreement_charts.by_group(kind, found.groups[kind]), tables[f"by_{kind.replace(' ', '_')}"]
