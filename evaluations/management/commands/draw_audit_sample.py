"""draw_audit_sample ID --size N [--seed S] [--as USERNAME]"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.formats.printable import counted
from annotation.management.reports import find_person
from evaluations.auditing import actions
from evaluations.management.reports import find_audit, refusals, seed_told


class Command(BaseCommand):
    help = (
        "Draw the trajectories of an audit that are labelled again blind. A recorded seed draws them, once per audit."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("audit", type=int, metavar="ID", help="the number of the audit")
        parser.add_argument("--size", type=int, required=True, metavar="N", help="how many trajectories")
        parser.add_argument("--seed", metavar="S", help="your own seed; reports then say that you chose it")
        parser.add_argument(
            "--as",
            dest="person",
            metavar="USERNAME",
            help="the auditor who maintains the sample, if not the one who opened the audit",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        audit = find_audit(options["audit"])
        person = find_person(options["person"]) if options["person"] else audit.opened_by
        with refusals():
            sample = actions.draw(audit, person, options["size"], options["seed"])
        drawn = counted(audit.size or 0, "trajectory", "trajectories")
        self.stdout.write(f"submission {sample.pk}: {drawn} drawn with the seed {seed_told(audit)}.")
