"""Confusions, McNemar and rankings by hand, and what is said where there is nothing to compare."""

from __future__ import annotations

from itertools import product

import pytest

from evaluations.statistics import Confusion, Measure, kendall_tau, mcnemar, paired_difference, paired_test
from evaluations.tests.counted import confusion_of


def test_a_confusion_counts_what_was_said_of_what_is():
    found = confusion_of([True, True, True, False, False, True], [True, False, True, True, False, True])
    assert found == Confusion(tp=3, fp=1, tn=1, fn=1)
    assert found.n == 6
    with pytest.raises(ValueError, match="shorter"):
        confusion_of([True], [])
    with pytest.raises(ValueError, match="negative"):
        Confusion(1, -1, 0, 0)


def test_the_rates_of_a_confusion_by_hand():
    found = Confusion(tp=6, fp=2, tn=9, fn=3)
    rates = {
        "agreement": (15, 20),
        "precision": (6, 8),
        "recall": (6, 9),
        "specificity": (9, 11),
        "npv": (9, 12),
        "false_positive_rate": (2, 11),
    }
    for name, (hits, n) in rates.items():
        measure = getattr(found, name)
        assert (measure.value, measure.hits, measure.n) == (hits / n, hits, n), name
        assert measure.low < measure.value < measure.high
    assert found.f1.value == pytest.approx(2 * 6 / (2 * 6 + 2 + 3))
    assert found.success_rate_gap.value == pytest.approx(8 / 20 - 9 / 20)
    # p_o = 15/20, p_e = (9 * 8 + 11 * 12) / 400 = 204/400
    assert found.kappa.value == pytest.approx((300 - 204) / (400 - 204))


RATES = (
    "agreement",
    "precision",
    "recall",
    "specificity",
    "npv",
    "false_positive_rate",
    "f1",
    "kappa",
    "success_rate_gap",
)


def test_a_confusion_without_cases_says_so_everywhere():
    found = Confusion(0, 0, 0, 0)
    for name in RATES:
        measure = getattr(found, name)
        assert (measure.value, measure.n, measure.undefined) == (None, 0, "no cases"), name


@pytest.mark.parametrize(
    ("counts", "reasons"),
    [
        (
            (4, 0, 0, 0),
            {
                "specificity": "every case is a success",
                "false_positive_rate": "every case is a success",
                "npv": "everything was judged a success",
                "kappa": "only one class",
            },
        ),
        (
            (0, 0, 4, 0),
            {
                "precision": "nothing was judged a success",
                "recall": "no case is a success",
                "f1": "no case is a success, nor was judged one",
                "kappa": "only one class",
            },
        ),
        ((0, 0, 3, 1), {"precision": "nothing was judged a success"}),
        ((0, 2, 3, 0), {"recall": "no case is a success"}),
    ],
)
def test_a_confusion_says_in_words_what_is_undefined(counts, reasons):
    found = Confusion(*counts)
    assert {name: why for name in RATES if (why := getattr(found, name).undefined)} == reasons
    assert all(getattr(found, name).value is not None for name in RATES if name not in reasons)


def test_f1_is_0_where_successes_were_all_missed():
    assert Confusion(tp=0, fp=0, tn=3, fn=1).f1.value == 0


def test_mcnemar_is_exact_below_25_and_not_from_there():
    # P(X <= 2) of 10 fair coins is (1 + 10 + 45) / 1024, twice.
    assert mcnemar(2, 8).p == Measure(2 * 56 / 1024, 10)
    assert mcnemar(8, 2) == mcnemar(2, 8)
    assert mcnemar(12, 12).exact
    assert not mcnemar(12, 13).exact


def test_mcnemar_of_two_who_are_right_equally_often_is_1():
    assert mcnemar(3, 3).p.value == 1
    assert mcnemar(30, 30).p.value == 1


def test_mcnemar_of_two_who_never_differ_is_undefined():
    assert mcnemar(0, 0).p == Measure.missing("the two never differ")
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 2)


def brute_force(tasks):
    """The share of all ways to swap the two judges task by task in which the difference is as large."""
    differences = [first - second for first, second in tasks]
    swapped = [sum(sign * d for sign, d in zip(signs, differences, strict=True)) for signs in signs_of(len(tasks))]
    return sum(abs(each) >= abs(sum(differences)) for each in swapped) / len(swapped)


def signs_of(n):
    return product((1, -1), repeat=n)


