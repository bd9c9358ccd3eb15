"""run_judge JUDGE --submission ID [--limit N [--seed S]] [--repeat K] [--max-cost USD] [--fresh] [--wait]"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from argparse import ArgumentTypeError
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from annotation.access import Role
from annotation.formats.printable import counted, printable
from annotation.management.reports import find_person, find_submission
from annotation.models import Person, Submission
from annotation.models.states import State
from annotation.workflow import Conflict
from judges import defining, planning, runs
from judges.models import Judge, JudgeRun, Service
from judges.planning import BATCH_TIME, MOST_SEED, Plan
from judges.runs import Progress
from judges.working.database import AWAY
from judges.working.worker import work

SLICE = 600.0  # seconds of work between two checks of the run's state
LOOK = 2.0  # seconds between two checks while other workers finish
BAR = 30  # characters of the progress bar


class Command(BaseCommand):
    help = "Print the estimate of a judge run, and start it. With --wait, work on it to its end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("judge", metavar="JUDGE", help="a judge's name, or name@version")
        parser.add_argument("--submission", required=True, type=int, metavar="ID", help="the number of the submission")
        parser.add_argument("--task-id", action="append", default=[], metavar="ID", help="only this task; repeatable")
        parser.add_argument("--state", choices=[state.value for state in State], help="only trajectories in this state")
        parser.add_argument("--level", metavar="LEVEL", help="only tasks of this level")
        parser.add_argument("--limit", type=parse_count, metavar="N", help="only the first N trajectories")
        parser.add_argument("--seed", type=parse_seed, metavar="S", help="with --limit: a random sample with this seed")
        parser.add_argument("--unjudged", action="store_true", help="only trajectories that this judge has not judged")
        parser.add_argument("--repeat", type=parse_count, default=1, metavar="K", help="judge each trajectory K times")
        parser.add_argument(
            "--max-cost",
            type=parse_dollars,
            metavar="USD",
            help="start no more calls once this is spent. A batch can exceed it by the difference between the "
            "estimate and the cost of its calls",
        )
        parser.add_argument("--fresh", action="store_true", help="do not reuse replies of earlier runs")
        parser.add_argument(
            "--service",
            choices=[name for name in Service.values if name],
            default=Service.STANDARD.value,
            help="half the price for the same requests. batch: submit the calls to the batch endpoint, which answers "
            "within 24 hours, once for each stage of the judge. flex: slower calls, which may have to wait. Half the "
            "price is assumed at every endpoint, for flex unless a reply states another service_tier",
        )
        parser.add_argument("--plan", action="store_true", help="print the estimate only")
        parser.add_argument(
            "--wait", action="store_true", help="process the run here until it ends, together with any workers"
        )
        parser.add_argument(
            "--as",
            dest="person",
            metavar="USERNAME",
            help="the maintainer who starts it, if the submission has several",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        submission, judge = find_submission(options["submission"]), find_judge(options["judge"])
        person = find_maintainer(submission, options["person"])
        selection = _build_selection(options, judge)
        try:
            planned = planning.plan(judge, submission, selection, options["repeat"], options["service"])
            self._print_plan(judge, planned, options["service"])
            if options["plan"]:
                return
            terms = {"repetitions": options["repeat"]} | {
                name: options[name] for name in ("max_cost", "fresh", "service")
            }
            run = runs.start(person, judge, submission, selection, **terms)
        except (Conflict, PermissionDenied) as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write(f"run {run.pk} has started.")
        if options["wait"]:
            self._work(run)
            self._finish(run)

    def _print_plan(self, judge: Judge, plan: Plan, service: str = "") -> None:
        time_needed = BATCH_TIME if service == Service.BATCH else f"about {plan.seconds:.0f} s of one worker"
        trajectories = counted(plan.trajectories, "trajectory", "trajectories")
        times = f", {plan.repetitions} times each" if plan.repetitions > 1 else ""
        again = f", at most {plan.calls_high} if calls are repeated" if plan.calls_high > plan.calls else ""
        cost = (
            "unknown: the model has no price"
            if plan.cost is None
            else f"about {_format_range(plan.cost, plan.cost_high, '.4f')} USD{plan.prices and f' ({plan.prices})'}"
        )
        prompt = _format_range(plan.prompt_tokens, plan.prompt_tokens_high, ",")
        completion = _format_range(plan.completion_tokens, plan.completion_tokens_high, ",")
        tokens = f"about {prompt} in, {completion} out" if plan.calls else "none"
        cheaper = f"\nservice:  {service}, half the price" if service else ""
        self.stdout.write(
            f"{judge} on {trajectories}{times} ({plan.already_judged} judged by it before)\n"
            f"calls:    {plan.calls} with {counted(plan.pictures, 'image')}{again}\n"
            f"tokens:   {tokens}\n"
            f"cost:     {cost}\n"
            f"time:     {time_needed}{cheaper}"
        )
        if plan.cost is None:
            self.stderr.write(
                f"warning: {printable(judge.model)} at the endpoint {judge.endpoint} has no price, so its cost is not "
                "known and a budget cannot be enforced. Set its prices under Judges, Prices and limits."
            )
        if plan.requirement is not None:
            pronoun = "them" if plan.requirement.may_miss else "it"
            effect = "lack them" if plan.requirement.may_miss else "will be unscored"
            unscored = f"; {plan.lacking} {effect}" if plan.lacking else ""
            met = f"{plan.meeting_requirement} of {plan.trajectories}"
            self.stdout.write(f"needs:    {plan.requirement.label}: {met} have {pronoun}{unscored}")

    # --- with --wait ---------------------------------------------------------------------------------------------

    def _work(self, run: JudgeRun) -> None:
        """Judge the open items, and wait for items leased by others. Ctrl C leaves the run to the workers."""
        watched = _Watch(self, run) if sys.stderr.isatty() else None
        try:
            worker = uuid.uuid4().hex
            while True:
                more = work(run.pk, worker, seconds=SLICE)
                if runs.load_progress(run).state not in ("waiting", "running"):
                    return
                if not more:
                    time.sleep(LOOK)
        except AWAY as error:
            raise CommandError(
                f"The database connection was lost: {error}. Run {run.pk} continues when a worker runs."
            ) from error
        except KeyboardInterrupt:
            raise CommandError(
                f"Stopped here. Run {run.pk} continues when a judge worker runs.", returncode=1
            ) from None
        finally:
            if watched is not None:
                watched.stop()

    def show(self, now: Progress, *, last: bool = False) -> None:
        settled = now.done + now.failed
        full = round(BAR * settled / now.total) if now.total else BAR
        cost = "" if now.cost is None else f", {now.cost:.4f} USD"
        line = f"\r[{'#' * full}{'.' * (BAR - full)}] {settled} of {now.total}, {now.failed} failed{cost}   "
        self.stderr.write(line, ending="\n" if last else "")
        self.stderr.flush()

    def _finish(self, run: JudgeRun, *, quiet: bool = False) -> None:
        """Print the outcome unless ``quiet``; exit with code 1 if the run did not finish, or an item failed."""
        now = runs.load_progress(run)
        run.refresh_from_db()
        cost = "unknown cost" if now.cost is None else f"{now.cost:.4f} USD"
        not_stated = f"{now.status_not_stated} with a status not stated, " if now.status_not_stated else ""
        (self.stderr if quiet else self.stdout).write(
            f"run {run.pk} is {now.state}: {now.done} of {now.total} judged, {now.unscored} of them unscored, "
            f"{not_stated}{now.failed} failed, {counted(now.calls, 'call')} paid, "
            f"{now.cache_hits} from the cache, {cost}."
        )
        for text, count in now.errors:
            self.stderr.write(f"failed: {count} x {text}")
        if now.state != "finished":
            raise CommandError(f"The run did not finish: {run.stopped or now.state}")
        if now.failed:
            raise CommandError(f"{now.failed} failed; retry them on the run's page or through the API.")


class _Watch:
    """Display of a run's progress on the terminal every second, from a thread with its own database connection."""

    def __init__(self, command: Command, run: JudgeRun) -> None:
        self.command, self.run = command, run
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._show, daemon=True)
        self.thread.start()

    def _show(self) -> None:
        try:
            while not self.ended.wait(1.0):
                self.command.show(runs.load_progress(self.run))
        finally:
            connection.close()

    def stop(self) -> None:
        self.ended.set()
        self.thread.join()
        self.command.show(runs.load_progress(self.run), last=True)


