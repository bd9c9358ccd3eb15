"""Points in a plane: a judge's scores against people (calibration), and judges' cost against agreement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evaluations.charts.drawing import (
    SMALL,
    Chart,
    Label,
    Scale,
    Span,
    Tick,
    in_words,
    named,
    plural,
    powers,
    round_steps,
    text_width,
)
from evaluations.statistics import Measure
from evaluations.tables import written

# --- positions of small texts -----------------------------------------------------------------------------------------

NEAR = 11.0  # distance from a point to the middle of its text; a text further away gets a line to its point
RINGS = (NEAR, 19.0, 29.0, 41.0, 55.0, 71.0, 89.0)
DIRECTIONS = 16
LESS = 0.1  # weight of covering a line, compared with a point or a text


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float, half_width: float, half_height: float) -> Box:
        return cls(x - half_width, y - half_height, x + half_width, y + half_height)

    def overlap(self, other: Box) -> float:
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide * high if wide > 0 and high > 0 else 0.0

    def holds(self, other: Box) -> bool:
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


@dataclass(frozen=True, slots=True)
class Place:
    """The middle of a text; ``led`` if a line must connect it to its point."""

    x: float
    y: float
    led: bool


def free_places(
    spots: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    taken: Sequence[Box],
    lines: Sequence[Box],
    within: Box,
) -> list[Place]:
    """Return the nearest free place for each spot, in their order: right of it, then around it, then further away.

    If no place is free, return the one that covers least; covering ``lines`` is better than covering ``taken``.
    """
    full, places = list(taken), []
    for (x, y), (width, height) in zip(spots, sizes, strict=True):
        best, least = None, math.inf
        for place in _around(x, y):
            box = Box.around(place.x, place.y, width / 2 + 1, height / 2)
            covered = sum(map(box.overlap, full)) + LESS * sum(map(box.overlap, lines))
            covered += 0 if within.holds(box) else 1e6
            if covered < least:
                best, least = place, covered
            if not covered:
                break
        assert best is not None  # noqa: S101 - there is always a ring
        full.append(Box.around(best.x, best.y, width / 2 + 1, height / 2))
        places.append(best)
    return places


def _around(x: float, y: float) -> Iterator[Place]:
    for ring in RINGS:
        for turn in range(DIRECTIONS):
            # Right, then alternating above and below, to the left.
            angle = math.pi * 2 / DIRECTIONS * ((turn + 1) // 2) * (-1 if turn % 2 else 1)
            yield Place(round(x + ring * math.cos(angle), 1), round(y + ring * math.sin(angle), 1), ring > NEAR)


# --- calibration -----------------------------------------------------------------------------------------------------

LEFT, TOP, SIDE = 62, 44, 340  # of the square plot
BIGGEST = 13.0  # radius of the dot with the most cases
SMALLEST = 3.0
MARGIN = 16  # between the frame and the ends of both scales, so that dots do not cover ticks


@dataclass(frozen=True, slots=True)
class Dot:
    """``count_y`` is the position of its number of cases above the plot; None if there is no room."""

    x: float
    y: float
    radius: float
    span: Span | None
    count: str
    count_y: float | None
    title: str


@dataclass(frozen=True, slots=True)
class Calibration(Chart):
    """``ideal``: both ends of the diagonal (x, y, x, y) if scores are probabilities; else None."""

    template: ClassVar[str] = "evaluations/charts/calibration.html"
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    ideal: tuple[float, float, float, float] | None
    dots: tuple[Dot, ...]

    left: ClassVar[int] = LEFT
    right: ClassVar[int] = LEFT + SIDE
    top: ClassVar[int] = TOP
    bottom: ClassVar[int] = TOP + SIDE
    middle: ClassVar[float] = LEFT + SIDE / 2
    y_middle: ClassVar[float] = TOP + SIDE / 2
    y_ticks_at: ClassVar[int] = LEFT - 8
    x_ticks_at: ClassVar[int] = TOP + SIDE + 18
    x_name_at: ClassVar[int] = TOP + SIDE + 40

    @property
    def empty(self) -> bool:
        return not self.dots


def calibration(name: str, title: str, bins: Sequence[tuple[float, Measure]]) -> Calibration:
    """Draw the share of success by judge's score; ``bins`` are (mean score, share that people call a success).

    The area of a dot is proportional to its number of cases; bins with an undefined share are only counted in words.
    The diagonal is drawn if all scores are between 0 and 1.
    """
    known = sorted(((score, share) for score, share in bins if share.value is not None), key=lambda found: found[0])
    scores = [score for score, _ in known]
    chances = all(0 <= score <= 1 for score in scores)
    steps = [0, 0.2, 0.4, 0.6, 0.8, 1] if chances else round_steps(min(scores), max(scores))
    x = Scale(steps[0], steps[-1], LEFT + MARGIN, LEFT + SIDE - MARGIN)
    y = Scale(0, 1, TOP + SIDE - MARGIN, TOP + MARGIN)
    ideal = (x.at(0), y.at(0), x.at(1), y.at(1)) if chances else None
    return Calibration(
        name=name,
        title=title,
        description=_calibration_in_words(known, len(bins) - len(known), chances),
        width=LEFT + SIDE + 24,
        height=TOP + SIDE + 48,
        x_ticks=x.ticks(steps, "number"),
        y_ticks=y.ticks([0, 0.2, 0.4, 0.6, 0.8, 1], "rate"),
        ideal=ideal,
        dots=_dots(known, x, y),
    )


def _dots(known: Sequence[tuple[float, Measure]], x: Scale, y: Scale) -> tuple[Dot, ...]:
    most = max((share.n for _, share in known), default=1)
    counts = [(x.at(score), f"n {share.n:,}") for score, share in known]
    return tuple(
        Dot(
            x=at,
            y=y.at(share.value or 0.0),
            radius=max(SMALLEST, round(BIGGEST * math.sqrt(share.n / most), 1)),
            span=Span.of(share, y),
            count=count,
            count_y=None if line is None else TOP - 18 - 14 * line,
            title=f"Mean score {written(score, 'number')}: people call {in_words(share, 'rate')} a success",
        )
        for (score, share), (at, count), line in zip(known, counts, _lines(counts), strict=True)
    )


def _lines(counts: Sequence[tuple[float, str]]) -> list[int | None]:
    """Return the line of each count above the plot: one line if all fit, else two alternating; None if neither fits."""
    one = _assign_lines(counts, 1)
    return one if None not in one else _assign_lines(counts, 2)


def _assign_lines(counts: Sequence[tuple[float, str]], lines: int) -> list[int | None]:
    ends = [-math.inf] * lines
    found: list[int | None] = []
    for place, (at, count) in enumerate(counts):
        half = text_width(count, SMALL) / 2 + 2
        line = place % lines
        fits = at - half >= ends[line]
        ends[line] = at + half if fits else ends[line]
        found.append(line if fits else None)
    return found


def _calibration_in_words(known: Sequence[tuple[float, Measure]], undefined: int, chances: bool) -> str:
    rest = f" {plural(undefined, 'group')} without cases." if undefined else ""
    if not known:
        return f"There are no scores to compare.{rest}"
    said = f"{plural(len(known), 'group')} of judge scores."
    ends = known if len(known) == 1 else (known[0], known[-1])
    for score, share in ends:
        said += f" At a mean score of {written(score, 'number')} people call {in_words(share, 'rate')} a success."
    if chances and len(known) > 1:
        score, share = max(known, key=lambda found: abs((found[1].value or 0.0) - found[0]))
        said += f" Furthest from the diagonal: score {written(score, 'number')}, success {in_words(share, 'rate')}."
    return said + rest


# --- cost against agreement ------------------------------------------------------------------------------------------

SPREAD = 20  # if the most expensive costs more times the cheapest, the axis is logarithmic
PLANE = Box(74, 16, 394, 316)
LIST = 436
LIST_NAME = 176
FREE = 56  # room for points without cost, left of a logarithmic axis
RADIUS = 5
LINE = 20


@dataclass(frozen=True, slots=True)
class Point:
    number: int
    x: float
    y: float
    span: Span | None
    tag: Place
    title: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the list next to the plot; ``number`` is "" for judges that are not in the plot."""

    y: float
    number: str
    name: Label
    value: str
    cost: str
    known: bool
    title: str


