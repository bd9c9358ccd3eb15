"""Leaderboards of a benchmark: agents by success rate, and judges by agreement with people."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from annotation.views.answers import Request, page
from evaluations import access, attempt_tables, charts, comparison_tables
from evaluations.comparison import Label2, agent_pairs, attempts, list_judges, places, standings
from evaluations.comparison.judges import compare_judges
from evaluations.forms import Filters, FiltersForm
from evaluations.judge_alignment import notices
from evaluations.naming import level_order
from evaluations.views import board, comparison_parts
from evaluations.views.exporting import csv_file, paper_file
from judges import robustness
from judges.scorer import IMPORTED

OF_AGENTS = ("level", "website", "rules")
OF_JUDGES = ("agent", "level", "website", "rules")


@page
def agents(request: Request, slug: str) -> HttpResponse:
    """Show success rates by people; for agents without them, by the judge of ?judge=, or the first judge.

    Figures over attempts are by people and by all judges. The page counts label 2 by one rule, files by both.
    """
    filters = Filters.of(request.GET, Label2.NOT_SUCCESS)
    benchmark, every = access.ranked_cases(request.user, slug, filters.rules)
    judges = list_judges(every, benchmark=slug)
    judge = filters.judge_of(judges)
    chosen = replace(filters, agent="").applied(every)  # agents are not filtered: the page ranks all
    found, several = standings(chosen, judge, benchmark=slug), attempts(chosen, judges, benchmark=slug)
    table = comparison_tables.standings(found)
    further = [attempt_tables.over_attempts(several), attempt_tables.over_k(several)] if several else []
    pairs = comparison_tables.agent_pairs(agent_pairs(chosen))
    further += [pairs] if pairs.rows else []
    if wanted := request.GET.get("csv"):
        return csv_file([table, *further] if every else [], wanted, slug, "agents")
    if "paper" in request.GET:
        rates = [(f"{each.agent}, by {each.by}", each.over_all, each.without_2) for each in found]
        drawn = [charts.rates("standings", table.title, rates, series=("over all", "without label 2"))]
        return paper_file([table, *further], drawn, filters.scope(benchmark.name), filters.rules, slug, "agents")
    lines = board.lines(found, chosen, places(chosen, filters.label2), filters.label2)
    levels = sorted({level for each in found for level in each.levels}, key=level_order)
    context = {
        "benchmark": benchmark,
        "filters": filters,
        "form": FiltersForm(filters, every, judges=judges, judge=judge, only=OF_AGENTS, carried=("label2",)),
        "cases": len(every),
        "lines": lines,
        "summary": board.summary(found),
        "rule_of_places": board.RULE_OF_PLACES,
        "switch": board.switch(filters.label2),
        "by_level": board.by_level(lines, found, levels, filters.label2) if len(levels) > 1 else None,
        "further": [comparison_tables.under(each, filters.label2) for each in further],
        "generated_at": timezone.now(),
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
    drawn = comparison_parts.judges(found.judges, people, filters.label2) if judges and chosen else []
    if "paper" in request.GET:
        return paper_file(tables, drawn, filters.scope(benchmark.name), filters.rules, slug, "judges")
    standings_of = robustness.load_standings(request.user, judges)
    aligned = notices.load_notices(request.user, judges, slug)
    context = {
        "benchmark": benchmark,
        "filters": filters,
        "tested": [(judge, standings_of[judge.pk]) for judge in judges if judge.scorer != IMPORTED],
        "aligned": [(judge, aligned[judge.pk]) for judge in judges if judge.pk in aligned],
        "sentence": notices.SENTENCE,
        "form": FiltersForm(filters, every, only=OF_JUDGES),
        "cases": len(every),
        "judges": [(access.name_of(judge), judge) for judge in judges],
        "charts": drawn,
        "tables": [comparison_tables.under(each, filters.label2) for each in tables],
        "switch": board.switch(filters.label2),
    }
    return render(request, "evaluations/leaderboard_judges.html", context)
