"""Two judges on the same cases, and two rankings of the same agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, erfc, sqrt

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics.coefficients import NO_CASES
from evaluations.statistics.intervals import FEWER_RESAMPLES, Z, by_cluster, repeated
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats

EXACT_BELOW = 25  # discordant cases


@dataclass(frozen=True, slots=True)
class McNemar:
    """The two-sided ``p`` value of McNemar's test, ``p.n`` being the discordant cases; ``exact``: from the binomial."""

    p: Measure
    exact: bool


def mcnemar(first_only: int, second_only: int) -> McNemar:
    """Whether two judges, on the same cases, are right equally often; only cases where one of the two is right count.

    With b = first_only and c = second_only: below 25 of them the exact p = min(1, 2 P(X <= min(b, c))) for
    X ~ Binomial(b + c, 1/2), otherwise from (b - c)^2 / (b + c), chi-squared with 1 degree of freedom, without
    correction. Undefined for b + c = 0. Source: McNemar (1947), Psychometrika 12, 153-157.
    """
    if min(first_only, second_only) < 0:
        raise ValueError("A count is not negative.")
    n = first_only + second_only
    if not n:
        return McNemar(Measure.missing("the two never differ"), exact=True)
    if n < EXACT_BELOW:
        tail = sum(comb(n, hits) for hits in range(min(first_only, second_only) + 1))
        return McNemar(Measure(min(1.0, 2 * tail / 2**n), n), exact=True)
    return McNemar(Measure(erfc(abs(first_only - second_only) / sqrt(2 * n)), n), exact=False)


def paired_difference(
    both: int,
    first_only: int,
    second_only: int,
    neither: int,
    *,
    clusters: ArrayLike | None = None,
    resamples: int = FEWER_RESAMPLES,
    seed: int = 0,
) -> Measure:
    """How much more often the first of two judges is right on the same cases: (first_only - second_only) / n.

    From -1 to 1, undefined without cases. The interval is that of `matched`, or, with ``clusters`` (c, 4), the four
    counts of each task, where a task has several cases, from drawing tasks.
    """
    cells = (both, first_only, second_only, neither)
    if min(cells) < 0:
        raise ValueError("A count is not negative.")
    if (tasks := repeated(clusters, cells)) is None:
        return matched(first_only, second_only, sum(cells))
    found = Measure((first_only - second_only) / sum(cells), sum(cells))
    return by_cluster(found, tasks, _difference, resamples=resamples, seed=seed)


def matched(first_only: int, second_only: int, n: int) -> Measure:
    """(first_only - second_only) / n, the difference of two rates on the same n cases, with Agresti and Min's interval.

    Half a case is added to each of the four cells, and then Wald's formula taken: with b = first_only, c = second_only,
    d = (b - c) / (n + 2) -+ z sqrt(b + c + 1 - (b - c)^2 / (n + 2)) / (n + 2), within -1 to 1. It holds the value, and
    has a width also where the two never differ. Undefined for n = 0.
    Source: Agresti and Min (2005), Statistics in Medicine 24, 729-740.
    """
    if not n:
        return Measure.missing(NO_CASES)
    difference, more = first_only - second_only, n + 2
    spread = Z * sqrt(first_only + second_only + 1 - difference**2 / more)
    low, high = (difference - spread) / more, (difference + spread) / more
    return Measure(difference / n, n, low=max(low, -1.0), high=min(high, 1.0))


def _difference(cells: Floats) -> Floats:
    result: Floats = (cells[:, 1] - cells[:, 2]) / cells.sum(axis=1)
    return result


def kendall_tau(x: Sequence[float], y: Sequence[float]) -> Measure:
    """Kendall's tau-b of two rankings of the same n things, ties allowed.

    (concordant - discordant pairs) / sqrt((pairs not tied in x) (pairs not tied in y)), from -1 to 1. Undefined for
    fewer than two things, and where all are tied in x or in y. ValueError where the lengths differ or a value is not
    finite. Source: Kendall (1945), Biometrika 33, 239-251.
    """
    first, second = np.asarray(x, float), np.asarray(y, float)
    if first.shape != second.shape or first.ndim != 1 or not (np.isfinite(first) & np.isfinite(second)).all():
        raise ValueError("Two rankings are equally long and of finite numbers.")
    n = len(first)
    if n < 2:
        return Measure.missing("fewer than two to rank", n)
    score = untied_x = untied_y = 0.0
    for at in range(n - 1):  # a row at a time: memory stays small
        by_x, by_y = np.sign(first[at + 1 :] - first[at]), np.sign(second[at + 1 :] - second[at])
        score += float(by_x @ by_y)
        untied_x += float(by_x @ by_x)
        untied_y += float(by_y @ by_y)
    if not untied_x or not untied_y:
        return Measure.missing("all are tied in one of the rankings", n)
    return Measure(score / sqrt(untied_x * untied_y), n)
