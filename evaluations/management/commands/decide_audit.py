"""decide_audit ID --outcome accept|query|reject --reason TEXT --as USERNAME"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.reports import find_person
from annotation.workflow import Incomplete
from evaluations import audit_rules
from evaluations.auditing import actions
from evaluations.management.reports import find_audit
from evaluations.models import AuditDecision


class Command(BaseCommand):
    help = "Record a decision about an audited submission. The newest decision counts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("audit", type=int, metavar="ID", help="the number of the audit")
        parser.add_argument("--outcome", required=True, choices=AuditDecision.Outcome.values)
        parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, printed in the report")
        parser.add_argument("--as", dest="person", required=True, metavar="USERNAME", help="the auditor")

    def handle(self, *args: Any, **options: Any) -> None:
        audit, person = find_audit(options["audit"]), find_person(options["person"])
        try:
            made = actions.decide(person, audit, options["outcome"], options["reason"])
        except Incomplete as incomplete:
            raise CommandError(str(incomplete), returncode=2) from incomplete
        except PermissionDenied as error:
            raise CommandError(f"{person} cannot read audit {audit.pk}: {error}") from error
        if (rule := audit_rules.find_progress(audit)) is not None:
            self.stdout.write(f"{rule.sentence} {rule.known} {rule.errors}")
        against = f", against the rule: {made.rule_said}" if made.against_rule else ""
        self.stdout.write(f"audit {audit.pk}: {made}{against}.")
