"""What the commands about a submission have in common."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management.base import BaseCommand

from annotation.records import Problem


def show(command: BaseCommand, kind: str, problems: Iterable[Problem]) -> None:
    for problem in problems:
        command.stderr.write(f"{kind}: {problem.code}: {problem.message}")
