"""agreement (--submission ID | --benchmark SLUG [--imported]) [--agent A] [--level L] [--website W]
[--rules published] [--json]"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.reports import find_benchmark, find_submission
from annotation.models import Submission
from evaluations import cases
from evaluations.agreement import agreement
from evaluations.agreement_tables import tables
from evaluations.cases import Case
from evaluations.management import reports


class Command(BaseCommand):
    help = "Print how far annotators agree on their blind labels, as tables or JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--submission", type=int, metavar="ID", help="only this submission, frozen or not")
        which.add_argument("--benchmark", metavar="SLUG", help="its frozen submissions and imported labels")
        parser.add_argument("--imported", action="store_true", help="only imported labels")
        reports.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        filters = reports.filters_of(options)
        if options["submission"] is None:
            benchmark = find_benchmark(options["benchmark"])
            scope, every = reports.of_benchmark(self, benchmark, filters, imported=options["imported"])
        elif options["imported"]:
            raise CommandError("Use --imported with --benchmark: a submission has no imported labels.", returncode=2)
        else:
            scope, every = self._of_submission(find_submission(options["submission"]))
        scope, chosen = reports.narrowed(filters, scope, every)
        if not any(case.labels for case in chosen):
            raise CommandError(f"There are no labels: {scope}.")
        found = agreement(chosen, scope, filters.rules)
        heading = f"Agreement of people: {found.scope}."
        reports.show(self, found.as_json() if options["json"] else None, heading, tables(found))

    def _of_submission(self, submission: Submission) -> tuple[str, list[Case]]:
        found = cases.of_submission(submission)
        if note := cases.describe_figures(submission):
            self.stderr.write(note)
        if submission.frozen_at is None:
            complete = sum(case.complete for case in found)
            says = (
                f"Submission {submission.pk} is not frozen: {complete} of {len(found)} trajectories have every label."
            )
            self.stderr.write(says)
        return f"submission {submission.pk}: {submission}", found
