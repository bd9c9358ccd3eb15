"""import_tasks FILE --benchmark SLUG"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation import catalogue
from annotation.formats.printable import counted
from annotation.formats.registry import describe_task_files
from annotation.management.reports import finish, refuse_unchangeable, report_read_errors


class Command(BaseCommand):
    help = (
        f"Load the tasks of a benchmark from a JSON list, or from {describe_task_files()}. "
        "A changed task becomes a new version."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the task list")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="the benchmark's short name")
        parser.add_argument("--name", default="", help="the benchmark's name if it is new")
        parser.add_argument("--report", type=Path, metavar="FILE.json", help="write the report to this file")

    def handle(self, *args: Any, **options: Any) -> None:
        file, given = options["file"], {"benchmark_slug": options["benchmark"], "benchmark_name": options["name"]}
        refuse_unchangeable(options["benchmark"])
        with report_read_errors(file):
            report = catalogue.import_task_path(file, **given)
        finish(self, report, options["report"], counted(len(report.accepted), "task"))
