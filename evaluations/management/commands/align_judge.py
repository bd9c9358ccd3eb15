"""align_judge JUDGE --benchmark SLUG [--rounds N] [--max-cost USD] [--max-calls N] [--plan] [--look] [--wait]
[--json]"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.http import Http404

from annotation.access import Role
from annotation.formats.printable import counted
from annotation.management.reports import find_person
from annotation.models import Benchmark, Person
from annotation.workflow import Conflict
from evaluations import jobs
from evaluations.judge_alignment import forecasting, looks, reporting, starting, steps
from evaluations.judge_alignment.optimisers import OPTIMISERS, PLAIN
from judges.management.commands import run_judge
from judges.models import Alignment, JudgeRun, LookAtTest
from judges.working.worker import work

# This command is not in judges: its figures use the statistics of evaluations, which judges may not import.


class Command(BaseCommand):
    help = (
        "Rewrite the criteria of a judge so that it agrees better with the final verdicts of people. The split of the "
        "tasks is drawn and locked at the first alignment of a benchmark. With --wait, work until it ends; a "
        "repeated command continues one that was interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("judge", metavar="JUDGE", help="a judge's name, or name@version")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="the benchmark's short name")
        parser.add_argument(
            "--rounds",
            type=run_judge.parse_count,
            default=5,
            metavar="N",
            help=f"rewritten versions (default 5, at most {starting.MOST_ROUNDS})",
        )
        parser.add_argument(
            "--optimiser", choices=sorted(OPTIMISERS), default=PLAIN, help="the method that rewrites the criteria"
        )
        parser.add_argument(
            "--max-cost", type=run_judge.parse_dollars, metavar="USD", help="start no more calls once this is spent"
        )
        parser.add_argument("--max-calls", type=run_judge.parse_count, metavar="N", help="make at most N paid calls")
        parser.add_argument("--plan", action="store_true", help="print the estimate only")
        parser.add_argument("--wait", action="store_true", help="work here until the alignment ends")
        parser.add_argument(
            "--look",
            action="store_true",
            help="with --wait: test the best version on the test split; each look is counted",
        )
        parser.add_argument("--json", action="store_true", help="JSON instead of text")
        parser.add_argument("--as", dest="person", metavar="USERNAME", help="the maintainer who starts the alignment")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["look"] and not options["wait"]:
            raise CommandError("--look needs --wait: the test follows the alignment.", returncode=2)
        judge = run_judge.find_judge(options["judge"])
        benchmark = Benchmark.objects.filter(slug=options["benchmark"]).first()
        if benchmark is None:
            raise CommandError(f"The benchmark {options['benchmark']} does not exist.", returncode=2)
        person = _find_maintainer(benchmark, options["person"])
        terms = {name: options[name] for name in ("rounds", "max_cost", "max_calls", "optimiser")}
        try:
            starting.find_benchmark(person, benchmark.slug)
            if options["plan"]:
                found = forecasting.forecast(person, judge, benchmark, options["rounds"])
                self.stdout.write(json.dumps(found.as_json(), indent=2) if options["json"] else str(found))
                return
            alignment = starting.find_unfinished(
                person, judge, benchmark, terms["rounds"], terms["optimiser"], look=options["look"]
            )
            if alignment is None:
                alignment = starting.start(person, judge, benchmark, jobs.advance_alignment.delay, **terms)
            elif alignment.state == "stopped" or _has_stopped_look(alignment):
                starting.resume(
                    person, alignment, jobs.advance_alignment.delay, options["max_cost"], options["max_calls"]
                )
            elif alignment.state == "finished" and options["max_cost"] is not None:
                starting.raise_budget(alignment, options["max_cost"])
            self.stderr.write(f"alignment {alignment.pk} has started.")
            if options["wait"]:
                _work(alignment)
                if options["look"] and alignment.state == "finished":
                    _look(person, alignment)
        except (Conflict, Http404, PermissionDenied, steps.Stopped) as refused:
            raise CommandError(str(refused)) from refused
        self._show(alignment, as_json=options["json"])
        if alignment.state == "stopped":
            raise CommandError(f"The alignment stopped: {alignment.stopped}")

    def _show(self, alignment: Alignment, *, as_json: bool) -> None:
        found = reporting.describe(alignment)
        if as_json:
            self.stdout.write(json.dumps(found, indent=2))
            return
        self.stdout.write(f"{alignment} is {found['state']}. {found['reason']}".strip())
        for each in found["versions"]:
            self.stdout.write(f"version {each['number']}, {each['judge'] or 'no text'}: {each['reason'] or 'open'}")
            for kappa in reporting.format_changes(each["development"], base=not each["number"])[:1]:
                self.stdout.write(f"  kappa on development tasks: {kappa}")
        self.stdout.write(f"best: {found['best'] or 'none yet'}; {counted(found['calls'], 'paid call')}")
        self.stdout.write(f"{counted(found['versions_tried'], 'version')} tried on this split")
        self.stdout.write(f"the test split was looked at {counted(found['looks_at_test'], 'time')}.")
        for look in found["looks"]:
            if look["test"] is not None:
                kappa = reporting.format_changes(look["test"])[0]
                self.stdout.write(f"test, version {look['version']}: kappa {kappa}")


def _has_stopped_look(alignment: Alignment) -> bool:
    return (found := looks.find_open(alignment)) is not None and bool(looks.find_reason(found))


def _work(alignment: Alignment) -> None:
    worker = uuid.uuid4().hex
    while (step := steps.take_step(alignment.pk, worker)) is not steps.Step.ENDED:
        if step is steps.Step.WAITING:
            _judge(alignment, worker)
    alignment.refresh_from_db()


def _look(person: Person, alignment: Alignment) -> None:
    best = steps.find_best(alignment)
    if best is None or best.number == 0:
        return
    waiting: LookAtTest = looks.find_open(alignment) or looks.look(person, best)
    while not looks.evaluate(waiting):
        _judge(alignment, uuid.uuid4().hex)


def _judge(alignment: Alignment, worker: str) -> None:
    """Work on the open runs of an alignment; wait a while if another worker has them, or a step."""
    busy = JudgeRun.objects.filter(alignment_run__version__alignment=alignment, finished_at=None, cancelled_at=None)
    pks = list(busy.filter(stopped="").values_list("pk", flat=True))
    for pk in pks:
        work(pk, worker, seconds=run_judge.SLICE)
    if not pks or busy.filter(pk__in=pks, stopped="").exists():
        time.sleep(run_judge.LOOK)


def _find_maintainer(benchmark: Benchmark, username: str | None) -> Person:
    """Return the named person, else the only maintainer of the benchmark's submissions."""
    if username is not None:
        return find_person(username)
    active = {"memberships__role": Role.MAINTAINER, "memberships__deactivated_at": None}
    people = Person.objects.filter(memberships__submission__benchmark=benchmark, **active).distinct()[:2]
    if len(people) != 1:
        has = "more than one maintainer" if people else "no maintainer"
        raise CommandError(f"The benchmark has {has}: use --as USERNAME to state who starts it.", returncode=2)
    return people[0]
