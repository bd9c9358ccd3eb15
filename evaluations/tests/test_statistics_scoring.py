"""Brier score and area under the ROC curve against scikit-learn, and by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from evaluations.statistics import brier_score, roc_auc

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    metrics = pytest.importorskip("sklearn.metrics")

SCORES = [0.9, 0.6, 0.6, 0.1]
SUCCESSES = [True, True, False, False]


def test_brier_score_is_the_mean_squared_error() -> None:
    found = brier_score(SCORES, SUCCESSES)
    assert found.value == pytest.approx((0.1**2 + 0.4**2 + 0.6**2 + 0.1**2) / 4)
    assert found.n == 4


def test_auc_counts_ties_as_one_half() -> None:
    # 0.9 is above 0.6 and 0.1; 0.6 equals 0.6 and is above 0.1: (2 + 1.5) / 4
    assert roc_auc(SCORES, SUCCESSES).value == pytest.approx(3.5 / 4)
    assert roc_auc([0.5] * 4, SUCCESSES).value == 0.5


@pytest.mark.parametrize("seed", range(20))
def test_both_are_those_of_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(5, 80))
    scores = np.round(random.random(n), 1)
    successes = random.random(n) < scores
    successes[:2] = True, False
    assert brier_score(scores, successes).value == pytest.approx(metrics.brier_score_loss(successes, scores))
    assert roc_auc(scores, successes).value == pytest.approx(metrics.roc_auc_score(successes, scores))


def test_figures_that_cannot_be_computed_have_a_reason() -> None:
    assert brier_score([], []).undefined == roc_auc([], []).undefined == "the judge gives no scores"
    assert brier_score([1.2, 0], [True, False]).undefined == "the judge has scores outside 0 to 1"
    assert roc_auc([1.2, 0], [True, False]).value == 1.0  # only the order counts
    assert roc_auc([0.2, 0.3], [True, True]).undefined == "all scored cases are successes, or none is"


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        roc_auc([float("nan")], [True])
    with pytest.raises(ValueError, match="finite"):
        brier_score([0.5], [])


@pytest.mark.parametrize("figure", [brier_score, roc_auc])
def test_intervals_draw_tasks_with_all_their_cases(figure) -> None:
    random = np.random.default_rng(1)
    scores, noise = np.round(random.random(60), 2), random.random(60)
    successes = noise < scores
    once = figure(scores, successes, list(range(60)))
    assert once == figure(scores, successes)
    # Each case four times in its task is no more information; as 240 independent cases the width would be half.
    often = figure(np.tile(scores, 4), np.tile(successes, 4), list(range(60)) * 4)
    assert often.value == pytest.approx(once.value)
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=0.12)
    apart = figure(np.tile(scores, 4), np.tile(successes, 4))
    assert apart.high - apart.low == pytest.approx((once.high - once.low) / 2, rel=0.12)
