"""Correlations of two scores, by hand, and their intervals."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from evaluations.statistics import pearson, spearman
from evaluations.statistics.correlation import _rank

ONE, OTHER = [1.0, 2.0, 3.0], [2.0, 1.0, 4.0]


def test_values_are_those_computed_by_hand():
    # Deviations -1, 0, 1 and -1/3, -4/3, 5/3: products sum to 2, squares to 2 and 14/3.
    assert pearson(ONE, OTHER).value == pytest.approx(2 / sqrt(2 * 14 / 3))
    # Ranks 1, 2, 3 and 2, 1, 3: 1 - 6 * (1 + 1) / (3 * 8).
    assert spearman(ONE, OTHER).value == pytest.approx(0.5)
    assert (pearson(ONE, OTHER).n, pearson(ONE, OTHER).low) == (3, None)


def test_equal_scores_share_the_mean_of_their_ranks():
    # Ranks 1.5, 1.5, 3 and 1, 2, 3: products sum to 1.5, squares to 1.5 and 2.
    assert spearman([1, 1, 2], [1, 2, 3]).value == pytest.approx(1.5 / sqrt(1.5 * 2))


def test_ranks_of_a_resample_count_its_own_cases():
    ranks = _rank(np.array([20.0, 10.0, 30.0]), np.array([[1.0, 1, 1], [0, 2, 1], [3, 0, 1]]))

    # 10, 20, 30; then 10, 10, 30; then 20, 20, 20, 30. The rank of a case that was not drawn has no weight.
    assert ranks[0].tolist() == [2, 1, 3]
    assert ranks[1].tolist()[1:] == [1.5, 3]
    assert ranks[2][[0, 2]].tolist() == [2, 4]


def test_a_perfect_order_is_one_whatever_the_distances():
    assert spearman([0, 0.1, 0.9, 1], [1, 2, 3, 50]).value == pytest.approx(1)
    assert pearson([0, 1, 2, 3], [6, 4, 2, 0]).value == -1
    assert pearson([0, 0.1, 0.9, 1], [1, 2, 3, 50]).value < 0.9


@pytest.mark.parametrize("correlation", [pearson, spearman])
@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ([], [], "fewer than 3 pairs"),
        ([0.0, 1.0], [1.0, 0.0], "fewer than 3 pairs"),
        ([0.5, 0.5, 0.5], [0.1, 0.2, 0.3], "all scores of one side are equal"),
        ([0.1, 0.2, 0.3], [0.5, 0.5, 0.5], "all scores of one side are equal"),
    ],
)
def test_few_pairs_or_no_variation_are_undefined_and_no_error(correlation, first, second, why):
    found = correlation(first, second, list(range(len(first))))
    assert (found.value, found.n, found.undefined) == (None, len(first), why)


@pytest.mark.parametrize("tasks", [None, [1, 2, 3, 4], [1, 1, 2, 2]])
@pytest.mark.parametrize("equal", [[0.1 + 0.2, 0.3, 0.3, 0.3], [1e-200, 2e-200, 3e-200, 4e-200]])
def test_scores_equal_up_to_rounding_or_too_small_to_square_are_undefined(equal, tasks):
    assert len(set(equal)) > 1
    for first, second in ((equal, [1, 2, 3, 5]), ([1, 2, 3, 5], equal)):
        found = pearson(first, second, tasks)
        assert (found.value, found.undefined) == (None, "all scores of one side are equal")


def test_scale_of_scores_does_not_change_the_correlation():
    whole = pearson(ONE, OTHER).value
    assert pearson([one * 1e-9 for one in ONE], OTHER).value == pytest.approx(whole)
    assert pearson([one * 1e9 for one in ONE], OTHER).value == pytest.approx(whole)


@pytest.fixture(scope="module")
def noisy():
    generator = np.random.default_rng(5)
    first = generator.random(60)
    return first.tolist(), (first + generator.normal(0, 0.3, 60)).tolist()


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_intervals_contain_the_value_and_draw_tasks(correlation, noisy):
    first, second = noisy
    alone = correlation(first, second, list(range(60)))
    tasks = [number // 20 for number in range(60)]
    of_tasks = correlation(first, second, tasks)

    assert alone.low < alone.value < alone.high
    assert alone.value == of_tasks.value
    assert (of_tasks.low, of_tasks.high) != (alone.low, alone.high)
    # Every pair three times in a task of its own is no new information: nearly the same interval as before.
    tripled = correlation(first * 3, second * 3, list(range(60)) * 3)
    assert tripled.low == pytest.approx(alone.low, abs=0.03)
    assert tripled.high == pytest.approx(alone.high, abs=0.03)
    assert correlation(first * 3, second * 3, list(range(180))).low > alone.low + 0.02


def test_pearsons_interval_is_near_fishers(noisy):
    found = pearson(*noisy, list(range(60)))
    middle, spread = np.arctanh(found.value), 1.96 / sqrt(60 - 3)

    assert found.low == pytest.approx(np.tanh(middle - spread), abs=0.06)
    assert found.high == pytest.approx(np.tanh(middle + spread), abs=0.06)


def test_one_task_and_a_line_have_no_interval(noisy):
    assert pearson(*noisy, [1] * 60).low is None
    line = pearson([0.0, 1, 2, 3, 4, 5, 6, 7], [0.0, 2, 4, 6, 8, 10, 12, 14], list(range(8)))
    assert (line.value, line.low) == (pytest.approx(1), None)
