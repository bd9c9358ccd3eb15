"""95% intervals: Wilson's for rates, a bootstrap over items for the rest; over tasks if they have several items."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics.coefficients import NO_CASES, Coefficient, cohen_kappa, kappa_values
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats, Integers, Tally, clusters_of

Z = NormalDist().inv_cdf(0.975)
RESAMPLES = 2000
FEWER_RESAMPLES = 1000
UNDEFINED = 0.01  # maximum share of undefined resamples
CHUNK = 2_000_000  # counts in memory: 16 MB, and the same again as floating point numbers
ROUNDING = 1e-12
FEW_ALIKE = 8  # with fewer cases of a kind they are drawn one by one: a binomial draw takes as long as eight of them
SHARED = 200_000  # counts that are cached for other measures of the same cases: 1.6 MB, eight times


def wilson(hits: int, n: int, clusters: ArrayLike | None = None) -> Measure:
    """The rate hits / n with Wilson's score interval, without continuity correction.

    (p + z^2/2n -+ z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n), within 0 to 1. Undefined for n = 0; ValueError
    where hits is not from 0 to n. Source: Wilson (1927), JASA 22, 209-212; method 3 of Newcombe (1998), Statistics in
    Medicine 17, 857-872.

    ``clusters`` (c, 2), the hits and the others of each task: where a task has several cases the interval is that of
    `by_cluster`. Where all cases are hits, or none, drawing tasks shows no spread: then Wilson's of as many cases as
    there are tasks, as if those of one task could only be alike.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no rate.")
    if n == 0:
        return Measure(None, 0, hits=0, undefined=NO_CASES)
    found = Measure(hits / n, n, hits, *wilson_ends(hits, n))
    if (tasks := repeated(clusters, (hits, n - hits))) is None:
        return found
    tasks = tasks[tasks.any(axis=1)]
    if hits in (0, n):
        low, high = wilson_ends(len(tasks) if hits else 0, len(tasks))
        return replace(found, low=low, high=high)
    return by_cluster(found, tasks, _rates)


def wilson_ends(hits: float, n: float) -> tuple[float, float]:
    middle, spread = hits + Z * Z / 2, Z * sqrt(hits * (n - hits) / n + Z * Z / 4)
    low = (middle - spread) / (n + Z * Z) if hits else 0.0
    return low, (middle + spread) / (n + Z * Z) if hits < n else 1.0


def _rates(cells: Floats) -> Floats:
    """Return the rates of (r, 2) hits and others; never both 0."""
    result: Floats = cells[:, 0] / cells.sum(axis=1)
    return result


