"""judge_lab JUDGE --submission ID [--limit N] [--operators A,B] [--seed S] [--max-cost USD] [--plan] [--json]"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from annotation.formats.printable import counted
from annotation.management.reports import find_submission
from annotation.models import Person, Submission
from annotation.workflow import Conflict
from evaluations import robustness
from evaluations.management import reports
from judges import attacking, runs
from judges.lab import OPERATORS
from judges.management.commands import run_judge
from judges.models import Judge, JudgeRun

# This command is not in judges: its report uses the statistics of evaluations, which judges may not import.


class Command(run_judge.Command):
    help = (
        "Attack a judge: change copies of trajectories with the final verdict failure, and report how its verdicts "
        "change. "
        "A repeated command continues a run that was interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("judge", metavar="JUDGE", help="a judge's name, or name@version")
        parser.add_argument(
            "--submission", required=True, type=int, metavar="ID", help="the number of a frozen submission"
        )
        parser.add_argument(
            "--limit", type=run_judge.parse_count, metavar="N", help="only a random sample of N failures"
        )
        parser.add_argument(
            "--operators",
            default="",
            metavar="A,B",
            help=f"only these changes; without it all: {', '.join(OPERATORS)}",
        )
        parser.add_argument(
            "--seed",
            type=run_judge.parse_seed,
            default=0,
            metavar="S",
            help="of the sample and the changes (default 0)",
        )
        parser.add_argument(
            "--max-cost", type=run_judge.parse_dollars, metavar="USD", help="start no more calls once this is spent"
        )
        parser.add_argument("--plan", action="store_true", help="print the estimate only")
        parser.add_argument("--json", action="store_true", help="JSON instead of a table")
        parser.add_argument(
            "--as",
            dest="person",
            metavar="USERNAME",
            help="the maintainer who starts it, if the submission has several",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        submission, judge = find_submission(options["submission"]), run_judge.find_judge(options["judge"])
        person = run_judge.find_maintainer(submission, options["person"])
        selection = {"limit": options["limit"]} if options["limit"] else {}
        names = [name.strip() for name in options["operators"].split(",") if name.strip()]
        try:
            planned, asked = attacking.plan(judge, submission, selection, names, options["seed"])
            if not options["json"]:
                self._print_plan(judge, planned)
                self._print_changes(asked, planned.trajectories, Counter(number for _, number in planned.items))
            if options["plan"]:
                if options["json"]:
                    self.stdout.write(json.dumps(planned.as_json() | {"robustness": asked}, indent=2))
                return
            run = _continue(person, judge, submission, selection, asked, options["max_cost"])
            run = run or runs.start_attack(
                person, judge, submission, selection, names, seed=options["seed"], max_cost=options["max_cost"]
            )
        except (Conflict, PermissionDenied) as refused:
            raise CommandError(str(refused)) from refused
        self.stderr.write(f"run {run.pk} has started.")
        self._work(run)
        self._finish(run, quiet=options["json"])
        try:
            card = robustness.store_card(run)
        except Conflict as refused:
            raise CommandError(str(refused)) from refused
        about = {
            "judge": str(judge),
            "fingerprint": card.fingerprint,
            "submission": submission.pk,
            "run": run.pk,
            "operators_version": card.operators_version,
            "seed": card.seed,
            "made_at": card.made_at.isoformat(),
        }
        failures = counted(card.report["trajectories"], "failure")
        heading = f"Robustness of {judge} on {failures} of submission {submission.pk}: {submission}."
        reports.show(self, about | card.report if options["json"] else None, heading, robustness.tables(card.report))

    def _print_changes(self, asked: Mapping[str, Any], trajectories: int, numbers: Counter[int]) -> None:
        self.stdout.write("changes:")
        for number, name in enumerate(asked["operators"], 2):
            left_out = asked["left_out"].get(name, {})
            why = "; ".join(f"{count} left out: {reason}" for reason, count in left_out.items())
            self.stdout.write(f"  {name}: {numbers[number]} of {trajectories}{f' ({why})' if why else ''}")


def _continue(
    person: Person,
    judge: Judge,
    submission: Submission,
    selection: Mapping[str, Any],
    asked: Mapping[str, Any],
    max_cost: Any,
) -> JudgeRun | None:
    """Return the newest run of the same test without a card, ready to continue; None if there is none.

    So an interrupted command pays for no call again, and its items are not judged by two runs.
    """
    rows = JudgeRun.objects.filter(judge=judge, submission=submission, cancelled_at=None, card=None)
    rows = rows.filter(created_at__gte=submission.frozen_at).exclude(robustness=None)
    same = (run for run in rows if run.robustness == asked and run.selection == selection)
    if (run := next(same, None)) is None:
        return None
    with transaction.atomic():  # workers are called when the budget is stored, too
        if run.items.filter(failed_at__isnull=False).exists():
            runs.retry_failed(person, run)
        if max_cost is not None and run.state in ("waiting", "running"):
            runs.pause(person, run)
        if run.state in ("paused", "stopped"):
            runs.resume(person, run, max_cost)
    return run
