"""The same numbers as SciPy, statsmodels and the formulas of papers, written once more."""

from __future__ import annotations

import warnings
from math import ceil, floor, sqrt

import numpy as np
import pytest

from evaluations.statistics import Measure, Sample
from evaluations.statistics.calibrated import NO_BETTER, Calibration, calibrated_rate
from evaluations.statistics.planning import plan_acceptance, plan_checks, tails
from evaluations.statistics.prediction import FEW, ScoredSample, predicted_rate, slope
from evaluations.statistics.quantiles import beta_quantile, t_quantile
from evaluations.statistics.stratified import Estimand, stratified_rate, weighted_rate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scipy.stats import beta, betabinom, hypergeom, linregress, t
    from statsmodels.stats.proportion import proportion_confint


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.5, 30.5), (2.5, 0.5), (15, 15), (300, 2700), (1e5, 1e6)])
@pytest.mark.parametrize("chance", [0.025, 0.05, 0.975])
def test_beta_quantiles_are_those_of_scipy(a: float, b: float, chance: float) -> None:
    assert abs(beta_quantile(chance, a, b)[0] - beta.ppf(chance, a, b)) < 1e-3 * beta.std(a, b)


@pytest.mark.parametrize("degrees", [1, 2, 5, 28, 1000])
def test_t_quantiles_are_those_of_scipy(degrees: int) -> None:
    assert t_quantile(degrees) == pytest.approx(t.ppf(0.975, degrees), rel=1e-4)


def test_interval_of_the_runs_is_that_of_beta_binomials_of_scipy() -> None:
    samples = [Sample(40, 9, 10), Sample(25, 1, 25), Sample(0, 3, 5)]
    chances = np.ones(1)
    for each in samples:
        # Three strata: c = 1/3, and the size n + 2/3 - 3 (1 - 2/3) = n - 1/3.
        number, mean, size = (
            np.arange(each.left + 1),
            (each.hits + 1 / 3) / (each.checked + 2 / 3),
            each.checked - 1 / 3,
        )
        chances = np.convolve(chances, betabinom.pmf(number, each.left, mean * size, (1 - mean) * size))
    below = np.cumsum(chances) - chances / 2
    inside = np.flatnonzero((below > 0.025) & (below < 0.975))
    found = stratified_rate(samples)
    assert found.value == pytest.approx((50 * 0.9 + 50 / 25 + 3) / 105)
    assert (found.low, found.high) == pytest.approx(((inside[0] + 13) / 105, (inside[-1] + 13) / 105))


def test_interval_of_the_agent_is_close_to_that_of_simulated_rates() -> None:
    samples = [Sample(40, 9, 10), Sample(75, 3, 25)]
    random = np.random.default_rng(1)
    unseen = sum(
        betabinom.rvs(each.left, each.hits + 0.5, each.checked - each.hits + 0.5, size=200_000, random_state=random)
        for each in samples
    )
    successes = unseen + 12
    rates = random.beta(successes + 0.5, 150 - successes + 0.5)
    found = stratified_rate(samples, Estimand.AGENT)
    assert (found.low, found.high) == pytest.approx(np.quantile(rates, (0.025, 0.975)), abs=0.003)


def test_one_stratum_of_many_trajectories_has_jeffreys_interval() -> None:
    found = stratified_rate([Sample(20_000, 12, 40)])
    assert (found.low, found.high) == pytest.approx(proportion_confint(12, 40, method="jeffreys"), abs=0.001)


