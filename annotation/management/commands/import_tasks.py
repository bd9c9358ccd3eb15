"""import_tasks FILE --benchmark SLUG"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation import catalogue
from annotation.formats import mind2web_rows
from annotation.formats.printable import counted
from annotation.management.reports import finish, open_input, own_or_new


class Command(BaseCommand):
    help = "Load a benchmark's task list (JSON, or rows of Multimodal-Mind2Web); a changed task becomes a new version."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--name", default="", help="the benchmark's name when it is new")
        parser.add_argument("--report", type=Path, metavar="FILE.json")

    def handle(self, *args: Any, **options: Any) -> None:
        file, given = options["file"], {"benchmark_slug": options["benchmark"], "benchmark_name": options["name"]}
        own_or_new(options["benchmark"])
        if file.is_file() and mind2web_rows.is_rows(file):
            report = catalogue.import_task_rows(file, **given)
        else:
            with open_input(file) as source:
                report = catalogue.import_task_list(source, file.name, **given)
        finish(self, report, options["report"], counted(len(report.accepted), "task"))
