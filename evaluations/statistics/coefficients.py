"""Coefficients of agreement between raters, all for nominal labels.

Notation: item i has m_i labels, n_ic of them label c of k. An item is pairable if it has two or more labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper

import numpy as np
from numpy.typing import ArrayLike

from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats, Integers, Tally, against_the_rest

Values = Callable[[Integers, Floats], Floats]

NO_CASES = "no cases"
NO_LABELS = "no labels"
NO_PAIRS = "fewer than two labels on every item"
ALL_SAME = "all labels are the same"
ALL_PAIRED_SAME = "all labels that can be compared are the same"


def _all_same(tally: Tally) -> str:
    return ALL_SAME if np.count_nonzero(tally.totals) == 1 else ALL_PAIRED_SAME


class Coefficient:
    """A coefficient for many raters: called with a `Tally` it returns a `Measure`, whose n counts the pairable items.

    ``values`` handles many tallies at once, to avoid a loop in a bootstrap: patterns (p, k) and their frequencies,
    times (r, p), give r values, NaN where undefined. ``why`` returns the reason if pairable items have no value.
    """

    def __init__(self, values: Values, why: Callable[[Tally], str] = _all_same) -> None:
        self.values = values
        self.why = why
        update_wrapper(self, values)

    def __call__(self, tally: Tally) -> Measure:
        pairable = tally.pairable
        if not pairable:
            return Measure.missing(NO_PAIRS if tally.items else NO_LABELS)
        value = float(self.values(tally.patterns, tally.times[np.newaxis].astype(float))[0])
        return Measure.missing(self.why(tally), pairable) if np.isnan(value) else Measure(value, pairable)


@Coefficient
def raw_agreement(patterns: Integers, times: Floats) -> Floats:
    """The share of pairs of labels on an item that are equal, averaged over the pairable items.

    P = mean over i of sum_c n_ic (n_ic - 1) / (m_i (m_i - 1)), from 0 to 1. Undefined without a pairable item.
    Source: Fleiss (1971), Psychological Bulletin 76, 378-382; for varying m_i Gwet (2014), Handbook of Inter-Rater
    Reliability, 4th edition.
    """
    return 1 - _disagreement(patterns, times)


@Coefficient
def krippendorff_alpha(patterns: Integers, times: Floats) -> Floats:
    """Krippendorff's alpha for nominal labels, any number of which may be missing.

    alpha = 1 - D_o / D_e over the n labels of the pairable items; n_c of them are c.
    D_o = (1/n) sum_i (m_i^2 - sum_c n_ic^2) / (m_i - 1) and D_e = (n^2 - sum_c n_c^2) / (n (n - 1)).
    From -1 to 1; 0 is chance. Undefined without a pairable item, and where all their labels are the same (D_e = 0).
    Source: Krippendorff (2011), Computing Krippendorff's Alpha-Reliability; Content Analysis (2004), chapter 11.
    """
    raters = patterns.sum(axis=1)
    paired = patterns * (raters >= 2)[:, np.newaxis]
    differing = (raters**2 - (patterns**2).sum(axis=1)) / np.maximum(raters - 1, 1)
    totals = times @ paired.astype(float)
    labels = totals.sum(axis=1)
    return _one_minus((labels - 1) * (times @ differing), labels**2 - (totals**2).sum(axis=1))


@Coefficient
def fleiss_kappa(patterns: Integers, times: Floats) -> Floats:
    """Fleiss' kappa, generalised to items with different numbers of labels.

    kappa = (P - P_e) / (1 - P_e), P the raw agreement, P_e = sum_c p_c^2, and p_c the mean over all labelled
    items of n_ic / m_i. At most 1; 0 is chance; at least -1 / (m - 1) where every item has m labels (items with
    a single label count in p_c only, and can push it lower). Undefined without a pairable item and where all labels
    are the same (P_e = 1).
    Source: Fleiss (1971), Psychological Bulletin 76, 378-382; Gwet (2014), Handbook of Inter-Rater Reliability.
    """
    shares = _shares(patterns, times)
    return _one_minus(_disagreement(patterns, times), (shares * (1 - shares)).sum(axis=1))


@Coefficient
def gwet_ac1(patterns: Integers, times: Floats) -> Floats:
    """Gwet's AC1, which stays high where nearly all labels are the same and raters agree.

    AC1 = (P - P_e) / (1 - P_e), P the raw agreement, P_e = sum_c p_c (1 - p_c) / (k - 1), p_c the
    mean over all labelled items of n_ic / m_i; k is the number of labels that can be given, not of those that were.
    From -1 / (k - 1) to 1.
    Undefined without a pairable item only: P_e is at most 1 / k, so it is 1 where all labels are the same.
    Source: Gwet (2008), British Journal of Mathematical and Statistical Psychology 61, 29-48; for missing labels
    Gwet (2014), Handbook of Inter-Rater Reliability.
    """
    shares = _shares(patterns, times)
    chance = (shares * (1 - shares)).sum(axis=1) / (patterns.shape[1] - 1)
    return _one_minus(_disagreement(patterns, times), 1 - chance)


def alpha_of_label(label: int) -> Coefficient:
    """`krippendorff_alpha` of one label against all others taken together, to be given to `with_interval`.

    Undefined also where no label is this one, or every one is. Source: Krippendorff (2004), Content Analysis,
    section 11.5 (the reliability of single categories).
    """

    def values(patterns: Integers, times: Floats) -> Floats:
        return krippendorff_alpha.values(against_the_rest(patterns, label), times)

    return Coefficient(values, lambda tally: _why_not_of_label(tally, label))


def _why_not_of_label(tally: Tally, label: int) -> str:
    paired = tally.patterns.sum(axis=1) >= 2
    given = int(tally.times[paired] @ tally.patterns[paired, label])
    return "every label that can be compared is this one" if given else "no label that can be compared is this one"


def specific_agreement(label: int, *, others: bool = False) -> Coefficient:
    """Specific agreement on one label, or on all ``others`` taken together, to be given to `with_interval`.

    sum_i n_i (n_i - 1) / sum_i n_i (m_i - 1), n_i of the m_i labels of item i being of that kind: if one label of an
    item is of that kind, the probability that another one is as well. For two raters 2 a / (2 a + b + c). From 0 to 1,
    not corrected for chance. Undefined without a pairable item, and where no label of a pairable item is of that kind.
    Source: Cicchetti and Feinstein (1990), Journal of Clinical Epidemiology 43, 551-558; for many raters Fleiss (1971),
    Psychological Bulletin 76, 378-382.
    """

    def values(patterns: Integers, times: Floats) -> Floats:
        own, raters = against_the_rest(patterns, label)[:, int(others)], patterns.sum(axis=1)
        return _ratio(times @ (own * (own - 1)), (times @ (own * np.maximum(raters - 1, 0))).astype(float))

    return Coefficient(values, lambda _: "no label that can be compared is of this kind")


def cohen_kappa(table: ArrayLike) -> Measure:
    """Cohen's kappa of two raters, or of a judge and people.

    ``table`` (k, k): how many cases the first called row and the second called column.
    kappa = (p_o - p_e) / (1 - p_e), p_o the diagonal's share and p_e = sum_c (row share of c) (column share of c).
    From -1 to 1. Undefined without cases and where both gave one and the same label only (p_e = 1).
    Source: Cohen (1960), Educational and Psychological Measurement 20, 37-46.
    """
    cells = np.asarray(table, dtype=np.int64)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or (cells < 0).any():
        raise ValueError("A table of two raters is square and has counts.")
    if not (cases := int(cells.sum())):
        return Measure.missing(NO_CASES)
    value = float(kappa_values(cells.reshape(1, -1).astype(float))[0])
    return Measure.missing(ALL_SAME, cases) if np.isnan(value) else Measure(value, cases)


def kappa_values(cells: Floats) -> Floats:
    """Return Cohen's kappa of r tables: (r, k * k) gives (r,), NaN where undefined."""
    k = round(cells.shape[1] ** 0.5)
    tables = cells.reshape(-1, k, k)
    cases = cells.sum(axis=1)
    same = np.trace(tables, axis1=1, axis2=2)
    by_chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    return _one_minus(cases * (cases - same), cases**2 - by_chance)


def _disagreement(patterns: Integers, times: Floats) -> Floats:
    """Return 1 - p_a: exactly 0 if everybody agrees, NaN without a pairable item."""
    raters = patterns.sum(axis=1)
    pairs = raters * (raters - 1)
    differing = (raters**2 - (patterns**2).sum(axis=1)) / np.maximum(pairs, 1)
    return _ratio(times @ differing, times @ (pairs > 0).astype(float))


def _shares(patterns: Integers, times: Floats) -> Floats:
    """Return (r, k): the mean over labelled items of each label's share of an item's labels."""
    raters = patterns.sum(axis=1, keepdims=True)
    sums = times @ (patterns / np.maximum(raters, 1))
    return _ratio(sums, (times @ (raters > 0).astype(float)))


def _one_minus(observed: Floats, expected: Floats) -> Floats:
    """Return 1 - observed / expected disagreement, NaN if the expected one is 0."""
    return 1 - _ratio(observed, expected)


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)
