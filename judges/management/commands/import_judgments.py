"""import_judgments FILE --benchmark SLUG --judge NAME"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.formats.printable import counted
from annotation.management.reports import find_own_benchmark, finish, read_input
from judges import imports


class Command(BaseCommand):
    help = "Import judgments from elsewhere: JSON Lines, CSV, or results of the official WebJudge runner."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the file of judgments")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="the benchmark's short name")
        parser.add_argument("--judge", required=True, metavar="NAME", help="the judge's name")
        parser.add_argument("--agent", default="", metavar="NAME", help="the agent, if the file does not name it")
        parser.add_argument("--report", type=Path, metavar="FILE.json", help="write the report to this file")

    def handle(self, *args: Any, **options: Any) -> None:
        outcome = imports.import_judgments(
            read_input(options["file"]),
            options["file"].name,
            benchmark=find_own_benchmark(options["benchmark"]),
            judge=options["judge"],
            agent=options["agent"],
        )
        judgments = counted(sum(outcome.judges.values()), "judgment")
        tasks = counted(len(outcome.report.accepted), "task")
        finish(self, outcome.report, options["report"], f"{judgments} of {tasks}")
        for name, number in outcome.judges.items():
            self.stdout.write(f"{name}: {counted(number, 'judgment')}.")
        self.stdout.write(
            f"{outcome.new} new, {outcome.known} imported before, {outcome.linked} newly linked to a trajectory."
        )
