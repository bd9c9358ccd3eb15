"""A success rate and its interval from labels of a random sample, of the whole or of each stratum.

A binary judge's verdicts on all cases divide them into strata, which uses everything that such a judge tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import ceil, floor, sqrt

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics.intervals import TAIL, Sample, beta_binomial, wilson_ends
from evaluations.statistics.measure import Measure
from evaluations.statistics.quantiles import beta_quantile
from evaluations.statistics.tally import Floats

PRIOR = 0.5  # of one or two strata; with more their priors would add up and pull the rate to one half
CHUNK = 1_000_000  # probabilities in memory: 8 MB, and twice the same as complex numbers
FEWER = 3  # cases that many strata have less, so that the variance is right on average without that pull


class Estimand(StrEnum):
    """The estimand: the rate of these trajectories (a finite population), or that of the agent behind them."""

    RUNS = "runs"
    AGENT = "agent"


def _posterior(hits: Floats, checked: Floats) -> tuple[Floats, Floats]:
    """Return mean and size a + b of each stratum's beta distribution, for the last axis of strata."""
    prior = min(PRIOR, 1 / hits.shape[-1])
    size = np.maximum(checked + 2 * prior - FEWER * (1 - 2 * prior), PRIOR)
    return (hits + prior) / (checked + 2 * prior), size


def stratified_rate(samples: Sequence[Sample], estimand: Estimand = Estimand.RUNS, effect: float = 1) -> Measure:
    """The success rate over all strata, from a simple random sample of each, with its 95% interval.

    With N_h cases in stratum h, n_h of them labelled and k_h successes the value is sum_h N_h k_h / n_h / N. The
    successes among the N_h - n_h others have a beta-binomial distribution with the mean m = (k_h + c) / (n_h + 2c) and
    the size n_h + 2c - 3 (1 - 2c), at least 1/2, where c = min(1/2, 1 / strata): for one or two strata these are
    Jeffreys' k_h + 1/2 and n_h - k_h + 1/2. They are convolved to the distribution of T, the successes among all N.

    `Estimand.RUNS`: the interval has every T for which P(fewer) + P(T) / 2 is above 2.5% and below 97.5%. If everything
    is labelled it has no width. `Estimand.AGENT`: the quantiles of the beta distribution with the mean and variance of
    a rate that, given T, has the distribution Beta(T + 1/2, N - T + 1/2). Both are widened to hold the value.

    ``effect``: a design effect, by which the variance is larger because tasks have several cases: the ends are moved
    from the value by its square root. ValueError without a sample.

    Source: the predictive distribution of Jeffreys' prior as in Brown, Cai and DasGupta (2001), Statistical Science 16,
    101-133; with a finite population, and the halved probability, as in Agresti and Gottard (2005), Statistical Science
    20, 367-371. c and 3 are from simulation: ``python -m bench.coverage`` measures the coverage.
    """
    if not samples:
        raise ValueError("There is no sample.")
    left, hits, checked = ([[getattr(each, field) for each in samples]] for field in ("left", "hits", "checked"))
    value, low, high = (float(each[0]) for each in rates_with_ends(left, hits, checked, estimand))
    low, high = (value + (end - value) * sqrt(effect) for end in (low, high))
    return Measure(value, sum(each.checked for each in samples), low=max(low, 0.0), high=min(high, 1.0))


def rates_with_ends(
    left: ArrayLike, hits: ArrayLike, checked: ArrayLike, estimand: Estimand
) -> tuple[Floats, Floats, Floats]:
    """Return values and ends, (r,) each, of `stratified_rate` for r times as many strata, (r, h); hits may be broken
    numbers, such as expected ones."""
    rest, found, drawn = (np.asarray(each, float) for each in (left, hits, checked))
    total = (rest + drawn).sum(axis=1)
    value = np.minimum(((rest + drawn) * found / drawn).sum(axis=1) / total, 1)
    ends = _ends_of_agent(rest, found, drawn) if estimand is Estimand.AGENT else _ends_of_runs(rest, found, drawn)
    return value, np.minimum(ends[0], value), np.maximum(ends[1], value)


