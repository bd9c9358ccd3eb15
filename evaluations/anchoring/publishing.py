"""Publish the heads of chains at the places of the settings, each once; retry failed ones the next time.

The row comes first: the worker that creates it, or takes over one that was not finished, publishes. A worker that dies
in between leaves an unfinished row, which another takes over after a while. So a head may be published twice, but is
never forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, OuterRef, Q, Subquery

from annotation import clock
from annotation.models import Event, Submission
from annotation.models.events import instant
from evaluations import signing
from evaluations.anchoring.time_stamping import time_stamp
from evaluations.anchoring.transports import NotPublished, append_line, post, shown
from evaluations.models import Anchor
from evaluations.signing import KeyClosed
from evaluations.verifier.canonical import canonical_json


@dataclass(frozen=True)
class Head:
    """The last event of a submission's chain; nothing names people, agent or benchmark.

    ``chain`` is the hash of event 0, by which an outsider knows a chain.
    """

    submission: int
    chain: str
    sequence: int
    head: str


def statement(head: Head, at: datetime) -> str:
    """The signed line that says that a chain had this head: canonical JSON, the signature over all but itself."""
    key = signing.active_key()
    said = {
        "chain": head.chain,
        "sequence": head.sequence,
        "head": head.head,
        "at": instant(at),
        "key_id": key.key_id,
    }
    signature = signing.signature(key, canonical_json(said).encode())
    return canonical_json({**said, "signature": signature.hex()})


logger = logging.getLogger(__name__)
BEGUN = "Its publication was begun and has not ended yet."
LONGEST = timedelta(minutes=5)  # that a publication takes; a worker that needs longer is dead
GIVE_UP = 3  # failures one after the other: the place is away, and the rest waits for the next time
OUR_MISTAKE = "The publication failed on our side; the log says why."


@dataclass(frozen=True)
class Place:
    """Where heads are published; ``publish`` returns the token of a time stamp, or nothing."""

    method: Anchor.Method
    target: str
    publish: Callable[[Head, datetime], str]


def publish() -> list[Anchor]:
    """Publish every head that changed since it was last published, by each method that the settings name.

    The rows of what was tried; those with an ``error`` are not published.
    """
    return [anchor for place in places() for anchor in _publish_at(place)]


def places() -> list[Place]:
    found = []
    if settings.ANCHOR_FILE:
        found.append(_file(Path(settings.ANCHOR_FILE)))
    if settings.ANCHOR_WEBHOOK:
        found.append(_webhook(settings.ANCHOR_WEBHOOK))
    if settings.ANCHOR_TIME_STAMP:
        found.append(_authority(settings.ANCHOR_TIME_STAMP))
    return found


def waiting() -> int:
    """How many chains have a head that one of the places does not have yet."""
    return len({head.submission for place in places() for head in changed(place.method)})


def _file(file: Path) -> Place:
    def append(head: Head, at: datetime) -> str:
        append_line(file, statement(head, at))
        return ""

    return Place(Anchor.Method.FILE, file.name, append)  # folders are of this machine, and are often called by people


def _webhook(address: str) -> Place:
    def send(head: Head, at: datetime) -> str:
        post(address, statement(head, at).encode(), "application/json")
        return ""

    return Place(Anchor.Method.WEBHOOK, shown(address), send)


def _authority(address: str) -> Place:
    return Place(Anchor.Method.TIME_STAMP, shown(address), lambda head, at: time_stamp(address, head.head))


def _publish_at(place: Place) -> list[Anchor]:
    tried: list[Anchor] = []
    for head in changed(place.method):
        if (anchor := _take_row(place, head)) is not None:
            tried.append(_finish(anchor, place, head))
        if len(tried) >= GIVE_UP and all(each.error for each in tried[-GIVE_UP:]):
            break
    return tried


def changed(method: Anchor.Method) -> list[Head]:
    """The heads of chains that have grown since the last one that was published by this method.

    Not those of practice, which decides nothing, nor of bundles that were opened here: their chain is another's.
    """
    events = Event.objects.filter(submission=OuterRef("pk"))
    last = events.order_by("-sequence")
    done = Anchor.objects.filter(submission=OuterRef("pk"), method=method, error="").order_by("-sequence")
    rows = Submission.objects.filter(practice=False, audited=False).annotate(
        first_hash=Subquery(events.filter(sequence=0).values("hash")[:1]),
        last_sequence=Subquery(last.values("sequence")[:1]),
        last_hash=Subquery(last.values("hash")[:1]),
        last_done=Subquery(done.values("sequence")[:1]),
    )
    news = rows.filter(Q(last_done__isnull=True) | Q(last_done__lt=F("last_sequence")), last_sequence__isnull=False)
    return [Head(*row) for row in news.order_by("pk").values_list("pk", "first_hash", "last_sequence", "last_hash")]


def _take_row(place: Place, head: Head) -> Anchor | None:
    """The row of the publication that is ours now; None where another has published it, or is at it."""
    mine = Anchor.objects.filter(submission=head.submission, method=place.method)
    now = clock.now()
    news = {"sequence": head.sequence, "head": head.head, "target": place.target, "error": BEGUN, "published_at": now}
    try:
        with transaction.atomic():
            if mine.filter(error="", sequence__gte=head.sequence).exists():
                return None
            left = mine.exclude(error="").order_by("pk").first()
            if left is None:
                return Anchor.objects.create(submission_id=head.submission, method=place.method, **news)
            if left.error == BEGUN and left.published_at > now - LONGEST:
                return None
            seen = Anchor.objects.filter(pk=left.pk, error=left.error, published_at=left.published_at)
            return Anchor.objects.get(pk=left.pk) if seen.update(**news) else None
    except IntegrityError:
        return None  # another one made the row of this head first


def _finish(anchor: Anchor, place: Place, head: Head) -> Anchor:
    try:
        anchor.token, anchor.error = place.publish(head, anchor.published_at), ""
    except (NotPublished, KeyClosed) as refused:
        anchor.error = str(refused)[:500]
    except Exception:
        logger.exception("Head %s of submission %s could not be published", head.sequence, head.submission)
        anchor.error = OUR_MISTAKE
    ours = Anchor.objects.filter(pk=anchor.pk, error=BEGUN, published_at=anchor.published_at)
    ours.update(token=anchor.token, error=anchor.error)
    return anchor
