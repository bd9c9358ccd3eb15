"""import_checks PATH --benchmark SLUG [--dry-run]"""

from __future__ import annotations

from judges.expectations import Kind
from judges.management.expectation_imports import ExpectationsCommand


class Command(ExpectationsCommand):
    help = (
        "Load network checks of many tasks, all or none: YAML, JSON or JSON Lines with task_id and checks, tasks of "
        "WebArena-Verified, or a folder or zip with one <task_id>.yaml for each task."
    )
    kind, what = Kind.NETWORK_CHECKS, "network checks"
