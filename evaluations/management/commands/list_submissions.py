"""list_submissions [--json]"""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Count

from annotation.models import Submission
from annotation.models.states import current_labels
from evaluations.exports import missing_for_export

COLUMNS = ("id", "benchmark", "agent", "attempt", "trajectories", "labels", "complete", "frozen")


class Command(BaseCommand):
    help = "List the submissions with their progress. A complete one only needs the freeze."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
        parser.add_argument("--archived", action="store_true", help="list the archived ones instead")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = [_row(submission) for submission in _submissions(options["archived"])]
        if options["json"]:
            self.stdout.write(json.dumps(rows, ensure_ascii=False, indent=2))
            return
        texts = [COLUMNS, *(tuple(_text(row[name]) for name in COLUMNS) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for line in texts:
            self.stdout.write("  ".join(f"{t:<{w}}" for t, w in zip(line, widths, strict=True)).rstrip())


def _submissions(archived: bool) -> list[Any]:
    return list(
        Submission.objects.filter(archived_at__isnull=not archived)
        .select_related("agent", "benchmark")
        .annotate(trajectory_count=Count("trajectories"))
        .order_by("pk")
    )


def _row(submission: Any) -> dict[str, Any]:
    """``labels`` counts each label once, whatever its revisions; ``complete``: at most the freeze is missing."""
    return {
        "id": submission.pk,
        "benchmark": submission.benchmark.slug,
        "agent": submission.agent.name,
        "attempt": submission.attempt,
        "trajectories": submission.trajectory_count,
        "labels": current_labels().filter(assignment__trajectory__submission=submission.pk).count(),
        "complete": all(problem.code == "not_frozen" for problem in missing_for_export(submission)),
        "frozen": submission.frozen_at is not None,
    }


def _text(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
