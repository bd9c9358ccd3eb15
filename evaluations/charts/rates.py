"""Rates with their intervals, one row each: dots on a shared axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from evaluations.charts.drawing import (
    SMALL,
    Label,
    Layout,
    RowChart,
    Scale,
    Span,
    Tick,
    in_words,
    named,
    plural,
    round_steps,
    text_width,
)
from evaluations.statistics import Measure
from evaluations.tables import counts, visible, written

LEGEND = 26
AXIS = 22
ROW = {1: 26, 2: 38}
APART = {1: 0, 2: 9}  # distance of a mark from the middle of its row
MANY = 12  # with more rows, the axis is also drawn above them

Rows = Sequence[tuple[str, Measure] | tuple[str, Measure, Measure | None]]


NARROW = Layout(286, 19, (18, 146), 224, 286, values=218, sparse=True)


@dataclass(frozen=True, slots=True)
class Mark:
    """One value of a row, at ``y`` from the row's middle. ``x`` is None if it is undefined; ``why`` is the reason."""

    second: bool
    y: float
    x: float | None
    span: Span | None
    value: str
    counts: str
    why: Label | None
    title: str

    @property
    def line(self) -> str:
        """Return the path of its interval, with bars at both ends."""
        low, high = (self.span.low, self.span.high) if self.span else (0, 0)
        return f"M{low:g} 0H{high:g}M{low:g} -4v8M{high:g} -4v8" if self.span else ""


@dataclass(frozen=True, slots=True)
class RateRow:
    y: float
    name: Label
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Rates(RowChart):
    """``series`` names the filled circles and the hollow diamonds, or is empty. ``zero`` is the x of 0, if shown."""

    template: ClassVar[str] = "evaluations/charts/rates.html"
    row_height: int
    top: float
    bottom: float
    ticks: tuple[Tick, ...]
    zero: float | None
    series: tuple[Label, ...]
    axis_above: bool

    @property
    def hover_width(self) -> int:
        return self.width - self.plot_start

    @property
    def name_at(self) -> float:
        """Return the upper edge of a row's name, relative to the middle of its marks."""
        return -10 if not self.layout.above else -(self.row_height - self.layout.above) / 2 - self.layout.above + 2

    @property
    def intervals(self) -> bool:
        return any(mark.span for row in self.rows for mark in row.marks)

    @property
    def grid(self) -> str:
        low = (self.row_height - self.layout.above) / 2
        below = (f"M0 {row.y + low:g}H{self.width}" for row in self.rows)
        return "".join((*below, *(f"M{tick.at:g} {self.top:g}V{self.bottom:g}" for tick in self.ticks)))

    @property
    def ticks_below(self) -> float:
        return self.bottom + 16

    @property
    def ticks_above(self) -> float:
        return self.top - 7

    @property
    def second_key(self) -> float:
        return round(16 + text_width(self.series[0].text) + 26, 1)

    @property
    def second_name(self) -> float:
        return self.second_key + 12


def rates(
    name: str, title: str, rows: Rows, *, series: Sequence[str] = (), kind: str = "rate", finding: str = ""
) -> Rates:
    """Draw a dot and its interval for every row (name, measure) or (name, measure, second measure), in the given order.

    ``series`` names the two measures if rows have two. The axis is 0 to 100% for a ``rate``, 0 (or the lowest negative
    value) to 1 for a ``coefficient``, and symmetric around 0 for ``points``. ``finding`` replaces the sentence about
    the highest and the lowest.
    """
    said = finding or _finding(rows, series, kind)
    narrow = _laid_out(NARROW, f"{name}-narrow", title, said, rows, series, kind)
    wide = _laid_out(
        Layout.beside([row[0] for row in rows], counts=428, width=526, values=420),
        name,
        title,
        said,
        rows,
        series,
        kind,
    )
    return replace(wide, narrow=narrow)