def _format_range(low: Any, high: Any, form: str = "") -> str:
    return format(low, form) if high in (None, low) else f"{low:{form}} to {high:{form}}"


def parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= 1_000_000:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def parse_seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > MOST_SEED:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 to {MOST_SEED}")
    return int(text)


def parse_dollars(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentTypeError(f"{text!r} is not an amount in US dollars") from None


def find_judge(name: str) -> Judge:
    try:
        return defining.find_judge(name)
    except LookupError as error:
        raise CommandError(str(error.args[0]), returncode=2) from error


def find_maintainer(submission: Submission, username: str | None) -> Person:
    """Return the named person, else the only maintainer of the submission."""
    if username is not None:
        return find_person(username)
    maintainers = submission.memberships.filter(role=Role.MAINTAINER, deactivated_at__isnull=True)
    people = [member.person for member in maintainers.select_related("person")[:2]]
    if len(people) != 1:
        has = "more than one maintainer" if people else "no maintainer"
        raise CommandError(f"The submission has {has}: use --as USERNAME to state who starts the run.", returncode=2)
    return people[0]


def _build_selection(options: dict[str, Any], judge: Judge) -> dict[str, Any]:
    chosen = {name: options[name] for name in ("state", "level", "limit") if options[name]}
    if options["seed"] is not None:
        chosen["seed"] = options["seed"]
    if options["task_id"]:
        chosen["task_ids"] = options["task_id"]
    return chosen | ({"unjudged": judge.pk} if options["unjudged"] else {})
