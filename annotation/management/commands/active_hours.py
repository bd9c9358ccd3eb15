"""active_hours (--submission ID | --benchmark SLUG) [--first DATE] [--last DATE] [--daily]"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import active_hours
from annotation.active_hours import Span
from annotation.management.reports import find_benchmark, find_submission
from annotation.models import Submission


class Command(BaseCommand):
    help = "Print the labels and the active hours of each annotator (pseudonyms), as CSV."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--submission", type=int, metavar="ID", help="only this submission")
        which.add_argument("--benchmark", metavar="SLUG", help="each of its submissions")
        parser.add_argument("--first", type=read_day, metavar="DATE", help="the first day (UTC), such as 2026-11-01")
        parser.add_argument("--last", type=read_day, metavar="DATE", help="the last day (UTC)")
        parser.add_argument("--daily", action="store_true", help="one row for each day")

    def handle(self, *args: Any, **options: Any) -> None:
        span = Span(options["first"], options["last"], options["daily"])
        if span.first and span.last and span.first > span.last:
            raise CommandError("The first day is after the last. Swap them.", returncode=2)
        if options["submission"] is not None:
            chosen: Iterable[Submission] = [find_submission(options["submission"])]
        else:
            chosen = Submission.objects.filter(benchmark=find_benchmark(options["benchmark"]), audited=False)
        self.stdout.write(active_hours.write_csv(active_hours.measure_submissions(chosen, span)), ending="")


def read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a day; write it as 2026-11-01") from error
