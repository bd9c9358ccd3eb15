"""plan_sample --submission ID [--judge NAME[@VERSION]] (--half-width X | --budget REVIEWS | --power DIFFERENCE |
--accept RATE [--error ALPHA]) [--may-stop] [--estimand runs|agent] [--expected-rate RATE]
[--sensitivity S --specificity T] [--review-usd USD] [--use --as USERNAME] [--json]"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import workflow
from annotation.management.reports import find_person, find_submission
from evaluations import cases, estimate_tables, estimating, sample_planning
from evaluations.management import reports
from evaluations.management.commands.compare import find_judge
from evaluations.sample_planning import POWER, Question
from evaluations.statistics.estimates import Estimand

STATED = (
    "half_width",
    "budget",
    "power",
    "accept",
    "error",
    "expected_rate",
    "sensitivity",
    "specificity",
    "review_usd",
)


class Command(BaseCommand):
    help = "Plan how many trajectories of a submission people label, and of which strata; with --use, draw them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--submission", type=int, required=True, metavar="ID", help="the submission to review")
        parser.add_argument(
            "--judge", metavar="NAME[@VERSION]", help="the judge with verdicts on it; without it people alone"
        )
        goal = parser.add_mutually_exclusive_group(required=True)
        goal.add_argument("--half-width", type=float, metavar="X", help="half the width of the interval, such as 0.05")
        goal.add_argument("--budget", type=int, metavar="REVIEWS", help="labels by one person that you can pay for")
        goal.add_argument(
            "--power",
            type=float,
            metavar="DIFFERENCE",
            help=f"show this difference from another agent with probability {POWER:g}",
        )
        goal.add_argument("--accept", type=float, metavar="RATE", help="show that the success rate is above this one")
        parser.add_argument(
            "--may-stop",
            action="store_true",
            help="with --half-width: labelling may stop once the interval is that narrow (see stop_sampling)",
        )
        parser.add_argument(
            "--error",
            type=float,
            metavar="ALPHA",
            help="with --accept: probability of a wrong acceptance (default 0.05)",
        )
        parser.add_argument(
            "--estimand",
            type=Estimand,
            choices=list(Estimand),
            default=Estimand.RUNS,
            metavar="runs|agent",
            help="the rate of these trajectories (default), or that of the agent",
        )
        parser.add_argument(
            "--expected-rate",
            type=float,
            metavar="RATE",
            help="the success rate that you expect, without a judge (default: 0.5, which needs the most labels)",
        )
        for name in ("sensitivity", "specificity"):
            parser.add_argument(
                f"--{name}",
                type=float,
                metavar="RATE",
                help="expected of the judge (default: measured on earlier submissions of the benchmark, else assumed)",
            )
        parser.add_argument("--review-usd", type=float, metavar="USD", help="the price of a review")
        parser.add_argument("--use", action="store_true", help="draw the sample; this cannot be changed")
        parser.add_argument(
            "--as", dest="person", metavar="USERNAME", help="the maintainer who uses the plan; needed with --use"
        )
        parser.add_argument("--json", action="store_true", help="JSON instead of tables")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["use"] != (options["person"] is not None):
            raise CommandError("--use and --as USERNAME belong together.", returncode=2)
        submission = find_submission(options["submission"])
        judge = find_judge(options["judge"], submission.benchmark) if options["judge"] is not None else None
        question = Question(estimand=options["estimand"], **{name: options[name] for name in (*STATED, "may_stop")})
        earlier = list(cases.earlier_submissions(submission))
        with reports.refusals():
            population = estimating.load_population(submission, judge)
            planned, terms = sample_planning.plan_sample(population, question, earlier)
            if options["use"]:
                workflow.make_plan(find_person(options["person"]), submission, terms)
        if planned.refusal and not options["use"]:
            self.stderr.write(f"This plan cannot be used. {planned.refusal}")
        told = planned.as_json() if options["json"] else None
        heading = "\n".join(
            [f"Planned sample: submission {submission.pk}: {submission}.", *estimate_tables.summary(planned)]
        )
        reports.show(self, told, heading, [estimate_tables.planned_strata(planned)])
