"""Shared by the commands: the cases of a report, its filters, and the output of results and problems."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.printable import printable
from annotation.formats.tasks import nearest
from annotation.ingest import ImportStopped
from annotation.models import Benchmark, Submission
from annotation.records import Problem
from annotation.screenshots import STORE_ERRORS
from annotation.workflow import Conflict, Incomplete
from evaluations import cases
from evaluations.cases import Case, Rules
from evaluations.exports import ExportStopped, OutputTaken
from evaluations.forms import Filters
from evaluations.models import Audit
from evaluations.tables import Table
from evaluations.verifier.main import WrongUsage

VALUES = {"agent": "agent_name", "level": "level", "website": "website"}  # attributes of a case
NARROWING = tuple(VALUES)


def add_arguments(parser: CommandParser) -> None:
    for name in NARROWING:
        parser.add_argument(f"--{name}", default="", metavar=name.upper(), help=f"only cases of this {name}")
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
    """Return the scope in words, and the cases: imported labels, with the frozen submissions or alone."""
    if imported:
        return f"imported labels of {benchmark.slug}", cases.of_imported(benchmark, filters.rules)
    waiting = Submission.objects.filter(benchmark=benchmark, practice=False, frozen_at__isnull=True)
    if names := ", ".join(str(pk) for pk in waiting.order_by("pk").values_list("pk", flat=True)):
        command.stderr.write(f"Not frozen and left out: {names}. Use --submission to include one.")
    sampled = Submission.objects.filter(benchmark=benchmark, frozen_at__isnull=False, sample_plan__isnull=False)
    if names := ", ".join(str(pk) for pk in sampled.order_by("pk").values_list("pk", flat=True)):
        command.stderr.write(f"Labelled as a planned sample and left out: {names}. Use --submission to include one.")
    scope = f"frozen submissions of {benchmark.slug}, and imported labels"
    frozen = cases.reported_submissions(benchmark).order_by("pk")
    return scope, cases.of_benchmark(benchmark, frozen, rules=filters.rules)


def narrowed(filters: Filters, scope: str, every: Sequence[Case]) -> tuple[str, list[Case]]:
    """Return the filtered scope in words, and the filtered cases.

    A value that no case has is wrong usage (exit 2); a combination that no case has leaves nothing to count (exit 1).
    """
    for name in NARROWING if every else ():
        value = getattr(filters, name)
        if value and not Filters(**{name: value}).applied(every):
            near = nearest(value, {getattr(case, VALUES[name]) for case in every})
            hint = f" Did you mean {printable(near)}?" if near else ""
            raise CommandError(f"The {name} {printable(value)} does not exist in {scope}.{hint}", returncode=2)
    chosen = filters.applied(every)
    if every and not chosen:
        raise CommandError(f"No case matches {printable(filters.words)}: {scope}.")
    return filters.scope(scope), chosen


def show(command: BaseCommand, found: dict[str, Any] | None, heading: str, tables: Iterable[Table]) -> None:
    """Print ``found`` as JSON if requested, else the heading and every table that has rows."""
    if found is not None:
        command.stdout.write(json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False))
        return
    command.stdout.write(f"{heading}\n")
    for table in tables:
        if table.rows:
            command.stdout.write(f"\n{table.as_text()}")


# --- audits -----------------------------------------------------------------------------------------------------------


def find_audit(pk: int) -> Audit:
    audits = Audit.objects.select_related("submission__agent", "submission__benchmark", "opened_by")
    found = audits.filter(pk=pk).first()
    if found is None:
        known = ", ".join(map(str, Audit.objects.values_list("pk", flat=True)[:20])) or "none yet"
        raise CommandError(f"Audit {pk} does not exist. import_audit opens one. Known: {known}.", returncode=2)
    return found


def seed_told(audit: Audit) -> str:
    if audit.seed_chosen:
        return f"{audit.seed}, chosen by the auditor"
    return f"{audit.seed}, the SHA-256 of the manifest followed by the nonce {audit.nonce}"


@contextmanager
def refusals() -> Iterator[None]:
    """Exit with 2 for wrong input, with 1 for a refusal or a failing store; the message is one line."""
    try:
        yield
    except (Incomplete, OutputTaken, WrongUsage) as error:
        raise CommandError(str(error), returncode=2) from error
    except (Conflict, PermissionDenied, ExportStopped, ImportStopped) as error:
        raise CommandError(str(error)) from error
    except STORE_ERRORS as error:
        raise CommandError(f"The image store does not answer: {error}. Try again later.") from error


def show_problems(command: BaseCommand, kind: str, problems: Iterable[Problem]) -> None:
    for problem in problems:
        command.stderr.write(f"{kind}: {problem.code}: {problem.message}")
