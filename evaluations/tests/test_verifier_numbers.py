"""The plain-Python figures of the verifier: by hand, and equal to those of the product on any labels."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations import statistics
from evaluations.statistics import Confusion, Measure, Tally
from evaluations.statistics.comparing import matched
from evaluations.verifier import numbers

K = 3
some = settings(max_examples=150, deadline=None)
labels_of_items = st.lists(st.lists(st.integers(0, K - 1), max_size=5), max_size=12)
counts = st.integers(0, 40)
COEFFICIENTS: dict[str, tuple[Callable, Callable]] = {
    "raw agreement": (statistics.raw_agreement, numbers.raw_agreement),
    "alpha": (statistics.krippendorff_alpha, numbers.krippendorff_alpha),
    "Fleiss' kappa": (statistics.fleiss_kappa, numbers.fleiss_kappa),
    "AC1": (statistics.gwet_ac1, numbers.gwet_ac1),
    **{
        f"alpha of {label}": (
            statistics.alpha_of_label(label),
            lambda patterns, label=label: numbers.alpha_of_one_label(patterns, label),
        )
        for label in range(K)
    },
}


def equal(measure: Measure, value: float | None) -> bool:
    if measure.value is None or value is None:
        return measure.value is value
    return abs(measure.value - value) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", COEFFICIENTS)
@given(items=labels_of_items)
@some
def test_a_coefficient_is_that_of_the_product_on_any_labels(name, items):
    theirs, ours = COEFFICIENTS[name]
    assert equal(theirs(Tally.of_labels(items)), ours(numbers.patterns_of(items)))


@given(table=st.lists(st.lists(counts, min_size=K, max_size=K), min_size=K, max_size=K))
@some
def test_cohens_kappa_is_that_of_the_product(table):
    assert equal(statistics.cohen_kappa(table), numbers.cohen_kappa(table))


def test_cohens_kappa_is_undefined_where_the_product_says_so():
    for table in ([[0, 0], [0, 0]], [[5, 0], [0, 0]], [[0, 0], [0, 7]]):
        assert numbers.cohen_kappa(table) is None
        assert statistics.cohen_kappa(table).value is None


@given(cells=st.tuples(counts, counts, counts, counts))
@some
def test_f1_and_kappa_of_a_confusion_are_those_of_the_product(cells):
    found = Confusion(*cells, intervals=False)
    assert equal(found.f1, numbers.f1_score(*cells))
    assert equal(found.kappa, numbers.kappa_of_cells(*cells))


@given(hits=st.integers(0, 500), others=st.integers(0, 500))
@some
def test_wilsons_interval_is_that_of_the_product(hits, others):
    if hits + others:
        found = statistics.wilson(hits, hits + others)
        assert (found.low, found.high) == pytest.approx(numbers.wilson_interval(hits, hits + others), abs=1e-9)


@given(more=counts, fewer=counts, rest=counts)
@some
def test_the_interval_of_a_gap_is_that_of_the_product(more, fewer, rest):
    if n := more + fewer + rest:
        found = matched(more, fewer, n)
        figure = numbers.gap_figure(more, fewer, n)
        assert (found.low, found.high) == pytest.approx((figure["low"], figure["high"]), abs=1e-9)


# --- by hand ---------------------------------------------------------------------------------------------------------

# Two items of three labels: 1 1 1 and 1 1 0. Of three pairs of the first all are equal, of the second one of three.
BY_HAND = {(0, 3, 0): 1, (1, 2, 0): 1}


def test_raw_agreement_counts_equal_pairs():
    assert numbers.raw_agreement(BY_HAND) == pytest.approx((1 + 1 / 3) / 2)


def test_alpha_comes_from_the_coincidences():
    # n = 6 labels, 1 and 5 of a kind; coincidences on the diagonal: 3 * 2 / 2 + 2 * 1 / 2 = 4.
    # alpha = 1 - (6 - 1) (6 - 4) / (36 - 25 - 1) = 0
    assert numbers.krippendorff_alpha(BY_HAND) == pytest.approx(0)


def test_fleiss_and_ac1_differ_in_what_chance_would_give():
    # Shares 1/6 and 5/6: by chance 26/36 (Fleiss), and (1/6 * 5/6 * 2) / 2 = 5/36 (AC1 of three labels).
    assert numbers.fleiss_kappa(BY_HAND) == pytest.approx(float((Fraction(2, 3) - Fraction(26, 36)) / Fraction(10, 36)))
    assert numbers.gwet_ac1(BY_HAND) == pytest.approx(float((Fraction(2, 3) - Fraction(5, 36)) / Fraction(31, 36)))


def test_none_found_among_ten_still_allows_more_than_a_quarter():
    low, high = numbers.wilson_interval(0, 10)
    assert low == 0.0
    assert high == pytest.approx(0.2775, abs=1e-4)  # z^2 / (10 + z^2) with z = 1.96


def test_rates_of_draws_are_summed_with_the_roots_of_their_summed_squares():
    # Two draws of 100 unchecked, 0 of 10 missed in each: 0 expected, and at most 100 * 0.2775 * sqrt(2).
    value, low, high = numbers.sum_of_rates([(100, 0, 10), (100, 0, 10)])
    assert (value, low) == (0.0, 0.0)
    assert high == pytest.approx(100 * 0.27753 * 2**0.5, abs=0.01)


def test_a_majority_is_more_than_half():
    assert numbers.majority_label([1, 0, 1]) == 1
    assert numbers.majority_label([0, 1]) is None
    assert [numbers.outcome_of_labels(said) for said in ([1, 1], [1, 1, 0], [0, 1, 2])] == [
        "unanimous", "majority", "split",
    ]  # fmt: skip
