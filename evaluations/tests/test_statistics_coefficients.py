"""Coefficients of agreement by hand, and what is said where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from evaluations.statistics import (
    Measure,
    Tally,
    alpha_of_label,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
    specific_agreement,
    with_interval,
)
from evaluations.tests.counted import confusion_of, label_alpha, tally_of_table

ALL = (raw_agreement, krippendorff_alpha, fleiss_kappa, gwet_ac1)
THREE_ITEMS = [(1, 1, 1), (0, 0, 1), (0, 0, 0)]


def test_a_tally_counts_equal_patterns_once_whoever_gave_the_labels():
    tally = Tally.of_labels([(0, 0, 1), (1, 0, 0), (2, 2), (1,), ()])
    assert {tuple(row): times for row, times in zip(tally.patterns.tolist(), tally.times.tolist(), strict=True)} == {
        (2, 1, 0): 2,
        (0, 0, 2): 1,
        (0, 1, 0): 1,
    }
    assert (tally.items, tally.pairable, tally.totals) == (4, 3, [4, 3, 2])


def test_a_table_and_a_list_of_labels_make_the_same_tally():
    table = tally_of_table(np.array([[0, 0, 1], [-1, 2, 2], [-1, -1, -1], [1, 0, 0]]))
    labels = Tally.of_labels([(2, 2), (0, 1, 0), (0, 0, 1)])
    assert table.patterns.tolist() == labels.patterns.tolist()
    assert table.times.tolist() == labels.times.tolist()


def test_a_label_that_does_not_exist_is_refused():
    for labels in ([(0, 3)], [(0, -1)]):
        with pytest.raises(ValueError, match="none of the labels 0 to 2"):
            Tally.of_labels(labels)
    for table in ([[0, 3]], [[0, -2]], [[0.0, 1.0]], [0, 1]):
        with pytest.raises(ValueError, match="two dimensions"):
            tally_of_table(table)
    with pytest.raises(ValueError, match="none of the labels"):
        label_alpha(Tally.of_labels(THREE_ITEMS), 3)


def test_raw_agreement_is_the_mean_share_of_equal_pairs():
    # Of the pairs of an item 3/3, 1/3 and 3/3 are equal: (1 + 1/3 + 1) / 3 = 7/9.
    assert raw_agreement(Tally.of_labels(THREE_ITEMS)).value == pytest.approx(7 / 9)
    # With a fourth item of two different labels: (7/3 + 0) / 4, whatever its number of labels.
    assert raw_agreement(Tally.of_labels([*THREE_ITEMS, (1, 2)])).value == pytest.approx(7 / 12)


def test_alpha_by_hand():
    # n = 9 labels, 5 are 0 and 4 are 1. D_o = (1/9) (9 - 5)/2 = 2/9; D_e = (81 - 25 - 16) / (9 * 8) = 5/9.
    found = krippendorff_alpha(Tally.of_labels(THREE_ITEMS))
    assert found.value == pytest.approx(1 - (2 / 9) / (5 / 9))
    assert found.n == 3


def test_alpha_leaves_out_an_item_with_one_label():
    tally = Tally.of_labels([*THREE_ITEMS, (2,)])
    assert krippendorff_alpha(tally) == krippendorff_alpha(Tally.of_labels(THREE_ITEMS))


def test_fleiss_kappa_by_hand():
    # p_a = 7/9; shares 5/9 and 4/9, so p_e = 41/81 and kappa = (63 - 41) / (81 - 41).
    assert fleiss_kappa(Tally.of_labels(THREE_ITEMS)).value == pytest.approx(22 / 40)


def test_fleiss_kappa_takes_the_shares_from_items_with_one_label_too():
    # p_a = 7/9; shares (1 * 0 + 2/3 + 1 + 1) / 4 = 8/12 and 4/12, so p_e = 80/144 = 5/9; kappa = (7 - 5) / (9 - 5).
    assert fleiss_kappa(Tally.of_labels([*THREE_ITEMS, (0,)])).value == pytest.approx(1 / 2)


def test_ac1_by_hand_counts_labels_that_nobody_gave():
    # p_e = (20/81 + 20/81 + 0) / (3 - 1) = 20/81 with three labels, 40/81 with two.
    assert gwet_ac1(Tally.of_labels(THREE_ITEMS)).value == pytest.approx((63 - 20) / (81 - 20))
    assert gwet_ac1(Tally.of_labels(THREE_ITEMS, k=2)).value == pytest.approx((63 - 40) / (81 - 40))


def test_alpha_of_a_label_takes_the_others_together():
    tally = Tally.of_labels([(0, 0, 2), (1, 2, 2), (0, 1, 1), (2, 2)])
    together = Tally.of_labels([(0, 0, 1), (1, 1, 1), (0, 1, 1), (1, 1)], k=2)
    assert label_alpha(tally, 0) == krippendorff_alpha(together) == krippendorff_alpha(tally.against_the_rest(0))


def test_alpha_of_each_of_two_labels_is_alpha():
    tally = Tally.of_labels(THREE_ITEMS)
    assert label_alpha(tally, 0) == label_alpha(tally, 1) == krippendorff_alpha(tally)


def test_cohens_kappa_by_hand():
    # 20 of 30 cases: p_o = 2/3; rows 15 and 15, columns 15 and 15: p_e = 1/2; kappa = (2/3 - 1/2) / (1 - 1/2).
    assert cohen_kappa([[10, 5], [5, 10]]).value == pytest.approx(1 / 3)
    assert cohen_kappa([[0, 5], [5, 0]]).value == -1
    assert cohen_kappa([[5, 0, 0], [0, 5, 0], [0, 0, 1]]) == Measure(1.0, 11)


def test_cohens_kappa_of_a_table_that_is_none_is_refused():
    for table in ([[1, 2]], [1, 2], [[1, -1], [0, 1]]):
        with pytest.raises(ValueError, match="square"):
            cohen_kappa(table)


def test_what_is_undefined_is_said_in_words():
    nothing, alone = Tally.of_labels([]), Tally.of_labels([(1,), (), (2,)])
    for coefficient in (*ALL, alpha_of_label(1)):
        assert coefficient(nothing) == Measure.missing("no labels")
        assert coefficient(alone) == Measure.missing("fewer than two labels on every item")
    same = Tally.of_labels([(1, 1, 1), (1, 1)])
    for coefficient in (krippendorff_alpha, fleiss_kappa):
        assert coefficient(same) == Measure.missing("all labels are the same", 2)
    almost = Tally.of_labels([(1, 1, 1), (1, 1), (0,)])
    assert krippendorff_alpha(almost).undefined == "all labels that can be compared are the same"
    assert label_alpha(same, 1).undefined == "every label that can be compared is this one"
    assert label_alpha(same, 0) == Measure.missing("no label that can be compared is this one", 2)
    assert cohen_kappa(np.zeros((3, 3))) == Measure.missing("no cases")
    assert cohen_kappa([[0, 0], [0, 4]]) == Measure.missing("all labels are the same", 4)


def test_raw_agreement_and_ac1_are_1_where_all_labels_are_the_same():
    same = Tally.of_labels([(1, 1, 1), (1, 1)])
    assert raw_agreement(same) == gwet_ac1(same) == Measure(1.0, 2)


def test_a_measure_has_a_value_or_a_reason():
    for value, reason in ((None, ""), (0.5, "no cases")):
        with pytest.raises(ValueError, match="either"):
            Measure(value, 0, undefined=reason)
    assert Measure.missing("no cases").as_json() == {
        "value": None,
        "low": None,
        "high": None,
        "n": 0,
        "undefined": "no cases",
    }
    assert Measure(0.5, 4, hits=2).as_json() == {"value": 0.5, "low": None, "high": None, "n": 4, "hits": 2}


# --- specific agreement ----------------------------------------------------------------------------------------------


def test_specific_agreement_of_two_raters_is_that_of_the_table() -> None:
    """a = 4 both success, b + c = 3 differ, d = 3 neither: 2a / (2a + b + c) = 8/11, 2d / (2d + b + c) = 6/9."""
    tally = Tally.of_labels([(1, 1)] * 4 + [(1, 0), (0, 1), (1, 2)] + [(0, 0), (2, 0), (2, 2)])
    assert specific_agreement(1)(tally).value == pytest.approx(8 / 11)
    assert specific_agreement(1, others=True)(tally).value == pytest.approx(6 / 9)


def test_specific_agreement_of_many_raters_counts_pairs_that_hold_the_label() -> None:
    # Successes: 3 of 3, 1 of 3, 0 of 3. Pairs (ordered) that hold one: 6 + 2; of these both: 6.
    assert specific_agreement(1)(Tally.of_labels(THREE_ITEMS)).value == pytest.approx(6 / 8)
    assert specific_agreement(1, others=True)(Tally.of_labels(THREE_ITEMS)).value == pytest.approx((2 + 6) / (4 + 6))


def test_specific_agreement_without_the_label_has_a_reason() -> None:
    found = specific_agreement(1)(Tally.of_labels([(0, 0), (2, 0), (1,)]))
    assert (found.value, found.n, found.undefined) == (None, 2, "no label that can be compared is of this kind")
    assert specific_agreement(1)(Tally.of_labels([(1,)])).undefined == "fewer than two labels on every item"


def test_specific_agreement_has_an_interval() -> None:
    found = with_interval(Tally.of_labels([(1, 1)] * 30 + [(1, 0)] * 20 + [(0, 0)] * 30), specific_agreement(1))
    assert found.value == pytest.approx(60 / 80)
    assert found.low < 0.75 < found.high


@pytest.mark.parametrize("seed", range(5))
def test_specific_agreement_of_judge_and_people_is_that_of_two_raters(seed: int) -> None:
    truth, said = np.random.default_rng(seed).integers(0, 2, (2, 40)).astype(bool)
    found, tally = confusion_of(truth, said), Tally.of_labels(zip(truth.astype(int), said.astype(int), strict=True))
    assert found.positive_agreement.value == found.f1.value == pytest.approx(specific_agreement(1)(tally).value)
    assert found.negative_agreement.value == pytest.approx(specific_agreement(0)(tally).value)
    assert found.negative_agreement.low < found.negative_agreement.value < found.negative_agreement.high


def test_negative_agreement_has_a_reason_where_everything_is_a_success() -> None:
    found = confusion_of([True] * 3, [True] * 3)
    assert found.negative_agreement.undefined == "every case is a success, and was judged one"
    assert found.positive_agreement.value == 1.0
    assert confusion_of([], []).negative_agreement.undefined == "no cases"
