"""What must hold for every coefficient, on any labels: hypothesis looks for labels where it does not."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.statistics import (
    Confusion,
    Measure,
    Tally,
    alpha_of_label,
    cohen_kappa,
    dawid_skene,
    fleiss_kappa,
    gwet_ac1,
    kappa_with_interval,
    kendall_tau,
    krippendorff_alpha,
    mace,
    mcnemar,
    paired_difference,
    raw_agreement,
    wilson,
    with_interval,
)
from evaluations.tests.counted import tally_of_table

K = 3
MISSING = -1
SYMMETRIC = (raw_agreement, krippendorff_alpha, fleiss_kappa, gwet_ac1)  # no label is special
ALL = (*SYMMETRIC, *map(alpha_of_label, range(K)))
NAMES = ("raw agreement", "alpha", "Fleiss kappa", "AC1", "alpha of 0", "alpha of 1", "alpha of 2")

every_coefficient = pytest.mark.parametrize("coefficient", ALL, ids=NAMES)
every_symmetric = pytest.mark.parametrize("coefficient", SYMMETRIC, ids=NAMES[: len(SYMMETRIC)])
some = settings(max_examples=60, deadline=None)


@st.composite
def tables(draw, missing: bool = True, raters: int | None = None, least: int = 0):
    """Labels (items, raters)."""
    shape = (draw(st.integers(least, 9)), raters or draw(st.integers(1, 5)))
    label = st.integers(MISSING if missing else 0, K - 1)
    rows = draw(st.lists(st.lists(label, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]))
    return np.array(rows, int).reshape(shape)


def same(first: Measure, second: Measure) -> bool:
    if first.value is None or second.value is None:
        return first == second
    return first.n == second.n and abs(first.value - second.value) < 1e-9 * max(1, abs(first.value))


def is_clean(measure: Measure) -> bool:
    numbers = [number for number in (measure.value, measure.low, measure.high) if number is not None]
    plain = all(type(number) is float and isfinite(number) for number in numbers) and type(measure.n) is int
    return (
        plain and (measure.value is None) == bool(measure.undefined) and (measure.low is None) == (measure.high is None)
    )


@pytest.mark.slow
@every_coefficient
@some
@given(tables(), st.randoms(use_true_random=False))
def test_names_of_annotators_and_order_of_items_change_nothing(coefficient, table, random):
    items, raters = list(range(len(table))), list(range(table.shape[1]))
    random.shuffle(items)
    random.shuffle(raters)
    moved = table[items][:, raters]
    assert with_interval(tally_of_table(moved), coefficient, resamples=50) == with_interval(
        tally_of_table(table), coefficient, resamples=50
    )


@every_coefficient
@some
@given(tables(), st.randoms(use_true_random=False))
def test_who_among_the_raters_gave_a_label_does_not_matter(coefficient, table, random):
    shuffled = table.copy()
    for row in shuffled:
        random.shuffle(row)
    assert coefficient(tally_of_table(shuffled)) == coefficient(tally_of_table(table))


@every_symmetric
@some
@given(tables(), st.permutations(range(K)))
def test_names_of_labels_change_nothing(coefficient, table, names):
    renamed = np.append(names, MISSING)[table]
    assert same(coefficient(tally_of_table(renamed)), coefficient(tally_of_table(table)))


@some
@given(tables(), st.permutations(range(K)), st.integers(0, K - 1))
def test_the_alpha_of_a_label_is_renamed_with_it(table, names, label):
    renamed = np.append(names, MISSING)[table]
    assert same(alpha_of_label(names[label])(tally_of_table(renamed)), alpha_of_label(label)(tally_of_table(table)))


@every_coefficient
@some
@given(tables(), st.integers(1, 3))
def test_items_and_raters_without_any_label_change_nothing(coefficient, table, number):
    more = np.vstack([table, np.full((number, table.shape[1]), MISSING)])
    more = np.hstack([more, np.full((len(more), number), MISSING)])
    assert with_interval(tally_of_table(more), coefficient, resamples=50) == with_interval(
        tally_of_table(table), coefficient, resamples=50
    )


@pytest.mark.parametrize(
    ("coefficient", "least"),
    [
        (raw_agreement, 0),
        (krippendorff_alpha, -1),
        (gwet_ac1, -1 / (K - 1)),
        *((alpha_of_label(c), -1) for c in range(K)),
    ],
    ids=("raw agreement", "alpha", "AC1", "alpha of 0", "alpha of 1", "alpha of 2"),
)
@some
@given(table=tables())
def test_bounds(coefficient, least, table):
    value = coefficient(tally_of_table(table)).value
    assert value is None or least - 1e-9 <= value <= 1


@some
@given(st.integers(2, 6).flatmap(lambda raters: tables(missing=False, raters=raters)))
def test_bounds_of_fleiss_kappa_without_missing_labels(table):
    value = fleiss_kappa(tally_of_table(table)).value
    assert value is None or -1 / (table.shape[1] - 1) - 1e-9 <= value <= 1


@some
@given(tables())
def test_fleiss_kappa_is_never_more_than_1(table):
    value = fleiss_kappa(tally_of_table(table)).value
    assert value is None or value <= 1


@every_coefficient
@some
@given(st.lists(st.integers(0, K - 1), min_size=1, max_size=9), st.integers(2, 5))
def test_exact_agreement_is_exactly_1_or_undefined_where_all_is_equal(coefficient, labels, raters):
    found = coefficient(Tally.of_labels([[label] * raters for label in labels]))
    assert found.n == len(labels)
    if coefficient in (raw_agreement, gwet_ac1):
        assert found.value == 1
    elif len(set(labels)) == 1:
        assert found.value is None
    else:
        assert found.value == 1 or found.undefined == "no label that can be compared is this one"


@every_coefficient
@some
@given(tables(raters=1, least=1))
def test_one_rater_has_no_agreement(coefficient, table):
    found = coefficient(tally_of_table(table))
    assert found.undefined == ("fewer than two labels on every item" if (table >= 0).any() else "no labels")
    assert found.n == 0


@every_coefficient
@some
@given(tables())
def test_one_class_is_defined_for_raw_agreement_and_ac1_only(coefficient, table):
    ones = np.where(table == MISSING, MISSING, 1)
    found = coefficient(tally_of_table(ones))
    if found.n:
        assert found.value == (1 if coefficient in (raw_agreement, gwet_ac1) else None)


@every_coefficient
@some
@given(tables())
def test_no_nan_and_no_infinity_ever_leaves(coefficient, table):
    assert is_clean(with_interval(tally_of_table(table), coefficient, resamples=50))


@every_coefficient
@some
@given(tables(), st.integers(2, 5))
def test_every_item_twice_changes_only_alphas_small_sample_correction(coefficient, table, often):
    once, more = coefficient(tally_of_table(table)), coefficient(tally_of_table(np.repeat(table, often, axis=0)))
    assert more.n == often * once.n
    if coefficient in (raw_agreement, fleiss_kappa, gwet_ac1):
        assert once.value is None or more.value == pytest.approx(once.value)
    elif once.value is not None:  # D_e is smaller with more labels, and alpha with it
        assert more.value <= once.value + 1e-9


counts = st.integers(0, 40)
squares = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(counts, min_size=k, max_size=k), min_size=k, max_size=k)
)


@some
@given(squares, st.randoms(use_true_random=False))
def test_cohens_kappa_is_bounded_and_the_same_for_either_rater_and_any_names(table, random):
    table = np.array(table)
    found, order = cohen_kappa(table), list(range(len(table)))
    random.shuffle(order)
    assert same(found, cohen_kappa(table.T))
    assert same(found, cohen_kappa(table[order][:, order]))
    assert found.value is None or -1 - 1e-9 <= found.value <= 1
    assert is_clean(kappa_with_interval(table, resamples=50))
    only_equal = cohen_kappa(np.diag(np.diag(table)))
    assert only_equal.value in (None, 1)


@some
@given(counts, counts, counts, counts)
def test_a_confusion_has_clean_bounded_measures(tp, fp, tn, fn):
    found, mirrored = Confusion(tp, fp, tn, fn), Confusion(tn, fn, tp, fp)
    rates = [found.agreement, found.precision, found.recall, found.specificity, found.npv, found.false_positive_rate]
    for measure in rates:
        assert measure.value is None or 0 <= measure.low <= measure.value <= measure.high <= 1
    assert all(map(is_clean, (*rates, found.f1, found.kappa, found.success_rate_gap)))
    assert found.f1.value is None or 0 <= found.f1.value <= 1
    assert (mirrored.recall, mirrored.precision) == (
        replaced(found.specificity, mirrored.recall),
        replaced(found.npv, mirrored.precision),
    )
    assert same(mirrored.kappa, found.kappa)


def replaced(measure: Measure, other: Measure) -> Measure:
    """``measure`` with the reason of ``other``: mirrored reasons speak of the other class."""
    return Measure(measure.value, measure.n, measure.hits, measure.low, measure.high, other.undefined)


@some
@given(counts, counts, counts, counts)
def test_two_judges_compare_the_same_either_way_round(both, first, second, neither):
    assert mcnemar(first, second) == mcnemar(second, first)
    p = mcnemar(first, second).p
    assert is_clean(p)
    assert p.value is None or 0 <= p.value <= 1
    there, back = paired_difference(both, first, second, neither), paired_difference(both, second, first, neither)
    assert is_clean(there)
    assert there.value is None or there.value == -back.value


@some
@given(st.integers(0, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_intervals_are_inside_0_to_1_and_mirror(rate):
    hits, n = rate
    found, mirrored = wilson(hits, n), wilson(n - hits, n)
    assert is_clean(found)
    if n:
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.low == pytest.approx(1 - mirrored.high)
        assert (found.low == 0, found.high == 1) == (hits == 0, hits == n)


rankings = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9)


@some
@given(rankings, st.randoms(use_true_random=False))
def test_kendalls_tau_is_bounded_symmetric_and_blind_to_order(pairs, random):
    found = kendall_tau([x for x, _ in pairs], [y for _, y in pairs])
    assert is_clean(found)
    assert found.value is None or -1 <= found.value <= 1
    assert same(found, kendall_tau([y for _, y in pairs], [x for x, _ in pairs]))
    against = kendall_tau([x for x, _ in pairs], [-y for _, y in pairs])
    assert against.value == (None if found.value is None else -found.value)
    random.shuffle(pairs)
    assert same(found, kendall_tau([x for x, _ in pairs], [y for _, y in pairs]))


def triplets(table: np.ndarray, name: Callable[[int], object] = int) -> list[tuple[int, object, int]]:
    return [(item, name(rater), int(label)) for (item, rater), label in np.ndenumerate(table) if label != MISSING]


@pytest.mark.parametrize("estimate", [dawid_skene, mace])
@some
@given(tables(), st.randoms(use_true_random=False))
def test_competence_is_the_same_for_any_names_and_any_order(estimate, table, random):
    found = estimate(triplets(table))
    shuffled = triplets(table, lambda rater: f"annotator {9 - rater}")
    random.shuffle(shuffled)
    moved = estimate(shuffled)
    assert {f"annotator {9 - rater}" for rater in found.of} == set(moved.of)
    for rater, measure in found.of.items():
        other = moved.of[f"annotator {9 - rater}"]
        assert is_clean(measure)
        assert measure.value is None or 0 <= measure.value <= 1
        assert measure.n == other.n
        assert measure.value == pytest.approx(other.value, abs=1e-6)