def test_people_alone_have_wilsons_interval_of_statsmodels() -> None:
    labels = [1] * 12 + [0] * 28
    agent = weighted_rate(labels, np.full(40, 5.0), Estimand.AGENT)
    assert (agent.low, agent.high) == pytest.approx(proportion_confint(12, 40, method="wilson"))
    # 40 of 200: as many as 40 x 199 / 160 = 49.75 without end; the whole numbers of successes inside of it.
    runs = weighted_rate(labels, np.full(40, 5.0), Estimand.RUNS)
    low, high = proportion_confint(0.3 * 49.75, 49.75, method="wilson")
    assert (runs.low, runs.high) == (ceil(200 * low) / 200, floor(200 * high) / 200)
    # Weights 1 and 3, 20 each: 80^2 / (20 + 180) = 32.
    unequal = weighted_rate([1] * 12 + [0] * 28, [1.0] * 20 + [3.0] * 20, Estimand.AGENT)
    assert unequal.value == 12 / 80
    assert (unequal.low, unequal.high) == pytest.approx(proportion_confint(32 * 12 / 80, 32, method="wilson"))


PRINTED = {0: 0.36959540137993097, 1: 0.42957722243449564}


def scored(seed: int, total: int = 1000, labels: int = 200) -> tuple[ScoredSample, np.ndarray]:
    random = np.random.default_rng(seed)
    truth = (random.random(total) < 0.4).astype(float)
    scores = 0.5 * (random.random(total) < np.where(truth == 1, 0.8, 0.1)) + 0.5 * random.random(total)
    weights = np.full(labels, total / labels)
    return ScoredSample(scores, truth[:labels], scores[:labels], weights), scores[labels:]


@pytest.mark.parametrize("seed", range(5))
def test_scores_give_the_ppi_estimate_of_the_paper(seed: int) -> None:
    """Angelopoulos, Duchi and Zrnic (2023): lambda mean_N(f) + mean_n(Y - lambda f), N the unlabelled ones, with
    lambda = Cov(Y, f) / ((1 + n / N) Var f). For the interval the variance is lambda^2 Var_N(f) / N +
    Var_n(Y - lambda f) / n; ours has t and Wilson's shape, which make little difference at 200 labels."""
    sample, unlabelled = scored(seed)
    y, f, n, rest = sample.labels, sample.predicted, 200, 800
    lam = np.cov(y, f)[0, 1] / ((1 + n / rest) * np.var(f, ddof=1))
    assert slope(sample) == pytest.approx(linregress(f, y).slope)
    assert slope(sample) * 0.8 == pytest.approx(lam)
    found = predicted_rate([sample], Estimand.AGENT)
    assert found.value == pytest.approx(lam * unlabelled.mean() + (y - lam * f).mean())
    half = 1.96 * sqrt(lam**2 * unlabelled.var() / rest + (y - lam * f).var() / n)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=0.006)  # type: ignore[operator]


def test_scores_give_the_estimate_that_ppi_python_printed() -> None:
    """ppi_mean_pointestimate of ppi-python 0.2.3 with the lambda of the labels, for the seeds 0 and 1 of `scored`."""
    for seed, value in PRINTED.items():
        found = predicted_rate([scored(seed)[0]], Estimand.AGENT)
        assert found.value == pytest.approx(value, abs=1e-8)


def test_strata_of_scores_are_added_with_their_shares() -> None:
    (one, _), (other, _) = scored(1, 600, 60), scored(2, 200, 80)
    found = predicted_rate([one, other], Estimand.RUNS)
    parts = [predicted_rate([each], Estimand.RUNS).value for each in (one, other)]
    assert found.value == pytest.approx(0.75 * parts[0] + 0.25 * parts[1])  # type: ignore[operator]


def test_unequal_probabilities_give_the_difference_estimate() -> None:
    """Sarndal, Swensson and Wretman (1992): sum_U b f / N + sum_s w (y - b f) / sum_s w."""
    sample, _ = scored(3)
    weights = 1 / (0.1 + 0.2 * sample.predicted)
    unequal = ScoredSample(sample.scores, sample.labels, sample.predicted, weights)
    b = slope(unequal)
    centred = sample.predicted - np.average(sample.predicted, weights=weights)
    assert b == pytest.approx((weights * centred * sample.labels).sum() / (weights * centred**2).sum())
    expected = b * sample.scores.mean() + np.average(sample.labels - b * sample.predicted, weights=weights)
    assert predicted_rate([unequal], Estimand.RUNS).value == pytest.approx(expected)


