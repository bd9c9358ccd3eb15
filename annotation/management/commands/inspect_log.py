"""inspect_log PATH [--json]"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.packages import read_trajectories
from annotation.formats.registry import describe_files, open_packages
from annotation.management.reports import make_progress
from annotation.records import Conversion, ImportReport, TrajectoryRecord


class Command(BaseCommand):
    help = f"Show what an import of PATH would give, without a benchmark and without importing: {describe_files()}."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="the log or package: a file or a folder")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["path"].exists():
            raise CommandError(f"{options['path']} does not exist.", returncode=2)
        report, records = ImportReport(), []
        with open_packages(options["path"], report, make_progress(self)) as packages:
            for found in (each for package in packages for each in read_trajectories(package)):
                if found.problems:
                    report.reject(found.task_id, *found.problems)
                elif found.record is not None:
                    records.append(found.record)
        conversion = report.conversion or Conversion(", ".join(sorted({record.source_format for record in records})))
        described = conversion.as_json() | {"trajectories": [_describe(record) for record in records]}
        if options["json"]:
            self.stdout.write(json.dumps(described, ensure_ascii=False, indent=2))
        else:
            self._print(conversion, records)
        for task_id, problems in report.rejected.items():
            for problem in problems:
                self.stderr.write(f"{task_id or options['path'].name}: {problem.message}")
        if report.rejected or not records:
            raise CommandError("Not everything can be imported." if records else "Nothing can be imported.")

    def _print(self, conversion: Conversion, records: list[TrajectoryRecord]) -> None:
        version = f" {', '.join(sorted(conversion.versions))}" if conversion.versions else ""
        self.stdout.write(f"Format: {conversion.format or 'unknown'}{version}")
        for name in ("carried", "derived", "lost"):
            counts = getattr(conversion, name)
            said = [f"{what} {count:,}" for what, count in counts.items() if count]
            self.stdout.write(f"{name.capitalize()}: {', '.join(said) or 'nothing'}")
        for described in map(_describe, records):
            self.stdout.write("{id}: {steps} steps, {screenshots} screenshots, {clicks} points".format(**described))


def _describe(record: TrajectoryRecord) -> dict[str, Any]:
    return {
        "id": record.task_id,
        "steps": sum(1 for step in record.steps if step.action),
        "screenshots": sum(1 for step in record.steps if step.screenshot),
        "clicks": sum(1 for step in record.steps if step.click),
        "answer": record.final_answer,
        "task": record.task_text or None,
    }
