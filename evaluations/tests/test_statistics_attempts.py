"""The figures over attempts, by hand and for any outcomes."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.statistics import Measure, all_of_k, any_of_k, pass_at_k, score_spread, success_spread, wilson

# Three attempts at four tasks: 2, 1 and 3 of 4 succeed, and the last task in none of them.
SUCCESSES = [[True, True, False, False], [False, False, True, False], [True, True, True, False]]


def test_success_rates_of_attempts_have_a_mean_and_a_population_deviation() -> None:
    found = success_spread(SUCCESSES)
    assert [(each.hits, each.n, each.value) for each in found.each] == [(2, 4, 0.5), (1, 4, 0.25), (3, 4, 0.75)]
    assert (found.mean.value, found.mean.n) == (0.5, 4)  # (1/2 + 1/4 + 3/4) / 3
    assert found.deviation.value == pytest.approx(sqrt((0 + 1 / 16 + 1 / 16) / 3))  # with n - 1 it would be 0.25
    assert found.deviation.low is None


def test_mean_over_attempts_has_the_interval_of_drawn_tasks() -> None:
    rows = [[task % 4 < attempt for task in range(40)] for attempt in (1, 2, 3)]
    found = success_spread(rows).mean
    # 10 tasks each with 0, 1, 2 and 3 of 3 successes: the mean of 40 such numbers has the standard error
    # sqrt((1/4 + 1/36 + 1/36 + 1/4) / 4 / 40) = 0.0589.
    assert found.value == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.0589, abs=0.015)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.0589, abs=0.015)
    assert found.n == 40


def test_mean_over_attempts_that_all_succeed_is_not_certain() -> None:
    found = success_spread([[True] * 10] * 3).mean
    assert (found.value, found.low, found.high) == (1, wilson(10, 10).low, 1)


def test_mean_score_over_attempts_has_the_interval_of_drawn_tasks() -> None:
    scores = [[(task % 5) / 4 for task in range(50)], [(task % 5) / 4 for task in range(50)]]
    found = score_spread(scores).mean
    # The two attempts are alike, so there are 50 independent numbers and not 100: sqrt(0.125 / 50) = 0.05.
    assert found.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)
    assert score_spread([[0.5, 0.5], [0.5, 0.5]]).mean.low is None


def test_a_task_is_passed_when_any_attempt_succeeded() -> None:
    found = pass_at_k(SUCCESSES)
    assert (found.hits, found.n, found.value) == (3, 4, 0.75)
    # Wilson's for 3 of 4: (p + z^2/2n -+ z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n)
    z = 1.959963984540054
    middle, half = 0.75 + z**2 / 8, z * sqrt(0.75 * 0.25 / 4 + z**2 / 64)
    ends = ((middle - half) / (1 + z**2 / 4), (middle + half) / (1 + z**2 / 4))
    assert (found.low, found.high) == pytest.approx(ends)
    assert pass_at_k(SUCCESSES[:1]).value == 0.5  # pass@1 of one attempt is its success rate


def test_any_and_all_of_k_attempts_average_over_all_choices_of_attempts() -> None:
    # Of 3 attempts the tasks succeed 2, 2, 2 and 0 times. k = 2: C(1, 2) = 0, so any succeeds in 3 of 4 tasks;
    # all succeed with C(2, 2) / C(3, 2) = 1/3 in three of four tasks.
    assert any_of_k(SUCCESSES, 2).value == pytest.approx(3 / 4)
    assert all_of_k(SUCCESSES, 2).value == pytest.approx(1 / 4)
    assert all_of_k(SUCCESSES, 1).value == pytest.approx(1 / 2) == any_of_k(SUCCESSES, 1).value
    assert all_of_k(SUCCESSES, 3) == wilson(0, 4)
    assert any_of_k(SUCCESSES, 3) == pass_at_k(SUCCESSES)


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5), st.data())
@settings(max_examples=25, deadline=None)
def test_any_and_all_of_k_are_the_means_over_all_choices_of_k_attempts(rows, data) -> None:
    k = data.draw(st.integers(1, len(rows)))
    chosen = list(combinations(rows, k))
    every = [[pick(column) for column in zip(*some, strict=True)] for pick in (any, all) for some in chosen]
    means = [sum(map(sum, half)) / (6 * len(chosen)) for half in (every[: len(chosen)], every[len(chosen) :])]
    assert [any_of_k(rows, k).value, all_of_k(rows, k).value] == pytest.approx(means)


def test_all_of_k_has_the_interval_of_drawn_tasks() -> None:
    rows = [[task % 3 > attempt for task in range(60)] for attempt in (0, 1)]
    found = all_of_k(rows, 1)  # 0, 1/2 and 1 in twenty tasks each: deviation sqrt(1/6), standard error 0.0527
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - 1.96 * 0.0527, abs=0.015)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.0527, abs=0.015)


@pytest.mark.parametrize("k", [0, 4])
def test_k_beyond_the_attempts_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="there are 3 attempts"):
        all_of_k(SUCCESSES, k)


def test_mean_scores_of_attempts_have_a_mean_and_a_population_deviation() -> None:
    found = score_spread([[1.0, 0.4, 0.1], [0.6, 0.0, 0.3]])
    assert [each.value for each in found.each] == pytest.approx([0.5, 0.3])
    assert [each.n for each in found.each] == [3, 3]
    assert found.mean.value == pytest.approx(0.4)
    assert found.deviation.value == pytest.approx(0.1)  # sqrt((0.1^2 + 0.1^2) / 2)


def test_without_a_common_task_nothing_is_a_number() -> None:
    for found in (success_spread([[], []]), score_spread([[], []])):
        assert [each.value for each in (*found.each, found.mean, found.deviation)] == [None] * 4
        assert found.mean.undefined
    assert pass_at_k([[], []]) == Measure(None, 0, hits=0, undefined="no cases")


@pytest.mark.parametrize("figure", [success_spread, score_spread, pass_at_k])
@pytest.mark.parametrize("rows", [[], [[True], [True, False]]])
def test_attempts_at_different_tasks_are_refused(figure, rows) -> None:
    with pytest.raises(ValueError, match="same tasks"):
        figure(rows)


@st.composite
def outcomes(draw: st.DrawFn) -> list[list[bool]]:
    """Of k attempts at n tasks: (k, n)."""
    k, n = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    return draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=k, max_size=k))


@settings(max_examples=200, deadline=None)
@given(outcomes())
def test_pass_at_k_is_at_least_every_success_rate_and_at_most_their_sum(rows: list[list[bool]]) -> None:
    passed, rates = pass_at_k(rows).hits, [each.hits for each in success_spread(rows).each]
    assert max(rates) <= passed <= min(len(rows[0]), sum(rates))


@settings(max_examples=200, deadline=None)
@given(outcomes())
def test_a_further_attempt_takes_no_pass_away_and_their_order_changes_nothing(rows: list[list[bool]]) -> None:
    assert pass_at_k(rows[:1]).hits <= pass_at_k(rows).hits
    assert pass_at_k(rows[::-1]) == pass_at_k(rows)
    assert success_spread(rows[::-1]).mean.value == pytest.approx(success_spread(rows).mean.value)
    assert 0 <= success_spread(rows).deviation.value <= 0.5
