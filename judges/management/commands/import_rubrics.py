"""import_rubrics PATH --benchmark SLUG [--dry-run]"""

from __future__ import annotations

from judges.expectations import Kind
from judges.management.commands import import_checks


class Command(import_checks.Command):
    help = (
        "Load rubrics of many tasks, all or none: a folder or zip with one <task_id>.yaml for each task, or one YAML "
        "or JSON Lines file of entries with task_id and rubric."
    )
    kind, what = Kind.RUBRIC, "a rubric"
