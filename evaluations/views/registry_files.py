"""Feeds, data and badges of a public registry."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed

from annotation.models import Benchmark
from annotation.views.answers import paginate
from evaluations.models import Entry, EntryEvent, EntryRow, EntryVersion
from evaluations.publication.options import Options, ResultFormat
from evaluations.registry import chain, documents, published
from evaluations.registry.chain import State
from evaluations.registry.documents import Document
from evaluations.registry.figures import describe_figures, measure
from evaluations.tables import Column, Table, tabulate, visible
from evaluations.views.exporting import csv_file
from evaluations.views.public import answer, public
from evaluations.views.registry import Line, address_of, build_line, describe_badge, describe_event, find_version

ENTRIES, LINES, ITEMS = 20, 50, 30  # of a page of entries.json, a page of entries.csv, and a feed
LONGEST_TASK = 100  # characters of ?task=


def _answer_json(document: Any, media_type: str = "application/json") -> HttpResponse:
    return HttpResponse(json.dumps(document, indent=1).encode() + b"\n", content_type=media_type)


# --- the registry ----------------------------------------------------------------------------------------------------


@public
def entries_json(request: HttpRequest, slug: str) -> HttpResponse:
    """List all published entries with versions and chains: the ranked ones, then the removed ones, in pages."""
    board = published.load_board(slug)
    return answer(request, board.seal, lambda: _answer_json(_write_page(request, board)))


def _write_page(request: HttpRequest, board: published.Board) -> Document:
    places = board.rank()
    ranks = {each.entry: each.rank for each in places}
    ordered = [each.entry for each in places] + [each.entry for each in board.removed]
    shown = paginate(request, ordered, ENTRIES)
    rows = published.find_entries(board.benchmark).prefetch_related("versions__event", "events")
    loaded = rows.in_bulk(list(shown.object_list))
    written = [
        {
            "rank": ranks.get(pk),
            "url": request.build_absolute_uri(address_of(board.benchmark, loaded[pk])),
            **documents.write_entry(loaded[pk], loaded[pk].versions.all()),
        }
        for pk in shown
    ]
    here = request.build_absolute_uri(request.path)
    following = f"{here}?page={shown.next_page_number()}" if shown.has_next() else None
    return documents.write_board(
        written, board.benchmark, total=len(ordered), page=shown.number, pages=shown.paginator.num_pages, next=following
    )


@public
def entries_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the leaderboard, in pages of `LINES` entries."""
    board = published.load_board(slug)
    return answer(request, board.seal, lambda: csv_file([_tabulate(request, board)], "entries", slug, "registry"))


def _tabulate(request: HttpRequest, board: published.Board) -> Table:
    places = list(paginate(request, board.rank(), LINES))
    versions = published.load_versions(place.version for place in places)
    lines = [build_line(versions[place.version], board.benchmark, place.rank) for place in places]
    columns = [
        Column("Rank", "number", of="rank"),
        Column("Entry", of="about.key"),
        Column("Agent", of="about.name"),
        Column("Organisation", of="about.organisation"),
        Column("Model", of="about.model"),
        Column("Success rate", "number", of="version.rate"),
        Column("Low", "number", of="version.low"),
        Column("High", "number", of="version.high"),
        Column("Rows", "count", of="version.rows"),
        Column("Method", of="version.method"),
        Column("Judged by", of="figures.who"),
        Column("Sample alike", "count", of=lambda line: line.version.audited.get("alike")),
        Column("Sample size", "count", of=lambda line: line.version.audited.get("size")),
        Column("Evaluated by", of=lambda line: line.about.relationship.value),
        Column("Bundle", of="version.manifest"),
        Column("Tasks", of="version.tasks"),
        Column("Version", "count", of="version.number"),
        Column("Published", of=lambda line: f"{line.version.event.at:%Y-%m-%d}"),
    ]
    return tabulate("entries", "Entries", columns, lines)


