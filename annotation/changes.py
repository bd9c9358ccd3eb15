"""Visible changes between consecutive screenshots: coarse boxes, computed once per pair and stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from annotation import screenshots
from annotation.models import PictureChange, Screenshot, Step, Trajectory

VISIBLE = 0.01  # share of the screenshot above which a change is visible: about a line of text on a usual page
MOST_BOXES = 12
WIDTH = 640  # pixels to which screenshots are reduced before they are compared
MOST_CELLS = 6000
SMALLEST_CELL = 8  # reduced pixels a side
NOISE = 28  # of 255: JPEG and WebP change a reduced grey value by less, even next to letters
SPECKS = 2  # reduced pixels of a cell that must differ by more than `NOISE`
TINT = 10  # of 255: or else the mean of the cell must differ by more, as with a pale highlight

Box = tuple[int, int, int, int]
Cells = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Change:
    """``boxes`` are (x, y, width, height) in pixels of the later screenshot; ``share`` of it changed, 0 to 1."""

    boxes: list[Box]
    share: float


def find_change(before: Image.Image, after: Image.Image) -> Change | None:
    """Find where ``after`` (RGB) differs from ``before``; None if their sizes differ too much to compare.

    Widths may differ by 2%, heights by half; extra height at the end of ``after`` counts as changed.
    """
    if not _is_comparable(before.size, after.size):
        return None
    factor = max(1, round(after.width / WIDTH))
    cells, cell = _find_cells(_reduce_to_grey(before, factor), _reduce_to_grey(after, factor))
    if not cells.any():
        return Change([], 0.0)
    boxes = [_scale_box(box, cell * factor, after.size) for box in _find_boxes(cells)]
    return Change(boxes, round(float(cells.mean()), 4))


def find_changes(trajectory: Trajectory, first: int, last: int) -> dict[int, Change | None]:
    """Load the changes at steps ``first`` to ``last`` against the step before each; compute what is not stored.

    None if they cannot be compared: no step before, no screenshot, different sizes, or a lost file.
    """
    steps = trajectory.steps.filter(index__gte=first - 1, index__lte=last).select_related("screenshot")
    pictures = {step.index: step.screenshot for step in steps}
    pairs = {index: (pictures.get(index - 1), picture) for index, picture in pictures.items() if index >= first}
    whole = {(before, after) for before, after in pairs.values() if before and after}
    found = {(row.before_id, row.after_id): _read_change(row) for row in _load_changes(whole)}
    found |= _compare_pairs((b, a) for b, a in _sort_pairs(whole) if (b.pk, a.pk) not in found)
    return {i: found.get((b.pk, a.pk)) if b and a else None for i, (b, a) in sorted(pairs.items())}


def compare_all(submission_id: int) -> None:
    """Compare all neighbouring screenshots of a submission before anybody requests this."""
    for trajectory in Trajectory.objects.filter(submission=submission_id).order_by("position").iterator():
        count = Step.objects.filter(trajectory=trajectory).count()
        for first in range(0, count, 60):
            find_changes(trajectory, first, first + 59)


def _load_changes(pairs: Iterable[tuple[Screenshot, Screenshot]]) -> list[PictureChange]:
    wanted = {(before.pk, after.pk) for before, after in pairs}
    rows = PictureChange.objects.filter(after__in={after for _, after in wanted})
    return [row for row in rows if (row.before_id, row.after_id) in wanted]


def _sort_pairs(pairs: Iterable[tuple[Screenshot, Screenshot]]) -> list[tuple[Screenshot, Screenshot]]:
    return sorted(pairs, key=lambda pair: (pair[0].pk, pair[1].pk))


def _compare_pairs(pairs: Iterable[tuple[Screenshot, Screenshot]]) -> dict[tuple[int, int], Change | None]:
    """Compare the pairs and store the results; decode a screenshot that consecutive pairs share only once."""
    made: dict[tuple[int, int], Change | None] = {}
    last: tuple[int, Image.Image] | None = None
    for before, after in pairs:
        try:
            earlier = last[1] if last and last[0] == before.pk else screenshots.decoded(before.sha256)
            later = earlier if before.pk == after.pk else screenshots.decoded(after.sha256)
        except screenshots.STORE_ERRORS:
            continue  # store nothing: the file may be restored later
        made[before.pk, after.pk] = find_change(earlier, later)
        last = (after.pk, later)
    PictureChange.objects.bulk_create(
        [_build_row(*pair, change) for pair, change in made.items()], ignore_conflicts=True
    )
    return made


def _build_row(before: int, after: int, change: Change | None) -> PictureChange:
    boxes, share = (change.boxes, change.share) if change else (None, None)
    return PictureChange(before_id=before, after_id=after, boxes=boxes, share=share)


def _read_change(row: PictureChange) -> Change | None:
    return None if row.boxes is None else Change([tuple(box) for box in row.boxes], row.share or 0.0)


def _is_comparable(before: tuple[int, int], after: tuple[int, int]) -> bool:
    widths, heights = sorted((before[0], after[0])), sorted((before[1], after[1]))
    return widths[0] >= 0.98 * widths[1] and heights[0] >= 0.5 * heights[1]


def _reduce_to_grey(image: Image.Image, factor: int) -> NDArray[np.int16]:
    """Return reduced grey values, of shape (height, width)."""
    return np.asarray(image.convert("L").reduce(factor), dtype=np.int16)


def _find_cells(before: NDArray[np.int16], after: NDArray[np.int16]) -> tuple[Cells, int]:
    """Find the changed cells of a grid over ``after``, and the side of a cell in reduced pixels."""
    difference = np.full(after.shape, 255, dtype=np.int16)
    height, width = (min(pair) for pair in zip(before.shape, after.shape, strict=True))
    difference[:height, :width] = after[:height, :width] - before[:height, :width]
    difference[:, width:] = 0  # the 2% by which widths may differ
    cell = max(SMALLEST_CELL, round((after.size / MOST_CELLS) ** 0.5))
    specks = _sum_cells(np.abs(difference) > NOISE, cell) >= SPECKS
    return specks | (np.abs(_sum_cells(difference, cell)) > TINT * cell**2), cell


def _sum_cells(values: NDArray[Any], cell: int) -> NDArray[np.int64]:
    """Return the sum of each cell; missing pixels at the right and at the bottom count as 0."""
    padded = np.pad(values, [(0, -side % cell) for side in values.shape])
    rows, columns = padded.shape[0] // cell, padded.shape[1] // cell
    return padded.reshape(rows, cell, columns, cell).sum(axis=(1, 3), dtype=np.int64)


def _find_boxes(cells: Cells) -> list[Box]:
    """Return at most `MOST_BOXES` boxes around the changed cells; the gap between boxes grows until they fit."""
    places = [(int(y), int(x)) for y, x in np.argwhere(cells)]
    gap = 1
    while len(boxes := _merge_boxes([_enclose(group) for group in _group_cells(places, gap)])) > MOST_BOXES:
        gap *= 2
    return boxes


def _group_cells(places: list[tuple[int, int]], gap: int) -> list[list[tuple[int, int]]]:
    """Group the cells that touch, counting each ``gap`` by ``gap`` cells as one."""
    coarse: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for y, x in places:
        coarse.setdefault((y // gap, x // gap), []).append((y, x))
    groups = []
    while coarse:
        start, group = coarse.popitem()
        waiting = [start]
        while waiting:
            y, x = waiting.pop()
            for near in [(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]:
                if near in coarse:
                    group.extend(coarse.pop(near))
                    waiting.append(near)
        groups.append(group)
    return groups


def _enclose(places: list[tuple[int, int]]) -> Box:
    top, left = (min(axis) for axis in zip(*places, strict=True))
    bottom, right = (max(axis) + 1 for axis in zip(*places, strict=True))
    return left, top, right - left, bottom - top


def _merge_boxes(boxes: list[Box]) -> list[Box]:
    apart: list[Box] = []
    for box in boxes:
        while over := next((other for other in apart if _overlap(box, other)), None):
            apart.remove(over)
            box = _unite(box, over)  # noqa: PLW2901 - it grows with each overlap
        apart.append(box)
    return sorted(apart, key=lambda box: (box[1], box[0]))


def _overlap(one: Box, other: Box) -> bool:
    return (
        one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
        and one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
    )


def _unite(one: Box, other: Box) -> Box:
    left, top = min(one[0], other[0]), min(one[1], other[1])
    right = max(one[0] + one[2], other[0] + other[2])
    bottom = max(one[1] + one[3], other[1] + other[3])
    return left, top, right - left, bottom - top


def _scale_box(box: Box, side: int, size: tuple[int, int]) -> Box:
    left, top = box[0] * side, box[1] * side
    return left, top, min(box[2] * side, size[0] - left), min(box[3] * side, size[1] - top)
