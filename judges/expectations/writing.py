"""The verbs: write a version, withdraw what there is, read the versions."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from annotation.formats.documents import UNSTORABLE
from annotation.models import Task
from annotation.records import Problem
from annotation.workflow import Conflict, Incomplete
from judges import access
from judges.expectations.kinds import Kind, find_problems
from judges.expectations.points import list_accepted
from judges.models import Expectation
from judges.scorers.network_trace import checks
from judges.scorers.rubric import written

LONGEST_WHY = 500  # characters, as the column has it


def write(
    person: Any, task: Task, kind: str, text: str, why: str = "", *, after: int | None = None, dry_run: bool = False
) -> Expectation:
    """Make ``text`` the newest version of what is expected of a task; an empty text withdraws what there was.

    The text that is there already makes no new version. ``after`` is the version that the writer started from (0 for
    none): Conflict when there is a newer one by now, as when two people write at the same moment. Raises Incomplete
    with every problem (``where``: its line), PermissionDenied, Http404. ``person`` None is the command line. With
    ``dry_run`` the version is made as it would be, and not kept.
    """
    require(person, task)
    kind, text = Kind(kind), _normalize(text)
    problems = _check_reason(why) + (find_problems(kind, text) if text else [])
    if problems:
        raise Incomplete(problems)
    before = find_newest(task, kind)
    if after is not None and after != (before.version if before else 0):
        raise Conflict(_build_conflict(kind))
    if before is not None and before.text == text:
        return before
    if before is None and not text:
        raise Conflict(f"There is no {kind.label} of this task to withdraw.")
    made = Expectation(
        task=task,
        kind=kind,
        version=before.version + 1 if before else 1,
        text=text,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        why=why.strip(),
        written_by=person,
    )
    return made if dry_run else _append_version(made)


def withdraw(person: Any, task: Task, kind: str, why: str = "", *, after: int | None = None) -> Expectation:
    """Expect nothing of this kind any more; the versions stay."""
    return write(person, task, kind, "", why, after=after)


def _append_version(made: Expectation) -> Expectation:
    try:
        with transaction.atomic():
            made.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(_build_conflict(Kind(made.kind))) from error
    return made


def _build_conflict(kind: Kind) -> str:
    return f"Somebody else has written a newer version of the {kind.label} meanwhile; look at it first."


def _normalize(text: str) -> str:
    """Line ends as they are stored, and blanks alone as nothing: a form sends CRLF, a file may."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines.rstrip() + "\n" if lines.strip() else ""


def _check_reason(why: str) -> list[Problem]:
    if len(why.strip()) > LONGEST_WHY or UNSTORABLE.search(why):
        says = f"Say why in at most {LONGEST_WHY} characters, none of them broken."
        return [Problem("why_invalid", says, "why")]
    return []


def require(person: Any, task: Task) -> None:
    if person is not None:
        access.find_benchmark(person, task.benchmark.slug)


def find_newest(task: Task, kind: str) -> Expectation | None:
    """The newest version, one that withdraws included; None where nothing was ever written."""
    return select_history(task, kind).first()


def find_current(task: Task, kind: str) -> Expectation | None:
    """The version that holds; None where there is none, or it was withdrawn."""
    found = find_newest(task, kind)
    return found if found is not None and found.text else None


def select_history(task: Task, kind: str) -> QuerySet[Expectation]:
    found = Expectation.objects.filter(task=task, kind=Kind(kind)).select_related("written_by")
    return found.order_by("-version")


def start_from_key_points(task: Task, kind: str = Kind.RUBRIC) -> str:
    """A first text: one claim, or one check that is still a comment, for each key point of the task.

    A rubric of a task without key points has one claim.
    """
    points = list_accepted(task)
    if Kind(kind) is Kind.RUBRIC:
        return written.write_from_key_points(task.text, points)
    return checks.write_from_key_points(points)
