"""import_tasks FILE --benchmark SLUG"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation import catalogue
from annotation.management.reports import finish, read_input


class Command(BaseCommand):
    help = "Load a benchmark's task list (JSON); a changed task becomes a new version."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--name", default="", help="the benchmark's name when it is new")
        parser.add_argument("--report", type=Path, metavar="FILE.json")

    def handle(self, *args: Any, **options: Any) -> None:
        report = catalogue.import_tasks(
            read_input(options["file"]),
            options["file"].name,
            benchmark_slug=options["benchmark"],
            benchmark_name=options["name"],
        )
        finish(self, report, options["report"], "tasks")