def _ends_of_runs(left: Floats, hits: Floats, checked: Floats) -> tuple[Floats, Floats]:
    """Return the ends (r,) from the sums of each row's beta-binomials, by Fourier transform.

    Rows share the transforms of equal strata, so that thousands of outcomes take no longer than a hundred.
    """
    table = np.stack([left, *_posterior(hits, checked)], axis=-1).reshape(-1, 3)
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    cells = int(left.sum(axis=1).max()) + 1
    parts = [beta_binomial(int(u), m * size, (1 - m) * size) for u, m, size in distinct.tolist()]
    transforms = np.stack([np.fft.rfft(part, cells) for part in parts])
    ends, rows = np.empty((2, len(left))), which.reshape(left.shape)
    step = max(1, CHUNK // cells)
    for start in range(0, len(rows), step):
        chances = np.fft.irfft(transforms[rows[start : start + step]].prod(axis=1), cells, axis=1)
        below = np.cumsum(chances, axis=1) - chances / 2
        ends[0, start : start + step] = (below > TAIL).argmax(axis=1)
        ends[1, start : start + step] = cells - 1 - (below[:, ::-1] < 1 - TAIL).argmax(axis=1)
    low, high = (ends + hits.sum(axis=1)) / (left + checked).sum(axis=1)
    return low, high


def _ends_of_agent(left: Floats, hits: Floats, checked: Floats) -> tuple[Floats, Floats]:
    rate, cases = _posterior(hits, checked)
    successes = (hits + left * rate).sum(axis=1)
    variance = (left * rate * (1 - rate) * (cases + left) / (cases + 1)).sum(axis=1)
    total = (left + checked).sum(axis=1)
    mean = (successes + 0.5) / (total + 1)
    given = ((successes + 0.5) * (total - successes + 0.5) - variance) / ((total + 1) ** 2 * (total + 2))
    size = mean * (1 - mean) / (variance / (total + 1) ** 2 + given) - 1
    a, b = mean * size, (1 - mean) * size
    return beta_quantile(TAIL, a, b), beta_quantile(1 - TAIL, a, b)


def weighted_rate(labels: ArrayLike, weights: ArrayLike, estimand: Estimand, effect: float = 1) -> Measure:
    """The success rate from labels (n,) alone, each for ``weights`` (n,) cases, with Wilson's interval.

    p = sum w_i y_i / N with N = sum w_i, the inverse of the inclusion probabilities. The interval is that of `wilson`
    with an effective sample size in place of n: N^2 / sum w_i^2 for `Estimand.AGENT`, which is n with equal weights;
    for `Estimand.RUNS` N (N - 1) / sum w_i (w_i - 1), which is n (N - 1) / (N - n): the finite population correction.
    Then it has the whole numbers of successes inside of it, without those that the labels exclude. If more than half of
    the runs are labelled, with equal weights, it is that of `stratified_rate`: so few numbers are left that a normal
    approximation does not hold. ``effect`` as in `stratified_rate`. Undefined without labels.
    Source: Kish (1965), Survey Sampling; Wilson's interval with an effective size as in Franco et al. (2019), Journal
    of Survey Statistics and Methodology 7, 334-364.
    """
    found, weight = np.asarray(labels, float), np.asarray(weights, float)
    if not len(found):
        return Measure.missing("no labels")
    total = float(weight.sum())
    hits = min(float(weight @ found), total)
    if estimand is Estimand.AGENT:
        size = total**2 / float(weight @ weight) / effect
        low, high = wilson_ends(size * hits / total, size)
        return Measure(hits / total, len(found), low=max(low, 0.0), high=min(high, 1.0))
    runs, seen = round(total), int(found.sum())
    if 2 * len(found) > runs and np.ptp(weight) < 1e-9:
        return stratified_rate([Sample(runs - len(found), seen, len(found))])
    size = total * (total - 1) / max(float(weight @ (weight - 1)), 1e-9)
    ends = wilson_ends(size * hits / total, size)
    low = max(ceil(ends[0] * runs - 1e-9), seen) / runs
    high = min(floor(ends[1] * runs + 1e-9), runs - len(found) + seen) / runs
    return Measure(hits / total, len(found), low=min(low, hits / total), high=max(high, hits / total))
