"""Leaderboards of a benchmark: agents by success rate, and judges by agreement with people."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse
from django.shortcuts import render

from annotation.views.answers import Request, page
from evaluations import access, comparison_tables
from evaluations.comparison import attempts, list_judges, standings
from evaluations.comparison.judges import compare_judges
from evaluations.forms import Filters, FiltersForm
from evaluations.views import comparison_parts
from evaluations.views.exporting import csv_file

OF_AGENTS = ("level", "website", "rules")
OF_JUDGES = ("agent", "level", "website", "label2", "rules")


@page
def agents(request: Request, slug: str) -> HttpResponse:
    """Show success rates by people; for agents without them, by the judge of ?judge=, or the first judge.

    Figures over an agent's attempts are by people and by all judges.
    """
    filters = Filters.of(request.GET)
    benchmark, every = access.ranked_cases(request.user, slug, filters.rules)
    judges = list_judges(every, benchmark=slug)
    judge = filters.judge_of(judges)
    chosen = replace(filters, agent="").applied(every)  # agents are not filtered: the page ranks all
    found, several = standings(chosen, judge, benchmark=slug), attempts(chosen, judges, benchmark=slug)
    table = comparison_tables.standings(found)
    further = [comparison_tables.over_attempts(several)] if several else []
    if wanted := request.GET.get("csv"):
        return csv_file([table, *further] if every else [], wanted, slug, "agents")
    context = {
        "benchmark": benchmark,
        "filters": filters,
        "form": FiltersForm(filters, every, judges=judges, judge=judge, only=OF_AGENTS),
        "cases": len(every),
        "table": table,
        "further": further,
        "charts": comparison_parts.agents(found),
        "standings": found,
        "judged": [each for each in found if each.judged],
        "judge": judge,
    }
    return render(request, "evaluations/leaderboard_agents.html", context)


@page
def judge_standings(request: Request, slug: str) -> HttpResponse:
    """Show every judge with judgments of these cases, the human ceiling, and comparisons of two judges."""
    filters = Filters.of(request.GET)
    benchmark, every = access.benchmark_cases(request.user, slug, filters.rules)
    judges = list_judges(every, benchmark=slug)
    chosen = filters.applied(every)
    found = compare_judges(judges, chosen, filters.scope(benchmark.name), benchmark=slug, rules=filters.rules)
    people = found.people[-2:]
    tables = [
        comparison_tables.judges(found.judges, people),
        comparison_tables.judges_by_agent(found.judges),
        *([comparison_tables.versus(found.versus)] if found.versus else []),
    ]
    if wanted := request.GET.get("csv"):
        files = [comparison_tables.judges_by_agent_listed(found.judges), *tables] if judges else []
        return csv_file(files, wanted, slug, "judges")
    context = {
        "benchmark": benchmark,
        "filters": filters,
        "form": FiltersForm(filters, every, only=OF_JUDGES),
        "cases": len(every),
        "judges": [(access.name_of(judge), judge) for judge in judges],
        "charts": comparison_parts.judges(found.judges, people, filters.label2) if judges and chosen else [],
        "tables": tables,
    }
    return render(request, "evaluations/leaderboard_judges.html", context)
