"""The same numbers as krippendorff, statsmodels, scikit-learn and SciPy, which are not there at run time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from evaluations.statistics import (
    cohen_kappa,
    fleiss_kappa,
    kendall_tau,
    krippendorff_alpha,
    mcnemar,
    paired_test,
    wilson,
)
from evaluations.statistics.comparing import _taus
from evaluations.tests.counted import confusion_of, label_alpha, tally_of_table

with warnings.catch_warnings():  # what they say of their own dependencies is not ours
    warnings.simplefilter("ignore")
    krippendorff = pytest.importorskip("krippendorff")
    metrics = pytest.importorskip("sklearn.metrics")
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    from scipy.stats import kendalltau, permutation_test
    from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
    from statsmodels.stats.proportion import proportion_confint

SEEDS = range(25)


def labels(seed: int, missing: float = 0.0) -> np.ndarray:
    """Labels (items, raters) of raters who are right with different probabilities."""
    random = np.random.default_rng(seed)
    items, raters = random.integers(8, 60), random.integers(2, 7)
    truth = random.choice(3, (items, 1), p=random.dirichlet((2, 2, 2)))
    table = np.where(
        random.random((items, raters)) < random.random(raters), truth, random.integers(0, 3, (items, raters))
    )
    return np.where(random.random(table.shape) < missing, -1, table)


def two(seed: int) -> tuple[np.ndarray, np.ndarray]:
    table = labels(seed)
    return table[:, 0], table[:, 1]


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("seed", SEEDS)
def test_alpha_is_that_of_krippendorff(seed, missing):
    table = labels(seed, missing)
    given = np.where(table < 0, np.nan, table.astype(float)).T
    expected = krippendorff.alpha(reliability_data=given, level_of_measurement="nominal")
    assert krippendorff_alpha(tally_of_table(table)).value == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_alpha_of_a_label_is_that_of_krippendorff_with_two_labels(seed):
    table = labels(seed, 0.2)
    given = np.where(table < 0, np.nan, (table == 1).astype(float)).T
    expected = krippendorff.alpha(reliability_data=given, level_of_measurement="nominal")
    assert label_alpha(tally_of_table(table), 1).value == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_fleiss_kappa_is_that_of_statsmodels(seed):
    table = labels(seed)
    expected = inter_rater.fleiss_kappa(inter_rater.aggregate_raters(table, n_cat=3)[0])
    assert fleiss_kappa(tally_of_table(table)).value == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_cohens_kappa_is_that_of_scikit_learn_and_statsmodels(seed):
    first, second = two(seed)
    table = metrics.confusion_matrix(first, second, labels=(0, 1, 2))
    value = cohen_kappa(table).value
    assert value == pytest.approx(metrics.cohen_kappa_score(first, second, labels=[0, 1, 2]))
    assert value == pytest.approx(inter_rater.cohens_kappa(table).kappa)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_confusion_is_that_of_scikit_learn(seed):
    truth, said = (column == 1 for column in two(seed))
    found = confusion_of(truth, said)
    expected = {
        "agreement": metrics.accuracy_score(truth, said),
        "precision": metrics.precision_score(truth, said, zero_division=np.nan),
        "recall": metrics.recall_score(truth, said, zero_division=np.nan),
        "f1": metrics.f1_score(truth, said, zero_division=np.nan),
        "specificity": metrics.recall_score(truth, said, pos_label=False, zero_division=np.nan),
        "npv": metrics.precision_score(truth, said, pos_label=False, zero_division=np.nan),
        "kappa": metrics.cohen_kappa_score(truth, said),
        "success_rate_gap": said.mean() - truth.mean(),
    }
    for name, value in expected.items():
        measure = getattr(found, name)
        assert (np.nan if measure.value is None else measure.value) == pytest.approx(value, nan_ok=True), name


@pytest.mark.parametrize("counts", [(0, 1), (3, 3), (2, 9), (0, 24), (12, 13), (25, 0), (10, 30), (300, 260)])
def test_mcnemar_is_that_of_statsmodels(counts):
    first, second = counts
    found = mcnemar(first, second)
    expected = statsmodels_mcnemar([[7, first], [second, 9]], exact=first + second < 25, correction=False)
    assert found.p.value == pytest.approx(expected.pvalue)
    assert found.exact == (first + second < 25)


@pytest.mark.parametrize("rate", [(0, 1), (1, 1), (1, 3), (7, 10), (500, 1000), (3, 100_000), (99_999, 100_000)])
def test_wilson_is_that_of_statsmodels(rate):
    found = wilson(*rate)
    assert (found.low, found.high) == pytest.approx(proportion_confint(*rate, method="wilson"), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_kendalls_tau_is_that_of_scipy(seed):
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 6, (2, random.integers(3, 30)))
    assert kendall_tau(x, y).value == pytest.approx(kendalltau(x, y).statistic)


@pytest.mark.parametrize("seed", range(5))
def test_swaps_of_tasks_are_the_permutations_of_scipy(seed):
    random = np.random.default_rng(seed)
    tasks = random.integers(0, 4, (10, 2))
    differences = tasks[:, 0] - tasks[:, 1]
    expected = permutation_test(
        (differences, np.zeros(10)), lambda x, y: x.sum() - y.sum(), permutation_type="samples", n_resamples=np.inf
    )
    assert paired_test(tasks).p.value == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_rankings_of_drawn_tasks_are_those_of_scipy(seed):
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 4, (2, 20, 6)) / 3
    expected = [kendalltau(*each).statistic for each in zip(x, y, strict=True)]
    assert _taus(x, y) == pytest.approx(expected, nan_ok=True)