def _laid_out(
    layout: Layout, name: str, title: str, description: str, rows: Rows, series: Sequence[str], kind: str
) -> Rates:
    several = 2 if any(len(row) > 2 for row in rows) else 1
    above, high = len(rows) > MANY, ROW[several] + layout.above
    top = 8 + (LEGEND if series else 0) + (AXIS if above else 0)
    bottom = top + high * len(rows)
    steps = _steps([measure for row in rows for measure in row[1:] if measure is not None], kind)
    scale = Scale(steps[0], steps[-1], *layout.plot)
    names = Label.all_fitting([row[0] for row in rows], layout.names)
    ticks = {steps[0], 0, steps[-1]} & set(steps) if layout.sparse else steps
    return Rates(
        name=name,
        title=title,
        description=description,
        width=layout.width,
        height=bottom + AXIS + 4,
        layout=layout,
        narrow=None,
        row_height=high,
        top=top,
        bottom=bottom,
        ticks=scale.ticks(sorted(ticks), kind),
        zero=scale.at(0) if steps[0] < 0 < steps[-1] else None,
        series=_series(series[:several], layout),
        rows=tuple(
            RateRow(
                top + high * place + layout.above + ROW[several] / 2,
                label,
                _marks(row, APART[several], series, scale, kind, layout),
            )
            for place, (row, label) in enumerate(zip(rows, names, strict=True))
        ),
        axis_above=above,
    )


def _series(names: Sequence[str], layout: Layout) -> tuple[Label, ...]:
    """Return full labels if both have room next to their marks, else each shortened to half of it."""
    room = min(400.0, layout.width - layout.plot[0] - 54.0)
    full = sum(text_width(visible(name)) for name in names) <= room
    return tuple(Label.fitting(name, room if full else room / 2) for name in names)


def _steps(measures: Sequence[Measure], kind: str) -> list[float]:
    ends = [end for measure in measures for end in (measure.value, measure.low, measure.high) if end is not None]
    if kind == "points":
        far = max([0.01, *map(abs, ends)])
        return round_steps(-far, far, 6)
    if kind == "coefficient" and min(ends, default=0) < 0:
        return round_steps(max(-1.0, math.floor(min(ends) * 5) / 5), 1.0)
    return [0, 0.2, 0.4, 0.6, 0.8, 1]


def _marks(
    row: tuple[str, Measure] | tuple[str, Measure, Measure | None],
    apart: int,
    series: Sequence[str],
    scale: Scale,
    kind: str,
    layout: Layout,
) -> tuple[Mark, ...]:
    return tuple(
        _mark(_title(row[0], place, series), measure, place, (2 * place - 1) * apart, scale, kind, layout)
        for place, measure in enumerate(row[1:])
        if measure is not None
    )


def _title(name: str, place: int, series: Sequence[str]) -> str:
    return f"{named(name)}, {named(series[place])}" if place < len(series) else named(name)


def _mark(title: str, measure: Measure, place: int, y: float, scale: Scale, kind: str, layout: Layout) -> Mark:
    known = measure.value is not None
    return Mark(
        second=place > 0,
        y=y,
        x=None if measure.value is None else scale.at(measure.value),
        span=Span.of(measure, scale) if known else None,
        value=written(measure.value, kind) if known else "",
        counts=_counts(measure, layout.width - layout.counts),
        why=None
        if known
        else Label.fitting(f"undefined: {measure.undefined}", layout.values - layout.plot[0] - 8, SMALL + 1),
        title=f"{title}: {in_words(measure, kind)}",
    )


def _counts(measure: Measure, room: int) -> str:
    text = counts(measure)
    return text if text_width(text, SMALL) <= room else f"n {measure.n:,}"


def _finding(rows: Rows, series: Sequence[str], kind: str) -> str:
    if not rows:
        return "There are no rows."
    sentences = [_range(rows, place, kind, series) for place in (1, 2) if any(len(row) > place for row in rows)]
    return " ".join(sentences)


def _range(rows: Rows, place: int, kind: str, series: Sequence[str]) -> str:
    found = [(named(row[0]), row[place]) for row in rows if len(row) > place]
    measures = [(name, measure) for name, measure in found if isinstance(measure, Measure)]
    values = [(measure.value, name, measure) for name, measure in measures if measure.value is not None]
    intro = f"{named(series[place - 1])}: " if place <= len(series) else ""
    missing = len(measures) - len(values)
    start = "from" if intro else "From"
    rest = f"; undefined in {missing:,} of {plural(len(measures), 'row')}" if missing else ""
    if not values:
        return f"{intro or 'It is '}undefined in every row."
    high, low = max(values, key=lambda found: found[0]), min(values, key=lambda found: found[0])
    if len(values) == 1:
        return f"{intro}{high[1]} {in_words(high[2], kind)}{rest}."
    if high[0] == low[0]:
        return f"{intro}{written(high[0], kind)} in every row{rest}."
    return f"{intro}{start} {low[1]} {in_words(low[2], kind)} to {high[1]} {in_words(high[2], kind)}{rest}."
