"""Expectations of many tasks from a file: all of them or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import transaction

from annotation.formats.documents import FormatError
from annotation.formats.printable import printable
from annotation.formats.tasks import nearest
from annotation.models import Benchmark, Task
from annotation.records import ImportReport, Problem
from annotation.workflow import Conflict, Incomplete
from judges import access
from judges.expectations import files
from judges.expectations.files import FileEntry
from judges.expectations.writing import write

MOST_HINTS = 100  # looking for the nearest task id takes some milliseconds


def import_file(
    person: Any, benchmark: Benchmark, kind: str, data: bytes, name: str, *, dry_run: bool = False
) -> ImportReport:
    """Load what ``data`` says of the newest version of each task; ``name`` tells the format and is named in messages.

    Everything or nothing: ``rejected`` has every problem of every task. A text that a task has already is accepted and
    changes nothing, which a warning says. Rights are those of `writing.write`.
    """
    _require(person, benchmark)
    report = ImportReport()
    try:
        entries = files.read(kind, data, name)
    except FormatError as refused:
        report.reject("", *refused.problems)
        return report
    return _import(person, benchmark, kind, entries, name, report, dry_run)


def import_path(person: Any, benchmark: Benchmark, kind: str, path: Path, *, dry_run: bool = False) -> ImportReport:
    _require(person, benchmark)
    report = ImportReport()
    try:
        entries = files.read_package(path, path.name)
    except FormatError as refused:
        report.reject("", *refused.problems)
        return report
    return _import(person, benchmark, kind, entries, path.name, report, dry_run)


def _require(person: Any, benchmark: Benchmark) -> None:
    if person is not None:
        access.find_benchmark(person, benchmark.slug)


def _import(
    person: Any,
    benchmark: Benchmark,
    kind: str,
    entries: list[FileEntry],
    name: str,
    report: ImportReport,
    dry_run: bool,
) -> ImportReport:
    if not entries:
        report.reject("", Problem("file_empty", f"{printable(name)}: says nothing of any task.", printable(name)))
        return report
    with transaction.atomic():
        Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
        tasks = {task.external_id: task for task in benchmark.tasks.select_related("benchmark").order_by("version")}
        for entry in entries:
            _take(person, tasks, kind, entry, report, f"imported from {printable(name, 200)}")
        if report.rejected or dry_run:
            transaction.set_rollback(True)
    if report.rejected:
        report.accepted = []
    return report


def _take(person: Any, tasks: dict[str, Task], kind: str, entry: FileEntry, report: ImportReport, why: str) -> None:
    task = tasks.get(entry.task_id)
    if task is None:
        report.reject(entry.task_id, _describe_unknown(entry, tasks, len(report.rejected)))
        return
    if not entry.text.strip():
        says = f"{entry.where}: has nothing for {printable(entry.task_id)}. A file withdraws nothing: the page does."
        report.reject(entry.task_id, Problem("expectation_empty", says, entry.where))
        return
    before = task.expectations.filter(kind=kind).count()
    try:
        made = write(person, task, kind, entry.text, why)
    except Incomplete as refused:
        report.reject(entry.task_id, *(_place_problem(problem, entry) for problem in refused.problems))
        return
    except Conflict as refused:
        report.reject(entry.task_id, Problem("conflict", f"{entry.where}: {refused}", entry.where))
        return
    report.accepted.append(entry.task_id)
    if made.version == before:
        says = f"{printable(entry.task_id)} says this already; version {made.version} stays."
        report.warn(entry.task_id, Problem("expectation_known", says, entry.where))


def _place_problem(problem: Problem, entry: FileEntry) -> Problem:
    return Problem(problem.code, f"{entry.where}: {problem.message}", f"{entry.where}: {problem.where}")


def _describe_unknown(entry: FileEntry, tasks: dict[str, Task], refused: int) -> Problem:
    near = nearest(entry.task_id, tasks) if refused < MOST_HINTS else None
    hint = f"the nearest known id is {near}" if near else "import the benchmark's tasks first"
    says = f"{entry.where}: {printable(entry.task_id)} is not a task of the benchmark; {hint}."
    return Problem("task_unknown", says, entry.where)