def test_two_labels_of_a_stratum_are_too_few_for_scores() -> None:
    sample, _ = scored(4, 50, 2)
    assert predicted_rate([sample], Estimand.RUNS) == Measure.missing(FEW, 2)


def test_scores_do_not_count_if_all_labels_are_equal() -> None:
    sample, _ = scored(5, 100, 20)
    equal = ScoredSample(sample.scores, np.ones(20), sample.predicted, sample.weights)
    assert predicted_rate([equal], Estimand.RUNS) == weighted_rate(np.ones(20), sample.weights, Estimand.RUNS)


def test_calibrated_rate_by_hand() -> None:
    # 100 verdicts, 40 successes; sensitivity 45 / 50, specificity 40 / 50: (0.4 + 0.8 - 1) / (0.8 + 0.9 - 1) = 2 / 7.
    found = calibrated_rate(40, 100, Calibration(50, 45, 50, 40))
    assert found.value == pytest.approx(2 / 7)
    # z^2 = 3.841459; p' = 41.92073 / 103.841459 = 0.403699, q1' = 46 / 52, q0' = 41 / 52; q0' + q1' - 1 = 35 / 52.
    # r' = (0.403699 - 11 / 52) / (35 / 52) = 0.285496; v1 = 0.00196292, v0 = 0.00320721.
    # d = 2 x 3.841459 (0.285496 v1 - 0.714504 v0) = -0.0133
    # spread: 1.959964 sqrt(0.00231822 + 0.00163733 + 0.00015999) / 0.673077 = 0.186819
    assert (found.low, found.high) == pytest.approx(
        (0.285496 - 0.013300 - 0.186819, 0.285496 - 0.0133 + 0.186819), abs=2e-4
    )


def test_calibrated_rate_is_refused_for_a_judge_no_better_than_chance() -> None:
    assert calibrated_rate(40, 100, Calibration(50, 20, 50, 30)) == Measure.missing(NO_BETTER, 100)
    assert calibrated_rate(0, 0, Calibration(50, 20, 50, 40)).value is None
    assert calibrated_rate(3, 9, Calibration(0, 0, 50, 40)).value is None
    with pytest.raises(ValueError, match="10 of 9 is no rate"):
        calibrated_rate(10, 9, Calibration(50, 20, 50, 40))


def test_tails_are_those_of_the_hypergeometric_distribution() -> None:
    found = tails(60, 13, 20)
    assert found[:-1] == pytest.approx(hypergeom.sf(np.arange(21) - 1, 60, 13, 20), abs=1e-12)
    assert found[-1] == 0


def test_an_acceptance_rule_keeps_both_errors_and_one_label_fewer_does_not() -> None:
    plan = plan_acceptance(200, 0.5, 0.7, error=0.05, power=0.9)
    assert plan.error == pytest.approx(hypergeom.sf(plan.accept_from - 1, 200, 100, plan.labels))
    assert plan.power == pytest.approx(hypergeom.sf(plan.accept_from - 1, 200, 140, plan.labels))
    assert (plan.error <= 0.05, plan.power >= 0.9) == (True, True)
    fewer = plan.labels - 1
    least = next(c for c in range(fewer + 2) if hypergeom.sf(c - 1, 200, 100, fewer) <= 0.05)
    assert hypergeom.sf(least - 1, 200, 140, fewer) < 0.9


def test_checks_find_an_error_with_the_stated_probability() -> None:
    for total, share in ((90, 0.05), (300, 0.02), (40, 0.1)):
        errors = int(share * total + 1e-9) + 1
        checks = plan_checks(total, share)
        assert hypergeom.pmf(0, total, errors, checks) <= 0.05 < hypergeom.pmf(0, total, errors, checks - 1)
    assert plan_checks(1, 0) == 1
