"""What people wrote into the rows of a submission: all of their words that a bundle would carry."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import QuerySet

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

TASK = "trajectory__task__external_id"

# Events whose text is that of a row, which is looked through already.
_OF_ROWS = ("released", "flagged", "reopened", "reported", "report_settled", "screenshot_redacted", "imported")

Written = tuple[str, tuple[str, ...]]  # where it stands, and the texts that were written there


def written(submission: Submission) -> Iterator[Written]:
    """Everything that people wrote, with the place of each, such as ``label of A1 on task_0003``; one query a kind."""
    called = dict(Membership.objects.filter(submission=submission).values_list("person", "pseudonym"))
    yield from _labels(submission, called)
    yield from _decisions(submission, called)
    yield from _remarks(submission, called)
    for (reason,) in Redaction.objects.filter(submission=submission).values_list("reason"):
        yield "reason of a redaction", (reason,)
    events = Event.objects.filter(submission=submission).exclude(kind__in=_OF_ROWS)
    for sequence, kind, payload in events.values_list("sequence", "kind", "payload"):
        yield f"event {sequence} ({kind})", tuple(texts(payload))


def texts(value: object) -> Iterator[str]:
    """The texts in a JSON value, without digests and names of tasks."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name != "task_id":
                yield from texts(each)


def _labels(submission: Submission, called: dict[int, str]) -> Iterator[Written]:
    slot = "assignment__trajectory"
    labels = Label.objects.filter(**{f"{slot}__submission": submission}).order_by(f"{slot}__position", "pk")
    whose = ("assignment__annotator", f"{slot}__task__external_id")
    yield from _of(labels, "label", whose, called, "reasoning", "revision_reason", "exception_reason")
    attempts = HumanAttempt.objects.filter(**{f"label__{slot}__submission": submission}).order_by("pk")
    whose = ("label__assignment__annotator", f"label__{slot}__task__external_id")
    yield from _of(attempts, "own attempt", whose, called, "notes", "link")
    informed = InformedRevision.objects.filter(**{f"label__{slot}__submission": submission}).order_by("pk")
    yield from _of(informed, "informed reason", whose, called, "reason")


def _decisions(submission: Submission, called: dict[int, str]) -> Iterator[Written]:
    found = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False).order_by("pk")
    texts = ("reasoning", "revision_reason", "exception_reason")
    yield from _of(found, "adjudication", ("adjudicator", TASK), called, *texts)
    reopened = Reopening.objects.filter(trajectory__submission=submission).order_by("pk")
    yield from _of(reopened, "reopening", ("reopened_by", TASK), called, "reason")


def _remarks(submission: Submission, called: dict[int, str]) -> Iterator[Written]:
    flags = Flag.objects.filter(trajectory__submission=submission).order_by("pk")
    yield from _of(flags, "flag", ("annotator", TASK), called, "note")
    reports = Report.objects.filter(trajectory__submission=submission).order_by("pk")
    yield from _of(reports, "report", ("reporter", TASK), called, "note", "answer")
    releases = Release.objects.filter(trajectory__submission=submission).order_by("pk")
    yield from _of(releases, "release", ("annotator", TASK), called, "reason")
    proposed = KeyPoint.objects.filter(task__benchmark=submission.benchmark_id, accepted_at__isnull=False)
    proposed = proposed.filter(proposed_by__isnull=False).order_by("pk")
    yield from _of(proposed, "key point", ("proposed_by", "task__external_id"), called, "text")


def _of(rows: QuerySet, kind: str, whose: tuple[str, str], called: dict[int, str], *texts: str) -> Iterator[Written]:
    for person, task, *written in rows.values_list(*whose, *texts):
        yield f"{kind} of {called.get(person, 'somebody else')} on {task}", tuple(written)
