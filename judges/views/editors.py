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
from judges.scorers.rubric.judge import NAME as RUBRIC
from judges.views import check_words
from judges.views.details.trees import flat
from judges.views.key_words import KEYS

NAMES = {Kind.NETWORK_CHECKS: "Network checks", Kind.RUBRIC: "Rubric"}
MOST_TRAJECTORIES = 100  # of a task to choose from


def kind_of(expected: str) -> Kind:
    """The kind that an address names."""
    if expected not in Kind.values:
        raise Http404("There is no such kind of expectation.")
    return Kind(expected)


def editor(
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
    newest = expectations.newest(task, kind)
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
        "problems": [(expectations.line_of(problem), expectations.words_of(problem)) for problem in problems or []],
        "newest": newest,
        "holds": newest is not None and bool(newest.text),
        "page": paged(request, expectations.history(task, kind).defer("text").annotate(size=Length("text")), 20),
        "key_points": expectations.accepted(task),
        "keys": KEYS[kind],
        **(_to_try_on(request.user, task) if kind is Kind.NETWORK_CHECKS else {}),
        "judges": _judges(request.user, kind),
        **preview_of(request.user, kind, text, task),
        **more,
    }
    return render(request, "judges/expectation.html", context, status=status)


def _to_try_on(person: Any, task: Task) -> dict[str, list[Trajectory]]:
    """The trajectories of the task that the person maintains, with a network trace and without: checks of the answer
    alone need none, and whether those in the editor do is not known before they are tried."""
    trace = Exists(Attachment.objects.filter(trajectory=OuterRef("pk"), kind=AttachmentKind.NETWORK_TRACE))
    found = access.trajectories_of_task(person, task)
    chosen = {"traced": found.filter(trace), "untraced": found.exclude(trace)}
    return {name: list(rows[:MOST_TRAJECTORIES]) for name, rows in chosen.items()}


def _judges(person: Any, kind: Kind) -> list[Judge]:
    """The judges that can be tried with a rubric: a test run of one asks its model."""
    if kind is not Kind.RUBRIC:
        return []
    return list(access.judges_for(person).filter(scorer=RUBRIC).order_by("name", "-version")[:20])


def preview_of(person: Any, kind: Kind, text: str, task: Task) -> dict[str, Any]:
    """What the preview shows: what is wrong with the text, else what it says."""
    if not text.strip():
        return {"blank": True}
    try:
        found = expectations.parsed(kind, text)
    except FormatError as refused:
        ordered = sorted(refused.problems, key=expectations.line_of)
        return {"faults": [(expectations.line_of(problem), expectations.words_of(problem)) for problem in ordered]}
    doubts = {"doubts": expectations.unknown(kind, found, expectations.accepted(task))}
    if kind is Kind.RUBRIC:
        return doubts | {"tree": flat(found.tree(), judged=False), "rubric": found} | _cost(person, task, text)
    return doubts | {"checks": check_words.in_words(found), "sites": check_words.sites_of(found)}


def _cost(person: Any, task: Task, text: str) -> dict[str, Any]:
    """How many calls one judgment takes, by the forecast of the judge itself with its usual parameters."""
    example = access.trajectories_of_task(person, task).first()
    calls = trying.foreseen(RUBRIC, Kind.RUBRIC.value, task, text, example)
    return {"calls": len(calls), "pictures": sum(number for _, number in calls), "example": example}
