"""A judge against people, or one annotator against the final verdict: success or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evaluations.statistics.coefficients import ALL_SAME, NO_CASES, cohen_kappa, kappa_values
from evaluations.statistics.comparing import matched
from evaluations.statistics.intervals import bootstrap, by_cluster, repeated, wilson
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats, Integers

TP, FP, TN, FN = range(4)  # the columns of counts


@dataclass(frozen=True)  # without slots, because of the cached property
class Confusion:
    """Counts of cases: what was said (positive: a success) was true or false.

    ``clusters`` has those of each task, tp, fp, tn and fn, where some task has several cases (of several agents):
    then cases are not independent of each other, and every interval comes from drawing tasks. ValueError where they do
    not add up.

    Every property is a `Measure` with a 95% interval: Wilson's for rates, Agresti and Min's for `success_rate_gap`,
    a bootstrap over the four counts for `f1` and `kappa`. Source of the formulas: Powers (2011), Journal of Machine
    Learning Technologies 2, 37-63.
    """

    tp: int
    fp: int
    tn: int
    fn: int
    clusters: tuple[tuple[int, int, int, int], ...] | None = None
    intervals: bool = True  # False: no intervals, for long lists

    def __post_init__(self) -> None:
        if min(self.tp, self.fp, self.tn, self.fn) < 0:
            raise ValueError("A count is not negative.")
        _ = self._tasks  # ValueError if they do not add up

    @property
    def n(self) -> int:
        return self.tp + self.fp + self.tn + self.fn

    @property
    def agreement(self) -> Measure:
        """(tp + tn) / n, also called accuracy or agreement rate. Undefined without cases."""
        return self._rate((TP, TN), (FP, FN), NO_CASES)

    @property
    def precision(self) -> Measure:
        """tp / (tp + fp). Undefined where nothing was called a success."""
        return self._rate((TP,), (FP,), "nothing was judged a success")

    @property
    def recall(self) -> Measure:
        """tp / (tp + fn), also called sensitivity. Undefined where no case is a success."""
        return self._rate((TP,), (FN,), "no case is a success")

    @property
    def specificity(self) -> Measure:
        """tn / (tn + fp), also called the true negative rate. Undefined where every case is a success."""
        return self._rate((TN,), (FP,), "every case is a success")

    @property
    def npv(self) -> Measure:
        """tn / (tn + fn), the negative predictive value. Undefined where everything was called a success."""
        return self._rate((TN,), (FN,), "everything was judged a success")

    @property
    def false_positive_rate(self) -> Measure:
        """fp / (fp + tn) = 1 - specificity. Undefined where every case is a success."""
        return self._rate((FP,), (TN,), "every case is a success")

    @property
    def success_rate_human(self) -> Measure:
        """(tp + fn) / n, the share of cases that are a success. Undefined without cases."""
        return self._rate((TP, FN), (FP, TN), NO_CASES)

    @property
    def success_rate_judge(self) -> Measure:
        """(tp + fp) / n, the share of cases that were called a success. Undefined without cases."""
        return self._rate((TP, FP), (TN, FN), NO_CASES)

    @property
    def f1(self) -> Measure:
        """2 tp / (2 tp + fp + fn), from 0 to 1. Undefined where nothing is a success or was called one."""
        if not self.n:
            return Measure.missing(NO_CASES)
        if not (below := 2 * self.tp + self.fp + self.fn):
            return Measure.missing("no case is a success, nor was judged one", self.n)
        return self._bootstrapped(Measure(2 * self.tp / below, self.n), _f1)

    @property
    def positive_agreement(self) -> Measure:
        """2 tp / (2 tp + fp + fn), the specific agreement on success, which is F1. Undefined where nothing is a success
        nor was called one. Source: Cicchetti and Feinstein (1990), Journal of Clinical Epidemiology 43, 551-558."""
        return self.f1

    @property
    def negative_agreement(self) -> Measure:
        """2 tn / (2 tn + fp + fn), the specific agreement on no success, from 0 to 1. Undefined where everything is a
        success and was called one. Source: Cicchetti and Feinstein (1990), Journal of Clinical Epidemiology 43,
        551-558."""
        if not self.n:
            return Measure.missing(NO_CASES)
        if not (below := 2 * self.tn + self.fp + self.fn):
            return Measure.missing("every case is a success, and was judged one", self.n)
        return self._bootstrapped(Measure(2 * self.tn / below, self.n), lambda cells: _f1(cells[:, [TN, FN, TP, FP]]))

    @property
    def kappa(self) -> Measure:
        """(p_o - p_e) / (1 - p_e), Cohen's kappa of the table of two by two, from -1 to 1. Undefined where all is one
        class, for both."""
        found = cohen_kappa([[self.tp, self.fn], [self.fp, self.tn]])
        if found.undefined == ALL_SAME:
            return replace(found, undefined="only one class")
        return self._bootstrapped(found, lambda cells: kappa_values(cells[:, [TP, FN, FP, TN]]))

    @property
    def success_rate_gap(self) -> Measure:
        """(fp - fn) / n, the success rate by the judge minus by people, from -1 to 1. Undefined without cases."""
        found = matched(self.fp, self.fn, self.n)
        if not self.intervals:
            return replace(found, low=None, high=None)
        return found if (tasks := self._tasks) is None else by_cluster(found, tasks, _gap)

    @property
    def _cells(self) -> Integers:
        return np.array((self.tp, self.fp, self.tn, self.fn), np.int64)

    @cached_property
    def _tasks(self) -> Integers | None:
        """Return (c, 4), or None if no task has two cases. Cached, because every measure needs it."""
        return repeated(self.clusters, self._cells)

    def _rate(self, hits: Sequence[int], others: Sequence[int], why: str) -> Measure:
        cells = self._cells
        found, missed = int(cells[list(hits)].sum()), int(cells[list(others)].sum())
        if not found + missed:
            return Measure(None, 0, hits=0, undefined=why if self.n else NO_CASES)
        rate = Measure(found / (found + missed), found + missed, found)
        if not self.intervals:
            return rate
        if (tasks := self._tasks) is None:
            return wilson(found, found + missed)
        sides = [list(hits), list(others)]
        if not found or not missed:
            return wilson(found, found + missed, np.stack([tasks[:, side].sum(axis=1) for side in sides], axis=1))
        # All measures of a confusion use the same resamples of its tasks, so they are drawn once.
        return by_cluster(rate, tasks, lambda cells: _share(*(cells[:, side].sum(axis=1) for side in sides)))

    def _bootstrapped(self, found: Measure, values: Callable[[Floats], Floats]) -> Measure:
        if not self.intervals:
            return found
        if (tasks := self._tasks) is None:
            return bootstrap(found, self._cells, values)
        return by_cluster(found, tasks, values)


def _share(hits: Floats, others: Floats) -> Floats:
    """Return hits / (hits + others), NaN if both are 0."""
    below = hits + others
    return np.where(below > 0, hits / np.maximum(below, 1), np.nan)


def _f1(cells: Floats) -> Floats:
    """Return F1 of (r, 4) counts tp, fp, tn, fn; NaN where undefined."""
    tp, fp, _, fn = cells.T
    return _share(2 * tp, fp + fn)


def _gap(cells: Floats) -> Floats:
    result: Floats = (cells[:, FP] - cells[:, FN]) / cells.sum(axis=1)
    return result
