"""A judge against people, or one annotator against the final verdict: success or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from evaluations.statistics.coefficients import ALL_SAME, NO_CASES, cohen_kappa, kappa_values
from evaluations.statistics.intervals import bootstrap, wilson
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of cases: what was said (positive: a success) was true or false.

    Every property is a `Measure` with a 95 % interval: Wilson's for rates, a bootstrap over the four counts for `f1`,
    `kappa` and `success_gap`. Source of the formulas: Powers (2011), Journal of Machine Learning Technologies 2, 37-63.
    """

    tp: int
    fp: int
    tn: int
    fn: int

    def __post_init__(self) -> None:
        if min(self.tp, self.fp, self.tn, self.fn) < 0:
            raise ValueError("A count is not negative.")

    @classmethod
    def of(cls, truth: Iterable[bool], said: Iterable[bool]) -> Confusion:
        """From what each case is and what was said of it; ValueError where one is longer."""
        counts = [0, 0, 0, 0]
        for is_so, called in zip(truth, said, strict=True):
            counts[2 * bool(is_so) + bool(called)] += 1
        tn, fp, fn, tp = counts
        return cls(tp, fp, tn, fn)

    @property
    def n(self) -> int:
        return self.tp + self.fp + self.tn + self.fn

    @property
    def accuracy(self) -> Measure:
        """(tp + tn) / n, also called the agreement rate. Undefined without cases."""
        return wilson(self.tp + self.tn, self.n)

    @property
    def precision(self) -> Measure:
        """tp / (tp + fp). Undefined where nothing was called a success."""
        return self._rate(self.tp, self.fp, "nothing was judged a success")

    @property
    def recall(self) -> Measure:
        """tp / (tp + fn), also called sensitivity. Undefined where no case is a success."""
        return self._rate(self.tp, self.fn, "no case is a success")

    @property
    def specificity(self) -> Measure:
        """tn / (tn + fp), also called the true negative rate. Undefined where every case is a success."""
        return self._rate(self.tn, self.fp, "every case is a success")

    @property
    def npv(self) -> Measure:
        """tn / (tn + fn), the negative predictive value. Undefined where everything was called a success."""
        return self._rate(self.tn, self.fn, "everything was judged a success")

    @property
    def false_positive_rate(self) -> Measure:
        """fp / (fp + tn) = 1 - specificity. Undefined where every case is a success."""
        return self._rate(self.fp, self.tn, "every case is a success")

    @property
    def f1(self) -> Measure:
        """2 tp / (2 tp + fp + fn), from 0 to 1. Undefined where nothing is a success nor was called one."""
        return self._bootstrapped(_f1, "no case is a success, nor was judged one")

    @property
    def kappa(self) -> Measure:
        """Cohen's kappa, from -1 to 1. Undefined where all is one class, for both."""
        found = cohen_kappa([[self.tp, self.fn], [self.fp, self.tn]])
        if found.undefined == ALL_SAME:
            return replace(found, undefined="only one class")
        return bootstrap(found, self._cells, lambda cells: kappa_values(cells[:, [0, 3, 1, 2]]))

    @property
    def success_gap(self) -> Measure:
        """(fp - fn) / n, the success rate that was said minus the true one, from -1 to 1. Undefined without cases."""
        return self._bootstrapped(_gap, NO_CASES)

    @property
    def _cells(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array((self.tp, self.fp, self.tn, self.fn), np.int64)

    def _rate(self, hits: int, others: int, why: str) -> Measure:
        if hits + others:
            return wilson(hits, hits + others)
        return Measure(None, 0, hits=0, undefined=why if self.n else NO_CASES)

    def _bootstrapped(self, values: Callable[[Floats], Floats], why: str) -> Measure:
        if not self.n:
            return Measure.missing(NO_CASES)
        value = float(values(self._cells[np.newaxis].astype(float))[0])
        found = Measure.missing(why, self.n) if np.isnan(value) else Measure(value, self.n)
        return bootstrap(found, self._cells, values)


def _f1(cells: Floats) -> Floats:
    """Of (r, 4) counts tp, fp, tn, fn; NaN where undefined."""
    tp, fp, _, fn = cells.T
    below = 2 * tp + fp + fn
    return np.where(below > 0, 2 * tp / np.maximum(below, 1), np.nan)


def _gap(cells: Floats) -> Floats:
    _, fp, _, fn = cells.T
    result: Floats = (fp - fn) / cells.sum(axis=1)
    return result
