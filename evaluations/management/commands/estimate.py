"""estimate --submission ID [--judge NAME[@VERSION]] [--estimand runs|agent] [--json]"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.management.reports import find_submission
from evaluations import cases, estimate_tables, estimating
from evaluations.comparison import list_judges
from evaluations.management import reports
from evaluations.management.commands.compare import find_judge
from evaluations.statistics.estimates import Estimand
from judges.models import Judge


class Command(BaseCommand):
    help = "Print the success rate of a submission by people alone, combined with a judge, and by the judge only."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--submission", type=int, required=True, metavar="ID", help="frozen or not")
        parser.add_argument(
            "--judge",
            metavar="NAME[@VERSION]",
            help="the newest version, or that one (default: the plan's judge)",
        )
        parser.add_argument(
            "--estimand",
            type=Estimand,
            choices=list(Estimand),
            metavar="runs|agent",
            help="the rate of these trajectories, or that of the agent (default: as the sample plan, else runs)",
        )
        parser.add_argument("--json", action="store_true", help="JSON instead of tables")

    def handle(self, *args: Any, **options: Any) -> None:
        submission = find_submission(options["submission"])
        found_cases = cases.of_population(submission)
        if options["judge"] is not None:
            judge: Judge | None = find_judge(options["judge"], submission.benchmark)
        else:
            judges = list_judges(found_cases, benchmark=submission.benchmark.slug)
            judge = estimating.judge_of_plan(submission, judges)
        population = estimating.load_population(submission, judge, found_cases)
        with reports.refusals():
            found = estimating.estimate(population, options["estimand"])
        if submission.frozen_at is None:
            decided = f"{found.n_labelled} of {found.n_total} trajectories are decided"
            self.stderr.write(f"Submission {submission.pk} is not frozen: {decided}.")
            if (progress := estimating.find_progress(submission)) is not None:
                self.stderr.write(progress.sentence)
        heading = f"Success rate: submission {submission.pk}: {submission}."
        told = found.as_json() if options["json"] else None
        reports.show(self, told, heading, estimate_tables.tables(found))
