"""How a submission stands: the claims of its bundle, computed from the rows without making one."""

from __future__ import annotations

from annotation.models import Event, Submission
from evaluations.evidence.documents import documents
from evaluations.verifier.claims import claims as computed
from evaluations.verifier.documents import Document
from evaluations.verifier.findings import Finding

NO_EVENTS: Document = {"id": None, "events": 0, "head": None}


def claims(submission: Submission) -> list[Finding]:
    """Every claim of docs/evidence.md, in that order; only for who may see labels."""
    return computed(documents(submission, judges=False))


def chain(submission: Submission) -> Document:
    """The chain of events as submission.json names it: id, number of events, and head."""
    hashes = Event.objects.filter(submission=submission).order_by("sequence").values_list("hash", flat=True)
    number = hashes.count()
    return {"id": hashes[0], "events": number, "head": hashes.reverse()[0]} if number else dict(NO_EVENTS)
