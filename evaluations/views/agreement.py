"""Agreement pages: of one submission for its maintainers, and of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render

from annotation import progress
from annotation.form_fields import VERDICT_NAMES
from annotation.models import Submission
from annotation.views.answers import Request, page
from evaluations import access, agreement_tables, charts
from evaluations.agreement import CHOSEN_BY_LABELS, GROUPS, Agreement, Annotator, Group
from evaluations.agreement import agreement as agreement_of
from evaluations.agreement_tables import group_name, outcome_rows
from evaluations.cases import Case, describe_figures
from evaluations.charts import Grid, Rates, Stacked
from evaluations.forms import Filters, FiltersForm
from evaluations.measures import COEFFICIENTS
from evaluations.tables import Table
from evaluations.views.exporting import csv_file, paper_file

MOST_ROWS = 16  # of a table on a page; the CSV file has all


@page
def agreement(request: Request, pk: int) -> HttpResponse:
    submission = access.reported_for(request.user, pk)
    if submission.frozen_at is None:
        if request.GET.keys() & {"csv", "paper"}:
            raise Http404("Figures are available after the freeze.")
        return render(request, "evaluations/agreement.html", require_unfrozen(submission))
    filters = Filters.of(request.GET)
    every = access.submission_cases(submission)
    context = {"submission": submission, "form": FiltersForm(filters, every, only=("level", "website"))}
    context["unweighted"] = describe_figures(submission)
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
    """Return the context of a results page before the freeze: progress, without anything that reveals labels."""
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
        if wanted == agreement_tables.STEPS and found.process is not None:
            tables.append(agreement_tables.process_steps(chosen))  # only then: it can have a million rows
        return csv_file(tables, wanted, *about, "agreement")
    context |= {"filters": filters, "cases": len(every), "chosen": len(chosen)} | shown(found, tables)
    if "paper" in request.GET:
        scope = f"Blind labels of {found.scope}"
        return paper_file(tables, _list_charts(context), scope, filters.rules, *about, "agreement")
    return render(request, "evaluations/agreement.html", context)


def _list_charts(context: Mapping[str, Any]) -> list[Any]:
    groups = [chart for chart, _ in context["groups"]]
    return [context["outcomes"], *groups, context["heat_map"], context["same_as_final"], *context["confusions"]]


def shown(found: Agreement, tables: Sequence[Table]) -> dict[str, Any]:
    """Return tables by their names (with underscores), the figures of tables with one row, and the charts."""
    by_name = {table.name.replace("-", "_"): _first_rows(table) for table in tables}
    return figures_of(found, by_name) | {
        "agreement": found,
        "tables": by_name,
        "outcomes": chart_outcomes(found),
        "groups": [_group(kind, found) for kind in GROUPS if len(found.groups.get(kind, [])) > 1],
        "heat_map": chart_pairs(found),
        "same_as_final": chart_same_as_final(found.annotators),
        "confusions": chart_confusions(found.annotators),
    }


def _first_rows(table: Table) -> Table:
    if len(table.rows) <= MOST_ROWS:
        return table
    note = f"{table.note} The first {MOST_ROWS} of {len(table.rows):,} rows; the CSV file has all.".strip()
    return replace(table, rows=table.rows[:MOST_ROWS], note=note)


def figures_of(found: Agreement, tables: Mapping[str, Table]) -> dict[str, Any]:
    """Return the figures of tables with one row, grouped for display."""
    overall = tables["overall"].figures
    listed = tables["first_against_second"].figures
    qa = tables["adjudications"].figures
    of_steps = tables["process"].figures if "process" in tables else []
    per_label = {column.name for column in agreement_tables.LABEL_ALPHAS}
    coefficients = {column.name for column in (*agreement_tables.COEFFICIENTS, *agreement_tables.SPECIFIC)}
    return {
        "counts": [each for each in overall if each[0].kind == "count"],
        "coefficients": [each for each in overall if each[0].name in coefficients],
        "label_alphas": [each for each in overall if each[0].name in per_label],
        "listed": listed[1:],
        "listed_counts": listed[:1],
        "process": [each for each in of_steps if each[0].kind != "count"],
        "process_counts": [each for each in of_steps if each[0].kind == "count"],
        "qa_counts": [each for each in qa if each[0].kind == "count"],
        "qa_rates": [each for each in qa if each[0].kind != "count"],
        "extrapolation": agreement_tables.extrapolation(found.adjudications) if found.adjudications else "",
    }


def _group(kind: str, found: Agreement) -> tuple[Rates, Table]:
    """Return chart and table of a kind of groups; the table of many groups has those of the chart."""
    every = found.groups[kind]
    table = agreement_tables.by_group(kind, _largest(every), found.rules)
    # The table of all trajectories, above these, explains the same columns.
    table = replace(table, columns=[replace(column, explanation="") for column in table.columns])
    if len(every) > MOST_GROUPS:
        note = f"{table.note} The {MOST_GROUPS} with the most trajectories; the CSV file has {len(every):,}.".strip()
        table = replace(table, note=note)
    return chart_group(kind, every), table


def _largest(groups: Sequence[Group]) -> list[Group]:
    most = sorted(groups, key=lambda group: -group.n_pairable)[:MOST_GROUPS]
    return [group for group in groups if group in most]


# --- charts -----------------------------------------------------------------------------------------------------------

MOST_GROUPS = 10  # in a chart and its table; the CSV file has all
MOST_PEOPLE = 30  # of a chart with a row for each
MOST_PAIRED = 12  # of a map of pairs, which has the square of it
MOST_CONFUSIONS = 6
DRAWN = ("alpha", "ac1")  # of `COEFFICIENTS`


def chart_outcomes(found: Agreement) -> Stacked:
    """Chart unanimous, a majority and no majority, over all, by level, and by agent if there are several."""
    rows = [(group.name, _outcome(group)) for group in outcome_rows(found)]
    parts = ("unanimous", "a majority", "no majority")
    return charts.stacked("outcomes", "Distribution of labels per trajectory", parts, rows[: MOST_GROUPS + 1])


def _outcome(group: Group) -> list[int]:
    return [part.hits or 0 for part in (group.outcomes.unanimous, group.outcomes.majority, group.outcomes.split)]


def chart_group(kind: str, groups: Sequence[Group]) -> Rates:
    """Chart alpha and AC1 of each group, or raw agreement if nothing else is defined; at most `MOST_GROUPS` groups."""
    shown = _largest(groups)
    title = f"Agreement by {kind}"
    if len(groups) > MOST_GROUPS:
        title += f", the {MOST_GROUPS} with the most trajectories"
    name = f"by-{kind.replace(' ', '-')}"
    if kind in CHOSEN_BY_LABELS:
        raw = [(group_name(kind, group.name), group.raw_agreement) for group in shown]
        return charts.rates(name, f"Raw {title[0].lower()}{title[1:]}", raw)
    one, other = DRAWN
    rows = [(group_name(kind, group.name), group.coefficients[one], group.coefficients[other]) for group in shown]
    series = [COEFFICIENTS[each].column.name for each in DRAWN]
    return charts.rates(name, title, rows, series=series, kind="coefficient")


def chart_pairs(found: Agreement) -> Grid | None:
    """Chart alpha of every two annotators; None if there is nobody to compare, or too many for a chart."""
    names = [annotator.name for annotator in found.annotators]
    if not found.pairs or len(names) > MOST_PAIRED:
        return None
    known = {(pair.first, pair.second): pair.alpha for pair in found.pairs}
    return charts.heat_map("pairs", "Krippendorff's alpha of pairs of annotators", names, known)


def chart_confusions(annotators: Sequence[Annotator]) -> list[Grid]:
    """Chart the verdicts of each annotator beside the final ones; nothing for more than `MOST_CONFUSIONS`."""
    if len(annotators) > MOST_CONFUSIONS:
        return []
    names = [name.lower() for name in VERDICT_NAMES.values()]
    return [
        charts.confusion(
            f"confusion-{number}", annotator.name, annotator.confusion, names, down="Said", across="Final verdict"
        )
        for number, annotator in enumerate(annotators, 1)
        if any(map(sum, annotator.confusion))
    ]


def chart_same_as_final(annotators: Iterable[Annotator]) -> Rates | None:
    rows = [(each.name, each.agreement, each.overturned) for each in annotators if each.agreement.n]
    if not rows or len(rows) > MOST_PEOPLE:
        return None
    return charts.rates("same-as-final", "Each annotator", rows, series=("same as final", "overturned"))
