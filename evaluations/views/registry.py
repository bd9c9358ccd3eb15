"""The public registry of a benchmark: its leaderboard, and entries with their rows and events.

What may be shown is decided in `evaluations.registry.published` alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from annotation.formats.printable import listing
from annotation.models import Benchmark
from annotation.records import Verdict
from annotation.views.answers import paginate
from annotation.views.viewer import number
from evaluations.comparison_tables import verdict_name
from evaluations.models import Entry, EntryEvent, EntryRow, EntryVersion
from evaluations.registry import chain, published
from evaluations.registry.chain import Kind, State
from evaluations.registry.figures import EVALUATED_BY, Figures, Method, describe_figures
from evaluations.registry.published import Description
from evaluations.tables import visible
from evaluations.views.public import answer, public

ENTRIES, ROWS, REMOVED = 25, 50, 5  # of a page: with long names it stays below 60 kB
MOST_TASKS = 20  # named in an event; the rows of its version have all
KEY = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Line:
    """An entry in a list, with its newest figures."""

    rank: int | None
    address: str
    about: Description
    version: EntryVersion
    figures: Figures

    @property
    def evaluated(self) -> str:
        return EVALUATED_BY[self.about.relationship]


def address_of(benchmark: Benchmark, entry: Entry, name: str = "registry-entry") -> str:
    return reverse(name, args=[benchmark.slug, entry.key])


def build_line(
    version: EntryVersion, benchmark: Benchmark, rank: int | None = None, entry: Entry | None = None
) -> Line:
    """Build a line; ``entry`` is that of the version, if it is not loaded with it."""
    entry = entry or version.entry
    about = published.describe_entry(entry)
    return Line(rank, address_of(benchmark, entry), about, version, describe_figures(version))


@public
def registries(request: HttpRequest) -> HttpResponse:
    found = published.list_registries()
    seal = repr([(each.slug, each.name, entries) for each, entries in found])
    return answer(request, seal, lambda: render(request, "evaluations/registries.html", {"found": found}))


@public
def registry(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the leaderboard; with ?compare= each row links to the comparison with that entry."""
    board = published.load_board(slug)
    return answer(request, board.seal, lambda: _show_board(request, board))


def _show_board(request: HttpRequest, board: published.Board) -> HttpResponse:
    shown = paginate(request, board.rank(), ENTRIES)
    removed = board.removed[-REMOVED:][::-1] if shown.number == shown.paginator.num_pages else []
    versions = published.load_versions([place.version for place in shown] + [each.version for each in removed])
    compared = request.GET.get("compare", "")
    context = {
        "benchmark": board.benchmark,
        "page": shown,
        "lines": [build_line(versions[place.version], board.benchmark, place.rank) for place in shown],
        "removed": [build_line(versions[each.version], board.benchmark) for each in removed],
        "more_removed": len(board.removed) - len(removed),
        "compared": _find_compared(board.benchmark, compared),
        "methods": Method,
    }
    return render(request, "evaluations/registry.html", context | {"part": "board"})


# --- an entry --------------------------------------------------------------------------------------------------------

FILTERS = {
    "": "all rows",
    "1": "success",
    "0": "failure",
    "2": "not executable",
    "left-out": "left out",
    "changed": "changed",
}


def find_version(request: HttpRequest, entry: Entry) -> EntryVersion:
    """Return the version of ?version=, or the newest; Http404 for one that does not exist."""
    if "version" not in request.GET:
        return published.find_version(entry)
    asked = number(request.GET["version"])
    if asked is None:
        raise Http404("No such version.")
    return published.find_version(entry, asked)


def _find_compared(benchmark: Benchmark, key: str) -> published.Description | None:
    """Return the description of the entry that another one is chosen for."""
    return published.describe_entry(published.find_entry(benchmark, key)) if KEY.fullmatch(key) else None


@public
def entry(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """Show an entry with the figures and rows of ?version=, or the newest; ?rows= is one of `FILTERS`."""
    benchmark = published.find_benchmark(slug)
    found = published.find_entry(benchmark, key)
    version = find_version(request, found)
    return answer(
        request,
        published.seal_entry(benchmark, found),
        lambda: _show_entry(request, benchmark, found, version),
    )


def _show_entry(request: HttpRequest, benchmark: Benchmark, found: Entry, version: EntryVersion) -> HttpResponse:
    rows = published.rows_of(version)
    groups = {name: [row for row in rows if _fits(row, name)] for name in FILTERS}
    chosen = request.GET.get("rows", "")
    chosen = chosen if chosen in FILTERS else ""
    events, line = describe_events(found), build_line(version, benchmark, entry=found)
    context = {
        "benchmark": benchmark,
        "entry": found,
        "line": line,
        "removed": _find_removal(found, events),
        "versions": [(each, describe_figures(each)) for each in found.versions.select_related("event")][::-1],
        "newest": version.pk == found.newest,  # type: ignore[attr-defined]
        "filters": [(name, words, len(groups[name]), name == chosen) for name, words in FILTERS.items()],
        "chosen": FILTERS[chosen],
        "page": paginate(request, [(row, name_verdict(row.verdict)) for row in groups[chosen]], ROWS),
        "events": events[::-1],
        "alternative": describe_badge(benchmark, line, removed=chain.state_of(found) is State.REMOVED),
        "badge": request.build_absolute_uri(address_of(benchmark, found, "registry-badge")),
        "here": request.build_absolute_uri(address_of(benchmark, found)),
    }
    return render(request, "evaluations/registry_entry.html", context)


def describe_badge(benchmark: Benchmark, line: Line, *, removed: bool) -> str:
    """Return the text alternative of the badge."""
    stated = "removed from the registry" if removed else f"success rate {line.figures.in_words}"
    return visible(f"{line.about.name} on {benchmark.name}: {stated}")


def _fits(row: EntryRow, name: str) -> bool:
    match name:
        case "":
            return True
        case "left-out":
            return not row.included
        case "changed":
            return row.version.number > 1
        case _:
            return row.included and row.verdict == int(name)


def name_verdict(verdict: int | None) -> str:
    return verdict_name(None if verdict is None else Verdict(verdict))


@dataclass(frozen=True, slots=True)
class DescribedEvent:
    """An event as anybody may read it: its text, or why the text was taken down; ``facts`` by name, in words."""

    event: EntryEvent
    reason: str
    taken_down: str
    facts: list[tuple[str, str]]


def describe_events(found: Entry) -> list[DescribedEvent]:
    return [describe_event(event, found) for event in published.chain_of(found)]


def describe_event(event: EntryEvent, of: Entry) -> DescribedEvent:
    stated = published.describe_event(event, hidden=published.explain_hidden(event, of))
    return DescribedEvent(
        event, stated.get("reason", ""), stated.get("taken_down", ""), _list_facts(stated.get("facts", {}))
    )


def _list_facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of an event in words."""
    found = []
    if tasks := facts.get("tasks"):
        found.append(("Tasks", listing(list(tasks), MOST_TASKS)))
    for name, value in facts.get("before", {}).items():
        found.append((f"Earlier {name.replace('_', ' ')}", str(value) or "none"))
    if "event" in facts:
        hidden = "the description of the entry" if facts["event"] is None else f"that of event {facts['event']}"
        found.append(("Text", hidden))
    if "upheld" in facts:
        found.append(("Appeal", "upheld" if facts["upheld"] else "dismissed"))
    return found


def _find_removal(found: Entry, events: Sequence[DescribedEvent]) -> DescribedEvent | None:
    if chain.state_of(found) is not State.REMOVED:
        return None
    return next(each for each in reversed(events) if each.event.kind == Kind.REMOVED)
