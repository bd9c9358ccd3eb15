"""Plans of labels: the promised width, allocations, power, acceptance rules and checks."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.planning import width_over_promise
from evaluations.statistics.planning import (
    PowerPlan,
    allocate,
    fewest_labels,
    people_half_width,
    plan_acceptance,
    plan_budget,
    plan_checks,
    plan_half_width,
    plan_labels,
    plan_power,
    rates_of_judge,
    rates_of_unbiased_judge,
)
from evaluations.statistics.stratified import Estimand

STRATA, RATES = {"success": 82, "failure": 218}, {"success": 0.98, "failure": 0.18}
BOTH = pytest.mark.parametrize("estimand", list(Estimand))


@BOTH
def test_a_plan_has_the_fewest_labels_for_its_width(estimand: Estimand) -> None:
    plan = plan_half_width(STRATA, RATES, 0.08, estimand)
    assert plan.expected_half_width <= 0.08
    assert plan_labels(STRATA, RATES, plan.labels - 1, estimand).expected_half_width > 0.08
    assert plan.labels == sum(stratum.labels for stratum in plan.strata)
    assert plan.saved == 300 - plan.labels


@BOTH
def test_people_alone_need_more_labels_for_the_same_width(estimand: Estimand) -> None:
    plan = plan_half_width(STRATA, RATES, 0.08, estimand)
    assert plan.labels < 0.75 * plan.people_alone_labels
    overall = (82 * 0.98 + 218 * 0.18) / 300
    reached = [
        people_half_width(300, overall, n, estimand) for n in (plan.people_alone_labels - 1, plan.people_alone_labels)
    ]
    assert reached[1] <= plan.expected_half_width < reached[0]


def test_a_worse_judge_gives_a_wider_interval_with_the_same_labels() -> None:
    plan = plan_half_width(STRATA, RATES, 0.08)
    assert plan.expected_half_width < plan.if_judge_is_worse < plan.if_judge_is_useless
    # A useless judge's labels are worth about as much as a simple draw of as many, at the least favourable rate.
    assert plan.if_judge_is_useless == pytest.approx(people_half_width(300, 0.5, plan.labels, Estimand.RUNS), rel=0.1)


def test_unbiased_judge_moves_no_overall_rate() -> None:
    # 44 of 60 judged a success: `rates_of_judge` would expect (0.733 + 0.8 - 1) / 0.55 = 97% of all.
    found = rates_of_unbiased_judge({True: 44, False: 16}, 0.75, 0.8)
    assert (44 * found[True] + 16 * found[False]) / 60 == pytest.approx(44 / 60)
    assert found[True] - found[False] == pytest.approx(0.55)
    # A judge with as many wrong successes as wrong failures: 40 of 50 right among each, J = 0.8 + 0.8 - 1.
    assert rates_of_unbiased_judge({True: 50, False: 50}, 0.8, 0.8) == pytest.approx({True: 0.8, False: 0.2})
    with pytest.raises(ValueError, match="sum above 1"):
        rates_of_unbiased_judge({True: 1}, 0.5, 0.5)


@pytest.mark.slow
@BOTH
def test_the_promised_width_is_met_within_5_percent_on_average(estimand: Estimand) -> None:
    random = np.random.default_rng(5)
    assert np.mean([width_over_promise(random, estimand) for _ in range(12)]) == pytest.approx(1, abs=0.05)


def test_all_labels_are_planned_if_nothing_less_is_narrow_enough() -> None:
    assert plan_half_width({"a": 20}, {"a": 0.5}, 0.001).labels == 20
    with pytest.raises(ValueError, match=r"All 20 labels give a half width of 0\.2\d+\. Enter a larger one\."):
        plan_half_width({"a": 20}, {"a": 0.5}, 0.1, Estimand.AGENT)


@given(
    sizes=st.lists(st.integers(0, 200), min_size=1, max_size=6).filter(sum),
    seed=st.integers(0, 1000),
    share=st.floats(0, 1),
)
@settings(max_examples=80, deadline=None)
def test_an_allocation_spends_all_labels_with_two_or_all_of_each_stratum(sizes, seed, share) -> None:
    strata = {str(at): size for at, size in enumerate(sizes)}
    rates = dict(zip(strata, np.random.default_rng(seed).random(len(sizes)).tolist(), strict=True))
    labels = round(fewest_labels(strata) + share * (sum(sizes) - fewest_labels(strata)))
    given_labels = allocate(strata, rates, labels)
    assert sum(given_labels.values()) == labels
    assert all(min(2, strata[name]) <= number <= strata[name] for name, number in given_labels.items())


def test_an_allocation_is_in_proportion_to_size_and_spread() -> None:
    # Rates moved to one half: 0.5 and 0.1 + 0.8 x 0 = 0.1, spreads 0.5 and 0.3; 100 x 0.5 to 200 x 0.3 is 5 to 6.
    assert allocate({"a": 100, "b": 200}, {"a": 0.5, "b": 0.0}, 110) == {"a": 50, "b": 60}


def test_a_budget_of_reviews_pays_three_for_each_label() -> None:
    assert plan_budget(STRATA, RATES, 182).labels == 60
    assert plan_budget(STRATA, RATES, 10_000).labels == 300
    with pytest.raises(ValueError, match="11 reviews are 3 labels, but these strata need 4"):
        plan_budget(STRATA, RATES, 11)


@pytest.mark.parametrize(
    ("strata", "rates", "half_width", "message"),
    [
        ({"a": 5}, {"b": 0.5}, 0.1, r"see \['a', 'b'\]"),
        ({"a": 0}, {"a": 0.5}, 0.1, "needs trajectories"),
        ({"a": 5}, {"a": 1.5}, 0.1, "not from 0 to 1"),
        ({"a": 5}, {"a": 0.5}, 0, "0 is no half width"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(strata, rates, half_width, message) -> None:
    with pytest.raises(ValueError, match=message):
        plan_half_width(strata, rates, half_width)


def test_rates_of_a_judge_by_hand() -> None:
    # Rate .4, sensitivity .7, specificity .9: judged successes .28 + .06 = .34.
    found = rates_of_judge({True: 34, False: 66}, 0.7, 0.9)
    assert found == {True: pytest.approx(0.28 / 0.34), False: pytest.approx(0.12 / 0.66)}
    assert rates_of_judge({True: 0, False: 9}, 0.7, 0.9) == {True: 0, False: 0}
    with pytest.raises(ValueError, match="sum above 1"):
        rates_of_judge({True: 3, False: 4}, 0.5, 0.5)


def test_power_is_that_of_the_test_on_drawn_tasks() -> None:
    plan = plan_power(500, 0.5, 0.35, 0.35)
    assert plan.labels is not None
    random, n = np.random.default_rng(1), plan.labels
    first_only, second_only, _ = random.multinomial(n, (0.25, 0.10, 0.65), 20_000).T
    found = np.abs(first_only - second_only) > NormalDist().inv_cdf(0.975) * np.sqrt(first_only + second_only)
    assert found.mean() == pytest.approx(plan.power, abs=0.02)
    assert plan.power == pytest.approx(0.8, abs=0.005)


def test_a_judge_that_explains_half_of_the_variance_halves_the_labels() -> None:
    alone, with_judge = plan_power(500, 0.5, 0.35, 0.35), plan_power(500, 0.5, 0.35, 0.35, unexplained=0.5)
    assert with_judge.labels == pytest.approx((alone.labels or 0) / 2, abs=1)


def test_too_few_tasks_give_their_power_and_no_number_of_labels() -> None:
    plan = plan_power(50, 0.5, 0.45, 0.3)
    assert plan == PowerPlan(
        None, pytest.approx(NormalDist().cdf((0.05 * sqrt(50) - 1.96 * sqrt(0.3)) / sqrt(0.2975)), abs=1e-4)
    )
    with pytest.raises(ValueError, match="Equal rates"):
        plan_power(50, 0.5, 0.5, 0.3)
    with pytest.raises(ValueError, match=r"from 0\.200 to 1"):
        plan_power(50, 0.5, 0.3, 0.1)


def test_an_acceptance_rule_needs_two_rates() -> None:
    with pytest.raises(ValueError, match="by a trajectory at least"):
        plan_acceptance(10, 0.5, 0.5)
    # Three trajectories, none or all successes: one label tells.
    plan = plan_acceptance(3, 0.0, 1.0)
    assert (plan.labels, plan.accept_from, plan.error, plan.power) == (1, 1, 0, 1)


def test_checks_by_hand() -> None:
    # More than 10% of 10 wrong is 2 or more: after 6 both are among the other 4 with C(4, 2) / C(10, 2) = 6 / 45,
    # after 7 with 3 / 45, after 8 with 1 / 45, the first below 5%.
    assert plan_checks(10, 0.1) == 8
    assert plan_checks(10, 0.1, probability=0.93) == 7
    with pytest.raises(ValueError, match="Enter cases"):
        plan_checks(10, 1.0)
