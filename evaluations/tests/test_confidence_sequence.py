"""An interval that may be looked at after every label."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.statistics.sequential import confidence_sequence, half_width, mean_labels, most_labels
from evaluations.verifier import numbers


@pytest.mark.parametrize(("total", "successes"), [(40, 20), (60, 6), (100, 100)])
def test_the_error_over_all_looks_is_at_most_5_percent(total: int, successes: int) -> None:
    random, missed, draws = np.random.default_rng(successes), 0, 400
    for _ in range(draws):
        labels = (random.permutation(total) < successes).astype(int).tolist()
        missed += any(not each.low <= successes / total <= each.high for each in confidence_sequence(labels, total))
    assert missed / draws <= 0.05


def test_looking_after_every_label_with_an_ordinary_interval_errs_far_more_often() -> None:
    """The reason for this module: Wilson's interval, looked at from 10 labels on, misses in far more than 5%."""
    from evaluations.statistics import wilson

    random, missed, draws = np.random.default_rng(1), 0, 200
    for _ in range(draws):
        hits = np.cumsum(random.random(150) < 0.5)
        missed += any(not (w := wilson(int(hits[n]), n + 1)).low <= 0.5 <= w.high for n in range(9, 150))
    assert missed / draws > 0.12


def test_the_interval_has_the_numbers_that_the_ratio_allows() -> None:
    # 8 of 10 labelled in this order. P(labels | T) = 1 / C(n, k) x hypergeometric; all T equally likely: 1 / (C(n, k)
    # (n + 1)). The ratio is C(N, n) / ((n + 1) C(T, k) C(N - T, n - k)), at each look.
    labels, total = [1, 1, 1, 0, 1, 1, 1, 1], 10
    allowed = set(range(total + 1))
    for n, found in enumerate(confidence_sequence(labels, total), 1):
        k = sum(labels[:n])
        for number in range(total + 1):
            ways = comb(number, k) * comb(total - number, n - k)
            if ways == 0 or comb(total, n) / ((n + 1) * ways) >= 20:
                allowed.discard(number)
        assert (found.low, found.high) == (
            pytest.approx(min(min(allowed) / total, k / n)),
            pytest.approx(max(max(allowed) / total, k / n)),
        )


@given(labels=st.lists(st.integers(0, 1), min_size=1, max_size=40), left=st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_intervals_hold_the_value_and_mirror(labels: list[int], left: int) -> None:
    found = confidence_sequence(labels, len(labels) + left)
    mirrored = confidence_sequence([1 - label for label in labels], len(labels) + left)
    for one, other in zip(found, mirrored, strict=True):
        assert 0 <= one.low <= one.value <= one.high <= 1
        assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))
    if not left:
        assert found[-1].low == found[-1].high == found[-1].value


def test_labels_that_are_none_are_refused() -> None:
    for labels in ([2], [0, 1, 1]):
        with pytest.raises(ValueError, match="at most as many as the 2 trajectories"):
            confidence_sequence(labels, 2)


@given(labels=st.lists(st.integers(0, 1), min_size=1, max_size=60), left=st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_verifier_gets_the_same_intervals(labels: list[int], left: int) -> None:
    total = len(labels) + left
    ends = [(each.low, each.high) for each in confidence_sequence(labels, total)]
    assert numbers.confidence_sequence(labels, total) == ends


def test_a_ratio_of_exactly_20_excludes_in_both_programs() -> None:
    # After one success of N, R(T) = (1 / 2) / (T / N): 20 for T = N / 40, which is 1 of 40.
    assert confidence_sequence([1], 40)[0].low == numbers.confidence_sequence([1], 40)[0][0] == 2 / 40


def labels_until(width: float, labels: list[int]) -> int:
    widths = (half_width(labels[:n], len(labels)) for n in range(1, len(labels) + 1))
    return 1 + next(n for n, each in enumerate(widths) if each is not None and each <= width + 1e-12)


@pytest.mark.parametrize(("total", "width"), [(40, 0.1), (120, 0.1), (90, 0.2)])
def test_no_labels_need_more_than_the_most(total: int, width: float) -> None:
    random, most = np.random.default_rng(total), most_labels(total, width)
    needed = [
        labels_until(width, (random.permutation(total) < successes).astype(int).tolist())
        for successes in range(0, total + 1, 5)
    ]
    assert max(needed) <= most < total
    # Success and failure in turn need nearly as many.
    assert labels_until(width, [n % 2 for n in range(total)]) > 0.8 * most


@pytest.mark.parametrize(("total", "width", "rate"), [(120, 0.1, 0.5), (120, 0.1, 0.1), (60, 0.2, 0.3)])
def test_mean_number_of_labels_is_that_of_other_orders(total: int, width: float, rate: float) -> None:
    random = np.random.default_rng(7)
    labels = np.arange(total) < round(rate * total)
    needed = [labels_until(width, random.permutation(labels).astype(int).tolist()) for _ in range(60)]
    assert mean_labels(total, width, rate) == pytest.approx(np.mean(needed), abs=4 * np.std(needed) / 60**0.5)


def test_everything_is_labelled_if_no_fewer_labels_are_enough() -> None:
    assert (most_labels(5, 0.01), mean_labels(5, 0.01, 0.4), most_labels(1, 0.4)) == (5, 5, 1)
    assert half_width([], 5) is None


def test_sequence_that_excludes_every_rate_keeps_its_last_interval() -> None:
    # 20 successes, then 17 failures: no rate of 200 runs explains all looks, which is part of the 5%.
    found = confidence_sequence([1] * 20 + [0] * 17, 200)
    assert all(each.high - each.low > 0.1 for each in found)
    again = numbers.confidence_sequence([1] * 20 + [0] * 17, 200)
    assert np.allclose([(each.low, each.high) for each in found], again)
