"""Match the trajectories of a package with the task versions of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Protocol

from django.db.models import Q

from annotation.formats.printable import listing, printable
from annotation.formats.tasks import base_task_id, nearest, task_date
from annotation.models import Benchmark, Submission, Task
from annotation.records import Problem, TrajectoryRecord


class TaskVersions:
    """The task versions of a benchmark by task id, the latest first; ``task_ids`` limits them to some tasks.

    With ``create``, `match` returns a new task, which is not saved, for a trajectory with a text and an unknown id.
    """

    def __init__(self, benchmark: Benchmark, task_ids: Iterable[str] | None = None, *, create: bool = False) -> None:
        self.benchmark, self.create = benchmark, create
        self.versions: dict[str, list[Task]] = {}
        tasks = Task.objects.filter(benchmark=benchmark)
        if task_ids is not None:
            bases = {base_task_id(task_id) for task_id in task_ids}
            # The id of a replacement ends with a date. Other ids with this prefix are loaded, but never used.
            begins = (Q(external_id__startswith=f"{base}_") | Q(external_id=base) for base in bases)
            tasks = tasks.filter(reduce(or_, begins, Q(pk__in=[])))
        for task in tasks.order_by("-version"):
            self.versions.setdefault(task.external_id, []).append(task)
        self.newest: dict[str, str] = {}  # by the id without its date
        for task_id in sorted(self.versions, key=task_date):
            self.newest[base_task_id(task_id)] = task_id

    def match(self, record: TrajectoryRecord) -> tuple[Task | None, list[Problem], list[Problem]]:
        """Return the version that was judged (with the same text, else the latest), problems and warnings."""
        problems, warnings = self._check_folder(record)
        versions = self.versions.get(record.task_id)
        if versions is None and self.create and record.task_text:
            versions = self._add(record)
        if versions is None:
            return None, [*problems, self._unknown(record)], warnings
        warnings += self._check_replaced(record.task_id, f"{record.folder}/result.json: task_id")
        for task in versions:
            if not record.task_text or task.text.split() == record.task_text.split():
                outdated = self._check_outdated(task, f"{record.folder}/result.json: task")
                return task, problems, [*warnings, *outdated]
        message = f'The task text differs. Benchmark: "{versions[0].text}" Submission: "{record.task_text}"'
        differs = Problem("task_text_differs", message, f"{record.folder}/result.json: task")
        return versions[0], problems, [*warnings, differs]

    def _add(self, record: TrajectoryRecord) -> list[Task]:
        task = Task(benchmark=self.benchmark, external_id=record.task_id, text=record.task_text)
        self.newest.setdefault(base_task_id(record.task_id), record.task_id)
        return self.versions.setdefault(record.task_id, [task])

    def find_outdated(self, task: Task) -> list[Problem]:
        """Return a problem for each newer version or successor of a task; ``where`` is its id."""
        return [
            *self._check_replaced(task.external_id, task.external_id),
            *self._check_outdated(task, task.external_id),
        ]

    def _check_folder(self, record: TrajectoryRecord) -> tuple[list[Problem], list[Problem]]:
        """Return a problem if the folder has the id of another task as its name, and a warning for any other name.

        A trajectory at the top level of its package has no folder.
        """
        folder = record.folder.rpartition("/")[2]
        if folder in ("", record.task_id):
            return [], []
        where = f"{record.folder}/result.json: task_id"
        says = f"The folder {printable(folder)} holds the result of task {record.task_id}"
        if folder in self.versions:
            return [Problem("folder_of_other_task", f"{says}. Rename the folder or correct the task_id.", where)], []
        return [], [Problem("folder_name_differs", f"{says}. Name the folder after its task.", where)]

    def _check_replaced(self, task_id: str, where: str) -> list[Problem]:
        newest = self.newest[base_task_id(task_id)]
        if newest == task_id:
            return []
        message = f"The benchmark has replaced this task by {newest}. The trajectory is judged by the old task."
        return [Problem("task_replaced", message, where)]

    def _check_outdated(self, task: Task, where: str) -> list[Problem]:
        latest = self.versions[task.external_id][0]
        if task.text.split() == latest.text.split():
            return []
        message = (
            f"The task has changed: this trajectory is judged by version {task.version}, and the latest "
            f"is version {latest.version}."
        )
        return [Problem("task_outdated", message, where)]

    def _unknown(self, record: TrajectoryRecord) -> Problem:
        near = nearest(record.task_id, self.versions)
        hint = f"; the nearest known id is {near}" if near else "; import the benchmark's tasks first"
        if self.create:
            hint = ", and the log has no text to create one from; import the benchmark's tasks first"
        says = f"task_id {record.task_id} is not a task of the benchmark{hint}."
        return Problem("task_unknown", says, f"{record.folder}/result.json: task_id")


class WithTask(Protocol):
    task: Task


def create_tasks(benchmark: Benchmark, matched: Iterable[WithTask]) -> None:
    """Save the new tasks of `TaskVersions.match`, unless another import has created them; the caller has the lock."""
    saved: dict[str, Task] = {}
    for each in matched:
        task_id = each.task.external_id
        if each.task.pk is None and task_id not in saved:
            present = Task.objects.filter(benchmark=benchmark, external_id=task_id).order_by("-version").first()
            saved[task_id] = present or Task.objects.create(
                benchmark=benchmark, external_id=task_id, text=each.task.text
            )
        each.task = saved.get(task_id, each.task)


def find_outdated_tasks(submission: Submission) -> list[Problem]:
    """Return a problem for each task of a submission with a newer text or a dated successor, in its order."""
    versions = TaskVersions(submission.benchmark)
    trajectories = submission.trajectories.select_related("task").order_by("position")
    found = [problem for trajectory in trajectories for problem in versions.find_outdated(trajectory.task)]
    return [replace(problem, message=f"{printable(problem.where)}: {problem.message}") for problem in found]


def find_mixed_versions(records: Iterable[TrajectoryRecord]) -> list[tuple[str, Problem]]:
    """Return a problem for each trajectory whose task is also in the package under its undated or dated id."""
    by_task: dict[str, list[TrajectoryRecord]] = {}
    for record in records:
        by_task.setdefault(base_task_id(record.task_id), []).append(record)
    return [
        (record.task_id, _mixed_versions(record, versions))
        for versions in by_task.values()
        if len(versions) > 1
        for record in versions
    ]


def _mixed_versions(record: TrajectoryRecord, versions: Iterable[TrajectoryRecord]) -> Problem:
    others = listing([other.task_id for other in versions if other is not record])
    message = (
        f"The package also has {others}, another version of task {printable(record.task_id)}. A "
        "submission has one trajectory per task. Remove the others."
    )
    return Problem("task_versions_mixed", message, f"{record.folder}/result.json: task_id")
