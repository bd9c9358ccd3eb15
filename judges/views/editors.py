"""The editor of an expectation, with what its text means beside it."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef
from django.db.models.functions import Length
from django.http import Http404, HttpResponse
from django.shortcuts import render

from annotation.formats.documents import FormatError
from annotation.models import Attachment, Task, Trajectory
from annotation.records import AttachmentKind, Problem
from annotation.views.answers import Request, paged
from judges import access, expectations, trying
from judges.expectations import Kind
from judges.forms.expectations import ExpectationForm
from judges.models import Judge
from judges.scorers.rubric.details import flatten
from judges.scorers.rubric.judge import NAME as RUBRIC
from judges.views import check_words
from judges.views.key_words import KEYS

NAMES = {Kind.NETWORK_CHECKS: "Network checks", Kind.RUBRIC: "Rubric"}
MOST_TRAJECTORIES = 100  # of a task to choose from


def find_kind(expected: str) -> Kind:
    if expected not in Kind.values:
        raise Http404("There is no such kind of expectation.")
    return Kind(expected)


def render_editor(
    request: Request,
    task: Task,
    kind: Kind,
    form: ExpectationForm,
    text: str,
    *,
    started: str = "",
    problems: list[Problem] | None = None,
    refusal: str = "",
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """The page of the editor with ``text`` in it, whatever became of it; ``more`` is what it shows besides."""
    newest = expectations.find_newest(task, kind)
    context = {
        "task": task,
        "benchmark": task.benchmark,
        "kind": kind.value,
        "is_rubric": kind is Kind.RUBRIC,
        "name": NAMES[kind],
        "other": next((each.value, NAMES[each]) for each in Kind if each is not kind),
        "form": form,
        "text": text,
        "started": started,
        "refusal": refusal,
        "problems": [(expectations.find_line(problem), expectations.strip_line(problem)) for problem in problems or []],
        "newest": newest,
        "holds": newest is not None and bool(newest.text),
        "page": paged(request, expectations.select_history(task, kind).defer("text").annotate(size=Length("text")), 20),
        "key_points": expectations.list_accepted(task),
        "keys": KEYS[kind],
        **(_find_trajectories(request.user, task) if kind is Kind.NETWORK_CHECKS else {}),
        "judges": _find_judges(request.user, kind),
        **build_preview(request.user, kind, text, task),
        **more,
    }
    return render(request, "judges/expectation.html", context, status=status)


def _find_trajectories(person: Any, task: Task) -> dict[str, list[Trajectory]]:
    """The trajectories of the task that the person maintains, with a network trace and without: checks of the answer
    alone need none, and whether those in the editor do is not known before they are tried."""
    trace = Exists(Attachment.objects.filter(trajectory=OuterRef("pk"), kind=AttachmentKind.NETWORK_TRACE))
    found = access.find_task_trajectories(person, task)
    chosen = {"traced": found.filter(trace), "untraced": found.exclude(trace)}
    return {name: list(rows[:MOST_TRAJECTORIES]) for name, rows in chosen.items()}


def _find_judges(person: Any, kind: Kind) -> list[Judge]:
    """The judges that can be tried with a rubric: a test run of one asks its model."""
    if kind is not Kind.RUBRIC:
        return []
    return list(access.find_judges(person).filter(scorer=RUBRIC).order_by("name", "-version")[:20])


def build_preview(person: Any, kind: Kind, text: str, task: Task) -> dict[str, Any]:
    if not text.strip():
        return {"blank": True}
    try:
        found = expectations.parse_text(kind, text)
    except FormatError as refused:
        ordered = sorted(refused.problems, key=expectations.find_line)
        return {"faults": [(expectations.find_line(problem), expectations.strip_line(problem)) for problem in ordered]}
    doubts = {"doubts": expectations.find_unknown(kind, found, expectations.list_accepted(task))}
    if kind is Kind.RUBRIC:
        return (
            doubts | {"tree": flatten(found.tree(), judged=False), "rubric": found} | _forecast_cost(person, task, text)
        )
    return doubts | {"checks": check_words.describe_checks(found), "sites": check_words.list_sites(found)}


def _forecast_cost(person: Any, task: Task, text: str) -> dict[str, Any]:
    """How many calls one judgment takes, by the forecast of the judge itself with its usual parameters."""
    example = access.find_task_trajectories(person, task).first()
    calls = trying.forecast(RUBRIC, Kind.RUBRIC.value, task, text, example)
    return {"calls": len(calls), "pictures": sum(number for _, number in calls), "example": example}
