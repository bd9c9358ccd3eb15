"""Find every text that people wrote about a submission and that a bundle would carry."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Model

from annotation.label_fields import TEXT_FIELDS
from annotation.models import (
    Adjudication,
    Event,
    Flag,
    HumanAttempt,
    InformedRevision,
    KeyPoint,
    Label,
    Membership,
    Redaction,
    Release,
    Reopening,
    Report,
    Submission,
)

OF_A_DECISION = (*TEXT_FIELDS, "revision_reason")

# What it is called, the rows, the lookups of its trajectory and of its author, and the columns with texts.
SOURCES: tuple[tuple[str, type[Model], str, str, tuple[str, ...]], ...] = (
    ("label", Label, "assignment__trajectory", "assignment__annotator", OF_A_DECISION),
    ("own attempt", HumanAttempt, "label__assignment__trajectory", "label__assignment__annotator", ("notes", "link")),
    ("informed reason", InformedRevision, "label__assignment__trajectory", "label__assignment__annotator", ("reason",)),
    ("adjudication", Adjudication, "trajectory", "adjudicator", OF_A_DECISION),
    ("reopening", Reopening, "trajectory", "reopened_by", ("reason",)),
    ("flag", Flag, "trajectory", "annotator", ("note",)),
    ("report", Report, "trajectory", "reporter", ("note", "answer")),
    ("release", Release, "trajectory", "annotator", ("reason",)),
)

# The texts of these events are those of rows.
EVENTS_OF_ROWS = ("released", "flagged", "reopened", "reported", "report_settled", "screenshot_redacted", "imported")

PlacedTexts = tuple[str, tuple[str, ...]]  # a place such as "label of A1 on task_0003", and the texts there


def find_written_texts(submission: Submission) -> Iterator[PlacedTexts]:
    """Yield all texts with their places; one query for each kind of row."""
    pseudonyms = dict(Membership.objects.filter(submission=submission).values_list("person", "pseudonym"))
    for kind, model, trajectory, author, columns in SOURCES:
        rows = model._default_manager.filter(**{f"{trajectory}__submission": submission})
        rows = rows.order_by(f"{trajectory}__position", "pk")
        for person, task, *texts in rows.values_list(author, f"{trajectory}__task__external_id", *columns):
            yield f"{kind} of {pseudonyms.get(person, 'somebody else')} on {task}", tuple(texts)
    points = KeyPoint.objects.filter(task__benchmark=submission.benchmark_id, accepted_at__isnull=False)
    points = points.filter(proposed_by__isnull=False).order_by("pk")
    for person, task, text in points.values_list("proposed_by", "task__external_id", "text"):
        yield f"key point of {pseudonyms.get(person, 'somebody else')} on {task}", (text,)
    for (reason,) in Redaction.objects.filter(submission=submission).values_list("reason"):
        yield "reason of a redaction", (reason,)
    events = Event.objects.filter(submission=submission).exclude(kind__in=EVENTS_OF_ROWS)
    for sequence, kind, payload in events.values_list("sequence", "kind", "payload"):
        yield f"event {sequence} ({kind})", tuple(extract_texts(payload))


def extract_texts(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value, except ids of tasks."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from extract_texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name != "task_id":
                yield from extract_texts(each)
