"""The verifier computes the estimate of a planned sample again, without NumPy, and gets the product's figures."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluations.statistics import estimates
from evaluations.statistics.measure import Measure
from evaluations.verifier.estimates import Case, beta_quantile, recompute_estimate, stratified_rate
from evaluations.verifier.figures import compare


def by_product(cases: list[Case], estimand: str) -> dict[str, object]:
    sizes: dict[str, list[int]] = {}
    for stratum, _, label in cases:
        both = sizes.setdefault(stratum, [0, 0])
        both[0] += 1
        both[1] += label is not None
    found = estimates.estimate(
        [
            estimates.Case(stratum, judged, label, max(1, sizes[stratum][1]) / sizes[stratum][0], f"t{n:03d}")
            for n, (stratum, judged, label) in enumerate(cases)
        ],
        estimates.Estimand(estimand),
    )
    figures: dict[str, Measure] = {name: getattr(found, name) for name in ("people", "combined", "judge_only")}
    counts = {"n_labelled": found.n_labelled, "n_total": found.n_total, "method": found.method, "reason": found.reason}
    return {"estimand": estimand, **counts, **{name: each.as_json() for name, each in figures.items()}}


case = st.tuples(
    st.sampled_from(["easy", "hard", "unscored"]), st.sampled_from([None, 0, 1]), st.sampled_from([None, None, 0, 1])
)


@settings(max_examples=100, deadline=None)
@given(st.lists(case, max_size=60), st.sampled_from(["runs", "agent"]))
def test_recomputed_estimate_equals_the_estimate_of_the_product(cases: list[Case], estimand: str) -> None:
    assert compare(by_product(cases, estimand), recompute_estimate(cases, estimand), "it gives").wrong == 0


def test_interval_of_one_stratum_follows_from_the_beta_binomial_distribution() -> None:
    # 20 cases, 10 labelled, 6 successes: the others are beta-binomial(10, 6.5, 4.5).
    value, low, high = stratified_rate([(20, 10, 6)], "runs")
    others = stats.betabinom(10, 6.5, 4.5)
    inside = [t for t in range(11) if 0.025 < others.cdf(t) - others.pmf(t) / 2 < 0.975]
    assert value == pytest.approx(0.6)
    assert (low, high) == pytest.approx(((6 + inside[0]) / 20, (6 + inside[-1]) / 20))


def test_quantile_of_the_beta_distribution_is_that_of_scipy() -> None:
    for a, b in ((0.5, 0.5), (3, 7.5), (120, 80)):
        for chance in (0.025, 0.975):
            assert beta_quantile(chance, a, b) == pytest.approx(stats.beta(a, b).ppf(chance), abs=1e-4)


def test_estimate_is_undefined_for_a_stratum_without_labels() -> None:
    found = recompute_estimate([("easy", 1, 1), ("hard", 0, None)], "runs")
    assert found["people"]["value"] is None
    assert found["reason"] == 'no label in stratum "hard"'
