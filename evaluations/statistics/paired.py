"""The change from one judge to another on the same cases."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics.coefficients import NO_CASES, kappa_values
from evaluations.statistics.intervals import FEWER_RESAMPLES, by_cluster
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats

ONE_CLASS = "only one class"
CELLS = 8  # 4 * (a success by people) + 2 * (by the first judge) + (by the second judge)
FIRST = ((6, 7), (4, 5), (2, 3), (0, 1))  # of the first judge: true positives, false negatives, fp, true negatives
SECOND = ((5, 7), (4, 6), (1, 3), (0, 2))


def kappa_change(tasks: ArrayLike, *, resamples: int = FEWER_RESAMPLES, seed: int = 0, level: float = 0.05) -> Measure:
    """Compute Cohen's kappa of the second judge with people, minus that of the first, on the same n cases.

    ``tasks`` (t, 8) counts the cases of each task by cell (`CELLS`). From -2 to 2. Undefined without cases, and where
    people and one of the judges know only one class. The interval (1 - ``level``) comes from drawing tasks, each with
    all its cases: Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8.
    """
    counts = np.asarray(tasks, np.int64).reshape(-1, CELLS)
    if not (n := int(counts.sum())):
        return Measure.missing(NO_CASES)
    value = float(_changes(counts.sum(axis=0, keepdims=True).astype(float))[0])
    if np.isnan(value):
        return Measure.missing(ONE_CLASS, n)
    return by_cluster(Measure(value, n), counts, _changes, resamples=resamples, seed=seed, level=level)


def _changes(cells: Floats) -> Floats:
    """Return the change for each of (r, 8) counts; NaN where one of the two coefficients is undefined."""
    first, second = (
        kappa_values(np.stack([cells[:, list(each)].sum(axis=1) for each in places], axis=1))
        for places in (FIRST, SECOND)
    )
    result: Floats = second - first
    return result