@dataclass(frozen=True, slots=True)
class Scatter(Chart):
    template: ClassVar[str] = "evaluations/charts/scatter.html"
    log: bool
    from_zero: bool
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    points: tuple[Point, ...]
    entries: tuple[Entry, ...]
    apart: float | None  # y of the heading above judges that are not in the plot

    plane: ClassVar[Box] = PLANE
    middle: ClassVar[float] = (PLANE.left + PLANE.right) / 2
    y_middle: ClassVar[float] = (PLANE.top + PLANE.bottom) / 2
    y_ticks_at: ClassVar[float] = PLANE.left - 8
    x_ticks_at: ClassVar[float] = PLANE.bottom + 18
    x_name_at: ClassVar[float] = PLANE.bottom + 40
    list_name: ClassVar[int] = LIST_NAME
    list_value: ClassVar[int] = 24 + LIST_NAME + 64  # right edge of values
    list_cost: ClassVar[int] = 24 + LIST_NAME + 136

    @property
    def empty(self) -> bool:
        return not self.entries

    @property
    def list_at(self) -> int:
        return LIST if self.points else 0


def scatter(name: str, title: str, points: Sequence[tuple[str, Measure, float | None]]) -> Scatter:
    """Draw judges as (name, agreement with people, mean US dollars for a judgment), numbered in a list beside the plot.

    A judge without cost or agreement is only in the list. The cost axis is logarithmic if costs differ by more than a
    factor of 20; judges that cost 0 are then left of it.
    """
    drawn = [(who, measure, cost) for who, measure, cost in points if measure.value is not None and cost is not None]
    others = [(who, measure, cost) for who, measure, cost in points if measure.value is None or cost is None]
    x, x_ticks = _cost_axis([cost for _, _, cost in drawn])
    steps = _agreement_steps([measure for _, measure, _ in drawn])
    y = Scale(steps[0], steps[-1], PLANE.bottom, PLANE.top)
    lines = len(points) + (2 if others else 0)
    return Scatter(
        name=name,
        title=title,
        description=_scatter_in_words(drawn, others),
        width=(LIST if drawn else 0) + 24 + LIST_NAME + 136 + 4,
        height=max(int(PLANE.bottom) + 46 if drawn else 0, 30 + LINE * lines),
        log=x.log,
        from_zero=steps[0] == 0,
        x_ticks=x_ticks,
        y_ticks=y.ticks(steps, "rate"),
        points=_points(drawn, x, y),
        entries=_entries(drawn, others),
        apart=LINE * (len(drawn) + 2) if others else None,
    )


