"""Active time of annotators, by submission and day: pseudonyms, and nothing about what a label says.

docs/maintainer.md states which time counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Case, Count, DateField, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum, When
from django.db.models.functions import Coalesce, TruncDate

from annotation.formats.spreadsheets import csv_text
from annotation.models import Label, Membership, Person, Submission

COLUMNS = ("submission", "annotator", "date", "labels", "labels_without_time", "active_hours", "revising_hours")
PERSON, SUBMISSION = "assignment__annotator", "assignment__trajectory__submission"
FIRST = Q(revision=1)


@dataclass(frozen=True, slots=True)
class Span:
    """Days in UTC, both included; None: no limit. ``daily`` asks for one row for each day with a label."""

    first: date | None = None
    last: date | None = None
    daily: bool = False

    def select(self, labels: QuerySet[Label]) -> QuerySet[Label]:
        if self.first is not None:
            labels = labels.filter(created_at__gte=datetime.combine(self.first, time(), UTC))
        if self.last is not None and self.last < date.max:
            labels = labels.filter(created_at__lt=datetime.combine(self.last + timedelta(days=1), time(), UTC))
        return labels


def measure_submissions(submissions: Iterable[Submission], span: Span) -> list[dict[str, Any]]:
    """Return a row with `COLUMNS` for each annotator of each submission (and day)."""
    return _measure(Label.objects.filter(**{f"{SUBMISSION}__in": submissions}), span)


def measure_own(person: Person, span: Span) -> list[dict[str, Any]]:
    """Return a row for each submission in which the person has labels (and day)."""
    return _measure(Label.objects.filter(**{PERSON: person}), span)


def write_csv(rows: list[dict[str, Any]]) -> str:
    return csv_text([COLUMNS, *([row[column] for column in COLUMNS] for row in rows)])


def _measure(labels: QuerySet[Label], span: Span) -> list[dict[str, Any]]:
    # The time of a revision includes that of the revisions before it.
    before = Label.objects.filter(assignment=OuterRef("assignment"), revision=OuterRef("revision") - 1)
    seconds = Subquery(before.values("active_seconds")[:1])
    rows: Any = span.select(labels).order_by()
    rows = rows.annotate(before=Case(When(revision__gt=1, then=seconds), output_field=IntegerField()))
    keys = [SUBMISSION, PERSON]
    if span.daily:
        rows = rows.annotate(day=TruncDate("created_at", tzinfo=UTC, output_field=DateField()))
        keys.append("day")
    counted = rows.values(*keys).annotate(
        labels=Count("pk", filter=FIRST),
        unmeasured=Count("pk", filter=FIRST & Q(active_seconds=None)),
        seconds=Sum("active_seconds", filter=FIRST),
        revising=Sum(F("active_seconds") - Coalesce("before", 0), filter=~FIRST),
    )
    found = list(counted)
    members = Membership.objects.filter(submission__in={row[SUBMISSION] for row in found})
    names = {(member.submission_id, member.person_id): member.pseudonym for member in members}
    listed = [
        {
            "submission": row[SUBMISSION],
            "annotator": names[row[SUBMISSION], row[PERSON]],
            "date": row["day"].isoformat() if span.daily else None,
            "labels": row["labels"],
            "labels_without_time": row["unmeasured"],
            "active_hours": _to_hours(row["seconds"]),
            "revising_hours": _to_hours(row["revising"]),
        }
        for row in found
    ]
    # A2 before A10
    return sorted(
        listed, key=lambda row: (row["submission"], len(row["annotator"]), row["annotator"], row["date"] or "")
    )


def _to_hours(seconds: int | None) -> float:
    return round((seconds or 0) / 3600, 4)
