"""Correlation of two scores of the same cases, with intervals from drawing tasks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluations.statistics.intervals import bootstrap, by_cluster
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats, clusters_of

FEW = 3  # pairs that a correlation needs: two always lie on a line
FLAT = 1e-24  # a variance, as a part of the largest squared score: not above it, it is a rounding error


def pearson(first: Sequence[float], second: Sequence[float], tasks: Sequence[Hashable] | None = None) -> Measure:
    """Return Pearson's correlation r of two scores (n,) of the same cases, -1 to 1.

    Undefined for fewer than `FEW` pairs, and if all scores of one side are equal up to rounding. ``tasks`` (n,) are
    the tasks of the cases: with them the measure has an interval as in `bootstrap`, or `by_cluster` if a task has
    several cases.
    """
    return _correlate(first, second, tasks, lambda side, _: side)


def spearman(first: Sequence[float], second: Sequence[float], tasks: Sequence[Hashable] | None = None) -> Measure:
    """Return Spearman's rank correlation as `pearson` of the ranks; equal scores share the mean of their ranks.

    Each resample has ranks of its own.
    """
    return _correlate(first, second, tasks, _rank)


Transform = Callable[[NDArray[np.float64], Floats], Floats]  # scores (p,) and times (r, p) to values that broadcast


def _correlate(
    first: Sequence[float], second: Sequence[float], tasks: Sequence[Hashable] | None, transform: Transform
) -> Measure:
    n = len(first)
    if n < FEW:
        return Measure.missing(f"fewer than {FEW} pairs", n)
    pairs = np.array([first, second], float).T
    kinds, which = np.unique(pairs, axis=0, return_inverse=True)
    which = which.reshape(-1)
    times = np.bincount(which)

    def values(drawn: Floats) -> Floats:
        return _weighted(transform(kinds[:, 0], drawn), transform(kinds[:, 1], drawn), drawn)

    value = float(values(times[np.newaxis].astype(float))[0])
    if not np.isfinite(value):
        return Measure.missing("all scores of one side are equal", n)
    found = Measure(value, n)
    if tasks is None:
        return found
    if len(set(tasks)) == n:
        return bootstrap(found, times, values)
    return by_cluster(found, clusters_of(zip(tasks, which.tolist(), strict=True), len(kinds)), values)


def _weighted(first: Floats, second: Floats, times: Floats) -> Floats:
    """Return the correlations (r,) of scores that occur ``times`` (r, p); NaN where one side does not vary."""
    total = times.sum(axis=1)

    def centre(side: Floats) -> Floats:
        result: Floats = side - ((times * side).sum(axis=1) / total)[:, np.newaxis]
        return result

    one, other = centre(first), centre(second)
    squares = (times * one * one).sum(axis=1), (times * other * other).sum(axis=1)
    scale = np.sqrt(squares[0] * squares[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        flat = (squares[0] <= FLAT * total * _largest(first)) | (squares[1] <= FLAT * total * _largest(second))
        result: Floats = np.where(flat, np.nan, (times * one * other).sum(axis=1) / scale)
    return np.clip(result, -1.0, 1.0)


def _largest(side: Floats) -> Floats:
    """Return the largest squared value, () or (r,), of a side (p,) or (r, p)."""
    result: Floats = np.square(side).max(axis=-1)
    return result


def _rank(scores: NDArray[np.float64], times: Floats) -> Floats:
    """Return the mean ranks (r, p), from 1, of scores (p,) that occur ``times`` (r, p)."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    counts = np.add.reduceat(times[:, order], starts, axis=1)
    place = np.empty(len(scores), int)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(scores)))
    ranks: Floats = (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, place]
    return ranks
