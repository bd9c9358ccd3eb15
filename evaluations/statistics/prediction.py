"""Prediction-powered inference: a rate from labels of a sample and a judge's scores of all cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluations.statistics.intervals import Z, wilson_ends
from evaluations.statistics.measure import Measure
from evaluations.statistics.quantiles import t_quantile
from evaluations.statistics.stratified import Estimand, weighted_rate
from evaluations.statistics.tally import Floats

FEWEST = 3  # labels of a stratum: a slope needs two, and one more shows an error
FEW = "fewer than 3 labels in a stratum"


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSample:
    """A stratum: ``scores`` (N,) of all cases; of the n labelled ones ``labels`` (n,), ``predicted`` (n,), their
    scores, and ``weights`` (n,), the inverse of their inclusion probabilities."""

    scores: Floats
    labels: Floats
    predicted: Floats
    weights: Floats


def predicted_rate(samples: Sequence[ScoredSample], estimand: Estimand, effect: float = 1) -> Measure:
    """The success rate over all strata, with PPI++ in each of them, and its 95% interval.

    In a stratum with scores f of all N cases, labels Y of n cases and weights w = 1 / probability: with means over the
    sample weighted by w, the slope b = sum w (f - mean f)(Y - mean Y) / sum w (f - mean f)^2, where b (N - n) / N is
    clipped to 0..1, and residuals e = Y - b f, the value is b mean_N(f) + mean(e). Its variance is
    n / (n - 2) sum w (w - 1) (e - mean e)^2 / (sum w)^2, a square at least 1 / 2n on average. This is PPI++ with
    lambda = b (N - n) / N, since the N - n other cases are the unlabelled ones. Unequal known probabilities (active
    sampling) need no other formula. Strata are added with the weights N_h / N. `Estimand.AGENT` adds q (1 - q) / N, the
    variance of the rate of N runs, with q, the rate of people alone.

    The interval is Wilson's with the effective size q (1 - q) / variance, divided by (t / z)^2 with t of n - 2 strata
    degrees of freedom; with q and not the value, so that a sample with few failures has no narrow interval by chance.
    If all labels are equal it is `weighted_rate`. ``effect`` as in `stratified_rate`. Undefined with fewer than 3
    labels in a stratum, unless all of it is labelled.

    Source: Angelopoulos, Duchi and Zrnic (2023), arXiv:2311.01453; stratified: Fisch et al. (2024), arXiv:2406.04291;
    unequal probabilities: Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, chapter 6.
    """
    cases, labelled = sum(len(each.scores) for each in samples), sum(len(each.labels) for each in samples)
    if any(len(each.labels) < min(FEWEST, len(each.scores)) for each in samples):
        return Measure.missing(FEW, labelled)
    shares = [len(each.scores) / cases for each in samples]
    means = [_mean_and_variance(each) for each in samples]
    variance = sum(share**2 * spread for share, (_, spread) in zip(shares, means, strict=True))
    labels, weights = (np.concatenate(each) for each in zip(*((x.labels, x.weights) for x in samples), strict=True))
    people = weighted_rate(labels, weights, estimand, effect)
    plain = float(weights @ labels / weights.sum())
    if estimand is Estimand.AGENT:
        variance += plain * (1 - plain) / cases
    if not 0 < plain < 1 or not variance:
        return people
    value = min(max(sum(share * mean for share, (mean, _) in zip(shares, means, strict=True)), 0.0), 1.0)
    wider = (t_quantile(max(labelled - 2 * len(samples), 1)) / Z) ** 2 * effect
    size = plain * (1 - plain) / variance / wider
    low, high = wilson_ends(size * value, size)
    return Measure(value, labelled, low=max(min(low, value), 0.0), high=min(max(high, value), 1.0))


def _mean_and_variance(sample: ScoredSample) -> tuple[float, float]:
    """Return the estimated rate of a stratum and its variance given the scores."""
    labels, predicted, weights = sample.labels, sample.predicted, sample.weights
    size, n = len(sample.scores), len(labels)
    if n == size:
        return float(labels.mean()), 0.0
    share, b = weights / weights.sum(), slope(sample)
    residuals = labels - b * predicted
    mean = float(share @ residuals)
    squares = float((weights - 1) * weights @ (residuals - mean) ** 2)
    least = 0.5 * float((weights - 1) @ weights) / n
    return b * float(sample.scores.mean()) + mean, max(squares, least) * n / (n - 2) / float(weights.sum()) ** 2


def slope(sample: ScoredSample) -> float:
    """Return b of `predicted_rate`; 0 if all labelled cases have the same score."""
    share = sample.weights / sample.weights.sum()
    centred = sample.predicted - share @ sample.predicted
    spread = float(share @ centred**2)
    if spread < 1e-12:
        return 0.0
    size = len(sample.scores)
    most = size / (size - len(sample.labels)) if len(sample.labels) < size else 1.0
    return min(max(float(share @ (centred * sample.labels)) / spread, 0.0), most)
