"""The public ledger: events of all entries of a benchmark, with the rows that they included, removed or rescored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation.formats.printable import counted
from annotation.models import Benchmark
from annotation.views.answers import paginate
from evaluations.models import EntryEvent, EntryRow, EntryVersion
from evaluations.registry import published
from evaluations.registry.chain import PUBLIC
from evaluations.registry.figures import Figures, describe_figures
from evaluations.registry.published import Description
from evaluations.views.public import answer, public
from evaluations.views.registry import DescribedEvent, address_of, describe_event, name_verdict

EVENTS = 15  # of a page
MOST_ROWS = 20  # of an event; its version has all


@dataclass(frozen=True, slots=True)
class Change:
    """A row that an event changed, in words; ``before`` is empty for a task that the entry did not have."""

    row: EntryRow
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with ``counts`` of the rows of a first version in words, or the first changed rows of a later one."""

    described: DescribedEvent
    about: Description
    address: str
    version: EntryVersion | None
    figures: Figures | None
    counts: list[str]
    changes: list[Change]
    more: int


@public
def registry_ledger(request: HttpRequest, slug: str) -> HttpResponse:
    """List the public events of all entries, the newest first; ?kind= filters them."""
    board = published.load_board(slug)
    return answer(request, board.seal, lambda: _show_ledger(request, board.benchmark))


def _show_ledger(request: HttpRequest, benchmark: Benchmark) -> HttpResponse:
    chosen = next((each for each in PUBLIC if each == request.GET.get("kind")), None)
    shown = paginate(request, published.list_events(benchmark, chosen or ""), EVENTS)
    kinds = [(each.value, each.label.lower(), each is chosen) for each in PUBLIC]
    context = {
        "benchmark": benchmark,
        "page": shown,
        "kinds": [("", "all events", chosen is None), *kinds],
        "events": _record(published.load_events(list(shown)), benchmark),
    }
    return render(request, "evaluations/registry_ledger.html", context | {"part": "ledger"})


def _record(events: Sequence[EntryEvent], benchmark: Benchmark) -> list[Recorded]:
    versions = {event.pk: event.version for event in events if hasattr(event, "version")}
    counts, changes = _count_rows(versions.values()), _find_changes(versions.values())
    found = []
    for event in events:
        version, address = versions.get(event.pk), address_of(benchmark, event.entry)
        rows, more = changes.get(version.pk, ([], 0)) if version else ([], 0)
        found.append(
            Recorded(
                described=describe_event(event, event.entry),
                about=published.describe_entry(event.entry),
                address=f"{address}?version={version.number}" if version else address,
                version=version,
                figures=describe_figures(version) if version else None,
                counts=counts.get(version.pk, []) if version else [],
                changes=rows,
                more=more,
            )
        )
    return found


def _count_rows(versions: Iterable[EntryVersion]) -> dict[int, list[str]]:
    """Return in words how many rows the first versions include, and how many they leave out for each reason."""
    first = [each.pk for each in versions if each.number == 1]
    grouped = EntryRow.objects.filter(version__in=first).order_by("version", "reason").values_list("version", "reason")
    words = {pk: [f"{counted(many, 'row')} included"] for pk, many in _count_included(first).items()}
    for pk, reason, many in grouped.filter(included=False).annotate(Count("pk")):
        words.setdefault(pk, []).append(f"{counted(many, 'row')} left out: {reason}")
    return words


def _count_included(versions: Sequence[int]) -> dict[int, int]:
    rows = EntryRow.objects.filter(version__in=versions, included=True).order_by().values("version")
    return dict(rows.annotate(many=Count("pk")).values_list("version", "many"))


def _find_changes(versions: Iterable[EntryVersion]) -> dict[int, tuple[list[Change], int]]:
    """Return the first rows of later versions with what they were before, and the number of the others."""
    numbers = {each.pk: each.number for each in versions if each.number > 1}
    rows: dict[int, list[EntryRow]] = defaultdict(list)
    for row in published.load_rows(EntryRow.objects.filter(version__in=numbers)):
        rows[row.version_id].append(row)
    shown = [row for each in rows.values() for row in each[:MOST_ROWS]]
    history = _load_history(shown)
    found = {}
    for pk, each in rows.items():
        changes = []
        for row in each[:MOST_ROWS]:
            before = [old for old in history[row.entry_id, row.task_id] if old.version.number < numbers[pk]]
            changes.append(Change(row, describe_row(before[-1]) if before else "", describe_row(row)))
        found[pk] = (changes, max(0, len(each) - MOST_ROWS))
    return found


def _load_history(rows: Sequence[EntryRow]) -> dict[tuple[int, str], list[EntryRow]]:
    """Return all rows of the same tasks, by entry and task, the oldest first."""
    same = EntryRow.objects.filter(entry__in={row.entry_id for row in rows}, task_id__in={row.task_id for row in rows})
    history: dict[tuple[int, str], list[EntryRow]] = defaultdict(list)
    for row in same.select_related("version").order_by("version__number"):
        history[row.entry_id, row.task_id].append(row)
    return history


def describe_row(row: EntryRow) -> str:
    return name_verdict(row.verdict) if row.included else "left out"
