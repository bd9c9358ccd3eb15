"""Two judges on the same cases, and two rankings of the same agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, erfc, lgamma, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics.coefficients import NO_CASES
from evaluations.statistics.intervals import FEWER_RESAMPLES, ROUNDING, Z, by_cluster, repeated
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats

EXACT_BELOW = 25  # discordant cases
ENUMERATED = 5000  # largest number of discordant cases for which all swaps of tasks are counted
PERMUTATIONS = 9999
NEVER_DIFFER = "the two never differ"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A two-sided ``p`` value; ``p.n`` is the number of discordant cases.

    ``exact``: every outcome was counted. ``by_task``: whole tasks were swapped, ``permutations`` times unless
    ``exact``; otherwise it is McNemar's test.
    """

    p: Measure
    exact: bool
    by_task: bool = False
    permutations: int | None = None


def mcnemar(first_only: int, second_only: int) -> PairedTest:
    """Test whether two judges are right equally often on the same cases; only cases where one is right count.

    With b = first_only and c = second_only: below 25 of them the exact p = min(1, 2 P(X <= min(b, c))) for
    X ~ Binomial(b + c, 1/2), otherwise from (b - c)^2 / (b + c), chi-squared with 1 degree of freedom, without
    correction. Undefined for b + c = 0. Source: McNemar (1947), Psychometrika 12, 153-157;
    without correction as Fagerland, Lydersen and Laake (2013), BMC Medical Research Methodology 13, 91.
    """
    if min(first_only, second_only) < 0:
        raise ValueError("A count is not negative.")
    n = first_only + second_only
    if not n:
        return PairedTest(Measure.missing(NEVER_DIFFER), exact=True)
    if n < EXACT_BELOW:
        tail = sum(comb(n, hits) for hits in range(min(first_only, second_only) + 1))
        return PairedTest(Measure(min(1.0, 2 * tail / 2**n), n), exact=True)
    return PairedTest(Measure(erfc(abs(first_only - second_only) / sqrt(2 * n)), n), exact=False)


def paired_test(tasks: ArrayLike, *, seed: int = 0) -> PairedTest:
    """Test whether two judges are right equally often; ``tasks`` (c, 2) counts cases in which only one is right, by
    task.

    If no task has two such cases this is `mcnemar`. Otherwise cases of a task depend on each other, and the judges are
    swapped task by task: with d_t the first count minus the second, p is the share of all choices of signs s_t for
    which |sum s_t d_t| >= |sum d_t|. Up to `ENUMERATED` discordant cases all choices are counted; else `PERMUTATIONS`
    are drawn, and p = (1 + how many reach it) / (1 + PERMUTATIONS). 1 where all d_t are 0, undefined without a
    discordant case. Source: Pesarin and Salmaso (2010), Permutation Tests for Complex Data, section 2.4; Phipson and
    Smyth (2010), Statistical Applications in Genetics and Molecular Biology 9, 39.
    """
    counts = np.asarray(tasks, np.int64).reshape(-1, 2)
    if (counts < 0).any():
        raise ValueError("A count is not negative.")
    first, second = counts.sum(axis=0).tolist()
    if not (counts.sum(axis=1) > 1).any():
        return mcnemar(first, second)
    differences = np.abs(counts[:, 0] - counts[:, 1])
    sizes, times = np.unique(differences[differences > 0], return_counts=True)
    reached = abs(first - second)
    if int(sizes @ times) <= ENUMERATED:
        p = _share_of_swaps(sizes.tolist(), times.tolist(), reached)
        return PairedTest(Measure(p, first + second), exact=True, by_task=True)
    generator = np.random.default_rng(seed)
    kept = generator.binomial(times, 0.5, (PERMUTATIONS, len(times)))
    hits = int(np.count_nonzero(np.abs((2 * kept - times) @ sizes) >= reached))
    p = (1 + hits) / (1 + PERMUTATIONS)
    return PairedTest(Measure(p, first + second), exact=False, by_task=True, permutations=PERMUTATIONS)


def _share_of_swaps(sizes: Sequence[int], times: Sequence[int], reached: int) -> float:
    """Return P(|sum of signed sizes| >= reached): ``times`` of each of the ``sizes``, with equally likely signs."""
    most = sum(size * number for size, number in zip(sizes, times, strict=True))
    chances = np.ones(1)
    for size, number in zip(sizes, times, strict=True):
        spread = np.zeros(size * number + 1)  # index size * j: j of them are positive
        logarithms = [lgamma(number + 1) - lgamma(j + 1) - lgamma(number - j + 1) for j in range(number + 1)]
        spread[::size] = np.exp(np.array(logarithms) - number * log(2))
        chances = np.convolve(chances, spread)
    sums = 2 * np.arange(len(chances)) - most
    return float(min(1.0, chances[np.abs(sums) >= reached].sum()))


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
    """Compute how much more often the first of two judges is correct: (first_only - second_only) / n.

    From -1 to 1, undefined without cases. The interval is that of `matched`. If ``clusters`` (c, 4), the four counts of
    each task, have a task with several cases, it comes from drawing tasks.
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
    for at in range(n - 1):  # one row at a time to limit memory
        by_x, by_y = np.sign(first[at + 1 :] - first[at]), np.sign(second[at + 1 :] - second[at])
        score += float(by_x @ by_y)
        untied_x += float(by_x @ by_x)
        untied_y += float(by_y @ by_y)
    if not untied_x or not untied_y:
        return Measure.missing("all are tied in one of the rankings", n)
    return Measure(score / sqrt(untied_x * untied_y), n)


def ranking_by_task(first: ArrayLike, second: ArrayLike, cases: ArrayLike) -> Measure:
    """Return `kendall_tau` of two rankings of n items by rates, with the interval of `by_cluster`.

    ``first``, ``second`` and ``cases`` (t, n): successes of each item by either ranking, and number of cases, on each
    of t tasks. Tasks are drawn, each with all of its cases. Items without any case are left out; a resample in which an
    item has no case is undefined. No interval of zero width is given: of two items, tau is only 1 or -1.
    """
    hits, others, of = (np.asarray(each, np.int64) for each in (first, second, cases))
    present = of.any(axis=0)
    hits, others, of = hits[:, present], others[:, present], of[:, present]
    n = hits.shape[1]
    found = kendall_tau(hits.sum(axis=0) / of.sum(axis=0), others.sum(axis=0) / of.sum(axis=0))

    def values(drawn: Floats) -> Floats:
        by_first, by_second, sizes = drawn[:, :n], drawn[:, n : 2 * n], drawn[:, 2 * n :]
        with np.errstate(invalid="ignore", divide="ignore"):
            return _taus(by_first / sizes, by_second / sizes)

    found = by_cluster(found, np.concatenate([hits, others, of], axis=1), values)
    if found.low is not None and found.high is not None and found.high - found.low < ROUNDING:
        return replace(found, low=None, high=None)
    return found


def _taus(x: Floats, y: Floats) -> Floats:
    """Return tau-b of each row, (r,) of (r, n) values each; NaN where undefined."""
    score, untied_x, untied_y = (np.zeros(len(x)) for _ in range(3))
    for at in range(x.shape[1] - 1):
        by_x, by_y = np.sign(x[:, at + 1 :] - x[:, [at]]), np.sign(y[:, at + 1 :] - y[:, [at]])
        score += (by_x * by_y).sum(axis=1)
        untied_x += np.abs(by_x).sum(axis=1)
        untied_y += np.abs(by_y).sum(axis=1)
    result: Floats = score / np.sqrt(untied_x * untied_y)
    return result
