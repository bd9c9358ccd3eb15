"""prune_calls --before DATE [--run ID]"""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_date, parse_datetime

from annotation.formats.printable import counted
from judges import trace
from judges.models import JudgeRun


class Command(BaseCommand):
    help = "Delete prompts and replies of old calls. Tokens, cost, times, errors and judgments stay."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--before", required=True, type=_parse_moment, metavar="DATE", help="2026-01-31, UTC")
        parser.add_argument("--run", type=int, metavar="ID", help="only the calls of this run")

    def handle(self, *args: Any, **options: Any) -> None:
        run = None
        if options["run"] is not None:
            run = JudgeRun.objects.filter(pk=options["run"]).first()
            if run is None:
                raise CommandError(f"Judge run {options['run']} does not exist.", returncode=2)
        count = trace.prune(options["before"], run)
        self.stdout.write(f"Emptied: {counted(count, 'call')}. If you repeat these calls, you pay for them again.")


def _parse_moment(text: str) -> datetime:
    """Parse a date (its first moment) or a date with a time; UTC unless it has a time zone."""
    try:
        if (day := parse_date(text)) is not None:
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        if (moment := parse_datetime(text)) is not None:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ArgumentTypeError(f"{text!r} is not a date such as 2026-01-31")
