"""Import tasks, key points and labels from files: all or nothing; importing a file again changes nothing."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from django.db import transaction
from django.db.models import Q

from annotation import clock
from annotation.formats import registry, scratch
from annotation.formats.documents import FormatError
from annotation.formats.labels_csv import read_labels
from annotation.formats.printable import file_name, printable
from annotation.formats.tasks import nearest, read_tasks
from annotation.models import Agent, Assignment, Benchmark, ImportedLabel, KeyPoint, Person, PlannedItem, Task
from annotation.models.plans import LEFT_OUT
from annotation.records import ImportedLabelRecord, ImportReport, Problem, TaskRecord
from annotation.workflow.archiving import lock_benchmark
from annotation.workflow.guards import TRY_LATER, Conflict

LARGEST_LABEL_FILE = 16 * 1024 * 1024  # bytes that a page or the API reads while somebody waits
BATCH = 500  # rows written at once
LONGEST_KEY_POINT = 500  # characters
MOST_HINTS = 100  # finding the nearest task id takes some milliseconds
TASK_FIELDS = ("text", "website", "reference_length", "level")
LABEL_FIELDS = ("annotator", "verdict", "reasoning", "failure_step", "failure_type")


def import_tasks(data: bytes, name: str, *, benchmark_slug: str, benchmark_name: str = "") -> ImportReport:
    """Load a task list that is in memory, as `import_task_list`."""
    return import_task_list(io.BytesIO(data), name, benchmark_slug=benchmark_slug, benchmark_name=benchmark_name)


def import_task_list(source: BinaryIO, name: str, *, benchmark_slug: str, benchmark_name: str = "") -> ImportReport:
    """Load a task list of any length: all of it or nothing. Memory holds only the task ids and one batch.

    A changed task becomes a new version. A new benchmark is created.
    """
    report = ImportReport()
    problems: list[Problem] = []
    warnings: list[tuple[str, Problem]] = []
    records = read_tasks(source, name, problems, warnings)
    with transaction.atomic():
        # All problems are listed, but no row is written after the first one.
        good = (record for record in records if not problems)
        _write_tasks(good, benchmark_slug, benchmark_name, report)
        if problems:
            transaction.set_rollback(True)
            report = ImportReport()
            report.reject("", *problems)
    for task_id, warning in warnings:
        report.warn(task_id, warning)
    return report


def import_task_path(path: Path, name: str = "", *, benchmark_slug: str, benchmark_name: str = "") -> ImportReport:
    """Load the tasks of a task list, or of files that state their tasks, all or nothing; messages name it ``name``.

    Raises OSError.
    """
    read = registry.find_task_reader(path)
    if read is None:
        with path.open("rb") as source:
            return import_task_list(
                source, name or path.name, benchmark_slug=benchmark_slug, benchmark_name=benchmark_name
            )
    report = ImportReport()
    # Only warnings: the import of the trajectories rejects the same faults.
    warnings: list[Problem] = []
    with transaction.atomic():
        try:
            _write_tasks(read(path, warnings), benchmark_slug, benchmark_name, report)
        except FormatError as error:
            transaction.set_rollback(True)
            report = ImportReport()
            report.reject("", *error.problems)
    report.warn("", *warnings)
    return report


def import_task_file(file: Any, *, benchmark_slug: str, benchmark_name: str = "") -> ImportReport:
    """Load an uploaded file as `import_task_path`, without reading it into memory."""
    with scratch.folder("tasks") as folder:
        copy = folder / file_name(file.name, printable(Path(file.name).suffix, 12))
        with copy.open("wb") as stream:
            stream.writelines(file.chunks())
        return import_task_path(copy, file.name, benchmark_slug=benchmark_slug, benchmark_name=benchmark_name)


def _write_tasks(records: Iterable[TaskRecord], benchmark_slug: str, benchmark_name: str, report: ImportReport) -> None:
    benchmark, _ = Benchmark.objects.get_or_create(
        slug=benchmark_slug, defaults={"name": benchmark_name or benchmark_slug}
    )
    lock_benchmark(benchmark.pk)
    started, waiting = clock.now(), iter(records)
    while batch := list(islice(waiting, BATCH)):
        _write_batch(benchmark, batch, started, report)
    # The key points take effect only now: a label created meanwhile does not need findings on them.
    of_these, ended = KeyPoint.objects.filter(task__benchmark=benchmark), clock.now()
    of_these.filter(accepted_at=started).update(accepted_at=ended)
    of_these.filter(retired_at=started).update(retired_at=ended)


def _write_batch(benchmark: Benchmark, batch: list[TaskRecord], started: datetime, report: ImportReport) -> None:
    """Write tasks with different ids: new versions in bulk, and missing key points of known versions."""
    known = Task.objects.filter(benchmark=benchmark, external_id__in=[record.task_id for record in batch])
    latest = {task.external_id: task for task in known.order_by("version")}
    unchanged = [record for record in batch if _is_unchanged(latest.get(record.task_id), record)]
    same = {record.task_id for record in unchanged}
    changed = [record for record in batch if record.task_id not in same]
    tasks = Task.objects.bulk_create(_next_version(benchmark, record, latest, report) for record in changed)
    KeyPoint.objects.bulk_create(
        (
            KeyPoint(task=task, position=position, text=text, accepted_at=started)
            for task, record in zip(tasks, changed, strict=True)
            for position, text in enumerate(_key_point_texts(record.key_points))
        ),
        batch_size=BATCH,
    )
    _complete_key_points([record for record in unchanged if record.key_points], latest, started)
    report.accepted += [record.task_id for record in batch]


def _complete_key_points(records: list[TaskRecord], latest: dict[str, Task], started: datetime) -> None:
    stated = KeyPoint.objects.filter(task__in=[latest[record.task_id] for record in records])
    current = stated.filter(accepted_at__isnull=False, retired_at__isnull=True).values_list("task", "text")
    present = set(current)
    for record in records:
        task = latest[record.task_id]
        if any((task.pk, text) not in present for text in _key_point_texts(record.key_points)):
            _add_key_points(task, record.key_points, started)


def _is_unchanged(latest: Task | None, record: TaskRecord) -> bool:
    return latest is not None and all(getattr(latest, name) == getattr(record, name) for name in TASK_FIELDS)


def _next_version(benchmark: Benchmark, record: TaskRecord, latest: dict[str, Task], report: ImportReport) -> Task:
    version = latest[record.task_id].version + 1 if record.task_id in latest else 1
    if version > 1:
        message = f"The task has changed and is now version {version}; earlier labels keep the old text."
        report.warn(record.task_id, Problem("task_changed", message))
    fields = {name: getattr(record, name) for name in TASK_FIELDS}
    return Task(benchmark=benchmark, external_id=record.task_id, version=version, **fields)


def _key_point_texts(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(map(_clean_text, texts)) if text]


def _clean_text(text: str) -> str:
    """Return the text of a key point as browsers show it: a box on a screenshot names its key point by this text."""
    return text.replace("\r\n", "\n").strip()[:LONGEST_KEY_POINT]


def _require_settled(task: int) -> None:
    """Raise Conflict while a label of the task can still be undone: it was checked with the current key points."""
    if Assignment.objects.filter(trajectory__task=task, submit_at__isnull=False).exists():
        raise Conflict(f"A label of this task was just submitted, and can still be undone. {TRY_LATER}")


def add_key_points(task: Task, texts: tuple[str, ...] | list[str]) -> list[KeyPoint]:
    """Append the key points that the task lacks and return them; equal proposals are settled."""
    with transaction.atomic():
        lock_benchmark(task.benchmark_id)
        _require_settled(task.pk)
        return _add_key_points(task, texts, clock.now())


def _add_key_points(task: Task, texts: tuple[str, ...] | list[str], now: datetime) -> list[KeyPoint]:
    Task.objects.select_for_update(no_key=True).get(pk=task.pk)
    current = task.key_points.filter(retired_at__isnull=True)
    known = set(current.filter(accepted_at__isnull=False).values_list("text", flat=True))
    fresh = [text for text in _key_point_texts(texts) if text not in known]
    current.filter(accepted_at__isnull=True, text__in=fresh).update(retired_at=now)
    position = task.key_points.count()
    return KeyPoint.objects.bulk_create(
        KeyPoint(task=task, position=position + n, text=text, accepted_at=now) for n, text in enumerate(fresh)
    )


def propose_key_point(task: Task, text: str, person: Person) -> KeyPoint | None:
    """Suggest a requirement to the maintainer; None if the task has it, or this person has proposed it already.

    Proposals of others do not count: the person would notice that their own is missing.
    """
    text = _clean_text(text)
    with transaction.atomic():
        Task.objects.select_for_update(no_key=True).get(pk=task.pk)
        known = task.key_points.filter(Q(accepted_at__isnull=False) | Q(proposed_by=person), retired_at__isnull=True)
        if not text or known.filter(text=text).exists():
            return None
        return KeyPoint.objects.create(task=task, position=task.key_points.count(), text=text, proposed_by=person)


def accept_key_point(key_point: KeyPoint) -> None:
    """Make a proposal a key point that every new label needs; equal proposals of others are settled."""
    with transaction.atomic():
        lock_benchmark(key_point.task.benchmark_id)
        _require_settled(key_point.task_id)
        Task.objects.select_for_update(no_key=True).get(pk=key_point.task_id)
        now = clock.now()
        point = KeyPoint.objects.get(pk=key_point.pk)
        if point.accepted_at is not None or point.retired_at is not None:
            return
        same = KeyPoint.objects.filter(task=point.task_id, text=point.text, retired_at__isnull=True)
        same.filter(accepted_at__isnull=True).exclude(pk=point.pk).update(retired_at=now)
        KeyPoint.objects.filter(pk=point.pk).update(accepted_at=now)


def retire_key_point(key_point: KeyPoint) -> None:
    """Stop asking for a key point or a proposal; findings that refer to it stay."""
    with transaction.atomic():
        lock_benchmark(key_point.task.benchmark_id)
        _require_settled(key_point.task_id)
        KeyPoint.objects.filter(pk=key_point.pk, retired_at__isnull=True).update(retired_at=clock.now())


def import_labels(data: bytes, name: str, *, benchmark: Benchmark) -> ImportReport:
    """Load labels for research. Tasks must exist; new agents are created."""
    report = ImportReport()
    records, problems, warnings = read_labels(data, name)
    for task_id, warning in warnings:
        report.warn(task_id, warning)
    if problems:
        report.reject("", *problems)
        return report
    with transaction.atomic():
        lock_benchmark(benchmark.pk, key=True)
        _write_labels(records, benchmark, report)
        if report.rejected:
            transaction.set_rollback(True)
            report.accepted = []
    return report


def _write_labels(records: list[ImportedLabelRecord], benchmark: Benchmark, report: ImportReport) -> None:
    tasks = {t.external_id: t for t in Task.objects.filter(benchmark=benchmark).order_by("version")}
    agents = {name: Agent.objects.get_or_create(name=name)[0] for name in dict.fromkeys(r.agent for r in records)}
    known = {
        (label.task.external_id, label.agent_id, label.annotator): label
        for label in ImportedLabel.objects.filter(benchmark=benchmark).select_related("task")
    }
    left_out = PlannedItem.objects.filter(LEFT_OUT, plan__submission__benchmark=benchmark)
    undrawn = set(left_out.values_list("trajectory__task__external_id", "plan__submission__agent"))
    hints = _find_unknown(records, tasks)
    fresh: list[ImportedLabel] = []
    for record in records:
        task, agent = tasks.get(record.task_id), agents[record.agent]
        earlier = known.get((record.task_id, agent.pk, record.annotator))
        problem = _label_problem(record, task, earlier, hints)
        if problem is None and earlier is None and (record.task_id, agent.pk) in undrawn:
            problem = _refuse_undrawn(record)
        if problem:
            report.reject(record.task_id, problem)
            continue
        report.accepted.append(record.task_id)
        if earlier is None and task is not None:
            position, fields = len(known) + len(fresh), {name: getattr(record, name) for name in LABEL_FIELDS}
            fresh.append(ImportedLabel(benchmark=benchmark, task=task, agent=agent, position=position, **fields))
    ImportedLabel.objects.bulk_create(fresh, batch_size=500)
    report.accepted = list(dict.fromkeys(report.accepted))
    report.rows = len(records)


def _refuse_undrawn(record: ImportedLabelRecord) -> Problem:
    says = f"line {record.row}: the sample of {record.agent} leaves out {record.task_id}, so nobody labels it."
    return Problem("not_drawn", says, f"line {record.row}")


def _find_unknown(records: list[ImportedLabelRecord], tasks: dict[str, Task]) -> dict[str, str]:
    """Return a hint for each task id that does not exist."""
    unknown = dict.fromkeys(record.task_id for record in records if record.task_id not in tasks)
    hints = dict.fromkeys(unknown, "import the benchmark's tasks first")
    for task_id in list(unknown)[:MOST_HINTS]:
        if near := nearest(task_id, tasks):
            hints[task_id] = f"the nearest known id is {near}"
    return hints


def _label_problem(
    record: ImportedLabelRecord, task: Task | None, earlier: ImportedLabel | None, hints: dict[str, str]
) -> Problem | None:
    where = f"line {record.row}"
    if task is None:
        says = f"{where}: task_id {record.task_id} is not a task of the benchmark; {hints[record.task_id]}."
        return Problem("task_unknown", says, where)
    if earlier is not None and earlier.verdict != record.verdict:
        message = (
            f"{where}: {record.annotator} already has label {earlier.verdict} here; the file has {record.verdict}."
        )
        return Problem("label_differs", message, where)
    return None
