"""Import the catalogue, trajectories, steps and attachments from a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from annotation.models import Attachment, Benchmark, KeyPoint, Screenshot, Step, Task, Trajectory
from evaluations.auditing.files import StoredFiles
from evaluations.auditing.import_context import BATCH, LARGEST, ImportContext, Rejections, find_largest, parse_time
from evaluations.evidence.trajectories import (
    SCREENSHOT_COLUMNS,
    STEP_COLUMNS,
    STEP_TEXTS,
    TASK_COLUMNS,
    TRAJECTORY_COLUMNS,
)
from evaluations.verifier.documents import Document

Tasks = dict[tuple[str, int], Task]


def write_catalogue(benchmark: Benchmark, lines: list[Document], made_at: datetime, rejections: Rejections) -> Tasks:
    """Create every version of every task with its accepted key points. ``made_at`` is their creation time: before the
    freeze, like everything in a bundle."""
    tasks: Tasks = {}
    for line in lines:
        key = (line["task_id"], line["version"])
        if not rejections.accept(f"task {key[0]} version {key[1]}", "it occurs twice" if key in tasks else None):
            continue
        columns = {name: line[name] for name in TASK_COLUMNS}
        tasks[key] = Task(benchmark=benchmark, external_id=line["task_id"], **columns)
    Task.objects.bulk_create(tasks.values(), batch_size=BATCH)
    Task.objects.filter(benchmark=benchmark).update(created_at=made_at)
    KeyPoint.objects.bulk_create(_key_points(lines, tasks, rejections), batch_size=BATCH)
    return tasks


def _key_points(lines: list[Document], tasks: Tasks, rejections: Rejections) -> Iterator[KeyPoint]:
    current = set()
    for line in lines:
        task = tasks[line["task_id"], line["version"]]
        for point in line["key_points"]:
            key = (task.pk, point["text"])
            doubled = point["retired_at"] is None and key in current
            if rejections.accept(f"key point of task {line['task_id']}", "it occurs twice" if doubled else None):
                if point["retired_at"] is None:
                    current.add(key)
                yield KeyPoint(
                    task=task,
                    position=point["position"],
                    text=point["text"],
                    accepted_at=parse_time(point["accepted_at"]),
                    retired_at=parse_time(point["retired_at"]),
                )


def write_trajectories(context: ImportContext, tasks: Tasks, lines: Iterable[Document], stored: StoredFiles) -> None:
    """Create trajectories with their steps and files, one by one, and fill in those of ``context``."""
    positions: set[int] = set()
    screenshots = _screenshot_rows(stored)
    for line in lines:
        task_id = line["task_id"]
        if not context.rejections.accept(f"trajectory {task_id}", _problem(line, tasks, context, positions)):
            continue
        positions.add(line["position"])
        trajectory = _trajectory(context, tasks[task_id, line["task_version"]], line)
        context.trajectories[task_id] = trajectory
        context.steps[task_id] = {step["index"] for step in line["steps"]}
        Step.objects.bulk_create((_step(trajectory, step, screenshots, stored) for step in line["steps"]), BATCH)
        Attachment.objects.bulk_create(
            Attachment(trajectory=trajectory, withheld=(file["kind"], file["sha256"]) not in stored.attachments, **file)
            for file in line["attachments"]
        )
    for point in KeyPoint.objects.filter(task__benchmark=context.submission.benchmark_id):
        context.key_points.setdefault(point.task_id, []).append(point)


def _problem(line: Document, tasks: Tasks, context: ImportContext, positions: set[int]) -> str | None:
    if (line["task_id"], line["task_version"]) not in tasks:
        return "the catalogue does not have this version of its task"
    if line["task_id"] in context.trajectories or line["position"] in positions:
        return "another trajectory has its task or its place"
    if find_largest(line) > LARGEST:
        return f"it has a number that is larger than {LARGEST:,}"
    indexes = [step["index"] for step in line["steps"]]
    if sorted(indexes) != list(range(len(indexes))):
        return "its steps are not numbered from 0"
    names = [file["name"] for file in line["attachments"]]
    return "two of its files have the same name" if len(set(names)) < len(names) else None


def _trajectory(context: ImportContext, task: Task, line: Document) -> Trajectory:
    return Trajectory.objects.create(
        submission=context.submission,
        task=task,
        open_slots=context.submission.required_labels,
        **{name: line[name] for name in TRAJECTORY_COLUMNS},
    )


def _screenshot_rows(stored: StoredFiles) -> dict[str, Screenshot]:
    """Return the rows of all inspected images, by digest; create the missing ones."""
    facts = dict(sorted(stored.images.items()))
    Screenshot.objects.bulk_create(
        (Screenshot(**{name: getattr(fact, name) for name in SCREENSHOT_COLUMNS}) for fact in facts.values()),
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    known = list(facts)
    return {
        row.sha256: row
        for start in range(0, len(known), BATCH)
        for row in Screenshot.objects.filter(sha256__in=known[start : start + BATCH])
    }


def _step(trajectory: Trajectory, step: Document, screenshots: dict[str, Screenshot], stored: StoredFiles) -> Step:
    """Build a step. A missing image is declared, not looked up: another submission here may have the same one."""
    stated = step["screenshot"]
    shown = screenshots.get(stored.displayed.get(stated["sha256"], "")) if stated else None
    whole = stated is not None and shown is not None and shown.sha256 == stated["sha256"]
    x, y = step["click"] or (None, None)
    return Step(
        trajectory=trajectory,
        screenshot=shown,
        withheld=None if whole else stated,
        click_x=x,
        click_y=y,
        **{name: step[name] for name in STEP_COLUMNS},
        **{name: step[name] or "" for name in STEP_TEXTS},
    )
