"""For printed pages: cell texts, tables split to fit the paper, and formulas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from evaluations.charts.drawing import text_width
from evaluations.tables import Cell, Column, Table, visible

PAPER = 680  # pixels of A4 between its margins, as in static/css/results.css
SIZE = 11  # font size of a table in print; static/css/charts.css has 8pt, which is a bit less
LESS = 9  # font size of intervals and counts
PADDING = 12  # of a cell, both sides together
NAMES = 159  # maximum width of a column of names
REASON = 96  # maximum width of the reason why a figure is undefined, which wraps
REPEATED = 2  # maximum number of leading name columns that every part repeats


@dataclass(frozen=True, slots=True)
class Block:
    """Columns that fit next to each other on paper, and their cells in every row."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


def blocks(table: Table, width: int = PAPER) -> list[Block]:
    """Split the table into as few parts as fit ``width``, about equally wide; every part repeats the leading names.

    Widths are estimated, like all text widths in charts. A single column that is too wide is not divided.
    """
    body = table.body
    widths = [_width(column, [row[place] for row in body]) for place, column in enumerate(table.columns)]
    kept = _leading(table.columns, body)
    groups = _even(widths, kept, width)
    return [
        Block([table.columns[place] for place in places], [[row[place] for place in places] for row in body])
        for places in groups
    ]


def _leading(columns: Sequence[Column], body: Sequence[Sequence[Cell]]) -> int:
    """Count the leading columns that name the row: one, or two if the first is not enough."""
    names = next((place for place, column in enumerate(columns) if column.numeric), len(columns))
    alone = len({row[0].text for row in body}) == len(body) if columns else True
    return min(1 if alone else max(1, names), REPEATED, len(columns))


def _even(widths: Sequence[float], kept: int, width: float) -> list[list[int]]:
    """Return the groups of as few parts as possible, about equally wide if they fit."""
    found = _groups(widths, kept, width)
    shared: list[list[int]] = [list(range(kept)) for _ in found]
    before, every = 0.0, sum(widths[kept:])
    for place in range(kept, len(widths)):
        shared[int(len(found) * (before + widths[place] / 2) / every)].append(place)
        before += widths[place]
    fits = all(len(group) > kept and sum(widths[place] for place in group) <= width for group in shared)
    return shared if fits else found


def _groups(widths: Sequence[float], kept: int, width: float) -> list[list[int]]:
    first = list(range(kept))
    groups = [[*first]]
    for place in range(kept, len(widths)):
        if len(groups[-1]) > kept and sum(widths[one] for one in [*groups[-1], place]) > width:
            groups.append([*first])
        groups[-1].append(place)
    return groups


def _width(column: Column, cells: Sequence[Cell]) -> float:
    heading = max((text_width(word, SIZE) for word in visible(column.name).split()), default=0.0)
    return PADDING + max([min(heading, NAMES), *(_cell_width(cell) for cell in cells)])


def _cell_width(cell: Cell) -> float:
    wide = text_width(cell.text, SIZE)
    if cell.undefined:
        return min(wide, REASON)
    if not cell.numeric:
        return min(wide, NAMES)
    beside = text_width(f" {cell.counts}", LESS) if cell.counts else 0.0
    return max(wide + beside, text_width(cell.interval, LESS))


LONGEST = 24  # rows
LONGEST_WITH_FILE = 4  # rows of a table that is also a CSV file

register = template.Library()
register.filter("visible", visible, is_safe=False)


@register.filter
def on_paper(table: Table, csv: str = "") -> list[Block]:
    """Return the parts of a table wider than paper; empty if it fits, or is longer than a page.

    A longer table would make the page large and fill dozens of sheets. ``csv`` is the address of its file, if any.
    """
    if len(table.rows) > (LONGEST_WITH_FILE if csv else LONGEST):
        return []
    parts = blocks(table)
    return parts if len(parts) > 1 else []


@register.filter
def formula(text: str) -> SafeString:
    """Return the text with indices and powers as HTML: "D_o", "sum_i", "m^2"."""
    indexed = re.sub(r"\b(sum|[A-Za-z])_([a-z]{1,2})\b", r"\1<sub>\2</sub>", escape(text))
    return mark_safe(re.sub(r"\^(\d)", r"<sup>\1</sup>", indexed))  # noqa: S308 - escaped above