@pytest.mark.parametrize(
    "tasks",
    [
        [(2, 0), (0, 1)],
        [(1, 1), (2, 2)],
        [(3, 0), (3, 0), (1, 2), (0, 1), (0, 0)],
        [(5, 1), (0, 4), (2, 0), (2, 0), (1, 0), (0, 3), (1, 1), (6, 0), (0, 2), (1, 0)],
    ],
)
def test_paired_test_swaps_whole_tasks(tasks):
    found = paired_test(tasks)
    assert found.p.value == pytest.approx(brute_force(tasks), rel=1e-12)
    assert (found.exact, found.by_task, found.permutations) == (True, True, None)
    assert found.p.n == sum(map(sum, tasks))


def test_paired_test_is_mcnemars_where_no_task_counts_twice():
    assert paired_test([(1, 0)] * 8 + [(0, 1)] * 2 + [(0, 0)]) == mcnemar(8, 2)
    assert paired_test([]) == mcnemar(0, 0)
    with pytest.raises(ValueError, match="negative"):
        paired_test([(2, -1)])


def test_paired_test_rejects_equal_judges_in_at_most_one_of_twenty_ways():
    sizes = [1, 1, 2, 3, 3, 4, 5, 5, 5, 6]  # cases of a task on which the same judge is right
    ways = [[(d, 0) if sign > 0 else (0, d) for sign, d in zip(signs, sizes, strict=True)] for signs in signs_of(10)]
    assert sum(paired_test(way).p.value <= 0.05 for way in ways) / len(ways) <= 0.05
    taken_apart = [mcnemar(sum(a for a, _ in way), sum(b for _, b in way)) for way in ways]
    assert sum(each.p.value <= 0.05 for each in taken_apart) / len(ways) > 0.25


def test_paired_test_of_very_many_cases_draws_the_swaps():
    tasks = [(3, 0)] * 1700 + [(0, 3)] * 1600 + [(1, 1)] * 5
    found = paired_test(tasks)
    assert (found.exact, found.by_task, found.permutations) == (False, True, 9999)
    # d = 3 (1700 - 1600) = 300, and its standard deviation is sqrt(3300 * 9) = 172.3: P(|Z| >= 299.5 / 172.3) = 0.082.
    assert found.p.value == pytest.approx(0.082, abs=0.012)
    assert paired_test(tasks) == found
    assert paired_test([(3, 0)] * 3300).p.value == 1 / 10_000


def test_a_paired_difference_by_hand():
    assert paired_difference(10, 5, 2, 3).value == pytest.approx((15 - 12) / 20)
    # (5 - 2) / 22 -+ 1.96 sqrt(5 + 2 + 1 - 9 / 22) / 22
    found = paired_difference(10, 5, 2, 3)
    assert (found.low, found.high) == pytest.approx((0.13636 - 0.24546, 0.13636 + 0.24546), abs=1e-5)
    assert paired_difference(0, 0, 0, 0) == Measure.missing("no cases")
    with pytest.raises(ValueError, match="negative"):
        paired_difference(1, 1, 1, -1)


def test_two_that_never_differ_still_have_an_interval():
    # 0 -+ 1.96 sqrt(1) / (13 + 2): 13 cases without a difference do not show that there is none.
    found = paired_difference(10, 0, 0, 3)
    assert (found.value, found.low, found.high) == (0.0, pytest.approx(-1.959964 / 15), pytest.approx(1.959964 / 15))


def test_the_interval_of_a_difference_ends_at_1_and_holds_it():
    # 2 / 4 + 1.96 sqrt(2 + 1 - 4 / 4) / 4 = 1.193
    found = paired_difference(0, 2, 0, 0)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.5 - 0.692952)
    assert paired_difference(0, 0, 2, 0).low == -1.0


def test_the_gap_of_a_confusion_is_a_paired_difference():
    assert Confusion(tp=10, fp=5, tn=3, fn=2).success_rate_gap == paired_difference(10, 5, 2, 3)


def test_kendalls_tau_by_hand():
    # Of 6 pairs one is the other way round: (5 - 1) / 6.
    assert kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]).value == pytest.approx(4 / 6)
    # Of 3 pairs one is tied in x: (2 - 0) / sqrt(2 * 3).
    assert kendall_tau([1, 1, 2], [1, 2, 3]).value == pytest.approx(2 / 6**0.5)
    assert kendall_tau([0.1, 0.5, 0.5], [3, 7, 7]) == Measure(1.0, 3)
    assert kendall_tau([1, 2], [5, 4]) == Measure(-1.0, 2)


def test_a_ranking_of_nothing_is_undefined():
    assert kendall_tau([], []) == Measure.missing("fewer than two to rank")
    assert kendall_tau([1], [1]) == Measure.missing("fewer than two to rank", 1)
    assert kendall_tau([1, 1, 1], [1, 2, 3]) == Measure.missing("all are tied in one of the rankings", 3)
    for x, y in (([1, 2], [1]), ([1.0, float("nan")], [1, 2])):
        with pytest.raises(ValueError, match="equally long"):
            kendall_tau(x, y)
