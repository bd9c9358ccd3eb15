"""Shares of a whole, one bar for each row: unanimous, two to one, three ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from evaluations.charts.drawing import Label, Layout, RowChart, named, plural, text_width
from evaluations.tables import written

ROW = 34
LEGEND = 28
PARTS = 3  # fillings that can be distinguished in black and white


NARROW = Layout(286, 20, (1, 161), 168, 286)


@dataclass(frozen=True, slots=True)
class Segment:
    """``fill`` is 0 (plain), 1 (hatched) or 2 (dotted); ``text`` is its share if it fits, centred at ``middle``."""

    fill: int
    x: float
    width: float
    text: str
    middle: float
    text_width: float
    title: str

    @property
    def plate_at(self) -> float:
        return self.middle - self.text_width / 2


@dataclass(frozen=True, slots=True)
class Bar:
    y: float
    name: Label
    segments: tuple[Segment, ...]
    counts: Label


@dataclass(frozen=True, slots=True)
class Key:
    fill: int
    x: float
    y: float
    name: Label


@dataclass(frozen=True, slots=True)
class Stacked(RowChart):
    template: ClassVar[str] = "evaluations/charts/stacked.html"
    keys: tuple[Key, ...]

    @property
    def name_at(self) -> int:
        """Return the upper edge of a row's name, relative to that of its bar."""
        return -self.layout.above

    @property
    def counts_width(self) -> int:
        return self.width - self.layout.counts


def stacked(name: str, title: str, parts: Sequence[str], rows: Sequence[tuple[str, Sequence[int]]]) -> Stacked:
    """Draw a bar of equal length for every row (name, counts of each part), with up to three ``parts``."""
    if len(parts) > PARTS or any(len(numbers) != len(parts) for _, numbers in rows):
        raise ValueError("A stacked chart has up to three parts, and a number for each in every row.")
    narrow = _laid_out(NARROW, f"{name}-narrow", title, parts, rows)
    return replace(
        _laid_out(Layout.beside([row[0] for row in rows], counts=346, width=512), name, title, parts, rows),
        narrow=narrow,
    )


def _laid_out(
    layout: Layout, name: str, title: str, parts: Sequence[str], rows: Sequence[tuple[str, Sequence[int]]]
) -> Stacked:
    keys = _stacked_keys(parts) if layout.above else _keys(parts, layout.width - layout.plot[0])
    top, high = LEGEND + max((key.y for key in keys), default=0), ROW + layout.above
    names = Label.all_fitting([row[0] for row in rows], layout.names)
    return Stacked(
        name=name,
        title=title,
        description=" ".join(_in_words(row, parts) for row in rows[:3]) + _others(len(rows)),
        width=layout.width,
        height=math.ceil(top + high * len(rows) + 6),
        layout=layout,
        narrow=None,
        keys=keys,
        rows=tuple(
            Bar(
                top + high * place + layout.above + 4,
                label,
                _segments(row, parts, layout.plot),
                Label.fitting(" · ".join(f"{number:,}" for number in row[1]), layout.width - layout.counts, 12),
            )
            for place, (row, label) in enumerate(zip(rows, names, strict=True))
        ),
    )


def _segments(row: tuple[str, Sequence[int]], parts: Sequence[str], plot: tuple[int, int]) -> tuple[Segment, ...]:
    total, done, found = sum(row[1]), 0, []
    for fill, (part, number) in enumerate(zip(parts, row[1], strict=True)):
        if number:
            start, end = (plot[0] + (plot[1] - plot[0]) * part_done / total for part_done in (done, done + number))
            share = written(number / total, "rate")
            text = next((text for text in (share, share.removesuffix("%")) if _plate(text) + 2 <= end - start), "")
            title = f"{named(row[0])}, {named(part)}: {share} ({number:,} of {total:,})"
            middle = round((start + end) / 2, 1)
            found.append(Segment(fill, round(start, 1), round(end - start, 1), text, middle, _plate(text), title))
            done += number
    return tuple(found)


def _plate(text: str) -> int:
    """Compute the width of the background that a text needs on a hatched area."""
    return round(text_width(text) + 4)


def _keys(parts: Sequence[str], room: int) -> tuple[Key, ...]:
    keys, x = [], 0.0
    for fill, part in enumerate(parts):
        keys.append(Key(fill, round(x, 1), 0, Label.fitting(part, room / len(parts) - 45)))
        x += 18 + 7 + text_width(keys[-1].name.text) + 20  # 18 + 7 + 20 are the 45 above
    return tuple(keys)


def _stacked_keys(parts: Sequence[str]) -> tuple[Key, ...]:
    return tuple(Key(fill, 0, 20 * fill, Label.fitting(part, NARROW.width - 30)) for fill, part in enumerate(parts))


def _in_words(row: tuple[str, Sequence[int]], parts: Sequence[str]) -> str:
    total = sum(row[1])
    if not total:
        return f"{named(row[0])}: no cases."
    shares = (
        f"{named(part)} {written(number / total, 'rate')} ({number:,})"
        for part, number in zip(parts, row[1], strict=True)
    )
    return f"{named(row[0])}, of {plural(total, 'case')}: {', '.join(shares)}."


def _others(rows: int) -> str:
    if not rows:
        return "There are no rows."
    return f" And {plural(rows - 3, 'more row')}." if rows > 3 else ""
