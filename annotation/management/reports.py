"""Helpers of commands: look up arguments, read files, print the report of an import, set the exit code."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.core.validators import slug_re
from django.db.models import QuerySet

from annotation import import_causes, screenshots
from annotation.backups.manifest import BackupError
from annotation.formats.printable import counted, printable
from annotation.models import Benchmark, Person, Submission
from annotation.records import ImportReport, Problem
from annotation.workflow.archiving import BENCHMARK_ARCHIVED

MOST_LINES = 100  # of one list that a command prints
MOST_REPORT_LINES = 36  # of problems and warnings; more are grouped by cause, so that all fit on a screen
LINES_OF_CAUSE = 3
MAX_FILE_BYTES = 256 * 1024 * 1024


def read_input(path: Path) -> bytes:
    with report_read_errors(path):
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CommandError(f"{path} is larger than {MAX_FILE_BYTES} bytes.")
        return path.read_bytes()


@contextmanager
def report_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.", returncode=2) from error


@contextmanager
def backup_errors(outcome: str) -> Iterator[None]:
    """Exit with 1 and one line: the outcome, and the cause. SIGTERM has the effect of Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except BackupError as error:
        raise CommandError(f"{outcome}. {error}") from error
    except KeyboardInterrupt:
        raise CommandError(f"{outcome}. It was interrupted.") from None
    except screenshots.STORE_ERRORS as error:
        raise CommandError(f"{outcome}: {error}.") from error
    finally:
        signal.signal(signal.SIGTERM, before)


def show_lines(command: BaseCommand, lines: list[str]) -> None:
    """Print the first lines on stderr, and how many there are more."""
    for line in lines[:MOST_LINES]:
        command.stderr.write(line)
    if len(lines) > MOST_LINES:
        command.stderr.write(f"and {len(lines) - MOST_LINES:,} more")


def find_benchmark(slug: str) -> Benchmark:
    # Only slugs are looked up: bytes that are not text would cause an error in the database.
    benchmark = Benchmark.objects.filter(slug=slug).first() if slug_re.match(slug) else None
    if benchmark is None:
        known = ", ".join(Benchmark.objects.values_list("slug", flat=True)) or "none yet"
        raise CommandError(
            f"The benchmark {printable(slug)} does not exist. import_tasks creates one. Known: {known}.", returncode=2
        )
    return benchmark


def find_own_benchmark(slug: str) -> Benchmark:
    """Return a benchmark that can be changed. Raises CommandError if it is unknown, archived, or from a bundle."""
    refuse_unchangeable(slug)
    return find_benchmark(slug)


def refuse_unchangeable(slug: str) -> None:
    found = Benchmark.objects.filter(slug=printable(slug)).first()
    if found is not None and found.bundled_as:
        raise CommandError(f"{slug} was imported with an evidence bundle, so it is read-only.", returncode=2)
    if found is not None and found.archived_at is not None:
        raise CommandError(BENCHMARK_ARCHIVED.format(slug), returncode=2)


def find_person(username: str) -> Person:
    return _find(Person.objects.filter(username=username, is_active=True), f"{username} is not an active person.")


def find_account(username: str) -> Person:
    return _find(Person.objects.filter(username=username), f"The person {printable(username)} does not exist.")


def find_submission(pk: int) -> Submission:
    rows = Submission.objects.select_related("agent", "benchmark").filter(pk=pk)
    return _find(rows, f"Submission {pk} does not exist. list_submissions lists them.")


def _find(rows: QuerySet[Any], refusal: str) -> Any:
    found = rows.first()
    if found is None:
        raise CommandError(refusal, returncode=2)
    return found


def make_progress(command: BaseCommand) -> Callable[[int, int], None]:
    """Return a function that prints the progress on a terminal, and nothing in a pipe."""

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            command.stderr.write(f"\rchecked {done} of {total}", ending="" if done < total else "\n")
            command.stderr.flush()

    return show


def finish(
    command: BaseCommand,
    report: ImportReport,
    file: Path | None,
    accepted: str,
    kept: bool = True,
    dry_run: bool = False,
) -> None:
    """Write the report and print the outcome; exit 1 if nothing was imported because something was rejected.

    ``accepted`` is the accepted number with its noun: "31 labels of 11 tasks".
    """
    if file is not None:
        try:
            written = report.with_conversion()
            written |= {"causes": import_causes.summarize(written)}
            file.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"The report {file} cannot be written: {error.strerror}.", returncode=2) from error
    lines = [_line("warning", *warning) for warning in report.warnings]
    lines += [
        _line("rejected", task_id, problem) for task_id, of_task in report.rejected.items() for problem in of_task
    ]
    for line in lines if len(lines) <= MOST_REPORT_LINES else _group(report.as_json(), is_listed=file is not None):
        command.stderr.write(line)
    if report.rejected and not (kept and report.accepted):
        valid = f"{len(report.valid):,} valid, " if report.valid else ""
        hint = " Fix them, or import the valid ones with --keep-valid." if report.valid else ""
        raise CommandError(f"{valid}{len(report.rejected):,} rejected; nothing was imported.{hint}")
    refused = f", {len(report.rejected):,} rejected" if report.rejected else ""
    outcome = "would be accepted (dry run, nothing was saved)" if dry_run else "accepted"
    command.stdout.write(f"{accepted} {outcome}{refused}, {counted(len(report.warnings), 'warning')}.")


def _group(report: dict[str, Any], *, is_listed: bool) -> list[str]:
    """Return at most `MOST_REPORT_LINES` lines: each cause with how often it occurs, its cure, and its first place."""
    causes = [cause for kind in import_causes.KINDS for cause in import_causes.group_by_cause(report, kind)]
    shown = causes[: (MOST_REPORT_LINES - 2) // LINES_OF_CAUSE]
    lines: list[str] = []
    for cause in shown:
        told, first = cause.as_json(), cause.rows[0]
        folders = f" in {counted(cause.folders, 'folder')}" if cause.folders else ""
        lines.append(f"{told['kind']}: {cause.code}: {cause.title} ({counted(cause.count, 'place')}{folders})")
        lines.append(f"    {told['cure']}")
        place = first["where"] or first["task_id"] or "package"
        lines.append(f"    First: {place}" if first["task_id"] in place else f"    First: {first['task_id']}: {place}")
    if len(causes) > len(shown):
        lines.append(f"and {counted(len(causes) - len(shown), 'other cause')}")
    return lines if is_listed else [*lines, "The option --report FILE.json lists every place."]


def _line(kind: str, task_id: str, problem: Problem) -> str:
    where = f" [{problem.where}]" if problem.where and problem.where not in problem.message else ""
    return f"{kind}: {task_id or 'package'}: {problem.code}: {problem.message}{where}"
