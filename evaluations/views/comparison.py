"""Pages that compare one judge with people, in a submission or in a benchmark, and the list of their differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.core.paginator import Page
from django.http import Http404, HttpResponse
from django.shortcuts import render

from annotation.records import Verdict
from annotation.views.answers import Request, page, paginate
from evaluations import access, comparison_tables
from evaluations.cases import Case, describe_figures
from evaluations.comparison import Comparison, Difference, compare, list_judges
from evaluations.comparison import judges as of_judges
from evaluations.forms import ONE_SUBMISSION, WHOLE_BENCHMARK, Filters, FiltersForm
from evaluations.judge_alignment import notices
from evaluations.tables import Table
from evaluations.views import board, comparison_parts
from evaluations.views.agreement import require_unfrozen
from evaluations.views.exporting import csv_file, paper_file
from judges import robustness
from judges.models import Judge

LIST = ("agent", "level", "website", "kind")  # filters of a list of differences
SHOWN = 25  # differences on a page
LISTED = 100  # on the page that lists only differences


@page
def comparison(request: Request, pk: int) -> HttpResponse:
    submission = access.reported_for(request.user, pk)
    if submission.frozen_at is None:
        if request.GET.keys() & {"csv", "paper"}:
            raise Http404("Figures are available after the freeze.")
        return render(request, "evaluations/comparison.html", require_unfrozen(submission))
    about = (submission.benchmark.slug, str(submission))
    context = {"submission": submission, "benchmark": submission.benchmark, "only": ONE_SUBMISSION}
    context["unweighted"] = describe_figures(submission)
    return _answer(request, access.submission_cases(submission), str(submission), about, context)


@page
def benchmark_comparison(request: Request, slug: str) -> HttpResponse:
    """Compare the judge of ?judge= with people, over all submissions whose figures the person may see."""
    benchmark, every = access.benchmark_cases(request.user, slug, Filters.of(request.GET).rules)
    context = {"benchmark": benchmark, "only": WHOLE_BENCHMARK}
    return _answer(request, every, benchmark.name, (benchmark.slug,), context)


@page
def differences(request: Request, slug: str) -> HttpResponse:
    filters = Filters.of(request.GET)
    benchmark, every = access.benchmark_cases(request.user, slug, filters.rules)
    judges = list_judges(every, benchmark=slug)
    judge, silent = _judge(request, filters, judges)
    found = of_judges.differences(judge, filters.applied(every), benchmark=slug) if judge else []
    chosen = [each for each in found if filters.kind in ("", kind_of(each))]
    if wanted := request.GET.get("csv"):
        return csv_file([comparison_tables.differences(chosen)], wanted, slug, str(judge))
    context = {
        "benchmark": benchmark,
        "judge": judge,
        "silent": silent,
        "filters": filters,
        "form": FiltersForm(filters, every, judges=judges, judge=judge, only=LIST),
        "cases": len(every),
    }
    return render(request, "evaluations/differences.html", context | _listed(paginate(request, chosen, LISTED)))


def _judge(request: Request, filters: Filters, judges: Sequence[Judge]) -> tuple[Judge | None, str]:
    """Return the judge to show, and the requested one if it has no judgments here.

    A file is always about the requested judge; else Http404.
    """
    if not request.GET.keys() & {"csv", "paper"}:
        return filters.judge_or_first(judges)
    if (judge := filters.judge_of(judges)) is None:
        raise Http404("No judge has judged any of these cases.")
    return judge, ""


def kind_of(difference: Difference) -> str:
    """Return the name in `forms.KINDS`: the judge says success and people do not, or the reverse."""
    return "too-kind" if difference.judged.verdict is Verdict.SUCCESS else "too-strict"


def _listed(shown: Page) -> dict[str, Any]:
    """Return the differences of a page: each with the address of its trajectory, and both verdicts in words."""
    name, address = comparison_tables.verdict_name, comparison_tables.trajectory_at
    rows = [(each, address(each), name(each.case.final), name(each.judged.verdict)) for each in shown.object_list]
    return {"page": shown, "differences": rows}


def _answer(
    request: Request, every: Sequence[Case], whole: str, about: tuple[str, ...], context: dict[str, Any]
) -> HttpResponse:
    filters = Filters.of(request.GET)
    if "submission" in context:  # it has one agent
        filters = replace(filters, agent="")
    slug = context["benchmark"].slug
    judges = list_judges(every, benchmark=slug)
    judge, silent = _judge(request, filters, judges)
    chosen = filters.applied(every)
    context |= {"judge": judge, "silent": silent, "filters": filters, "cases": len(every), "chosen": len(chosen)}
    context["form"] = FiltersForm(filters, every, judges=judges, judge=judge, only=context.pop("only"))
    wanted = request.GET.get("csv")
    if judge is None or not (chosen or wanted):
        return render(request, "evaluations/comparison.html", context)
    found = compare(judge, chosen, filters.scope(whole), benchmark=slug, rules=filters.rules)
    people = of_judges.People.of(chosen, filters.rules)
    if wanted:
        return csv_file(_tables(found, people), wanted, *about, str(judge))
    context |= _build_context(request, judge, found, people, filters, slug)
    if "paper" in request.GET:
        drawn = [chart for part in context["parts"] for chart in part.charts]
        scope = f"{judge} and the final verdicts of people in {found.scope}"
        return paper_file(_tables(found, people), drawn, scope, filters.rules, *about, str(judge))
    return render(request, "evaluations/comparison.html", context)


def _tables(found: Comparison, people: of_judges.People) -> Iterator[Table]:
    yield from comparison_tables.tables(found)
    yield from comparison_tables.people(people, found.rules)


def _build_context(
    request: Request, judge: Judge, found: Comparison, people: of_judges.People, filters: Filters, slug: str
) -> dict[str, Any]:
    return {
        "switch": board.switch(filters.label2),
        "comparison": found,
        "robustness": robustness.find_standing(request.user, judge),
        "aligned": [*notices.load_notices(request.user, [judge], slug).values()],
        "sentence": notices.SENTENCE,
        "looked": comparison_tables.looked(found),
        "figures": comparison_parts.figures(found, filters.label2),
        "parts": list(comparison_parts.parts(found, people, filters.label2)),
        **_listed(paginate(request, found.differences, SHOWN)),
    }
