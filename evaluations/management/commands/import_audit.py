"""import_audit BUNDLE --as USERNAME [--keys FILE|HEX] [--anchors FILE] [--chain ID] [--head HASH]... [--tasks FILE]"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.reports import find_person
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.management.reports import refusals, show_problems
from evaluations.verifier import main


class Command(BaseCommand):
    help = "Open an evidence bundle as an audit. If the audit exists, check the bundle again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="the zip, or the folder it was unpacked to")
        parser.add_argument("--as", dest="person", required=True, metavar="USERNAME", help="the auditor")
        main.add_known_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        person, path = find_person(options["person"]), options["bundle"]
        if not path.exists():
            raise CommandError(f"{path} does not exist.", returncode=2)
        try:
            with refusals():
                given = main.read_given(options)
                audit = open_bundle(path, person, given, progress=main.ProgressLine(sys.stderr))
        except AuditRefused as refused:
            show_problems(self, "refused", refused.problems[1:])
            raise CommandError(f"The bundle was not opened. {refused}") from refused
        failed = [each["name"] for each in audit.newest_check.failed]
        says = f"these checks failed: {', '.join(failed)}" if failed else "no check failed"
        again = "checked again, " if audit.checks.count() > 1 else ""
        self.stdout.write(f"audit {audit.pk}: {again}submission {audit.submission_id}, {audit.submission}; {says}.")
