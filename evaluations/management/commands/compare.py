"""compare --benchmark SLUG [--submission ID | --imported] --judge NAME[@VERSION] [--rules published] [--json]"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.tasks import nearest
from annotation.management.reports import find_benchmark
from annotation.models import Benchmark, Submission
from evaluations import cases
from evaluations.cases import Case, Rules
from evaluations.comparison import Comparison, compare, on_trajectories
from evaluations.comparison_tables import tables
from evaluations.management.submissions import find_submission
from judges.defining import judge_named
from judges.models import Judge


class Command(BaseCommand):
    help = "Compare a judge with people: the numbers of the pages, as tables or JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--judge", required=True, metavar="NAME[@VERSION]", help="the newest version, or that one")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--submission", type=int, metavar="ID", help="only this one, frozen or not")
        which.add_argument("--imported", action="store_true", help="only labels made elsewhere, without any review")
        parser.add_argument(
            "--rules",
            choices=[rules.value for rules in Rules],
            default=Rules.DEFAULT.value,
            help="published: the first listed label counts, and figures are rounded as in published tables",
        )
        parser.add_argument("--json", action="store_true", help="JSON instead of tables")

    def handle(self, *args: Any, **options: Any) -> None:
        benchmark, rules = find_benchmark(options["benchmark"]), Rules(options["rules"])
        judge = find_judge(options["judge"])
        if options["submission"] is not None:
            scope, found = self._of_submission(benchmark, options["submission"])
        elif options["imported"]:
            scope, found = f"labels of {benchmark.slug} made elsewhere", cases.of_imported(benchmark, rules)
        else:
            scope, found = self._of_benchmark(benchmark, rules)
        everywhere = Submission.objects.filter(benchmark=benchmark, practice=False)
        comparison = compare(judge, on_trajectories(found, everywhere), scope, benchmark=benchmark.slug, rules=rules)
        require_something(comparison, found)
        self._show(comparison, as_json=options["json"])

    def _of_submission(self, benchmark: Benchmark, pk: int) -> tuple[str, list[Case]]:
        submission = find_submission(pk)
        if submission.benchmark != benchmark:
            says = f"Submission {pk} is of the benchmark {submission.benchmark.slug}, not of {benchmark.slug}."
            raise CommandError(says, returncode=2)
        found = cases.of_submission(submission)
        if submission.frozen_at is None:
            decided = sum(case.final is not None for case in found)
            self.stderr.write(f"Submission {pk} is not frozen: {decided} of {len(found)} trajectories are decided.")
        if not any(case.labels for case in found):
            self.stderr.write("Labels made elsewhere count for no submission: leave --submission out to compare them.")
        return f"submission {pk}: {submission}", found

    def _of_benchmark(self, benchmark: Benchmark, rules: Rules) -> tuple[str, list[Case]]:
        frozen = cases.reported_submissions(benchmark)
        waiting = Submission.objects.filter(benchmark=benchmark, practice=False, frozen_at__isnull=True)
        if names := ", ".join(str(pk) for pk in waiting.order_by("pk").values_list("pk", flat=True)):
            self.stderr.write(f"Not frozen and left out: {names}. Name one with --submission to see it.")
        scope = f"frozen submissions of {benchmark.slug}, and labels made elsewhere"
        return scope, cases.of_benchmark(benchmark, frozen.order_by("pk"), rules=rules)

    def _show(self, comparison: Comparison, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(comparison.as_json(), ensure_ascii=False, indent=2, allow_nan=False))
            return
        self.stdout.write(f"{comparison.judge} beside people: {comparison.scope}.\n")
        for table in tables(comparison):
            if table.rows:
                self.stdout.write(f"\n{table.as_text()}")


def find_judge(name: str) -> Judge:
    try:
        return judge_named(name)
    except LookupError as error:
        known = set(Judge.objects.values_list("name", flat=True))
        near = nearest(name.partition("@")[0], known)
        says = f"{error} Did you mean {near}?" if near else str(error)
        raise CommandError(says, returncode=2) from error


def require_something(comparison: Comparison, found: Sequence[Case]) -> None:
    """Refuse (exit 1) a comparison of nothing, and say what is missing: labels, decisions or judgments."""
    labelled = sum(bool(case.labels) for case in found)
    decided = sum(case.final is not None for case in found)
    if not labelled:
        raise CommandError(f"There is nothing to compare: there are no labels ({comparison.scope}).")
    if not decided:
        raise CommandError(f"There is nothing to compare: none of the {labelled} labelled cases is decided.")
    if not any(row.n or row.unscored or row.errors for row in comparison.overall):
        says = f"{comparison.judge} was never asked about any of the {decided} decided cases"
        raise CommandError(f"There is nothing to compare: {says} ({comparison.scope}).")
