"""Scores or confidences of a judge against success or not: the Brier score, and the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from evaluations.statistics.intervals import bootstrap, by_cluster, mean_of_items
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats, clusters_of

NO_SCORES = "the judge gives no scores"
OUTSIDE = "the judge has scores outside 0 to 1"
ONE_CLASS = "all scored cases are successes, or none is"


def brier_score(scores: Sequence[float], successes: Sequence[bool], tasks: Sequence[Hashable] | None = None) -> Measure:
    """The mean squared difference of a score (n,) and what happened: sum (s_i - y_i)^2 / n, y_i 1 for a success.

    From 0, the best, to 1; a constant score of the success rate q has q (1 - q). Undefined without scores, and where a
    score is not from 0 to 1, because it is no probability. The interval draws cases, or ``tasks`` (n,) where one has
    several; see `mean_of_items`. Source: Brier (1950), Monthly Weather Review 78, 1-3, for one class.
    """
    n = _require_pairs(scores, successes)
    if not n:
        return Measure.missing(NO_SCORES)
    if not all(0 <= score <= 1 for score in scores):
        return Measure.missing(OUTSIDE, n)
    errors = np.square(np.asarray(scores, float) - np.asarray(successes, float))
    return mean_of_items(Measure(float(errors.mean()), n), errors.tolist(), tasks)


def roc_auc(scores: Sequence[float], successes: Sequence[bool], tasks: Sequence[Hashable] | None = None) -> Measure:
    """The probability that a success has a higher score than a case that is none; equal scores count one half.

    sum over successes i and others j of ([s_i > s_j] + [s_i = s_j] / 2) / (n_1 n_0), which is the area under the ROC
    curve; from 0 to 1, and 0.5 for scores that say nothing. Only the order of the scores counts. Undefined without
    scores, and where all cases are of one class. The interval draws cases, or ``tasks`` (n,) where one has several.
    Source: Hanley and McNeil (1982), Radiology 143, 29-36.
    """
    n = _require_pairs(scores, successes)
    if not n:
        return Measure.missing(NO_SCORES)
    kinds, which = np.unique(np.asarray(scores, float), return_inverse=True)
    cells = 2 * which.reshape(-1) + np.asarray(successes, int)  # of each score: the others, then the successes
    times = np.bincount(cells, minlength=2 * len(kinds))
    value = float(_areas(times[np.newaxis].astype(float))[0])
    if np.isnan(value):
        return Measure.missing(ONE_CLASS, n)
    found = Measure(value, n)
    if tasks is None or len(set(tasks)) == n:
        return bootstrap(found, times, _areas)
    return by_cluster(found, clusters_of(zip(tasks, cells.tolist(), strict=True), len(times)), _areas)


def _require_pairs(scores: Sequence[float], successes: Sequence[bool]) -> int:
    if len(scores) != len(successes) or not np.isfinite(np.asarray(scores, float)).all():
        raise ValueError("Every case has a finite score, and is a success or not.")
    return len(scores)


def _areas(cells: Floats) -> Floats:
    """Return the areas (r,) of counts (r, 2 p), for each of p ascending scores; NaN where a class is missing."""
    others, successes = cells[:, 0::2], cells[:, 1::2]
    below = np.cumsum(others, axis=1) - others
    pairs = others.sum(axis=1) * successes.sum(axis=1)
    above = (successes * (below + others / 2)).sum(axis=1)
    return np.where(pairs > 0, above / np.maximum(pairs, 1), np.nan)
