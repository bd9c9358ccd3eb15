"""import_labels FILE.csv --benchmark SLUG"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation import catalogue
from annotation.formats.printable import counted
from annotation.management.reports import find_own_benchmark, finish, read_input


class Command(BaseCommand):
    help = "Import labels for research (CSV: annotator, task_id, agent, label)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the CSV file")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="the benchmark's short name")
        parser.add_argument("--report", type=Path, metavar="FILE.json", help="write the report to this file")

    def handle(self, *args: Any, **options: Any) -> None:
        report = catalogue.import_labels(
            read_input(options["file"]),
            options["file"].name,
            benchmark=find_own_benchmark(options["benchmark"]),
        )
        accepted = f"{counted(report.rows, 'label')} of {counted(len(report.accepted), 'task')}"
        finish(self, report, options["report"], accepted)
