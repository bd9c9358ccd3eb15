"""A confidence sequence: an interval that may be looked at after every label, and labelling stopped at any look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evaluations.statistics.measure import Measure

ALPHA = 0.05


def confidence_sequence(labels: Sequence[int], total: int, alpha: float = ALPHA) -> list[Measure]:
    """The success rate of ``total`` runs after each of the ``labels``, with 95% intervals that all hold it at once.

    ``labels`` (n,) are 1 for a success, 0 otherwise, in the random order of a simple draw without replacement. R_n(T)
    is P(first n labels | all numbers of successes 0..N equally likely) / P(first n labels | T successes among N), a
    product of (k + 1) / (m + 2), k labels like the next one among m, over the share of such trajectories that is left.
    For the true T it is a martingale with mean 1, so by Ville's inequality it reaches 1 / alpha at any n with a
    probability of at most alpha = 5%. The interval has the T whose ratio was below 20 up to then, and is widened to
    hold the value. It is wider than an interval for a fixed number of labels, and has no width after all labels.

    ValueError for another label and for more labels than runs. Source: Waudby-Smith and Ramdas (2020), Confidence
    sequences for sampling without replacement, NeurIPS 33.
    """
    if len(labels) > total or any(label not in (0, 1) for label in labels):
        raise ValueError(f"Labels are 0 or 1, and at most as many as the {total} trajectories.")
    possible, successes = np.ones(total + 1, bool), np.arange(total + 1)
    ratio, hits, found = np.zeros(total + 1), 0, []
    with np.errstate(divide="ignore"):
        for seen, label in enumerate(labels):
            left = successes - hits if label else total - seen - (successes - hits)
            chance = np.log(np.maximum(left, 0) / (total - seen))
            predicted = np.log(((hits if label else seen - hits) + 1) / (seen + 2))
            ratio = ratio + predicted - chance
            hits += label
            possible &= ratio < -np.log(alpha)
            found.append(_interval(possible, hits, seen + 1, total))
    return found


def _interval(possible: NDArray[np.bool_], hits: int, labelled: int, total: int) -> Measure:
    value, inside = hits / labelled, np.flatnonzero(possible)
    ends = (float(inside[0]) / total, float(inside[-1]) / total) if len(inside) else (value, value)
    return Measure(value, labelled, low=min(ends[0], value), high=max(ends[1], value))
