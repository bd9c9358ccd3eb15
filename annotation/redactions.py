"""Which pictures of a submission are covered in what leaves this instance."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from annotation.models import Redaction, Screenshot, Submission


def history(submission: Submission) -> QuerySet[Redaction]:
    """Every revision of every redaction, oldest first; one query."""
    return Redaction.objects.filter(submission=submission).order_by("redacted_at", "pk")


def with_replaced(found: QuerySet[Redaction]) -> QuerySet[Any]:
    """The same, each with ``replaced``: whether there is a later revision. What is not, and has boxes, holds."""
    later = Redaction.objects.filter(
        submission=OuterRef("submission"), original=OuterRef("original"), revision__gt=OuterRef("revision")
    )
    return found.annotate(replaced=Exists(later))


def of_picture(submission: Submission, screenshot: Screenshot) -> list[Redaction]:
    return list(history(submission).filter(original=screenshot.sha256).order_by("-revision"))


def holding(submission: Submission) -> dict[str, Redaction]:
    """The redaction that holds, by the SHA-256 of its original, sorted; see `that_holds`."""
    newest = with_replaced(history(submission)).filter(replaced=False).order_by("original")
    return {row.original: row for row in newest if row.boxes}


def that_holds(revisions: list[Redaction]) -> Redaction | None:
    """Of one picture's, newest first: the newest, unless it took the redaction back."""
    return revisions[0] if revisions and revisions[0].boxes else None


def shown(submission: Submission) -> dict[str, str]:
    """By the SHA-256 of an original, that of the covered picture which takes its place outside; see `Redaction`.

    Both are in the image store: `screenshots.original` reads either. What has no redaction is not in it.
    """
    return {original: row.redacted for original, row in holding(submission).items()}