@public
def atom(request: HttpRequest, slug: str) -> HttpResponse:
    board = published.load_board(slug)
    return answer(request, board.seal, lambda: _write_atom(request, board.benchmark))


def _write_atom(request: HttpRequest, benchmark: Benchmark) -> HttpResponse:
    title = visible(f"Registry of {benchmark}")
    home = request.build_absolute_uri(reverse("registry", args=[benchmark.slug]))
    feed = Atom1Feed(
        title, home, "", language="en", feed_url=request.build_absolute_uri(request.path), author_name=title
    )
    for item in _list_items(request, benchmark):
        feed.add_item(
            item["title"],
            item["url"],
            item["content_text"],
            unique_id=item["id"],
            pubdate=item["date"],
            updateddate=item["date"],
        )
    return HttpResponse(feed.writeString("utf-8"), content_type="application/atom+xml; charset=utf-8")


@public
def json_feed(request: HttpRequest, slug: str) -> HttpResponse:
    board = published.load_board(slug)
    return answer(request, board.seal, lambda: _write_feed(request, board.benchmark))


def _write_feed(request: HttpRequest, benchmark: Benchmark) -> HttpResponse:
    items = [
        {name: item[name] for name in ("id", "url", "title", "content_text")}
        | {"date_published": item["date"].isoformat(timespec="seconds")}
        for item in _list_items(request, benchmark)
    ]
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": visible(f"Registry of {benchmark}"),
        "home_page_url": request.build_absolute_uri(reverse("registry", args=[benchmark.slug])),
        "feed_url": request.build_absolute_uri(request.path),
        "language": "en",
        "items": items,
    }
    return _answer_json(document, "application/feed+json")


def _list_items(request: HttpRequest, benchmark: Benchmark) -> list[dict[str, Any]]:
    """Return the newest events for feeds: id, url, title, content_text and date, without control characters."""
    events = published.load_events(published.list_events(benchmark)[:ITEMS])
    return [_build_item(request, benchmark, event) for event in events]


def _build_item(request: HttpRequest, benchmark: Benchmark, event: EntryEvent) -> dict[str, Any]:
    entry, described = event.entry, describe_event(event, event.entry)
    url = request.build_absolute_uri(address_of(benchmark, entry))
    version = getattr(event, "version", None)
    parts = [f"{describe_figures(version).in_words}." if version else "", described.reason]
    if described.taken_down:
        parts.append(f"The text of this event was taken down: {described.taken_down}")
    return {
        "id": f"{url}#event-{event.sequence}",
        "url": f"{url}#event-{event.sequence}",
        "title": visible(f"{published.describe_entry(entry).name}: {event.get_kind_display().lower()}"),
        "content_text": visible(" ".join(part for part in parts if part)),
        "date": event.shown_at,  # type: ignore[attr-defined]
    }


# --- an entry --------------------------------------------------------------------------------------------------------


def _load(request: HttpRequest, slug: str, key: str) -> tuple[Benchmark, Entry, EntryVersion]:
    benchmark = published.find_benchmark(slug)
    entry = published.find_entry(benchmark, key)
    return benchmark, entry, find_version(request, entry)