def with_interval(
    tally: Tally,
    coefficient: Coefficient,
    clusters: ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Measure:
    """Return a coefficient with its interval from drawing items with replacement; see `bootstrap`.

    ``clusters`` (c, p) are from `Tally.clusters`: if a task has several items, tasks are drawn; see `by_cluster`.
    """
    found = coefficient(tally)

    def values(times: Floats) -> Floats:
        return coefficient.values(tally.patterns, times)

    return _resampled_measure(found, tally.times, clusters, values, resamples, seed)


def kappa_with_interval(
    table: ArrayLike, clusters: ArrayLike | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Measure:
    """Return `cohen_kappa` with its interval from drawing cases with replacement.

    ``clusters`` (c, k * k), the table of each task row by row: if a task has several cases, tasks are drawn.
    """
    cells = np.asarray(table, dtype=np.int64).reshape(-1)
    return _resampled_measure(cohen_kappa(table), cells, clusters, kappa_values, resamples, seed)


def repeated(clusters: ArrayLike | None, times: ArrayLike) -> Integers | None:
    """Return the clusters as (c, p) integers, or None if no task has two cases, because cases are then independent.

    ValueError if they do not add up to ``times`` (p,), the cases of each kind.
    """
    if clusters is None:
        return None
    expected = np.asarray(times, dtype=np.int64)
    counts = np.asarray(clusters, dtype=np.int64)
    counts = counts.reshape(len(counts), len(expected))
    if (counts < 0).any() or (counts.sum(axis=0) != expected).any():
        raise ValueError("The cases of the tasks are not the cases altogether.")
    return counts if (counts.sum(axis=1) > 1).any() else None


def _resampled_measure(
    found: Measure,
    times: Integers,
    clusters: ArrayLike | None,
    values: Callable[[Floats], Floats],
    resamples: int,
    seed: int,
) -> Measure:
    """Use `by_cluster` if a task has several cases, otherwise `bootstrap`."""
    if (tasks := repeated(clusters, times)) is None:
        return bootstrap(found, times, values, resamples=resamples, seed=seed)
    return by_cluster(found, tasks, values, resamples=min(resamples, FEWER_RESAMPLES), seed=seed)


def bootstrap(
    found: Measure,
    times: Integers,
    values: Callable[[Floats], Floats],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Measure:
    """``found`` with the 2.5 and 97.5 percentiles of what ``values`` makes of resampled ``times``.

    ``times`` (p,) counts the cases of each of p kinds. As many cases drawn with replacement are one draw from
    a multinomial distribution over the kinds, which costs p and not the number of cases. ``values`` turns (r, p) into
    (r,), NaN where undefined: those resamples are left out. The same seed gives the same interval.

    No interval where nothing is found; where more than 1% of the resamples are undefined, since too few cases carry
    the figure; and where all resamples are equal: no width would claim certainty.
    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13; for alpha Zapf et al. (2016), BMC
    Medical Research Methodology 16, 93.
    """
    if found.value is None:
        return found
    return _between(found, np.concatenate([values(chunk) for chunk in _resampled(times, resamples, seed)]))


def by_cluster(
    found: Measure,
    clusters: ArrayLike,
    values: Callable[[Floats], Floats],
    *,
    resamples: int = FEWER_RESAMPLES,
    seed: int = 0,
    level: float = 0.05,
) -> Measure:
    """``found`` with its interval from drawing tasks, each with all of its cases; otherwise as `bootstrap`.

    The interval is from the ``level`` / 2 to the 1 - ``level`` / 2 quantile.

    Cases of one task (that of several agents, say) are alike, and to draw them one by one would take them for more
    than they are. ``clusters`` (c, p) counts the cases of each of p kinds that each of c tasks has; tasks without any
    are left out. ``values`` as in `bootstrap`, and never of no case at all. With few tasks the interval is somewhat too
    narrow; with one there is none.
    Source: Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8; Field and Welsh (2007),
    Journal of the Royal Statistical Society B 69, 369-390.
    """
    counts = np.asarray(clusters, dtype=np.int64)
    if counts.ndim != 2 or (counts < 0).any():
        raise ValueError("Clusters are counts of cases, a row for each task.")
    counts, found = counts[counts.any(axis=1)], replace(found, low=None, high=None)
    if found.value is None or not len(counts):
        return found
    draw = _tasks_drawn if resamples * counts.shape[1] <= SHARED else _tasks_drawn.__wrapped__
    return _between(found, values(draw(counts.tobytes(), counts.shape[1], resamples, seed)), level)


def mean_of_items(found: Measure, values: Sequence[float], tasks: Sequence[Hashable] | None = None) -> Measure:
    """Return ``found``, the mean of ``values``, with its interval from drawing items, or ``tasks`` with all their
    items.

    No interval if ``found`` has no value or all values or resamples are equal; else as `bootstrap` and `by_cluster`.
    """
    kinds, which = np.unique(np.asarray(values, float), return_inverse=True)
    if found.value is None or len(kinds) < 2:
        return found

    def means(times: Floats) -> Floats:
        result: Floats = times @ kinds / times.sum(axis=1)
        return result

    if tasks is None or len(set(tasks)) == len(tasks):
        return bootstrap(found, np.bincount(which), means)
    return by_cluster(found, clusters_of(zip(tasks, which.tolist(), strict=True), len(kinds)), means)


def _between(found: Measure, drawn: Floats, level: float = 0.05) -> Measure:
    """Return ``found`` with the percentiles of the ``drawn`` values (r,), or without, as in `bootstrap`."""
    ordered = np.sort(drawn[~np.isnan(drawn)])
    if not len(ordered) or len(ordered) < (1 - UNDEFINED) * len(drawn) or ordered[-1] - ordered[0] < ROUNDING:
        return found
    return replace(found, low=_percentile(ordered, level / 2), high=_percentile(ordered, 1 - level / 2))


def _percentile(ordered: Floats, share: float) -> float:
    """Compute as `numpy.quantile`, but without its argument checks, which take a hundred microseconds."""
    place = share * (len(ordered) - 1)
    below = ordered[int(place)]
    return float(below + (place - int(place)) * (ordered[min(int(place) + 1, len(ordered) - 1)] - below))


@lru_cache(maxsize=8)
def _tasks_drawn(clusters: bytes, kinds: int, resamples: int, seed: int) -> Floats:
    """Return (resamples, kinds): counts of the cases of drawn tasks; tasks with equal counts are one kind."""
    tasks, times = np.unique(np.frombuffer(clusters, np.int64).reshape(-1, kinds), axis=0, return_counts=True)
    drawing = _one_by_one if times.sum() < FEW_ALIKE * len(times) else _resampled
    result: Floats = np.concatenate([chunk @ tasks for chunk in drawing(times.astype(np.int64), resamples, seed)])
    result.flags.writeable = False
    return result


def _one_by_one(times: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Draw as `_resampled`, but each case by itself: faster if kinds have few cases."""
    kind, generator = np.repeat(np.arange(len(times)), times), np.random.default_rng(seed)
    rows = max(1, CHUNK // len(kind))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = kind[generator.integers(0, len(kind), (size, len(kind)))]
        cells = drawn + len(times) * np.arange(size)[:, np.newaxis]
        yield np.bincount(cells.reshape(-1), minlength=size * len(times)).reshape(size, -1).astype(float)


def _resampled(times: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield (r, p) counts of drawn cases, in chunks, so that memory does not depend on the number of kinds."""
    rows = max(1, CHUNK // len(times))
    if resamples * len(times) <= SHARED:
        yield _shared(tuple(times.tolist()), resamples, seed)
        return
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, rows):
        yield _draw(generator, times, min(rows, resamples - start))


@lru_cache(maxsize=8)
def _shared(times: tuple[int, ...], resamples: int, seed: int) -> Floats:
    """Return resamples, drawn once for all measures of the same cases."""
    drawn = _draw(np.random.default_rng(seed), np.array(times, np.int64), resamples)
    drawn.flags.writeable = False
    return drawn


def _draw(generator: np.random.Generator, times: Integers, rows: int) -> Floats:
    """Draw (rows, p). Kinds without a case are left out, because rounding could give the last of them one."""
    kinds = np.flatnonzero(times)
    drawn = np.zeros((rows, len(times)))
    cases = int(times.sum())
    drawn[:, kinds] = generator.multinomial(cases, times[kinds] / cases, size=rows)
    return drawn


# --- finite populations -----------------------------------------------------------------------------------------------

TAIL = 0.025 * (1 - 1e-9)  # of each side; the factor keeps a tail of exactly 2.5% in, despite rounding


@dataclass(frozen=True, slots=True)
class Sample:
    """A simple random sample without replacement: ``hits`` of the ``checked`` cases, and ``left`` cases not drawn."""

    left: int
    hits: int
    checked: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.checked or self.left < 0 or not self.checked:
            raise ValueError(f"{self.hits} of {self.checked} with {self.left} left is no sample.")


def hits_left(samples: Sequence[Sample]) -> Measure:
    """The expected number of hits among the cases that were not drawn, with its 95% interval.

    The value is the sum of left * hits / checked. With one sample of n cases, k of them hits, and u left, the interval
    has every number r of hits among the u for which both P(X <= k) and P(X >= k) are 2.5% or more, where X is
    hypergeometric: n cases out of n + u, k + r of which are hits. It holds the true number in at least 95% of draws,
    whatever that number is; it is widened to hold the value. In closed form the upper bound is the 97.5% quantile of
    a beta-binomial distribution of u trials with parameters k + 1 and n - k, the lower bound the 2.5% quantile of one
    with k and n - k + 1. With several samples these distributions are convolved and the quantiles are those of the sum.

    From 0 to the number of cases left; ValueError without a sample. Source: Buonaccorsi (1987), The American
    Statistician 41, 215-218; for several samples the melding of Fay, Proschan and Brittain (2015), Biometrics 71,
    146-156. Enumerated for two samples of populations up to 10: the least coverage is 95.4%.
    """
    if not samples:
        raise ValueError("There is no sample.")
    value = sum(sample.left * sample.hits / sample.checked for sample in samples)
    lowest = sum_distribution([beta_binomial(each.left, each.hits, each.checked - each.hits + 1) for each in samples])
    highest = sum_distribution([beta_binomial(each.left, each.hits + 1, each.checked - each.hits) for each in samples])
    low = int(np.argmax(np.cumsum(lowest) > TAIL))
    high = len(highest) - 1 - int(np.argmax(np.cumsum(highest[::-1]) > TAIL))
    checked = sum(sample.checked for sample in samples)
    return Measure(value, checked, low=float(min(low, value)), high=float(max(high, value)))


def beta_binomial(trials: int, a: float, b: float) -> Floats:
    """Return (trials + 1,) probabilities; all at 0 for a = 0, and all at ``trials`` for b = 0."""
    if not a or not b:
        certain = np.zeros(trials + 1)
        certain[0 if not a else trials] = 1
        return certain
    r = np.arange(trials)
    ratios = np.log((a + r) * (trials - r) / ((r + 1) * (b + trials - r - 1.0)))
    logarithms = np.concatenate([[0.0], np.cumsum(ratios)])
    odds = np.exp(logarithms - logarithms.max())
    result: Floats = odds / odds.sum()
    return result


def sum_distribution(distributions: Sequence[Floats]) -> Floats:
    """Return the probabilities of the sum of independent counts, (1 + their largest sum,), by Fourier transform.

    Adds in halves, because an audited bundle may have a draw for each trajectory.
    """
    if len(distributions) == 1:
        return distributions[0]
    half = len(distributions) // 2
    first, second = sum_distribution(distributions[:half]), sum_distribution(distributions[half:])
    size = len(first) + len(second) - 1
    result: Floats = np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second, size), size)
    return result
