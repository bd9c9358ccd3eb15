"""Claims of a submission's bundle and texts with names, computed from the rows without an export.

Claims and the search for names take 5 ms for each trajectory. For a large submission a job computes and stores them for
the head of the chain. Pages show them for a day at most, because a row that changes without an event does not change
the head. Exports never use the stored result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max

from annotation import clock
from annotation.models import Event, Submission
from annotation.models.events import digest
from annotation.records import Problem
from evaluations.evidence import names
from evaluations.evidence.documents import documents
from evaluations.models import Standing
from evaluations.verifier.checking import claims as computed
from evaluations.verifier.documents import Document
from evaluations.verifier.findings import Finding
from judges.models import Judgment

NO_EVENTS: Document = {"id": None, "events": 0, "head": None}
MOST_TRAJECTORIES_AT_ONCE = 300  # trajectories of a submission whose claims a page computes itself: 1.5 s
FRESH = timedelta(days=1)
ASKED_AGAIN = timedelta(minutes=10)  # a requested job without a result after this time counts as lost


@dataclass(frozen=True, slots=True)
class Look:
    """The claims as JSON and the texts with names; ``computed_at`` is None until a job has computed them."""

    computed_at: datetime | None
    claims: list[Document] = field(default_factory=list)
    named: list[Problem] = field(default_factory=list)


def claims(submission: Submission) -> list[Finding]:
    """Return every claim of docs/evidence.md, in that order; only for people who may see labels."""
    return computed(documents(submission, judges=False))


def look(submission: Submission) -> Look:
    """Return the standing for a page: computed now, or stored by a job for these rows."""
    if submission.trajectories.count() <= MOST_TRAJECTORIES_AT_ONCE:
        found = [claim.as_json() for claim in claims(submission)]
        return Look(clock.now(), found, names.named(submission))
    row = Standing.objects.filter(submission=submission).first()
    if row is None or row.computed_at is None or row.key != _key(submission) or row.computed_at < _stale():
        return Look(None)
    return Look(row.computed_at, row.claims, [Problem(**each) for each in row.named])


def request(submission: Submission) -> bool:
    """Return whether to send the job: one message for all waiting pages."""
    now = clock.now()
    row, made = Standing.objects.get_or_create(submission=submission, defaults={"requested_at": now})
    if made:
        return True
    lost = row.requested_at < now - ASKED_AGAIN or (row.computed_at or row.requested_at) > row.requested_at
    return lost and bool(Standing.objects.filter(pk=row.pk, requested_at=row.requested_at).update(requested_at=now))


def compute(submission: Submission) -> None:
    """Compute and store what `look` shows of a large submission."""
    key = _key(submission)  # first, because later changes must make the result stale
    found: dict[str, Any] = {
        "claims": [claim.as_json() for claim in claims(submission)],
        "named": [problem.as_json() for problem in names.named(submission)],
    }
    now = clock.now()
    Standing.objects.update_or_create(
        submission=submission,
        defaults=found | {"key": key, "computed_at": now},
        create_defaults=found | {"key": key, "computed_at": now, "requested_at": now},
    )


def chain(submission: Submission) -> Document:
    """Return the chain of events as in submission.json: id, number of events, and head."""
    hashes = Event.objects.filter(submission=submission).order_by("sequence").values_list("hash", flat=True)
    number = hashes.count()
    return {"id": hashes[0], "events": number, "head": hashes.reverse()[0]} if number else dict(NO_EVENTS)


def _stale() -> datetime:
    return clock.now() - FRESH


def _key(submission: Submission) -> str:
    """Return the digest of the inputs: the head of the chain, and inputs without events such as names and judgments."""
    people = submission.memberships.order_by("pk").values_list(
        "pseudonym", "person__username", "person__first_name", "person__last_name", "person__email"
    )
    judgments = Judgment.objects.filter(agent=submission.agent_id).aggregate(newest=Max("pk"))
    about = (submission.agent.name, submission.benchmark.name, submission.benchmark.slug)
    return digest([chain(submission), [list(each) for each in people], judgments["newest"], list(about)])
