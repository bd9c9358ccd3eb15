"""95 % intervals: Wilson's for rates, and a bootstrap over items for everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics.coefficients import NO_CASES, Coefficient, cohen_kappa, kappa_values
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats, Integers, Tally

Z = NormalDist().inv_cdf(0.975)
RESAMPLES = 2000
CHUNK = 2_000_000  # counts held at once: 16 MB, and as much again as floating point numbers
ROUNDING = 1e-12
SHARED = 200_000  # so many are kept for the next measure of the same cases: 1.6 MB, eight times


def wilson(hits: int, n: int) -> Measure:
    """The rate hits / n with Wilson's score interval, without continuity correction.

    (p + z^2/2n -+ z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n), within 0 to 1. Undefined for n = 0; ValueError
    where hits is not from 0 to n. Source: Wilson (1927), JASA 22, 209-212; method 3 of Newcombe (1998), Statistics in
    Medicine 17, 857-872.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no rate.")
    if n == 0:
        return Measure(None, 0, hits=0, undefined=NO_CASES)
    middle, spread = hits + Z * Z / 2, Z * sqrt(hits * (n - hits) / n + Z * Z / 4)
    low = (middle - spread) / (n + Z * Z) if hits else 0.0
    high = (middle + spread) / (n + Z * Z) if hits < n else 1.0
    return Measure(hits / n, n, hits, low, high)


def with_interval(tally: Tally, coefficient: Coefficient, *, resamples: int = RESAMPLES, seed: int = 0) -> Measure:
    """A coefficient with its interval from drawing items with replacement; see `bootstrap`."""
    found = coefficient(tally)
    return bootstrap(
        found, tally.times, lambda times: coefficient.values(tally.patterns, times), resamples=resamples, seed=seed
    )


def kappa_with_interval(table: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Measure:
    """`cohen_kappa` with its interval from drawing cases with replacement."""
    cells = np.asarray(table, dtype=np.int64).reshape(-1)
    return bootstrap(cohen_kappa(table), cells, kappa_values, resamples=resamples, seed=seed)


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

    No interval where nothing is found, unless most resamples are defined, and where all of those are equal: no width
    would claim certainty. Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    if found.value is None:
        return found
    drawn = np.concatenate([values(chunk) for chunk in _resampled(times, resamples, seed)])
    drawn = drawn[~np.isnan(drawn)]
    if 2 * len(drawn) <= resamples or np.ptp(drawn) < ROUNDING:
        return found
    low, high = np.quantile(drawn, (0.025, 0.975))
    return replace(found, low=float(low), high=float(high))


def _resampled(times: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """(r, p) counts of drawn cases, in chunks, so that memory stays the same however many kinds there are."""
    rows = max(1, CHUNK // len(times))
    if resamples * len(times) <= SHARED:
        yield _shared(tuple(times.tolist()), resamples, seed)
        return
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, rows):
        yield _draw(generator, times, min(rows, resamples - start))


@lru_cache(maxsize=8)
def _shared(times: tuple[int, ...], resamples: int, seed: int) -> Floats:
    """All measures of the same cases rest on the same resamples, drawn once."""
    drawn = _draw(np.random.default_rng(seed), np.array(times, np.int64), resamples)
    drawn.flags.writeable = False
    return drawn


def _draw(generator: np.random.Generator, times: Integers, rows: int) -> Floats:
    """(rows, p). Kinds without a case are left out, or rounding could give the last of them one."""
    kinds = np.flatnonzero(times)
    drawn = np.zeros((rows, len(times)))
    cases = int(times.sum())
    drawn[:, kinds] = generator.multinomial(cases, times[kinds] / cases, size=rows)
    return drawn
