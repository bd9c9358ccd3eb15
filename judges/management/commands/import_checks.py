"""import_checks PATH --benchmark SLUG [--dry-run]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.printable import counted
from annotation.management.reports import find_own_benchmark, finish, read_input
from judges import expectations
from judges.expectations import Kind


class Command(BaseCommand):
    help = (
        "Import network checks of many tasks, all or nothing: YAML, JSON or JSON Lines with task_id and checks, tasks"
        " of WebArena-Verified, or a folder or zip with one <task_id>.yaml for each task."
    )
    kind, what = Kind.NETWORK_CHECKS, "network checks"  # its name in the last line of the output

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="a file, a folder or a zip")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="the benchmark's short name")
        parser.add_argument("--dry-run", action="store_true", help="check without importing")
        parser.add_argument("--report", type=Path, metavar="FILE.json", help="write the report to this file")

    def handle(self, *args: Any, **options: Any) -> None:
        path, benchmark, dry_run = options["path"], find_own_benchmark(options["benchmark"]), options["dry_run"]
        if not path.exists():
            raise CommandError(f"{path} does not exist.", returncode=2)
        if path.is_dir():
            report = expectations.import_path(None, benchmark, self.kind, path, dry_run=dry_run)
        else:
            data = read_input(path)
            report = expectations.import_file(None, benchmark, self.kind, data, path.name, dry_run=dry_run)
        accepted = f"{counted(len(report.accepted), 'task')} with {self.what}"
        finish(self, report, options["report"], accepted, kept=False, dry_run=dry_run)