def _cost_axis(costs: Sequence[float]) -> tuple[Scale, tuple[Tick, ...]]:
    paid = [cost for cost in costs if cost > 0]
    if paid and max(paid) / min(paid) > SPREAD:
        steps = powers(min(paid), max(paid))
        free = len(paid) < len(costs)
        scale = Scale(steps[0], steps[-1], PLANE.left + (FREE if free else 0), PLANE.right, log=True)
        return scale, (*((Tick(PLANE.left, "$0"),) if free else ()), *scale.ticks(steps, "dollars"))
    steps = round_steps(0, max(paid), 4) if paid else [0, 1]
    scale = Scale(0, steps[-1], PLANE.left, PLANE.right)
    return scale, scale.ticks(steps if paid else [0], "dollars")


def _agreement_steps(measures: Sequence[Measure]) -> list[float]:
    ends = [end for measure in measures for end in (measure.value, measure.low, measure.high) if end is not None]
    if not ends:
        return [0, 0.2, 0.4, 0.6, 0.8, 1]
    low, high = min(ends), max(ends)
    around = max(0.0, 0.1 - (high - low)) / 2
    return round_steps(max(0.0, low - around), min(1.0, high + around), 4)


def _points(drawn: Sequence[tuple[str, Measure, float]], x: Scale, y: Scale) -> tuple[Point, ...]:
    spots = [(PLANE.left if x.log and cost <= 0 else x.at(cost), y.at(found.value or 0.0)) for _, found, cost in drawn]
    spans = [Span.of(measure, y) for _, measure, _ in drawn]
    taken = [Box.around(*spot, RADIUS + 1, RADIUS + 1) for spot in spots]
    lines = [Box(at - 1, span.high, at + 1, span.low) for (at, _), span in zip(spots, spans, strict=True) if span]
    sizes = [(text_width(str(number), 12), 12.0) for number in range(1, len(drawn) + 1)]
    tags = free_places(spots, sizes, taken, lines, Box(PLANE.left + 2, PLANE.top, PLANE.right + 22, PLANE.bottom))
    return tuple(
        Point(number, *spot, span, tag, _name_point(one))
        for number, (spot, span, tag, one) in enumerate(zip(spots, spans, tags, drawn, strict=True), 1)
    )


def _entries(
    drawn: Sequence[tuple[str, Measure, float]], others: Sequence[tuple[str, Measure, float | None]]
) -> tuple[Entry, ...]:
    ranked: list[tuple[str, str, Measure, float | None, int]] = []
    ranked += [(str(number), *one, 14 + LINE * number) for number, one in enumerate(drawn, 1)]
    ranked += [("", *one, LINE * (len(drawn) + 1 + place)) for place, one in enumerate(others, 2)]
    names = Label.all_fitting([one[1] for one in ranked], LIST_NAME)
    return tuple(
        Entry(
            y=y,
            number=number,
            name=name,
            value="undefined" if measure.value is None else written(measure.value, "rate"),
            cost="" if cost is None else written(cost, "dollars"),
            known=measure.value is not None,
            title=_name_point((who, measure, cost)),
        )
        for name, (number, who, measure, cost, y) in zip(names, ranked, strict=True)
    )


def _name_point(one: tuple[str, Measure, float | None]) -> str:
    who, measure, cost = one
    price = "cost not known" if cost is None else f"{written(cost, 'dollars')} a judgment"
    return f"{named(who)}: {in_words(measure, 'rate')}, {price}"


def _scatter_in_words(
    drawn: Sequence[tuple[str, Measure, float]], others: Sequence[tuple[str, Measure, float | None]]
) -> str:
    rest = f" Not in the plane, without a cost or an agreement: {len(others):,}." if others else ""
    if not drawn:
        return f"No judge has both a cost and an agreement.{rest}"
    best = max(drawn, key=lambda one: one[1].value or 0.0)
    cheapest = min(drawn, key=lambda one: (one[2], -(one[1].value or 0.0)))
    if best is cheapest:
        return f"{plural(len(drawn), 'judge')}. Most agreement and least cost: {_name_point(best)}.{rest}"
    ends = f"Most agreement: {_name_point(best)}; least cost: {_name_point(cheapest)}."
    return f"{plural(len(drawn), 'judge')}. {ends}{rest}"
