"""The report of a submission that its maintainer can print and publish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from annotation.models import SamplePlan, Submission
from annotation.models.states import State
from annotation.views.answers import Request, page
from evaluations import (
    access,
    agreement_tables,
    cases,
    charts,
    comparison,
    comparison_tables,
    estimate_tables,
    estimating,
    report_tables,
)
from evaluations.agreement import Agreement, agreement
from evaluations.cases import Case, Rules
from evaluations.charts import Rates
from evaluations.comparison.judges import compare_judges
from evaluations.estimating import Estimate
from evaluations.measures import COEFFICIENTS, JUDGE_MEASURES, RAW_AGREEMENT
from evaluations.statistics import Measure
from evaluations.statistics.estimates import MAY_STOP
from evaluations.tables import Table
from evaluations.views.agreement import chart_outcomes, figures_of, require_unfrozen
from evaluations.views.exporting import csv_file, paper_file

MOST_WEBSITES = 20  # rows in print; the file has all


@page
def report(request: Request, pk: int) -> HttpResponse:
    submission = access.reported_for(request.user, pk)
    if submission.frozen_at is None:
        return render(request, "evaluations/report.html", require_unfrozen(submission))
    population = access.submission_population(submission)
    every = [case for case in population if case.state is not State.NOT_DRAWN]
    found = agreement(every, str(submission))
    estimate = _estimate(submission, population)
    tables = [*_tables(submission, every, estimate), *agreement_tables.tables(found)]
    if wanted := request.GET.get("csv"):
        return csv_file(tables, wanted, submission.benchmark.slug, str(submission), "report")
    shown = _build_context(found, tables, estimate)
    if "paper" in request.GET:
        drawn = [shown["success"], shown["failure_types"], shown["outcomes"]]
        about = submission.benchmark.slug, str(submission), "report"
        return paper_file(tables, drawn, str(submission), Rules.DEFAULT, *about)
    context = {
        "submission": submission,
        "trajectories": len(every),
        "unweighted": cases.describe_figures(submission),
        "estimate": estimate,
        "may_stop": estimate is not None and estimate.reason == MAY_STOP,
        "provenance": report_tables.Provenance.of(submission),
        "generated_at": timezone.now(),
        "coefficients": [RAW_AGREEMENT, *COEFFICIENTS.values()],
        "judge_measures": JUDGE_MEASURES.values(),
    }
    return render(request, "evaluations/report.html", context | shown)


def _estimate(submission: Submission, population: Sequence[Case]) -> Estimate | None:
    """Return the estimate of a planned sample as on its own page; a plain rate of the sample would be biased."""
    if not SamplePlan.objects.filter(submission=submission).exists():
        return None
    judges = comparison.list_judges(population, benchmark=submission.benchmark.slug)
    judge = estimating.judge_of_plan(submission, judges) or next(iter(judges), None)
    return estimating.estimate(estimating.load_population(submission, judge, population))


def _tables(submission: Submission, every: Sequence[Case], estimate: Estimate | None) -> list[Table]:
    scope, slug = str(submission), submission.benchmark.slug
    asked = comparison.list_judges(every, benchmark=slug)
    judges = compare_judges(asked, every, scope, benchmark=slug)
    return [
        *(estimate_tables.tables(estimate) if estimate else [report_tables.success(judges.agents)]),
        report_tables.verdicts(every, shares=estimate is None),
        report_tables.failure_types(every),
        report_tables.people(submission),
        report_tables.times(every),
        report_tables.draws(submission),
        report_tables.judges(judges),
        report_tables.judging(judges),
        comparison_tables.versus(judges.versus),
    ]


def _build_context(found: Agreement, tables: Sequence[Table], estimate: Estimate | None) -> dict[str, Any]:
    by_name = {table.name.replace("-", "_"): table for table in tables}
    by_name["by_website"] = report_tables.largest(by_name["by_website"], MOST_WEBSITES)
    return figures_of(found, by_name) | {
        "tables": by_name,
        "success": estimate_tables.chart(estimate) if estimate else _success(by_name["success"]),
        "failure_types": _failure_types(by_name["failure_types"]),
        "outcomes": chart_outcomes(found),
    }


def _success(table: Table) -> Rates:
    rows = [(str(row[0]), _measure(row[2]), _measure(row[4])) for row in table.rows]
    return charts.rates("success", "Success rate", rows, series=("over all", "without label 2"))


def _failure_types(table: Table) -> Rates | None:
    rows = [(str(row[0]), _measure(row[2])) for row in table.rows]
    return charts.rates("failure-types", "Share of the failures", rows) if rows else None


def _measure(value: Any) -> Measure:
    assert isinstance(value, Measure)  # noqa: S101 - for type checking: the column has only measures
    return value
