"""doctor [--url URL] [--json]"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import doctor


class Command(BaseCommand):
    help = "Check settings, services, workers and, with --url, the web address; exit 1 if anything is wrong."
    requires_system_checks = []  # it shows them itself

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--url", default="", help="address under which people reach this instance")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        url = options["url"]
        if url and not url.startswith(("http://", "https://")):
            raise CommandError("--url must begin with http:// or https://", returncode=2)
        checks = doctor.build_checks(url)
        if options["json"]:
            outcomes = doctor.run(checks)
            self.stdout.write(doctor.as_json(outcomes))
        else:
            outcomes = doctor.run(checks, lambda outcome: self.stdout.write(doctor.describe(outcome)))
        if faults := sum(outcome.result == "fault" for outcome in outcomes):
            self.stdout.flush()
            if options["json"]:
                sys.exit(1)
            raise CommandError(f"Faults: {faults}.")
