"""agreement (--submission ID | --benchmark SLUG [--imported]) [--rules published] [--json]"""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.reports import find_benchmark
from annotation.models import Benchmark, Submission
from evaluations import cases
from evaluations.agreement import Agreement, agreement
from evaluations.agreement_tables import tables
from evaluations.cases import Case, Rules
from evaluations.management.submissions import find_submission


class Command(BaseCommand):
    help = "Say how far people agree on their blind labels: the numbers of the pages, as tables or JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--submission", type=int, metavar="ID", help="this one, frozen or not")
        which.add_argument("--benchmark", metavar="SLUG", help="its frozen submissions, and labels made elsewhere")
        parser.add_argument("--imported", action="store_true", help="of a benchmark only the labels made elsewhere")
        parser.add_argument(
            "--rules",
            choices=[rules.value for rules in Rules],
            default=Rules.DEFAULT.value,
            help="published: the first listed label counts, and figures are rounded as in published tables",
        )
        parser.add_argument("--json", action="store_true", help="JSON instead of tables")

    def handle(self, *args: Any, **options: Any) -> None:
        rules = Rules(options["rules"])
        if options["submission"] is None:
            scope, found = self._of_benchmark(find_benchmark(options["benchmark"]), rules, options["imported"])
        elif options["imported"]:
            raise CommandError("--imported goes with --benchmark: a submission has no imported labels.", returncode=2)
        else:
            scope, found = self._of_submission(find_submission(options["submission"]))
        if not any(case.labels for case in found):
            raise CommandError(f"There are no labels: {scope}.")
        self._show(agreement(found, scope, rules), as_json=options["json"])

    def _of_submission(self, submission: Submission) -> tuple[str, list[Case]]:
        found = cases.of_submission(submission)
        if submission.frozen_at is None:
            complete = sum(case.complete for case in found)
            says = (
                f"Submission {submission.pk} is not frozen: {complete} of {len(found)} trajectories have every label."
            )
            self.stderr.write(says)
        return f"submission {submission.pk}: {submission}", found

    def _of_benchmark(self, benchmark: Benchmark, rules: Rules, imported: bool) -> tuple[str, list[Case]]:
        if imported:
            return f"labels of {benchmark.slug} made elsewhere", cases.of_imported(benchmark, rules)
        waiting = Submission.objects.filter(benchmark=benchmark, practice=False, frozen_at__isnull=True)
        if names := ", ".join(str(pk) for pk in waiting.order_by("pk").values_list("pk", flat=True)):
            self.stderr.write(f"Not frozen and left out: {names}. Name one with --submission to see it.")
        scope = f"frozen submissions of {benchmark.slug}, and labels made elsewhere"
        frozen = cases.reported_submissions(benchmark).order_by("pk")
        return scope, cases.of_benchmark(benchmark, frozen, rules=rules)

    def _show(self, found: Agreement, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(found.as_json(), ensure_ascii=False, indent=2, allow_nan=False))
            return
        self.stdout.write(f"Agreement of people: {found.scope}.\n")
        for table in tables(found):
            if table.rows:
                self.stdout.write(f"\n{table.as_text()}")
