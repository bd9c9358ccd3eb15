"""Publish the heads of chains at the places in the settings, each once; retry failed publications the next time.

The row is saved first: the worker that creates it, or takes over an unfinished one, publishes the head. If a worker
dies, its row stays unfinished, and another worker takes it over after five minutes. So a head may be published twice,
but is never lost.
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
    """The last event of a submission's chain; it does not name people, agent or benchmark.

    ``chain`` is the hash of event 0, which identifies a chain for outsiders.
    """

    submission: int
    chain: str
    sequence: int
    head: str


def statement(head: Head, at: datetime) -> str:
    """Return the signed line with the head of the chain, in canonical JSON. The signature covers all other keys."""
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
BEGUN = "Its publication has started and not finished."
LONGEST = timedelta(minutes=5)  # for a publication; a worker that takes longer counts as dead
GIVE_UP = 3  # consecutive failures: the place is down, and the other heads wait for the next time
OUR_MISTAKE = "Server error during publication. The log has the details."


@dataclass(frozen=True)
class Place:
    """A place where heads are published; ``publish`` returns the token of a time stamp, or ""."""

    method: Anchor.Method
    target: str
    publish: Callable[[Head, datetime], str]


def publish() -> list[Anchor]:
    """Publish every head that has changed since its last publication, by each method in the settings.

    Return the rows of all attempts; those with an ``error`` were not published.
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
    """Count the chains whose head is not published at every place yet."""
    return len({head.submission for place in places() for head in changed(place.method)})


def _file(file: Path) -> Place:
    def append(head: Head, at: datetime) -> str:
        append_line(file, statement(head, at))
        return ""

    return Place(Anchor.Method.FILE, file.name, append)  # without the folder, which may contain a person's name


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
    """Return the heads of chains that have grown since their last publication by this method.

    Practice is left out because it decides nothing, and audited bundles because their chain is another instance's.
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
    """Return the row of the publication if this worker may publish; None if another has published it or is doing so."""
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
        return None  # another worker created the row of this head first


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
