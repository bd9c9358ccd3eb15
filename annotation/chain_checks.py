"""Verify chains of events: a page verifies a short chain in full; a job verifies long ones, a page their new events.

Events never change, so a verified prefix stays valid unless somebody bypasses the triggers of the database. A full
check detects that anywhere in a long chain. It runs daily, at the freeze, and when a bundle is exported or checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from django.db.models import F, OuterRef, Q, Subquery
from django.utils import timezone

from annotation.models import ChainCheck, Event, Submission
from annotation.models.events import GENESIS, first_broken

MOST_EVENTS_AT_ONCE = 2000  # events that a page verifies: 0.1 s
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Look:
    """``broken`` is the number of the first changed event. ``checked_at`` is the time of the last full check, None
    before the first one. ``waiting`` counts new events that are not verified yet."""

    broken: int | None
    checked_at: datetime | None
    waiting: int = 0


def check_shown(submission: Submission, shown: Sequence[Event]) -> Look:
    """Return the state of a chain. ``shown`` are consecutive events, newest first, which are always verified."""
    newest = submission.events.order_by("-sequence").first()
    if newest is None or newest.sequence < MOST_EVENTS_AT_ONCE:
        broken = first_broken(submission.events.order_by("sequence").iterator())
        return Look(None if broken is None else broken.sequence, timezone.now())
    check = ChainCheck.objects.filter(submission=submission).first()
    if check is None:
        return Look(_broken_in(shown), None, newest.sequence + 1)
    found = [check.broken, _changed_before(check), _broken_in(shown), _verify_new(check)]
    broken_at = min((number for number in found if number is not None), default=None)
    return Look(broken_at, check.checked_at, max(newest.sequence - check.sequence, 0))


def check_whole(submission: Submission) -> ChainCheck | None:
    """Verify a chain from its first event and return the check; None for a chain without events."""
    last: Event | None = None
    broken: Event | None = None
    for event in submission.events.order_by("sequence").iterator():
        before = GENESIS if last is None else last.hash
        broken = broken or first_broken([event], before, 0 if last is None else last.sequence + 1)
        last = event
    if last is None:
        return None
    found = {
        "sequence": last.sequence,
        "hash": last.hash,
        "checked_at": timezone.now(),
        "broken": None if broken is None else broken.sequence,
    }
    return ChainCheck.objects.update_or_create(submission=submission, defaults=found)[0]


def check_due(seconds: float) -> int:
    """Verify long chains whose last full check is a day old, for ``seconds`` at most; return their number."""
    ends, done = monotonic() + seconds, 0
    newest = Event.objects.filter(submission=OuterRef("pk")).order_by("-sequence").values("sequence")[:1]
    due = Q(chain_check=None) | Q(chain_check__checked_at__lt=timezone.now() - DAY)
    long_ones = Submission.objects.annotate(newest=Subquery(newest)).filter(due, newest__gte=MOST_EVENTS_AT_ONCE)
    for submission in long_ones.order_by(F("chain_check__checked_at").asc(nulls_first=True), "pk"):
        check_whole(submission)
        done += 1
        if monotonic() > ends:
            break
    return done


def _changed_before(check: ChainCheck) -> int | None:
    """Return the number of the last checked event if it has changed: the chain was rewritten or shortened."""
    at = Event.objects.filter(submission=check.submission_id, sequence=check.sequence)
    return None if at.filter(hash=check.hash).exists() else check.sequence


def _verify_new(check: ChainCheck) -> int | None:
    """Verify the events after the checked ones, at most `MOST_EVENTS_AT_ONCE`, and store the new position."""
    new = Event.objects.filter(submission=check.submission_id, sequence__gt=check.sequence).order_by("sequence")
    events = list(new[:MOST_EVENTS_AT_ONCE])
    if not events:
        return None
    broken = first_broken(events, check.hash, check.sequence + 1)
    if broken is not None:
        return broken.sequence
    check.sequence, check.hash = events[-1].sequence, events[-1].hash
    ChainCheck.objects.filter(pk=check.pk, sequence__lt=check.sequence).update(sequence=check.sequence, hash=check.hash)
    return None


def _broken_in(shown: Sequence[Event]) -> int | None:
    events = list(reversed(shown))
    broken = first_broken(events, events[0].previous, events[0].sequence) if events else None
    return None if broken is None else broken.sequence
