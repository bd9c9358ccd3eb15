"""import_rubrics PATH --benchmark SLUG [--dry-run]"""

from __future__ import annotations

from judges.expectations import Kind
from judges.management.commands import import_checks


class Command(import_checks.Command):
    help = (
        "Import rubrics of many tasks, all or nothing: a folder or zip with one <task_id>.yaml for each task, or one "
        "YAML or JSON Lines file with task_id and rubric. Or the task list of Odysseys (JSON): each of a task's "
        "`rubrics` (requirement, verification, weight) becomes a weighted claim that one step can meet."
    )
    kind, what = Kind.RUBRIC, "a rubric"
