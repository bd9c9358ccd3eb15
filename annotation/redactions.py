"""Find the redactions of a submission: areas of screenshots that exports cover."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from annotation.models import Redaction, Screenshot, Submission


def find_history(submission: Submission) -> QuerySet[Redaction]:
    """Return every revision of every redaction, oldest first; one query."""
    return Redaction.objects.filter(submission=submission).order_by("redacted_at", "pk")


def annotate_replaced(revisions: QuerySet[Redaction]) -> QuerySet[Any]:
    """Add ``replaced`` to each revision: there is a later one. A current redaction is not replaced and has boxes."""
    later = Redaction.objects.filter(
        submission=OuterRef("submission"), original=OuterRef("original"), revision__gt=OuterRef("revision")
    )
    return revisions.annotate(replaced=Exists(later))


def find_revisions(submission: Submission, screenshot: Screenshot) -> list[Redaction]:
    """Return the revisions for one screenshot, newest first."""
    return list(find_history(submission).filter(original=screenshot.sha256).order_by("-revision"))


def choose_current(revisions: list[Redaction]) -> Redaction | None:
    """Return the first of `find_revisions`, or None if it withdrew the redaction."""
    return revisions[0] if revisions and revisions[0].boxes else None


def find_current(submission: Submission, originals: Collection[str] | None = None) -> dict[str, Redaction]:
    """Return the current redactions by the SHA-256 of their originals, sorted; only those of ``originals`` if given."""
    newest = annotate_replaced(find_history(submission)).filter(replaced=False).order_by("original")
    if originals is not None:
        newest = newest.filter(original__in=originals)
    return {row.original: row for row in newest if row.boxes}


def map_redacted(submission: Submission) -> dict[str, str]:
    """Return the SHA-256 of each redacted copy by that of its original; `screenshots.original` reads both."""
    return {original: row.redacted for original, row in find_current(submission).items()}


def cover(screenshot: Screenshot, redaction: Redaction | None) -> Screenshot:
    """Return the covered image of a redacted screenshot, unsaved, or the screenshot itself without a redaction."""
    if redaction is None:
        return screenshot
    return Screenshot(
        sha256=redaction.redacted,
        media_type="image/png",
        width=screenshot.width,
        height=screenshot.height,
        size=redaction.size,
    )
