"""The rate from few labels: people alone, combined with a judge, and the judge only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.statistics import wilson
from evaluations.statistics.estimates import (
    ACTIVE,
    ALL_LABELLED,
    NO_VERDICTS,
    PEOPLE_ALONE,
    PREDICTED,
    SAME_VERDICT,
    STRATIFIED,
    WIDER,
    Case,
    Estimand,
    Estimates,
    difference,
    estimate,
    estimate_groups,
)
from evaluations.statistics.measure import Measure
from evaluations.tests.population import Population, cells

BOTH = pytest.mark.parametrize("estimand", list(Estimand))
some = settings(max_examples=60, deadline=None)


def width(measure: Measure) -> float:
    assert measure.low is not None
    assert measure.high is not None
    return measure.high - measure.low


def agrees(first: Measure, second: Measure) -> bool:
    return (first.value, first.low, first.high) == pytest.approx((second.value, second.low, second.high))


def test_combined_rate_weighs_each_verdict_with_its_share() -> None:
    # 100 trajectories. The judge calls 40 a success: 9 of 10 labelled are; 60 a failure: 3 of 15 labelled are none.
    found = estimate(cells(("", 1.0, 9, 1, 30), ("", 0.0, 3, 12, 45), probability=0.25))
    assert (found.n_labelled, found.n_total, found.method, found.reason) == (25, 100, STRATIFIED, "")
    assert found.combined.value == pytest.approx(0.4 * 9 / 10 + 0.6 * 3 / 15)
    assert found.people.value == pytest.approx(12 / 25)
    assert agrees(found.judge_only, wilson(40, 100))


def test_strata_of_the_plan_count_with_their_own_share_also_without_a_judge() -> None:
    # 20 easy ones, all labelled, 10 succeed; of 80 hard ones 8 are labelled, 2 succeed.
    found = estimate(cells(("easy", None, 10, 10, 0), ("hard", None, 2, 6, 72)))
    assert found.people.value == pytest.approx(0.2 * 10 / 20 + 0.8 * 2 / 8)
    assert (found.method, found.reason) == (PEOPLE_ALONE, NO_VERDICTS)
    assert found.combined == found.people
    assert found.judge_only.value is None


@BOTH
def test_a_good_judge_makes_the_interval_narrower(estimand: Estimand) -> None:
    cases, _ = Population(300, 0.4).draw(60, 1)
    found = estimate(cases, estimand)
    assert found.method == STRATIFIED
    assert width(found.combined) < 0.9 * width(found.people)


def test_the_interval_for_the_agent_is_wider_than_for_its_runs() -> None:
    cases, _ = Population(300, 0.4).draw(100, 2)
    runs, agent = (estimate(cases, estimand) for estimand in Estimand)
    for of in ("people", "combined"):
        assert getattr(runs, of).value == getattr(agent, of).value
        assert width(getattr(runs, of)) < width(getattr(agent, of))
    assert agrees(agent.people, wilson(sum(case.label or 0 for case in cases), 100))


def test_all_labelled_gives_the_exact_rate_of_the_runs_without_width() -> None:
    cases, truth = Population(90, 0.6).draw(90, 3)
    found = estimate(cases)
    for measure in (found.people, found.combined):
        assert (measure.value, measure.low, measure.high) == (pytest.approx(truth),) * 3
    assert (found.method, found.reason) == (PEOPLE_ALONE, ALL_LABELLED)
    assert width(estimate(cases, Estimand.AGENT).people) > 0.1


def test_the_interval_never_holds_a_rate_that_the_labels_exclude() -> None:
    # 9 of 10 labelled, all successes: the rate of the 10 runs is 0.9 or 1.
    found = estimate(cells(("", None, 9, 0, 1)))
    assert (found.people.low, found.people.high) == (0.9, 1)


def test_a_judge_that_tells_nothing_leaves_people_alone() -> None:
    found = estimate(cells(("", 1.0, 10, 0, 90)))
    assert (found.method, found.reason, found.combined) == (PEOPLE_ALONE, SAME_VERDICT, found.people)
    # Half of the trajectories of either verdict succeed; that one stratum has few labels costs precision.
    found = estimate(cells(("", 1.0, 1, 1, 98), ("", 0.0, 49, 49, 2), probability=0.5), Estimand.AGENT)
    assert (found.method, found.reason, found.combined) == (PEOPLE_ALONE, WIDER, found.people)


def test_unscored_trajectories_are_a_stratum_and_no_failures() -> None:
    found = estimate(cells(("", 1.0, 9, 1, 30), ("", 0.0, 0, 10, 30), ("", None, 5, 5, 10)))
    assert found.combined.value == pytest.approx(0.4 * 0.9 + 0.4 * 0 + 0.2 * 0.5)
    assert (found.judge_only.value, found.judge_only.n) == (0.5, 80)


def test_a_verdict_without_labels_joins_the_largest_of_its_stratum() -> None:
    # None of the 5 unscored is labelled: they count as the 55 failures of the judge do, 2 of 20.
    found = estimate(cells(("", 1.0, 9, 1, 30), ("", 0.0, 2, 18, 35), ("", None, 0, 0, 5), probability=0.31))
    assert found.combined.value == pytest.approx((40 * 0.9 + 60 * 0.1) / 100)


def test_a_stratum_without_labels_leaves_the_rate_undefined() -> None:
    found = estimate(cells(("easy", 1.0, 5, 0, 10), ("hard", 0.0, 0, 0, 10), probability=0.5))
    assert found.people.undefined == found.combined.undefined == found.reason == 'no label in stratum "hard"'
    assert found.judge_only.value == 0.6
    assert estimate([]).people.undefined == "no trajectories"


def test_labels_from_outside_of_the_draw_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Stratum 'easy' has 30 labels, but its draw has 25\. Leave out labels"):
        estimate(cells(("easy", 1.0, 20, 10, 70), probability=0.25))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("label", 2, "2 is no label"),
        ("judge", 1.5, "1.5 is no verdict"),
        ("probability", 0.0, "no inclusion probability"),
    ],
)
def test_a_case_with_a_wrong_value_is_refused(field: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(Case("", 1.0, 1, 0.5, "1"), **{field: value})


def with_scores(seed: int, total: int = 300, labels: int = 80) -> list[Case]:
    random = np.random.default_rng(seed)
    cases, _ = Population(total, 0.4, 0.9, 0.9).draw(labels, seed)
    return [replace(case, judge=0.6 * (case.judge or 0) + 0.4 * random.random()) for case in cases]


@BOTH
def test_scores_are_combined_with_ppi(estimand: Estimand) -> None:
    found = estimate(with_scores(4), estimand)
    assert found.method == PREDICTED
    assert width(found.combined) < width(found.people)


def test_unscored_trajectories_get_the_mean_score() -> None:
    cases = with_scores(5)
    scored = [case.judge for case in cases if case.judge is not None]
    hidden = [replace(case, judge=None) if at % 9 == 0 else case for at, case in enumerate(cases)]
    known = [case.judge for case in hidden if case.judge is not None]
    filled = [replace(case, judge=sum(known) / len(known)) if case.judge is None else case for case in hidden]
    assert len(known) < len(scored)
    assert agrees(estimate(hidden).combined, estimate(filled).combined)


def test_unequal_probabilities_inside_a_stratum_weigh_each_label() -> None:
    # Two of 4 likely ones (1/2), one of 10 unlikely ones (1/10). People alone: (2 x 1 + 2 x 0 + 10 x 1) / 14.
    likely = [Case("", 0.9, label, 0.5, f"a{at}") for at, label in enumerate((1, 0, None, None))]
    unlikely = [Case("", 0.1, 1 if not at else None, 0.1, f"b{at}") for at in range(10)]
    found = estimate([*likely, *unlikely])
    assert found.people.value == pytest.approx(12 / 14)
    more = estimate([replace(case, probability=0.3 + 0.4 * (case.judge or 0)) for case in with_scores(6)])
    assert more.method == ACTIVE


@BOTH
@given(seed=st.integers(0, 10_000), labels=st.integers(5, 90), attempts=st.integers(1, 3), scores=st.booleans())
@some
def test_the_order_of_the_cases_does_not_change_a_figure(
    estimand: Estimand, seed: int, labels: int, attempts: int, scores: bool
) -> None:
    cases, _ = Population(90, 0.5, 0.8, 0.8, attempts).draw(labels, seed)
    if scores:
        cases = [replace(case, judge=(case.judge or 0) * 0.5 + at / 200) for at, case in enumerate(cases)]
    shuffled = [cases[at] for at in np.random.default_rng(seed).permutation(len(cases))]
    first, second = estimate(cases, estimand), estimate(shuffled, estimand)
    assert (first.method, first.reason) == (second.method, second.reason)
    assert agrees(first.people, second.people)
    assert agrees(first.combined, second.combined)


@BOTH
@given(seed=st.integers(0, 10_000), labels=st.integers(2, 90), rate=st.floats(0, 1))
@some
def test_intervals_hold_the_value_and_are_never_wider_than_those_of_people(
    estimand: Estimand, seed: int, labels: int, rate: float
) -> None:
    cases, _ = Population(90, rate, 0.8, 0.8).draw(labels, seed)
    found = estimate(cases, estimand)
    for measure in (found.people, found.combined):
        assert measure.value is not None
        assert 0 <= measure.low <= measure.value <= measure.high <= 1  # type: ignore[operator]
    assert width(found.combined) <= width(found.people) + 1e-12


@BOTH
@given(seed=st.integers(0, 10_000), labels=st.integers(4, 60))
@some
def test_failures_in_place_of_successes_mirror_the_interval(estimand: Estimand, seed: int, labels: int) -> None:
    cases, _ = Population(60, 0.3, 0.8, 0.9).draw(labels, seed)
    mirrored = [
        replace(case, label=None if case.label is None else 1 - case.label, judge=1 - (case.judge or 0))
        for case in cases
    ]
    one, other = estimate(cases, estimand).combined, estimate(mirrored, estimand).combined
    assert one.value is not None
    assert (one.value, one.low, one.high) == pytest.approx((1 - other.value, 1 - other.high, 1 - other.low))  # type: ignore[operator]


def test_several_trajectories_of_a_task_widen_the_interval_for_the_agent() -> None:
    # Both trajectories of a task always end alike: they are worth about one.
    cases = [Case("", float(at % 2), at % 2 if at < 30 else None, 0.5, str(at)) for at in range(60)]
    doubled = [replace(case, judge=0.7 * (case.judge or 0) + 0.1 * (at % 3)) for at, case in enumerate(cases * 2)]
    alone = estimate([replace(case, judge=None) for case in cases], Estimand.AGENT).people
    twice = estimate([replace(case, judge=None) for case in doubled], Estimand.AGENT).people
    as_if_independent = wilson(30, 60)
    assert width(twice) > 1.3 * width(as_if_independent)
    assert width(twice) == pytest.approx(width(alone), rel=0.1)
    # The draw of trajectories of a finite population is random whatever their tasks are.
    apart = [replace(case, task=str(at)) for at, case in enumerate(doubled)]
    assert agrees(estimate(doubled).people, estimate(apart).people)


def test_each_group_has_the_estimate_of_its_own_trajectories() -> None:
    cases, _ = Population(200, 0.4).draw(80, 7)
    levels = ["easy" if at % 3 else "hard" for at in range(200)]
    found = estimate_groups(cases, levels)
    assert set(found) == {"easy", "hard"}
    assert found["easy"].n_total + found["hard"].n_total == 200
    hard = [case for case, level in zip(cases, levels, strict=True) if level == "hard"]
    labels = [case.label for case in hard if case.label is not None]
    assert found["hard"].people.value == pytest.approx(sum(labels) / len(labels))


def test_the_difference_of_two_agents_is_that_of_their_combined_rates() -> None:
    (first, _), (second, _) = Population(300, 0.6).draw(80, 8), Population(300, 0.4).draw(80, 9)
    for estimand in Estimand:
        found, a, b = difference(first, second, estimand), *(estimate(each, estimand) for each in (first, second))
        assert found.value == pytest.approx(a.combined.value - b.combined.value)  # type: ignore[operator]
        assert found.low < found.value < found.high  # type: ignore[operator]
        assert width(found) < width(a.combined) + width(b.combined)
        swapped = difference(second, first, estimand)
        assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low))  # type: ignore[operator]


def test_an_agent_hardly_differs_from_itself_on_the_same_draw() -> None:
    # Both errors are the same; only the interval's lack of symmetry is left.
    cases, _ = Population(300, 0.5).draw(60, 10)
    found = difference(cases, cases)
    assert (found.value, found.low, found.high) == pytest.approx((0, 0, 0), abs=0.01)


def test_the_difference_is_undefined_where_a_rate_is() -> None:
    cases, _ = Population(50, 0.5).draw(20, 11)
    assert difference(cases, []).undefined == "no trajectories"


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("attempts", [1, 3])
def test_intervals_hold_the_truth_in_19_of_20_draws(estimand: Estimand, attempts: int) -> None:
    held, draws = 0, 400
    for seed in range(draws):
        cases, truth = Population(200, 0.4, attempts=attempts).draw(50, seed)
        found: Estimates = estimate(cases, estimand)
        expected = truth if estimand is Estimand.RUNS else 0.4
        held += found.combined.low <= expected <= found.combined.high  # type: ignore[operator]
    assert 0.92 <= held / draws <= 0.985  # 0.95 has a standard deviation of 0.011
