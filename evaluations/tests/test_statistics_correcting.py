"""Corrected p values against statsmodels, and by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from evaluations.statistics import Measure, benjamini_yekutieli, holm

with warnings.catch_warnings():  # what it says of its own dependencies is not ours
    warnings.simplefilter("ignore")
    multitest = pytest.importorskip("statsmodels.stats.multitest")


def family_of(*values: float | None) -> list[Measure]:
    return [Measure.missing("never differ") if value is None else Measure(value, 10) for value in values]


def test_holm_multiplies_the_smallest_by_all_and_never_descends() -> None:
    found = holm(family_of(0.03, 0.01, 0.04, 0.9))
    # ascending: 4 * 0.01, 3 * 0.03, max(0.09, 2 * 0.04), 0.9
    assert [each.value for each in found] == pytest.approx([0.09, 0.04, 0.09, 0.9])
    assert [each.n for each in found] == [10] * 4


def test_benjamini_yekutieli_by_hand() -> None:
    found = benjamini_yekutieli(family_of(0.03, 0.01))
    # c = 1 + 1/2; descending: 0.03 * 1.5 * 2 / 2 = 0.045, then 0.01 * 1.5 * 2 / 1 = 0.03
    assert [each.value for each in found] == pytest.approx([0.045, 0.03])


@pytest.mark.parametrize("correct", [holm, benjamini_yekutieli])
def test_an_undefined_test_counts_in_the_family_and_stays_undefined(correct) -> None:
    with_it, alone = correct(family_of(0.01, None)), correct(family_of(0.01))
    assert with_it[1].undefined == "never differ"
    assert with_it[0].value == correct(family_of(0.01, 1.0))[0].value > alone[0].value


@pytest.mark.parametrize("correct", [holm, benjamini_yekutieli])
def test_no_test_and_one_test(correct) -> None:
    assert correct([]) == []
    assert correct(family_of(0.2))[0].value == 0.2


@pytest.mark.parametrize(("correct", "method"), [(holm, "holm"), (benjamini_yekutieli, "fdr_by")])
@pytest.mark.parametrize("seed", range(20))
def test_corrections_are_those_of_statsmodels(correct, method: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.round(random.random(random.integers(1, 40)) ** 3, 2).tolist()  # rounded, so that some are equal
    expected = multitest.multipletests(values, method=method)[1]
    assert [each.value for each in correct(family_of(*values))] == pytest.approx(expected.tolist())


def test_family_may_be_larger_than_the_tests_that_are_given() -> None:
    # 66 pairs, two of them listed: 66 * 0.0001, then 65 * 0.001.
    assert [each.value for each in holm(family_of(0.001, 0.0001), 66)] == pytest.approx([0.065, 0.0066])
