"""Shares of a whole, a bar a row: unanimous, two to one, three ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from evaluations.charts.drawing import Chart, Label, named, plural, text_width
from evaluations.tables import written

NAMES = 184
PLOT = (200, 520)
WIDTH = 696
ROW = 34
LEGEND = 28
PARTS = 3  # as many fillings can be told apart in black and white


@dataclass(frozen=True, slots=True)
class Segment:
    """``fill`` is 0 (plain), 1 (hatched) or 2 (dotted); ``text`` its share where it fits in, at ``middle``."""

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
    name: Label


@dataclass(frozen=True, slots=True)
class Stacked(Chart):
    template: ClassVar[str] = "evaluations/charts/stacked.html"
    keys: tuple[Key, ...]
    rows: tuple[Bar, ...]

    names_width: ClassVar[int] = NAMES
    plot_start: ClassVar[int] = PLOT[0]
    counts_at: ClassVar[int] = PLOT[1] + 10
    counts_width: ClassVar[int] = WIDTH - PLOT[1] - 10
    why_at: ClassVar[int] = PLOT[0] + 4

    @property
    def empty(self) -> bool:
        return not self.rows


def stacked(name: str, title: str, parts: Sequence[str], rows: Sequence[tuple[str, Sequence[int]]]) -> Stacked:
    """A bar for every row (name, counts of each part); up to three ``parts``. The bars have all the same length."""
    if len(parts) > PARTS or any(len(numbers) != len(parts) for _, numbers in rows):
        raise ValueError("A stacked chart has up to three parts, and a number for each in every row.")
    return Stacked(
        name=name,
        title=title,
        description=" ".join(_in_words(row, parts) for row in rows[:3]) + _others(len(rows)),
        width=WIDTH,
        height=LEGEND + ROW * len(rows) + 6,
        keys=_keys(parts),
        rows=tuple(
            Bar(
                LEGEND + ROW * place + 4,
                Label.fitting(row[0], NAMES),
                _segments(row, parts),
                Label.fitting(" · ".join(f"{number:,}" for number in row[1]), WIDTH - PLOT[1] - 10, 12),
            )
            for place, row in enumerate(rows)
        ),
    )


def _segments(row: tuple[str, Sequence[int]], parts: Sequence[str]) -> tuple[Segment, ...]:
    total, done, found = sum(row[1]), 0, []
    for fill, (part, number) in enumerate(zip(parts, row[1], strict=True)):
        if number:
            start, end = (PLOT[0] + (PLOT[1] - PLOT[0]) * part_done / total for part_done in (done, done + number))
            share = written(number / total, "rate")
            text = next((text for text in (share, share.removesuffix(" %")) if _plate(text) + 2 <= end - start), "")
            title = f"{named(row[0])}, {named(part)}: {share} ({number:,} of {total:,})"
            middle = round((start + end) / 2, 1)
            found.append(Segment(fill, round(start, 1), round(end - start, 1), text, middle, _plate(text), title))
            done += number
    return tuple(found)


def _plate(text: str) -> int:
    """How wide the ground is that a text needs on a hatching."""
    return round(text_width(text) + 4)


def _keys(parts: Sequence[str]) -> tuple[Key, ...]:
    keys, x = [], 0.0
    for fill, part in enumerate(parts):
        keys.append(Key(fill, round(x, 1), Label.fitting(part, (WIDTH - PLOT[0]) / len(parts) - 45)))
        x += 18 + 7 + text_width(keys[-1].name.text) + 20  # 45 beside the name
    return tuple(keys)


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
