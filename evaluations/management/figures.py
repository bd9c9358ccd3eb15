"""What the commands about figures have in common: the cases they take, and how they print what was found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.printable import printable
from annotation.formats.tasks import nearest
from annotation.models import Benchmark, Submission
from evaluations import cases
from evaluations.cases import Case, Rules
from evaluations.forms import Filters
from evaluations.tables import Table

VALUES = {"agent": "agent_name", "level": "level", "website": "website"}  # of a case
NARROWING = tuple(VALUES)


def add_arguments(parser: CommandParser) -> None:
    for name in NARROWING:
        parser.add_argument(f"--{name}", default="", metavar=name.upper(), help=f"only the cases of this {name}")
    parser.add_argument(
        "--rules",
        choices=[rules.value for rules in Rules],
        default=Rules.DEFAULT.value,
        help="published: count the first listed label, and round as published tables do",
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")


def filters_of(options: dict[str, Any]) -> Filters:
    return Filters(**{name: options[name] for name in NARROWING}, rules=Rules(options["rules"]))


def of_benchmark(
    command: BaseCommand, benchmark: Benchmark, filters: Filters, *, imported: bool
) -> tuple[str, list[Case]]:
    """What the cases are called, and the cases: labels made elsewhere, with the frozen submissions or alone."""
    if imported:
        return f"labels of {benchmark.slug} made elsewhere", cases.of_imported(benchmark, filters.rules)
    waiting = Submission.objects.filter(benchmark=benchmark, practice=False, frozen_at__isnull=True)
    if names := ", ".join(str(pk) for pk in waiting.order_by("pk").values_list("pk", flat=True)):
        command.stderr.write(f"Not frozen and left out: {names}. Name one with --submission to see it.")
    scope = f"frozen submissions of {benchmark.slug}, and labels made elsewhere"
    frozen = cases.reported_submissions(benchmark).order_by("pk")
    return scope, cases.of_benchmark(benchmark, frozen, rules=filters.rules)


def narrowed(filters: Filters, scope: str, every: Sequence[Case]) -> tuple[str, list[Case]]:
    """The cases that the filters leave, and what they are called.

    A name that no case has is wrong usage (exit 2); names that no case has together leave nothing to count (exit 1).
    """
    for name in NARROWING if every else ():
        value = getattr(filters, name)
        if value and not Filters(**{name: value}).applied(every):
            near = nearest(value, {getattr(case, VALUES[name]) for case in every})
            hint = f" Did you mean {printable(near)}?" if near else ""
            raise CommandError(f"There is no {name} {printable(value)} in {scope}.{hint}", returncode=2)
    chosen = filters.applied(every)
    if every and not chosen:
        raise CommandError(f"No case is of {printable(filters.words)}: {scope}.")
    return filters.scope(scope), chosen


def show(command: BaseCommand, found: dict[str, Any] | None, heading: str, tables: Iterable[Table]) -> None:
    """``found`` as JSON where it is asked for, else the heading and every table that has rows."""
    if found is not None:
        command.stdout.write(json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False))
        return
    command.stdout.write(f"{heading}\n")
    for table in tables:
        if table.rows:
            command.stdout.write(f"\n{table.as_text()}")
