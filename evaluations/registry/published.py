"""Find what anybody may read of a benchmark's entries: accepted and removed ones, after their embargo.

Everything public is found here, so that no page, feed or badge decides by itself what it may show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest
from django.http import Http404
from django.utils.crypto import salted_hmac

from annotation import clock
from annotation.backups.manifest import product_version
from annotation.models import Benchmark
from annotation.models.events import digest, instant
from evaluations.models import Entry, EntryEvent, EntryRow, EntryVersion, Intake, Relationship, Takedown
from evaluations.registry import chain
from evaluations.registry.chain import PUBLIC, STATE_AFTER, Kind, State

_find_program_version = cache(product_version)
SHOWN_AFTER = [str(kind) for kind, state in chain.STATE_AFTER.items() if state in (State.ACCEPTED, State.REMOVED)]


def list_registries() -> list[tuple[Benchmark, int]]:
    """Return the benchmarks with a public registry in order of name, each with its number of published entries."""
    found = Benchmark.objects.filter(intake__public=True, archived_at=None).order_by("name", "pk")
    counted = _filter_published(Entry.objects.filter(benchmark__in=found)).order_by().values("benchmark")
    entries = dict(counted.annotate(number=Count("pk")).values_list("benchmark", "number"))
    return [(each, entries.get(each.pk, 0)) for each in found]


def has_registries() -> bool:
    return Intake.objects.filter(public=True, benchmark__archived_at=None).exists()


def find_benchmark(slug: str) -> Benchmark:
    """Return a benchmark whose registry is public; Http404 for all others."""
    found = Intake.objects.filter(public=True, benchmark__slug=slug, benchmark__archived_at=None)
    intake = found.select_related("benchmark").first()
    if intake is None:
        raise Http404("No such benchmark.")
    return intake.benchmark


def _filter_published(entries: QuerySet[Entry]) -> QuerySet[Entry]:
    newest = EntryVersion.objects.filter(entry=OuterRef("pk")).order_by("-number").values("pk")[:1]
    over = Q(embargo_until=None) | Q(embargo_until__lte=clock.now())
    found = chain.with_state(entries).annotate(newest=Subquery(newest))
    return found.filter(over, Q(deciding_kind__in=SHOWN_AFTER), newest__isnull=False)


def find_entries(benchmark: Benchmark) -> QuerySet[Entry]:
    """Return the published entries with ``deciding_kind``, ``newest`` and ``head``.

    ``newest`` is the primary key of the newest version, ``head`` the hash of the last event of the chain.
    """
    heads = EntryEvent.objects.filter(entry=OuterRef("pk")).order_by("-sequence").values("hash")[:1]
    published = _filter_published(Entry.objects.filter(benchmark=benchmark)).annotate(head=Subquery(heads))
    return published.prefetch_related("takedowns")


def find_entry(benchmark: Benchmark, key: str) -> Entry:
    found = find_entries(benchmark).filter(key=key).first()
    if found is None:
        raise Http404("No such entry.")
    return found


class Listed(NamedTuple):
    """A published entry: what its place depends on, and the ``head`` of its chain, which every event changes."""

    entry: int
    version: int
    rate: float | None
    deciding_kind: str
    head: str


class Place(NamedTuple):
    """A row of the leaderboard. ``rank`` counts entries with a rate; entries of equal rate share one."""

    rank: int | None
    entry: int
    version: int


@dataclass(frozen=True, slots=True)
class Board:
    """The published entries of a benchmark. ``seal`` changes with everything that its pages show."""

    benchmark: Benchmark
    listed: list[Listed]
    seal: str

    @property
    def removed(self) -> list[Listed]:
        return [each for each in self.listed if STATE_AFTER[Kind(each.deciding_kind)] is State.REMOVED]

    def rank(self) -> list[Place]:
        """Return the accepted entries, the highest rate first; those without a rate are last."""
        removed = {each.entry for each in self.removed}
        accepted = [each for each in self.listed if each.entry not in removed]
        accepted.sort(key=lambda each: (each.rate is None, -(each.rate or 0), each.entry))
        places: list[Place] = []
        for number, (before, each) in enumerate(zip([None, *accepted], accepted, strict=False), 1):
            same = before is not None and before.rate == each.rate
            position = None if each.rate is None else places[-1].rank if same else number
            places.append(Place(position, each.entry, each.version))
        return places


def load_board(slug: str) -> Board:
    """Return what a leaderboard needs in three queries, whatever the number of entries; Http404 as `find_benchmark`."""
    benchmark = find_benchmark(slug)
    rate = EntryVersion.objects.filter(entry=OuterRef("pk")).order_by("-number").values("rate")[:1]
    rows = find_entries(benchmark).prefetch_related(None).annotate(rate=Subquery(rate)).order_by("pk")
    listed = [Listed(*row) for row in rows.values_list("pk", "newest", "rate", "deciding_kind", "head")]
    known = {each.entry for each in listed}
    hidden = Takedown.objects.filter(entry__benchmark=benchmark).order_by("pk").values_list("entry", "pk")
    taken_down = [pk for entry, pk in hidden if entry in known]
    return Board(benchmark, listed, make_seal(benchmark, listed, taken_down))


def make_seal(benchmark: Benchmark, *parts: Any) -> str:
    """Return a value that changes with a page: with the parts, the benchmark's name and the version of this program.

    It may depend on published entries only. Otherwise it would reveal that something happens to the others.
    """
    # Keyed, or the primary keys among the parts could be guessed: they count the entries that are not published.
    said = repr((_find_program_version(), benchmark.name, parts))
    return salted_hmac("registry seal", said, algorithm="sha256").hexdigest()[:32]


def seal_entry(benchmark: Benchmark, entry: Entry) -> str:
    """Return the seal of the pages of one entry of `find_entries`."""
    return make_seal(benchmark, entry.pk, entry.head, [each.pk for each in entry.takedowns.all()])  # type: ignore[attr-defined]


def load_versions(keys: Iterable[int]) -> dict[int, EntryVersion]:
    """Return published versions by primary key, with their entries, takedowns and events; two queries."""
    versions = EntryVersion.objects.select_related("entry", "event").prefetch_related("entry__takedowns")
    return versions.in_bulk(list(keys))


def find_version(entry: Entry, number: int | None = None) -> EntryVersion:
    """Return a version by its number, or the newest."""
    versions = entry.versions.select_related("event").order_by("-number")
    found = (versions if number is None else versions.filter(number=number)).first()
    if found is None:
        raise Http404("No such version.")
    return found


def rows_of(version: EntryVersion) -> list[EntryRow]:
    """Return the rows of a version by task id: of each task the newest row up to this version."""
    found = load_rows(EntryRow.objects.filter(entry=version.entry_id, version__number__lte=version.number))
    newest = {row.task_id: row for row in found}
    return [newest[task_id] for task_id in sorted(newest)]


def load_rows(rows: QuerySet[EntryRow]) -> list[EntryRow]:
    """Return rows by version and task, with the reasons of takedowns in place of texts that were taken down."""
    found = list(rows.select_related("version__event__takedown").order_by("version__number", "task_id"))
    for row in found:
        if (takedown := getattr(row.version.event, "takedown", None)) is not None and row.reason:
            row.reason = takedown.reason
    return found


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


def explain_hidden(event: EntryEvent, entry: Entry) -> str:
    """Return why the text of an event is not shown; empty if it is.

    Corrections state the earlier description, so they go with the description.
    """
    reasons = {each.event_id: each.reason for each in entry.takedowns.all()}
    return reasons.get(event.pk) or (describe_takedown(entry) if event.kind == Kind.CORRECTED else "")


def describe_events(entry: Entry) -> list[dict[str, Any]]:
    """Return the whole chain of a published entry."""
    return [describe_event(each, hidden=explain_hidden(each, entry)) for each in chain_of(entry)]


def chain_of(entry: Entry) -> list[EntryEvent]:
    found = list(entry.events.all())
    for event in found:
        event.entry = entry  # its key is part of the hash
    return found


def list_events(benchmark: Benchmark, kind: str = "") -> list[int]:
    """Return the primary keys of the public events of all published entries, the newest first; ``kind`` filters them.

    An event of an entry that was under an embargo counts from the end of the embargo: before, nobody could read it.
    """
    published = find_entries(benchmark).prefetch_related(None).order_by().values("pk")
    events = EntryEvent.objects.filter(kind__in=[kind] if kind in PUBLIC else PUBLIC, entry__in=published)
    return list(events.annotate(shown_at=_SHOWN_AT).order_by("-shown_at", "-pk").values_list("pk", flat=True))


_SHOWN_AT = Greatest("at", Coalesce("entry__embargo_until", "at"))


def load_events(keys: Sequence[int]) -> list[EntryEvent]:
    """Return events of `list_events` in their order, with entry, takedowns, version (if any) and ``shown_at``."""
    events = EntryEvent.objects.annotate(shown_at=_SHOWN_AT).select_related("entry", "version")
    found = events.prefetch_related("entry__takedowns").in_bulk(list(keys))
    return [found[key] for key in keys]


@dataclass(frozen=True, slots=True)
class Description:
    """What an entry states about its agent. ``hidden`` is why this was taken down; the texts are then empty."""

    key: str
    agent: str
    organisation: str
    model: str
    scaffold: str
    agent_version: str
    link: str
    run_on: date | None
    cost_usd: Decimal | None
    relationship: Relationship
    hidden: str

    @property
    def name(self) -> str:
        return self.agent or f"Entry {self.key}"


TEXTS = ("agent", "organisation", "model", "scaffold", "agent_version", "link")


def describe_takedown(entry: Entry) -> str:
    """Return why the description of the entry (agent, model, link) is not shown; empty if it is."""
    return next((each.reason for each in entry.takedowns.all() if each.event_id is None), "")


def describe_entry(entry: Entry) -> Description:
    hidden = describe_takedown(entry)
    texts = {name: "" if hidden else getattr(entry, name) for name in TEXTS}
    if not texts["link"].startswith(("https://", "http://")):
        texts["link"] = ""
    return Description(
        key=entry.key,
        run_on=entry.run_on,
        cost_usd=entry.cost_usd,
        relationship=Relationship(entry.relationship),
        hidden=hidden,
        **texts,
    )
