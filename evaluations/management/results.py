"""Shared by the commands that export a submission in formats of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.printable import counted
from annotation.management.reports import find_submission
from evaluations.exports import ExportRefused
from evaluations.management.reports import refusals, show_problems
from evaluations.publication.options import Options, ResultFormat
from evaluations.publication.results import Result, prepare


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("submission", type=int, metavar="ID", help="the number of the submission")
    parser.add_argument(
        "--partial", action="store_true", help="export although tasks have no trajectory; the file states it"
    )
    parser.add_argument("--accept-names", action="store_true", help="export although texts name members")


def publish(
    command: BaseCommand, result_format: ResultFormat, given: dict[str, Any], write: Callable[[Result, Path], None]
) -> None:
    """Write an export and say what it lacks; CommandError with every reason if it is refused."""
    submission, output = find_submission(given["submission"]), given["output"]
    stated = {each.name: given[each.name] for each in fields(Options) if given.get(each.name) is not None}
    try:
        with refusals():
            result = prepare(submission, result_format, Options(**stated))
            write(result, output)
    except ExportRefused as refused:
        show_problems(command, "refused", refused.problems)
        raise CommandError(f"{counted(len(refused.problems), 'problem')}; nothing was written.") from refused
    show_problems(command, "warning", result.warnings)
    show_problems(command, "left out", result.missing)
    partial = "partial " if result.partial else ""
    command.stdout.write(f"{output}: {partial}{result.format} of {submission}.")
