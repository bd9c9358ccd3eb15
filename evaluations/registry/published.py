"""What anybody may read of a benchmark's entries: accepted and removed ones, after their embargo.

Everything public is found here, so that no page, feed or badge decides by itself what it may show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import Http404

from annotation import clock
from annotation.models import Benchmark
from annotation.models.events import digest, instant
from evaluations.models import Entry, EntryEvent, EntryRow, EntryVersion, Intake
from evaluations.registry import ledger
from evaluations.registry.ledger import PUBLIC, Kind, State

SHOWN_AFTER = [str(kind) for kind, state in ledger.STATE_AFTER.items() if state in (State.ACCEPTED, State.REMOVED)]


def find_benchmark(slug: str) -> Benchmark:
    """Return a benchmark whose registry is public; Http404 for all others."""
    found = Intake.objects.filter(public=True, benchmark__slug=slug, benchmark__archived_at=None)
    intake = found.select_related("benchmark").first()
    if intake is None:
        raise Http404("No such benchmark.")
    return intake.benchmark


def find_entries(benchmark: Benchmark) -> QuerySet[Entry]:
    """Return the published entries with ``last_step`` and ``newest``, the primary key of the newest version."""
    newest = EntryVersion.objects.filter(entry=OuterRef("pk")).order_by("-number").values("pk")[:1]
    found = ledger.with_state(Entry.objects.filter(benchmark=benchmark)).annotate(newest=Subquery(newest))
    over = Q(embargo_until=None) | Q(embargo_until__lte=clock.now())
    return found.filter(over, Q(last_step__in=SHOWN_AFTER), newest__isnull=False)


def find_entry(benchmark: Benchmark, key: str) -> Entry:
    found = find_entries(benchmark).filter(key=key).first()
    if found is None:
        raise Http404("No such entry.")
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """A row of the leaderboard. ``rank`` counts entries with a rate; entries of equal rate share one."""

    rank: int | None
    entry: Entry
    version: EntryVersion


def rank(entries: Iterable[Entry]) -> list[Place]:
    """Return the accepted entries by falling rate; the rest has no rate. ``entries`` are those of `find_entries`."""
    accepted = {each.newest: each for each in entries if ledger.state_of(each) is State.ACCEPTED}  # type: ignore[attr-defined]
    versions = EntryVersion.objects.filter(pk__in=accepted).order_by()
    ordered = sorted(versions, key=lambda each: (each.rate is None, -(each.rate or 0), accepted[each.pk].pk))
    places: list[Place] = []
    for number, version in enumerate(ordered, 1):
        last = places[-1] if places else None
        same = last is not None and last.version.rate == version.rate
        position = None if version.rate is None else last.rank if same and last else number
        places.append(Place(position, accepted[version.pk], version))
    return places


def find_version(entry: Entry, number: int | None = None) -> EntryVersion:
    """Return a version by its number, or the newest."""
    versions = entry.versions.select_related("event").order_by("-number")
    found = (versions if number is None else versions.filter(number=number)).first()
    if found is None:
        raise Http404("No such version.")
    return found


def rows_of(version: EntryVersion) -> list[EntryRow]:
    """Return the rows of a version by task id: of each task the newest row up to this version."""
    rows = EntryRow.objects.filter(entry=version.entry_id, version__number__lte=version.number)
    newest = {row.task_id: row for row in rows.select_related("version").order_by("version__number")}
    return [newest[task_id] for task_id in sorted(newest)]


def describe_event(event: EntryEvent, *, hidden: str = "") -> dict[str, Any]:
    """Return an event as anybody may read it; ``hidden`` is why its text was taken down.

    Without its text, the digest of its content still proves the hash: see `EntryEvent.canonical`.
    """
    stated: dict[str, Any] = {
        "sequence": event.sequence,
        "kind": event.kind,
        "role": event.role,
        "at": instant(event.at),
        "content": digest(event.content),
        "previous": event.previous,
        "hash": event.hash,
    }
    if hidden:
        return stated | {"taken_down": hidden}
    return stated | event.content if Kind(event.kind) in PUBLIC else stated


def describe_events(entry: Entry) -> list[dict[str, Any]]:
    """Return the whole chain of a published entry."""
    hidden = {each.event_id: each.reason for each in entry.takedowns.all() if each.event_id}
    return [describe_event(each, hidden=hidden.get(each.pk, "")) for each in entry.events.select_related("entry")]


def describe_takedown(entry: Entry) -> str:
    """Return why the description of the entry (agent, model, link) is not shown; empty if it is."""
    return next((each.reason for each in entry.takedowns.all() if each.event_id is None), "")
