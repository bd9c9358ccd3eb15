"""An interval that may be looked at after every label."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.statistics.sequential import confidence_sequence


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
