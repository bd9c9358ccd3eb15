"""A confidence sequence: an interval that may be looked at after every label, and labelling stopped at any look."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from evaluations.statistics.measure import Measure

ALPHA = 0.05
TIE = 1e-9  # of logarithms: a ratio of exactly 1 / alpha is excluded, however programs round
LIMIT = -np.log(ALPHA) - TIE
SIMULATIONS = 100
FINEST = 2000  # parts of the range of rates that a simulation tells apart


def confidence_sequence(labels: Sequence[int], total: int, alpha: float = ALPHA) -> list[Measure]:
    """The success rate of ``total`` runs after each of the ``labels``, with 95% intervals that all hold it at once.

    ``labels`` (n,) are 1 for a success, 0 otherwise, in the random order of a simple draw without replacement. R_n(T)
    is P(first n labels | all numbers of successes 0..N equally likely) / P(first n labels | T successes among N), a
    product of (k + 1) / (m + 2), k labels like the next one among m, over the share of such trajectories that is left.
    For the true T it is a martingale with mean 1, so by Ville's inequality it reaches 1 / alpha at any n with a
    probability of at most alpha = 5%. The interval has the T whose ratio was below 20 up to then (or up to the last
    label that left one), and is widened to hold the value. It is wider than an interval for a fixed number of labels,
    and has no width after all labels.

    ValueError for another label and for more labels than runs. Source: Waudby-Smith and Ramdas (2020), Confidence
    sequences for sampling without replacement, NeurIPS 33.
    """
    if len(labels) > total or any(label not in (0, 1) for label in labels):
        raise ValueError(f"Labels are 0 or 1, and at most as many as the {total} trajectories.")
    possible, successes = np.ones(total + 1, bool), np.arange(total + 1)
    ratio, hits, found = np.zeros(total + 1), 0, []
    inside = successes
    with np.errstate(divide="ignore"):
        for seen, label in enumerate(labels):
            left = successes - hits if label else total - seen - (successes - hits)
            chance = np.log(np.maximum(left, 0) / (total - seen))
            predicted = np.log(((hits if label else seen - hits) + 1) / (seen + 2))
            ratio = ratio + predicted - chance
            hits += label
            possible &= ratio < -np.log(alpha) - TIE
            inside = np.flatnonzero(possible) if possible.any() else inside
            found.append(_interval(inside, hits, seen + 1, total))
    return found


def _interval(inside: NDArray[np.int64], hits: int, labelled: int, total: int) -> Measure:
    value = hits / labelled
    low, high = float(inside[0]) / total, float(inside[-1]) / total
    return Measure(value, labelled, low=min(low, value), high=max(high, value))


def half_width(labels: Sequence[int], total: int) -> float | None:
    """Return half the width of the interval after these labels; None without labels."""
    if not labels:
        return None
    last = confidence_sequence(labels, total)[-1]
    return None if last.low is None or last.high is None else (last.high - last.low) / 2


def most_labels(total: int, width: float) -> int:
    """Return the number of labels after which the half width is at most ``width``, whatever the labels are.

    It is the least number for which the interval of one look is narrow enough with half successes, the widest case. An
    interval of whole numbers is wider by less than 1 / N with other numbers.
    """
    ratio = _Ratio(total)
    return 1 + bisect_left(range(1, total), True, key=lambda n: ratio.width(n) + 1 / total <= width)


def mean_labels(total: int, width: float, rate: float) -> float:
    """Return the mean number of labels until the half width is at most ``width``, with ``rate`` * N successes.

    The mean of `SIMULATIONS` random orders, with the seed 0.
    """
    successes = np.arange(total) < round(rate * total)
    orders = np.random.default_rng(0).permuted(np.tile(successes, (SIMULATIONS, 1)), axis=1)
    hits, stopped, ratio = np.zeros(SIMULATIONS, int), np.zeros(SIMULATIONS, int), _Ratio(total)
    ends = np.repeat([[0], [total]], SIMULATIONS, axis=1)
    inwards = np.array([[1], [-1]]) * (1 + total // FINEST)
    for seen in range(1, total + 1):
        hits += orders[:, seen - 1]
        while (outside := (ends[0] <= ends[1]) & (ratio(hits, seen, ends.clip(0, total)) >= LIMIT)).any():
            ends += inwards * outside
        value = hits * total / seen
        narrow = np.maximum(ends[1], value) - np.minimum(ends[0], value) <= 2 * width * total
        stopped[(stopped == 0) & (narrow | (ends[0] > ends[1]))] = seen
        if stopped.all():
            break
    return float(stopped.mean())


class _Ratio:
    """The logarithm of the ratio of `confidence_sequence`: k! (n - k)! / (n + 1)! over C(N - n, T - k) / C(N, T)."""

    def __init__(self, total: int) -> None:
        self.total, self.logs = total, np.array([lgamma(n + 1) for n in range(total + 2)])

    def __call__(self, hits: NDArray[np.int64], seen: int, successes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return it for T ``successes`` after ``hits`` of ``seen`` labels; infinite for an impossible T."""
        logs, others, more = self.logs, self.total - seen, successes - hits
        fits = (more >= 0) & (more <= others)
        more = np.clip(more, 0, others)
        ways = logs[others] - logs[more] - logs[others - more]
        of_all = logs[self.total] - logs[successes] - logs[self.total - successes]
        ratio = logs[hits] + logs[seen - hits] - logs[seen + 1] - ways + of_all
        return np.where(fits, ratio, np.inf)

    def width(self, seen: int) -> float:
        """Return half the width of the interval of one look with half successes."""
        every = np.arange(self.total + 1)
        inside = np.flatnonzero(self(np.full_like(every, seen // 2), seen, every) < LIMIT)
        return float(inside[-1] - inside[0]) / self.total / 2
