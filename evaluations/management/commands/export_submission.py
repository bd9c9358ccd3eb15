"""export_submission ID --format human-label|labels|trajectories-v2 --output PATH [--partial]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.printable import counted
from annotation.management.reports import find_submission
from evaluations.exports import ExportFormat, ExportRefused, prepare, write
from evaluations.management.reports import refusals, show_problems


class Command(BaseCommand):
    help = "Write an export of a submission. Refused while something is missing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("submission", type=int, metavar="ID", help="the number of the submission")
        parser.add_argument("--format", required=True, choices=[f.value for f in ExportFormat])
        parser.add_argument(
            "--output",
            required=True,
            type=Path,
            metavar="PATH",
            help="a file; for trajectories-v2 a new folder unless it ends in .zip",
        )
        parser.add_argument(
            "--partial", action="store_true", help="export the final verdicts only; the file states that it is partial"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        submission = find_submission(options["submission"])
        try:
            with refusals():
                choice = ExportFormat(options["format"])
                export = prepare(submission, choice, partial=options["partial"], check_files=True)
                show_problems(self, "warning", export.warnings)
                write(export, options["output"])
        except ExportRefused as refused:
            show_problems(self, "refused", refused.problems)
            raise CommandError(f"{counted(len(refused.problems), 'problem')}; nothing was written.") from refused
        show_problems(self, "left out", export.missing)
        partial = "partial " if export.partial else ""
        self.stdout.write(f"{options['output']}: {partial}{export.format} of {submission}.")