@public
def entry_json(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """Return one entry with all its rows: of each task, the newest row up to a version belongs to that version."""
    benchmark = published.find_benchmark(slug)
    entry = published.find_entry(benchmark, key)

    def build() -> HttpResponse:
        versions = entry.versions.select_related("event")
        rows = published.load_rows(EntryRow.objects.filter(entry=entry))
        url = request.build_absolute_uri(address_of(benchmark, entry))
        written = {"url": url, **documents.write_entry(entry, versions), "rows": [documents.write_row(r) for r in rows]}
        return _answer_json(documents.write_board([written], benchmark))

    return answer(request, published.seal_entry(benchmark, entry), build)


@public
def rows_csv(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """Return the rows of ?version=, or the newest version."""
    benchmark, entry, version = _load(request, slug, key)
    columns = [
        Column("Task", of="task_id"),
        Column("Task version", of="task_version"),
        Column("Text", of="text"),
        Column("Verdict", "number", of="verdict"),
        Column("Included", of=lambda row: "yes" if row.included else "no"),
        Column("Reason", of="reason"),
        Column("Since version", "count", of="version.number"),
    ]

    def build() -> HttpResponse:
        table = tabulate("rows", "Rows", columns, published.rows_of(version))
        return csv_file([table], "rows", slug, key, f"version-{version.number}")

    return answer(request, published.seal_entry(benchmark, entry), build)


@public
def badge(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    benchmark, entry, version = _load(request, slug, key)

    def build() -> HttpResponse:
        line = build_line(version, benchmark, entry=entry)
        removed = chain.state_of(entry) is State.REMOVED
        image = render_to_string("evaluations/registry_badge.svg", draw_badge(benchmark, line, removed=removed))
        return HttpResponse(image, content_type="image/svg+xml; charset=utf-8")

    return answer(request, published.seal_entry(benchmark, entry), build)


LONGEST_NAME = 32  # characters of the benchmark on a badge
CHARACTER, PADDING = 7, 8  # pixels; texts are stretched or squeezed to their width, whatever the font
COLOURS = {"people": "#146c3f", "sample": "#2f5bd3", "judge": "#7a4f00", "removed": "#56616d"}
SHORT = {"people": "by people", "sample": "by a sample", "judge": "by a judge only"}


def draw_badge(benchmark: Benchmark, line: Line, *, removed: bool) -> dict[str, Any]:
    """Return the context of the badge: two texts with their positions and widths in pixels."""
    name = visible(benchmark.name)
    left = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    right = "removed" if removed else f"{line.figures.rate} {SHORT[line.figures.method]}"
    widths = [CHARACTER * len(text) for text in (left, right)]
    parts = [width + 2 * PADDING for width in widths]
    return {
        "left": left,
        "right": right,
        "widths": widths,
        "parts": parts,
        "middles": [parts[0] / 2, parts[0] + parts[1] / 2],
        "total": sum(parts),
        "colour": COLOURS["removed" if removed else line.figures.method],
        "title": describe_badge(benchmark, line, removed=removed),
    }


# --- formats of others -----------------------------------------------------------------------------------------------


def _load_stated(request: HttpRequest, slug: str, key: str) -> tuple[Benchmark, Entry, EntryVersion]:
    """Return the same as `_load`; Http404 if removed or without a rate, which other sites would show without notes."""
    benchmark, entry, version = _load(request, slug, key)
    if chain.state_of(entry) is State.REMOVED or measure(version).value is None:
        raise Http404("No such results.")
    return benchmark, entry, version


@public
def every_eval_ever(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    benchmark, entry, version = _load_stated(request, slug, key)
    source = request.build_absolute_uri(address_of(benchmark, entry))
    return answer(
        request,
        published.seal_entry(benchmark, entry),
        lambda: _answer_json(documents.write_every_eval_ever(benchmark, entry, version, source)),
    )


@public
def eval_results(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """Return the YAML for `.eval_results/`; ?dataset= and ?task= name the benchmark on Hugging Face."""
    benchmark, entry, version = _load_stated(request, slug, key)
    task = request.GET.get("task", "")[:LONGEST_TASK]
    options = Options(
        dataset=request.GET.get("dataset", ""),
        task_id=visible(task) or "default",
        url=request.build_absolute_uri(address_of(benchmark, entry)),
    )
    if problems := options.problems(ResultFormat.EVAL_RESULTS):
        says = " ".join(problem.message for problem in problems)
        return HttpResponse(f"{says} Add ?dataset=owner/name.\n", status=400, content_type="text/plain; charset=utf-8")
    return answer(
        request,
        published.seal_entry(benchmark, entry),
        lambda: HttpResponse(
            documents.write_eval_results(entry, version, options), content_type="application/yaml; charset=utf-8"
        ),
    )
