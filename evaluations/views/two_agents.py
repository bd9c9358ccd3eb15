"""Pages of two agents: their tasks by group, and one task step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from annotation.access import may_edit_catalogue
from annotation.models import Benchmark, Step, Submission, Task, Trajectory
from annotation.views.answers import Request, page, paginate
from annotation.views.viewer import number
from evaluations import access
from evaluations.cases import Case
from evaluations.comparison import COMPARED, Group, Label2, TaskPair, count_groups, match_tasks
from evaluations.comparison.places import pairs_under
from evaluations.comparison_tables import verdict_name
from evaluations.forms import LONGEST, Filters, PairForm
from evaluations.tables import Cell, Column, Table, cell, tabulate
from evaluations.views import board, task_pairs
from evaluations.views.exporting import csv_file

ROWS = 50
MOST_IN_FAMILY = 20  # frozen submissions whose pairs correct p; more would make the page slow
CARRIED = ("group", "level", "website", "q", "label2")  # filters that the page of a task links back to


@dataclass(frozen=True, slots=True)
class Tab:
    """A group of tasks; ``value`` is for the address."""

    value: str
    words: str
    count: int
    current: bool


@page
def two_agents(request: Request, slug: str) -> HttpResponse:
    """List the tasks of ?first= and ?second= by group; with ?go= open the task before or after that of ?at=."""
    benchmark, submissions = access.compared_submissions(request.user, slug)
    filters = Filters.of(request.GET, Label2.NOT_SUCCESS)
    context = {"benchmark": benchmark, "filters": filters, "managed": may_edit_catalogue(request.user, benchmark)}
    chosen, ready = _choose(request, submissions)
    words, group = request.GET.get("q", "").strip()[:LONGEST], request.GET.get("group", "")
    if not ready:
        form = PairForm(filters, [], submissions, chosen, words, "") if len(submissions) > 1 else None
        same = len(chosen) == 2 and chosen[0] == chosen[1]
        context |= {"form": form, "same": same, "submissions": submissions}
        return render(request, "evaluations/two_agents.html", context, status=400 if same else 200)
    first, second = chosen
    verdicts = access.pair_for(request.user, first, second)
    frozen = [each for each in submissions if each.frozen_at is not None]
    beside = frozen if len(frozen) <= MOST_IN_FAMILY and not words else []
    *both, every = access.cases_of_pair(first, second, verdicts=verdicts, beside=beside)
    shared = match_tasks(*both)
    pairs = _filter(shared.pairs, benchmark, filters, words)
    counts = count_groups(pairs, filters.label2) if verdicts else None
    group = group if counts and group in list(Group) else ""
    listed = [pair for pair in pairs if pair.group(filters.label2) == group] if group else pairs
    kept = _keep(request.GET)
    if go := request.GET.get("go"):
        return _go(request, listed, go, kept, slug)
    if wanted := request.GET.get("csv"):
        if counts is None:
            raise Http404("Verdicts are available after the freeze.")
        return csv_file([_table(pairs, filters.label2, first, second)], wanted, slug, "two-agents")
    shown = paginate(request, listed, ROWS)
    context |= {
        "form": PairForm(filters, [each.first for each in shared.pairs], submissions, chosen, words, group),
        "first": first,
        "second": second,
        "frozen": first.frozen_at is not None and second.frozen_at is not None,
        "shared": shared,
        "matching": len(pairs),
        "counts": counts,
        "difference": cell(counts.difference, "points") if counts else None,
        "p": cell(counts.test.p, "number") if counts else None,
        "holm": _correct(both, filters.applied(every), filters.label2) if counts and len(beside) > 2 else None,
        "tabs": _tabs(counts.groups, group, first, second, len(pairs)) if counts else [],
        "switch": board.switch(filters.label2),
        "narrowed": bool(filters.level or filters.website or words),
        "page": shown,
        "rows": _rows(list(shown.object_list), kept),
    }
    return render(request, "evaluations/two_agents.html", context)


def _correct(both: Sequence[Sequence[Case]], every: Sequence[Case], rule: Label2) -> tuple[Cell, int] | None:
    """Return p of the two agents corrected for all pairs among ``every`` case, and the number of these pairs."""
    names = {case.agent_name for own in both for case in own}
    for pair in pairs_under(every, rule):
        if {pair.first, pair.second} == names and pair.p_holm.value is not None:
            return cell(pair.p_holm, "number"), pair.family
    return None


def _choose(request: Request, submissions: Sequence[Submission]) -> tuple[list[Submission], bool]:
    """Return the two submissions of the address, or the first two, and whether they can be compared as they are.

    Without an address only frozen ones are: others may have nothing to compare.
    """
    known = {each.pk: each for each in submissions}
    asked = [number(request.GET.get(name)) for name in ("first", "second")]
    if None not in asked:
        if any(pk not in known for pk in asked):
            raise Http404(
                "No such pair of submissions. Planned samples are not compared: their plain rates are biased."
            )
        chosen = [known[pk] for pk in asked if pk is not None]
        return chosen, chosen[0] != chosen[1]
    frozen = [each for each in submissions if each.frozen_at is not None]
    if len(frozen) > 1:
        return frozen[:2], True
    return list(submissions[:2]), False


def _filter(pairs: Sequence[TaskPair], benchmark: Benchmark, filters: Filters, words: str) -> Sequence[TaskPair]:
    chosen = [pair for pair in pairs if filters.applied([pair.first])]
    if not words:
        return chosen
    tasks = Task.objects.filter(Q(external_id__icontains=words) | Q(text__icontains=words), benchmark=benchmark)
    found = set(tasks.values_list("external_id", "version"))
    return [pair for pair in chosen if (pair.first.task_id, pair.first.task_version) in found]


def _keep(query: QueryDict) -> str:
    """Return the filters of the address, for addresses of tasks."""
    kept = QueryDict(mutable=True)
    for name in CARRIED:
        if value := query.get(name):
            kept[name] = value[:LONGEST]
    return kept.urlencode()


def _address(pair: TaskPair, kept: str) -> str:
    at = reverse("task-pair", args=[pair.first.trajectory, pair.second.trajectory])
    return f"{at}?{kept}" if kept else at


def _go(request: Request, listed: Sequence[TaskPair], go: str, kept: str, slug: str) -> HttpResponse:
    """Redirect to the task before or after that of ?at= in the list; to the list if there is none."""
    at = number(request.GET.get("at"))
    by = -1 if go == "previous" else 1
    here = next((n for n, pair in enumerate(listed) if pair.first.trajectory == at), None)
    if here is None:
        messages.info(request, "This task is not in the list.")
    elif 0 <= here + by < len(listed):
        return redirect(_address(listed[here + by], kept))
    else:
        messages.info(request, f"This was the {'first' if by < 0 else 'last'} task of the list.")
    back = request.GET.copy()
    for name in ("go", "at"):
        back.pop(name, None)
    return redirect(f"{reverse('two-agents', args=[slug])}?{back.urlencode()}")


def _tabs(counts: Any, group: str, first: Submission, second: Submission, total: int) -> list[Tab]:
    words = {
        Group.BOTH: "both succeed",
        Group.FIRST: f"only {first}",
        Group.SECOND: f"only {second}",
        Group.NEITHER: "neither",
        Group.NOT_EXECUTABLE: "not executable",
        Group.UNDECIDED: "undecided",
    }
    shown = [each for each in Group if each in COMPARED or counts[each] or each == group]
    tabs = [Tab(each.value, words[each], counts[each], each == group) for each in shown]
    return [Tab("", "all", total, not group), *tabs]


@dataclass(frozen=True, slots=True)
class Row:
    """A task in the list: two (verdict, its name, number of steps); None for a verdict that may not be shown."""

    task: Task
    address: str
    sides: list[tuple[int | None, str, int]]


def _rows(pairs: Sequence[TaskPair], kept: str) -> list[Row]:
    keys = [case.trajectory or 0 for pair in pairs for case in (pair.first, pair.second)]
    tasks = {row.pk: row.task for row in Trajectory.objects.filter(pk__in=keys).select_related("task")}
    counted = Step.objects.filter(trajectory__in=keys).order_by().values_list("trajectory").annotate(Count("pk"))
    steps: dict[Any, int] = dict(counted)
    return [
        Row(
            tasks[pair.first.trajectory or 0],
            _address(pair, kept),
            [
                (each.final, verdict_name(each.final), steps.get(each.trajectory, 0))
                for each in (pair.first, pair.second)
            ],
        )
        for pair in pairs
    ]


def _table(pairs: Sequence[TaskPair], rule: Label2, first: Submission, second: Submission) -> Table:
    columns = [
        Column("Task", of="first.task_id"),
        Column("Task version", "number", of="first.task_version"),
        Column("Level", of="first.level"),
        Column("Website", of="first.website"),
        Column("First", of=lambda _: str(first)),
        Column("Second", of=lambda _: str(second)),
        Column("Group", of=lambda pair: pair.group(rule).value),
        Column("First verdict", "number", of="first.final"),
        Column("Second verdict", "number", of="second.final"),
    ]
    return tabulate("two-agents", "Two agents", columns, pairs)


@page
def task_pair(request: Request, pk: int, other: int) -> HttpResponse:
    """Show one task of two agents at the steps of ?left= and ?right=; ?step= is that of the side in ?moves=."""
    left, right, verdicts = access.trajectory_pair_for(request.user, pk, other)
    kept = _keep(request.GET)
    moved = request.GET.get("moves") if "step" in request.GET else None
    asked = [number(request.GET.get("step" if name == moved else name)) or 0 for name in task_pairs.SIDES]
    shown = task_pairs.build(request.user, left, right, asked, request.path, kept, verdicts=verdicts)
    submissions = left.submission, right.submission
    benchmark = left.submission.benchmark
    chosen = QueryDict(mutable=True)
    chosen.update({"first": str(submissions[0].pk), "second": str(submissions[1].pk)})
    listing = f"{reverse('two-agents', args=[benchmark.slug])}?{chosen.urlencode()}" + (f"&{kept}" if kept else "")
    context = {
        "task": left.task,
        "benchmark": benchmark,
        "shown": shown,
        "listing": listing,
        "neighbours": [(f"{listing}&at={left.pk}&go={go}", go) for go in ("previous", "next")],
        "frozen": all(each.frozen_at is not None for each in submissions),
    }
    return render(request, "evaluations/task_pair.html", context)
