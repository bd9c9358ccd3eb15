"""The chain of events: recorded transitions whose content and order cannot be changed unnoticed.

Every submission has its own chain; events that concern no submission (accounts, benchmarks, backups, signing
keys) are in the chain of the instance.
The database rejects update and delete (`models.triggers`, which migrations install).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation import clock
from annotation.models.trajectories import Submission

GENESIS = "0" * 64


class Event(models.Model):
    """One transition. ``hash`` is the SHA-256 of the canonical JSON of `canonical`, which includes ``previous``."""

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, null=True, blank=True, related_name="events")
    sequence = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=40)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    actor_pseudonym = models.CharField(max_length=12, blank=True)
    at = models.DateTimeField()
    payload = models.JSONField()
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "sequence"], name="event_sequence_once"),
            models.UniqueConstraint(
                fields=["sequence"], condition=Q(submission__isnull=True), name="instance_event_sequence_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.kind}"

    def canonical(self) -> dict[str, Any]:
        """Return the hashed content, with the actor only by pseudonym, so that a chain can be published unchanged."""
        return {
            "sequence": self.sequence,
            "kind": self.kind,
            "actor": self.actor_pseudonym,
            "at": instant(self.at),
            "payload": self.payload,
            "previous": self.previous,
        }

    def computed_hash(self) -> str:
        return digest(self.canonical())


class ChainCheck(models.Model):
    """Progress of verifying a submission's chain: verified up to the event ``sequence`` with the hash ``hash``.

    ``checked_at`` is the time of the last check from the first event; ``broken`` is the number of the first broken
    event in that check.
    """

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="chain_check")
    sequence = models.PositiveBigIntegerField()
    hash = models.CharField(max_length=64)
    checked_at = models.DateTimeField()
    broken = models.PositiveBigIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.sequence} of {self.submission_id}"


class StateSnapshot(models.Model):
    """The state of every trajectory of a large submission after the event ``sequence``, whose hash is ``hash``.

    ``states`` has one byte for each position of the submission; see `annotation.state_snapshots`. It is a cache:
    ``computed_at`` is when all states were last derived from the rows.
    """

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="state_snapshot")
    sequence = models.PositiveBigIntegerField()
    hash = models.CharField(max_length=64)
    states = models.BinaryField()
    computed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.sequence} of {self.submission_id}"


def instant(at: datetime | None) -> str | None:
    """Return a time as the chain writes it: UTC, ISO 8601, microseconds; None for None."""
    return at.astimezone(UTC).isoformat(timespec="microseconds") if at else None


def canonical_json(value: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, no escapes except those that JSON requires."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of ``value``, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def append(
    submission: Submission | None,
    kind: str,
    /,
    *,
    actor: Any = None,
    pseudonym: str = "",
    at: datetime | None = None,
    **payload: Any,
) -> Event:
    """Append an event to a chain, inside the caller's transaction.

    The caller must have locked the chain, which is the row of its submission. Otherwise the unique constraint on
    (submission, sequence) rejects the second of two events.
    """
    last = Event.objects.filter(submission=submission).order_by("-sequence").only("sequence", "hash").first()
    event = Event(
        submission=submission,
        sequence=last.sequence + 1 if last else 0,
        kind=kind,
        actor=actor,
        actor_pseudonym=pseudonym,
        at=at or clock.now(),
        payload=payload,
        previous=last.hash if last else GENESIS,
    )
    event.hash = event.computed_hash()
    event.save(force_insert=True)
    return event


def first_broken(events: Iterable[Event], previous: str = GENESIS, sequence: int = 0) -> Event | None:
    """Return the first event with a wrong hash, link or number, or None. ``events`` are in order of sequence.

    ``previous`` is the hash before the first event, ``sequence`` the number that the first event must have.
    """
    for event in events:
        if event.sequence != sequence or event.previous != previous or event.hash != event.computed_hash():
            return event
        previous, sequence = event.hash, sequence + 1
    return None
