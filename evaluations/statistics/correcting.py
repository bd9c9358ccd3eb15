"""Correction of p values for the number of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats

Correction = Callable[[Floats], Floats]  # ascending p values, without the undefined ones, to corrected ones


def holm(tests: Sequence[Measure], family: int | None = None) -> list[Measure]:
    """Return Holm's corrected p values of a family of tests, in their order.

    With the m values ascending, p_(i) becomes the largest of min(1, (m - j + 1) p_(j)) for j <= i. Comparing it with a
    level keeps the probability of any false finding in the family below that level, however the tests depend on each
    other. If only some of ``family`` tests are given, however they were chosen, m is ``family``: the factor of each is
    at least as large as among all. A test without a p value counts in m and gets no corrected one.
    Source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70.
    """
    m = len(tests) if family is None else family
    return _corrected(tests, lambda p: np.maximum.accumulate(p * (m - np.arange(len(p)))))


def benjamini_yekutieli(tests: Sequence[Measure]) -> list[Measure]:
    """Return the corrected p values of Benjamini and Yekutieli, in their order.

    With the m values ascending and c = 1 + 1/2 + ... + 1/m, p_(i) becomes the smallest of min(1, c m p_(j) / j) for
    j >= i. Comparing it with a level keeps the expected share of false findings among the findings below that level,
    however the tests depend on each other. A test without a p value counts in m and gets no corrected one.
    Source: Benjamini and Yekutieli (2001), The Annals of Statistics 29, 1165-1188.
    """
    m = len(tests)
    harmonic = sum(1 / number for number in range(1, m + 1))

    def correct(p: Floats) -> Floats:
        scaled = p * harmonic * m / np.arange(1, len(p) + 1)
        result: Floats = np.minimum.accumulate(scaled[::-1])[::-1]
        return result

    return _corrected(tests, correct)


def _corrected(tests: Sequence[Measure], correct: Correction) -> list[Measure]:
    known = [place for place, test in enumerate(tests) if test.value is not None]
    ordered = sorted(known, key=lambda place: tests[place].value or 0.0)
    values = np.minimum(correct(np.array([tests[place].value for place in ordered], float)), 1.0)
    found = list(tests)
    for place, value in zip(ordered, values.tolist(), strict=True):
        found[place] = replace(tests[place], value=value)
    return found
