"""Labels counted by the pattern of labels on an item: the only input that coefficients of agreement need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
VERDICTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of the label combinations on items.

    ``patterns`` (p, k): how many raters gave each of k labels; ``times`` (p,): the number of items with the pattern. No
    coefficient for many raters depends on who gave a label, so a million items have only a few patterns. In a tally
    from `of_labels`, every pattern occurs once, in order, and items without a label are left out: neither the order of
    items nor that of raters can change a result.
    """

    patterns: Integers
    times: Integers

    @classmethod
    def of_labels(cls, items: Iterable[Sequence[int]], k: int = VERDICTS) -> Tally:
        """Count the labels of each item, from 0 to k - 1, without missing ones. ValueError for another label."""
        found = Counter(tuple(labels) for labels in items)
        patterns = np.zeros((len(found), k), np.int64)
        for row, labels in zip(patterns, found, strict=True):
            for label in labels:
                row[_require_label(label, k)] += 1
        return cls._merged(patterns, np.fromiter(found.values(), np.int64, len(found)))

    @classmethod
    def _merged(cls, patterns: Integers, times: Integers) -> Tally:
        """Merge equal patterns, and sort by counts."""
        order = np.lexsort(patterns.T)
        order = order[patterns[order].any(axis=1)]
        patterns, times = patterns[order], times[order]
        new = np.ones(len(patterns), bool)
        new[1:] = (patterns[1:] != patterns[:-1]).any(axis=1)
        starts = np.flatnonzero(new)
        return cls(patterns[starts], np.add.reduceat(times, starts) if len(starts) else times)

    @property
    def items(self) -> int:
        return int(self.times.sum())

    @property
    def pairable(self) -> int:
        return int(self.times[self.patterns.sum(axis=1) >= 2].sum())

    @property
    def totals(self) -> list[int]:
        return [int(total) for total in self.times @ self.patterns]

    def clusters(self, items: Iterable[tuple[Hashable, Sequence[int]]]) -> Integers:
        """Return (c, p): for each task and pattern the number of items, from the task and the labels of each item.

        The items must be those of the tally, in any order; ValueError for a pattern that it does not have.
        """
        k = self.patterns.shape[1]
        order = {tuple(row): at for at, row in enumerate(self.patterns.tolist())}
        known: dict[tuple[int, ...], int] = {}
        found: list[tuple[Hashable, int]] = []
        for task, given in items:
            if not (labels := tuple(given)):
                continue
            if (at := known.get(labels)) is None:
                at = known[labels] = order.get(tuple(labels.count(label) for label in range(k)), -1)
            if at < 0:
                raise ValueError(f"No item of the tally has the labels {labels}.")
            found.append((task, at))
        return clusters_of(found, len(self.times))

    def against_the_rest(self, label: int) -> Tally:
        """Return a tally of two labels: 0 is ``label``, 1 is any other."""
        return self._merged(against_the_rest(self.patterns, label), self.times)


def clusters_of(cases: Iterable[tuple[Hashable, int]], kinds: int) -> Integers:
    """Return (c, kinds): for each task and kind the number of cases, from the task and the kind of each case.

    Tasks are in the order of their first case. ValueError for a kind that is not from 0 to kinds - 1.
    """
    tasks: dict[Hashable, int] = {}
    cells = np.fromiter(
        (tasks.setdefault(task, len(tasks)) * kinds + _kind(kind, kinds) for task, kind in cases), np.int64
    )
    return np.bincount(cells, minlength=len(tasks) * kinds).astype(np.int64, copy=False).reshape(len(tasks), kinds)


def _kind(kind: int, kinds: int) -> int:
    if not 0 <= kind < kinds:
        raise ValueError(f"{kind} is none of the kinds 0 to {kinds - 1}.")
    return int(kind)


def against_the_rest(patterns: Integers, label: int) -> Integers:
    """Return (p, 2): how many raters gave ``label``, and how many another one."""
    own = patterns[:, _require_label(label, patterns.shape[1])]
    return np.stack([own, patterns.sum(axis=1) - own], axis=1)


def _require_label(label: int, k: int) -> int:
    if not 0 <= label < k:
        raise ValueError(f"{label} is none of the labels 0 to {k - 1}.")
    return int(label)
