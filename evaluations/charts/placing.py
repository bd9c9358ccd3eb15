"""Where small texts beside points go, so that they cover neither points nor each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NEAR = 11.0  # distance from a point to the middle of its text; further away, a line leads there
RINGS = (NEAR, 19.0, 29.0, 41.0, 55.0, 71.0, 89.0)
DIRECTIONS = 16
LESS = 0.1  # covering a line matters less than covering a point or a text


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
    """The middle of a text; ``led`` where a line has to lead to it."""

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
    """For each spot the nearest free place, in their order: right of it first, then around it, then further away.

    Where nothing is free, the place that covers least; ``lines`` may rather be covered than what is ``taken``.
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
            # Right, then a little above, a little below, and so on to the left.
            angle = math.pi * 2 / DIRECTIONS * ((turn + 1) // 2) * (-1 if turn % 2 else 1)
            yield Place(round(x + ring * math.cos(angle), 1), round(y + ring * math.sin(angle), 1), ring > NEAR)
