"""Confusions, tallies and coefficients from the plain material of tests."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics import Confusion, Measure, Tally, alpha_of_label, clusters_of


def confusion_of(truth: Iterable[bool], said: Iterable[bool]) -> Confusion:
    """From what each case is and what was said of it; ValueError where one is longer."""
    counts = [0, 0, 0, 0]
    for is_so, called in zip(truth, said, strict=True):
        counts[_cell(is_so, called)] += 1
    tp, fp, tn, fn = counts
    return Confusion(tp, fp, tn, fn)


def confusion_by_task(cases: Iterable[tuple[Hashable, bool, bool]]) -> Confusion:
    """From the task of each case, what the case is, and what was said of it; equal counts make equal confusions."""
    tasks = clusters_of(((task, _cell(is_so, called)) for task, is_so, called in cases), 4)
    tp, fp, tn, fn = tasks.sum(axis=0).tolist()
    if not (tasks.sum(axis=1) > 1).any():
        return Confusion(tp, fp, tn, fn)
    return Confusion(tp, fp, tn, fn, tuple(sorted(map(tuple, tasks.tolist()))))


def _cell(is_so: bool, called: bool) -> int:
    """The place of a case among tp, fp, tn and fn."""
    return (2, 1, 3, 0)[2 * bool(is_so) + bool(called)]


def tally_of_table(table: ArrayLike, k: int = 3) -> Tally:
    """From integers (items, raters) in 0 to k - 1, or -1 where a label is missing. ValueError for others."""
    labels = np.asarray(table)
    given = labels.size == 0 or (labels.min() >= -1 and labels.max() < k)
    if labels.ndim != 2 or labels.dtype.kind not in "iu" or not given:
        raise ValueError(f"A table of labels has two dimensions, and integers from -1 to {k - 1}.")
    return Tally.of_labels(([label for label in row if label != -1] for row in labels.tolist()), k)


def label_alpha(tally: Tally, label: int) -> Measure:
    return alpha_of_label(label)(tally)
