"""What the commands about a submission have in common."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Submission
from annotation.records import Problem


def find_submission(pk: int) -> Submission:
    submission = Submission.objects.select_related("agent", "benchmark").filter(pk=pk).first()
    if submission is None:
        raise CommandError(f"There is no submission {pk}; list_submissions shows them.", returncode=2)
    return submission


def show(command: BaseCommand, kind: str, problems: Iterable[Problem]) -> None:
    """One line on stderr for each problem."""
    for problem in problems:
        command.stderr.write(f"{kind}: {problem.code}: {problem.message}")
