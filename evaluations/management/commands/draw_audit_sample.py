"""draw_audit_sample ID --size N | --rule accept [--tolerance X] --max-size N [--seed S] [--as USERNAME]"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.formats.printable import counted
from annotation.management.reports import find_person
from evaluations import audit_rules
from evaluations.auditing import actions
from evaluations.management.reports import find_audit, refusals, seed_told


class Command(BaseCommand):
    help = (
        "Draw the trajectories of an audit that are labelled again blind. A recorded seed draws them, once per audit."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("audit", type=int, metavar="ID", help="the number of the audit")
        size = parser.add_mutually_exclusive_group(required=True)
        size.add_argument("--size", type=int, metavar="N", help="how many trajectories")
        size.add_argument("--max-size", type=int, metavar="N", help="with --rule: the largest number of trajectories")
        parser.add_argument(
            "--rule",
            choices=[audit_rules.ACCEPT],
            help="accept: a rule says accept, query or reject while people label, and labelling may stop then",
        )
        parser.add_argument(
            "--tolerance",
            type=float,
            metavar="X",
            help="with --rule: a claimed rate that is too high by X or more is accepted in at most 5% of audits "
            f"(default {audit_rules.TOLERANCE:g}, which is 10 points)",
        )
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
            size, tolerance = audit_rules.read_terms(**{name: options[name] for name in audit_rules.TERMS})
            sample = actions.draw(audit, person, size, options["seed"], tolerance)
        drawn = counted(audit.size or 0, "trajectory", "trajectories")
        self.stdout.write(f"submission {sample.pk}: {drawn} drawn with the seed {seed_told(audit)}.")
        if audit.tolerance is not None:
            self.stdout.write(audit_rules.describe_errors(audit.tolerance))
