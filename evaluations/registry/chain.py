"""The chain of events of an entry, and the state that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery, TextChoices

from annotation import clock
from annotation.models import Person
from annotation.models.events import GENESIS, digest
from evaluations.models import Entry, EntryEvent

Kind, Role = EntryEvent.Kind, EntryEvent.Role


class State(TextChoices):
    RECEIVED = "received"
    QUERIED = "queried"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    REMOVED = "removed"


STATE_AFTER = {
    Kind.SUBMITTED: State.RECEIVED,
    Kind.QUERIED: State.QUERIED,
    Kind.ANSWERED: State.RECEIVED,
    Kind.ACCEPTED: State.ACCEPTED,
    Kind.REJECTED: State.REJECTED,
    Kind.WITHDRAWN: State.WITHDRAWN,
    Kind.REMOVED: State.REMOVED,
    Kind.RESTORED: State.ACCEPTED,
}
# The text of all other events stays between owners and submitter.
PUBLIC = (
    *(Kind.ACCEPTED, Kind.APPEALED, Kind.APPEAL_DECIDED, Kind.CORRECTED),
    *(Kind.RESCORED, Kind.REMOVED, Kind.RESTORED, Kind.TAKEN_DOWN),
)


def append(
    entry: Entry,
    kind: EntryEvent.Kind,
    role: EntryEvent.Role,
    actor: Person | None = None,
    *,
    reason: str = "",
    facts: dict[str, Any] | None = None,
) -> EntryEvent:
    """Append an event inside the caller's transaction, which has locked the entry."""
    last = entry.events.order_by("-sequence").first()
    event = EntryEvent(
        entry=entry,
        sequence=last.sequence + 1 if last else 0,
        kind=kind,
        actor=actor,
        role=role,
        at=clock.now(),
        reason=reason,
        facts=facts or {},
        previous=last.hash if last else GENESIS,
    )
    event.hash = digest(event.canonical())
    event.save(force_insert=True)
    return event


def find_broken(events: Iterable[EntryEvent]) -> int | None:
    """Return the number of the first event that was changed after it was written; None if there is none."""
    previous = GENESIS
    for number, event in enumerate(events):
        if event.sequence != number or event.previous != previous or event.hash != digest(event.canonical()):
            return number
        previous = event.hash
    return None


def with_state(entries: QuerySet[Entry]) -> QuerySet[Entry]:
    """Annotate ``deciding_kind``, the kind that decides `state_of`."""
    events = EntryEvent.objects.filter(entry=OuterRef("pk"), kind__in=STATE_AFTER).order_by("-sequence")
    return entries.annotate(deciding_kind=Subquery(events.values("kind")[:1]))


def state_of(entry: Entry) -> State:
    """Return the state; one query unless the entry comes from `with_state`."""
    kind = getattr(entry, "deciding_kind", None)
    if kind is None:
        kind = entry.events.filter(kind__in=STATE_AFTER).order_by("-sequence").values_list("kind", flat=True)[0]
    return STATE_AFTER[Kind(kind)]
