"""The agents of a benchmark by success rate, and its judges by how far they can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.http import HttpResponse
from django.shortcuts import render

from annotation.views.answers import Request, page
from evaluations import access, comparison_tables
from evaluations.cases import Case, Rules
from evaluations.comparison import Judged, ceiling, compare, judged, judges_of, ranking, standings, versus
from evaluations.comparison.rows import PEOPLE
from evaluations.comparison_tables import Judging
from evaluations.forms import Filters, FiltersForm
from evaluations.views import comparison_parts
from evaluations.views.files import csv_file
from judges.models import Judge

Told = Mapping[tuple[str, str] | int, Judged]  # as `judged` gives it
OF_AGENTS = ("level", "website", "rules")
OF_JUDGES = ("agent", "level", "website", "label2", "rules")


@page
def agents(request: Request, slug: str) -> HttpResponse:
    """Success rates by people; the judge that ?judge= names, else the first, speaks for agents without any."""
    filters = replace(Filters.of(request.GET), agent="")
    benchmark, every = access.ranked_cases(request.user, slug, filters.rules)
    judges = judges_of(every, benchmark=slug)
    judge = filters.judge_of(judges)
    found = standings(filters.applied(every), judge, benchmark=slug)
    table = comparison_tables.standings(found)
    if wanted := request.GET.get("csv"):
        return csv_file([table], wanted, slug, "agents")
    context = {
        "benchmark": benchmark,
        "filters": filters,
        "form": FiltersForm(filters, every, judges=judges, judge=judge, only=OF_AGENTS),
        "cases": len(every),
        "table": table,
        "charts": comparison_parts.agents(found),
        "standings": found,
        "judged": [each for each in found if each.by != PEOPLE],
        "judge": judge,
    }
    return render(request, "evaluations/leaderboard_agents.html", context)


@page
def judge_standings(request: Request, slug: str) -> HttpResponse:
    """Every judge with judgments of these cases, the human ceiling among them, and each two against each other."""
    filters = Filters.of(request.GET)
    benchmark, every = access.benchmark_cases(request.user, slug, filters.rules)
    judges = judges_of(every, benchmark=slug)
    chosen = filters.applied(every)
    said = {judge.pk: judged(judge, chosen, benchmark=slug) for judge in judges}
    found = _judging(judges, chosen, said, filters.scope(benchmark.name), filters.rules, slug)
    people = ceiling(chosen)[-2:]
    tables = [
        comparison_tables.judges(found, people),
        comparison_tables.judges_by_agent(found),
        comparison_tables.versus(versus(judges, chosen, benchmark=slug, said=said)),
    ]
    if wanted := request.GET.get("csv"):
        return csv_file(tables, wanted, slug, "judges")
    context = {
        "benchmark": benchmark,
        "filters": filters,
        "form": FiltersForm(filters, every, only=OF_JUDGES),
        "cases": len(every),
        "judges": [(access.name_of(judge), judge) for judge in judges],
        "charts": comparison_parts.judges(found, people, filters.label2) if found and chosen else [],
        "tables": tables,
    }
    return render(request, "evaluations/leaderboard_judges.html", context)


def _judging(
    judges: Sequence[Judge], cases: Sequence[Case], said: Mapping[int, Told], scope: str, rules: Rules, slug: str
) -> list[Judging]:
    """Every judge's comparison without its details, and its ranking of the agents."""
    by_people = standings(cases)
    found = []
    for judge in judges:
        told = said[judge.pk]
        compared = compare(judge, cases, scope, benchmark=slug, rules=rules, details=False, said=told)
        found.append(Judging(str(judge), compared, ranking(by_people, judge, cases, benchmark=slug, said=told)))
    return found
