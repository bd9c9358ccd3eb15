"""Intervals that draw tasks hold what they claim where agents share tasks, and change nothing where they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.statistics import (
    Confusion,
    Measure,
    Tally,
    bootstrap,
    by_cluster,
    clusters_of,
    fleiss_kappa,
    gwet_ac1,
    intervals,
    kappa_with_interval,
    krippendorff_alpha,
    paired_difference,
    ranking_by_task,
    raw_agreement,
    wilson,
    with_interval,
)
from evaluations.tests.counted import confusion_by_task, confusion_of, tally_of_table

COEFFICIENTS = (raw_agreement, krippendorff_alpha, fleiss_kappa, gwet_ac1)
MEASURES = (
    "agreement",
    "precision",
    "recall",
    "f1",
    "specificity",
    "npv",
    "false_positive_rate",
    "kappa",
    "success_rate_gap",
    "success_rate_human",
    "success_rate_judge",
)
TASKS, AGENTS, RUNS = 60, 5, 250


def held(true: float, made: Callable[[np.random.Generator], tuple[Measure, Measure]]) -> tuple[float, float]:
    """How many of the plain intervals, and how many of those over tasks, hold the true value."""
    random, plain, tasks = np.random.default_rng(19), 0, 0
    for _ in range(RUNS):
        first, second = made(random)
        plain += first.low <= true <= first.high
        tasks += second.low <= true <= second.high
    return plain / RUNS, tasks / RUNS


def test_of_tasks_that_are_easy_or_hard_for_every_agent_only_the_interval_over_tasks_holds_the_rate():
    def made(random: np.random.Generator) -> tuple[Measure, Measure]:
        hits = random.binomial(AGENTS, random.beta(0.6, 0.4, TASKS))
        total = int(hits.sum())
        tasks = np.stack([hits, AGENTS - hits], axis=1)
        return wilson(total, TASKS * AGENTS), wilson(total, TASKS * AGENTS, tasks)

    plain, tasks = held(0.6, made)
    assert plain < 0.85
    assert 0.91 <= tasks <= 0.98


def test_of_tasks_that_are_clear_or_not_for_every_agent_only_the_interval_over_tasks_holds_alpha():
    # Half of the tasks are clear, and all three raters see the truth; on the others they guess among three labels.
    # D_o = 1/2 * 2/3 and D_e = 2/3, so alpha = 1/2.
    def made(random: np.random.Generator) -> tuple[Measure, Measure]:
        clear = (random.random(TASKS) < 0.5).repeat(AGENTS)[:, np.newaxis]
        truth, guessed = random.integers(0, 3, (TASKS * AGENTS, 1)), random.integers(0, 3, (TASKS * AGENTS, 3))
        labels = np.where(clear, truth, guessed).tolist()
        tally = Tally.of_labels(labels)
        clusters = tally.clusters((item // AGENTS, given) for item, given in enumerate(labels))
        return (
            with_interval(tally, krippendorff_alpha, resamples=400),
            with_interval(tally, krippendorff_alpha, clusters, resamples=400),
        )

    plain, tasks = held(0.5, made)
    assert plain < 0.85
    assert 0.91 <= tasks <= 0.98


def test_of_a_judge_that_is_too_kind_to_some_tasks_only_the_interval_over_tasks_holds_the_gap():
    # 3 of 10 tasks are called a success whatever an agent did, 1 of 10 a failure, others are judged as they are. Half
    # of all cases are a success: the gap is (.3 - .1) / 2.
    def made(random: np.random.Generator) -> tuple[Measure, Measure]:
        kind = random.choice(3, TASKS, p=(0.3, 0.1, 0.6)).repeat(AGENTS)
        easy = random.random(TASKS).repeat(AGENTS)
        truth = random.random(TASKS * AGENTS) < easy
        said = np.where(kind == 2, truth, kind == 0)
        task = np.arange(TASKS * AGENTS) // AGENTS
        found = confusion_by_task(zip(task.tolist(), truth.tolist(), said.tolist(), strict=True))
        return replace(found, clusters=None).success_rate_gap, found.success_rate_gap

    plain, tasks = held(0.1, made)
    assert plain < 0.88
    assert 0.91 <= tasks <= 0.98


def test_drawing_kinds_of_tasks_is_drawing_tasks():
    """Against tasks drawn one by one, the coefficient of each resample by itself."""
    random, resamples = np.random.default_rng(3), 1500
    truth = random.integers(0, 3, (40, 1, 1)).repeat(4, axis=1)
    labels = np.where(random.random((40, 4, 3)) < 0.7, truth, random.integers(0, 3, (40, 4, 3)))
    tally = tally_of_table(labels.reshape(-1, 3))
    clusters = tally.clusters((task, given) for task, items in enumerate(labels.tolist()) for given in items)
    plain = [
        krippendorff_alpha(tally_of_table(labels[random.integers(0, 40, 40)].reshape(-1, 3))).value
        for _ in range(resamples)
    ]
    found = by_cluster(
        krippendorff_alpha(tally),
        clusters,
        lambda times: krippendorff_alpha.values(tally.patterns, times),
        resamples=8000,
    )
    # 4.4 standard errors of a 2.5% quantile: see the plain bootstrap's test.
    error = 0.3 * np.std(plain)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(plain, (0.025, 0.975))), abs=error)


def test_tasks_are_drawn_the_same_one_by_one_and_by_kind(monkeypatch):
    random = np.random.default_rng(12)
    clusters = random.integers(1, 4, (60, 3))
    found = Measure(0.5, int(clusters.sum()))

    def drawn() -> list[np.ndarray]:
        intervals._tasks_drawn.cache_clear()
        seen: list[np.ndarray] = []
        by_cluster(found, clusters, lambda cells: seen.append(cells) or cells[:, 0], resamples=20_000)
        return seen[0]

    monkeypatch.setattr(intervals, "FEW_ALIKE", 0)
    by_kind = drawn()
    monkeypatch.setattr(intervals, "FEW_ALIKE", 1000)
    one_by_one = drawn()
    # Means and covariances of the counts are those of 60 draws of a row; 20,000 resamples tell them to about 1%.
    covariance = np.cov(clusters.T, bias=True) * 60
    for each in (by_kind, one_by_one):
        assert each.mean(axis=0) == pytest.approx(clusters.sum(axis=0), rel=0.01)
        assert np.cov(each.T) == pytest.approx(covariance, abs=0.04 * covariance.max())


def test_drawing_tasks_that_have_one_case_each_is_drawing_cases():
    times = np.array([30, 12, 5, 9])
    one_each = np.eye(4, dtype=int).repeat(times, axis=0)

    def ratio(drawn: np.ndarray) -> np.ndarray:
        return drawn[:, 0] / (drawn[:, 0] + drawn[:, 1])

    found = Measure(30 / 42, 42)
    cases = bootstrap(found, times, ratio, resamples=8000, seed=1)
    tasks = by_cluster(found, one_each, ratio, resamples=8000, seed=2)
    assert tasks.value == cases.value
    assert (tasks.low, tasks.high) == pytest.approx((cases.low, cases.high), abs=0.01)


def test_tasks_that_have_one_case_each_change_nothing():
    labels = [(0, 0, 1), (1, 1, 1), (2, 0, 2), (1, 1, 0), (0, 0, 0)] * 4
    tally = Tally.of_labels(labels)
    one_each = tally.clusters(enumerate(labels))
    for coefficient in COEFFICIENTS:
        assert with_interval(tally, coefficient, one_each) == with_interval(tally, coefficient)
    assert wilson(3, 5, [[1, 0]] * 3 + [[0, 1]] * 2) == wilson(3, 5)
    cells = np.eye(4, dtype=int).repeat((5, 2, 3, 6), axis=0)
    assert paired_difference(5, 2, 3, 6, clusters=cells) == paired_difference(5, 2, 3, 6)
    assert kappa_with_interval([[5, 2], [3, 6]], cells) == kappa_with_interval([[5, 2], [3, 6]])
    truth, said = [True, True, False, False, True], [True, False, True, False, True]
    assert confusion_by_task(zip("abcde", truth, said, strict=True)) == confusion_of(truth, said)


def test_the_interval_does_not_depend_on_the_order_of_tasks_nor_on_memory(monkeypatch):
    random = np.random.default_rng(8)
    cases = [(task, bool(random.random() < 0.5), bool(random.random() < 0.6)) for task in range(50) for _ in range(4)]
    found = confusion_by_task(cases)
    renamed = confusion_by_task((f"task {99 - task}", truth, said) for task, truth, said in reversed(cases))
    assert renamed == found
    assert hash(renamed) == hash(found)
    once = {name: getattr(found, name) for name in MEASURES}
    shuffled = replace(found, clusters=tuple(reversed(found.clusters)))
    assert {name: getattr(shuffled, name) for name in MEASURES} == once
    intervals._tasks_drawn.cache_clear()
    monkeypatch.setattr(intervals, "SHARED", 0)
    monkeypatch.setattr(intervals, "CHUNK", 100)
    assert {name: getattr(found, name) for name in MEASURES} == once
    assert by_cluster(once["f1"], found.clusters, lambda cells: cells[:, 0], seed=1) != by_cluster(
        once["f1"], found.clusters, lambda cells: cells[:, 0], seed=2
    )


def test_values_are_the_same_over_tasks_and_every_interval_is_another():
    random = np.random.default_rng(4)
    cases = [
        (task, bool(random.random() < easy), bool(random.random() < 0.2 + 0.6 * easy))
        for task, easy in enumerate(random.beta(0.5, 0.5, 80))
        for _ in range(5)
    ]
    tasks = confusion_by_task(cases)
    plain = replace(tasks, clusters=None)
    assert plain == confusion_of([truth for _, truth, _ in cases], [said for _, _, said in cases])
    for name in MEASURES:
        first, second = getattr(plain, name), getattr(tasks, name)
        assert (first.value, first.n, first.hits) == (second.value, second.n, second.hits), name
        assert second.low < second.value < second.high, name
        assert (first.low, first.high) != (second.low, second.high), name


def test_the_two_success_rates_of_a_confusion_by_hand():
    found = Confusion(tp=6, fp=2, tn=9, fn=3)
    assert found.success_rate_human == wilson(9, 20)
    assert found.success_rate_judge == wilson(8, 20)
    assert Confusion(0, 0, 0, 0).success_rate_human.undefined == "no cases"


def test_clusters_count_the_cases_of_each_task_by_hand():
    assert clusters_of([("b", 1), ("a", 0), ("b", 1), ("b", 0)], 3).tolist() == [[1, 2, 0], [1, 0, 0]]
    assert clusters_of([], 3).tolist() == []
    tally = Tally.of_labels([(0, 0), (0, 1), (1, 0), (2, 2)])
    assert tally.patterns.tolist() == [[2, 0, 0], [1, 1, 0], [0, 0, 2]]
    items = [("a", (0, 1)), ("b", (2, 2)), ("a", (1, 0)), ("b", ()), ("a", (0, 0))]
    assert tally.clusters(items).tolist() == [[1, 2, 0], [0, 0, 1]]
    cases = [("a", True, True), ("a", False, True), ("b", False, False), ("b", True, False), ("b", True, False)]
    assert confusion_by_task(cases) == Confusion(1, 1, 1, 2, clusters=((0, 0, 1, 2), (1, 1, 0, 0)))
    assert confusion_by_task([]) == Confusion(0, 0, 0, 0)


def test_clusters_that_are_not_the_same_cases_are_refused():
    with pytest.raises(ValueError, match="not the cases altogether"):
        Confusion(2, 1, 0, 0, clusters=((1, 0, 0, 0), (0, 1, 0, 0)))
    with pytest.raises(ValueError, match="not the cases altogether"):
        Confusion(1, 1, 0, 0, clusters=((2, 1, 0, 0), (-1, 0, 0, 0)))
    with pytest.raises(ValueError, match="not the cases altogether"):
        wilson(2, 4, [[2, 1]])
    with pytest.raises(ValueError, match="No item of the tally"):
        Tally.of_labels([(0, 0)]).clusters([("a", (0, 1))])
    for kind in (3, -1):
        with pytest.raises(ValueError, match="none of the kinds 0 to 2"):
            clusters_of([("a", kind)], 3)
    for clusters in ([1, 2], [[1, -1]]):
        with pytest.raises(ValueError, match="a row for each task"):
            by_cluster(Measure(0.5, 2), clusters, lambda cells: cells[:, 0])


def test_a_rate_of_all_or_none_is_as_sure_as_one_case_for_each_task():
    # Drawing tasks shows no spread. Cases of one task could only be alike, so 12 cases of 4 tasks may be worth 4.
    found, four = wilson(12, 12, [[3, 0]] * 4), wilson(4, 4)
    assert (found.value, found.n, found.hits) == (1.0, 12, 12)
    assert (found.low, found.high) == (four.low, 1.0)
    judged = Confusion(tp=12, fp=0, tn=3, fn=0, clusters=((3, 0, 0, 0),) * 4 + ((0, 0, 3, 0),))
    assert judged.recall == found
    assert (judged.false_positive_rate.low, judged.false_positive_rate.high) == (0.0, wilson(0, 1).high)
    found, three = wilson(0, 7, [[0, 3], [0, 3], [0, 1], [0, 0]]), wilson(0, 3)  # a task without a case says nothing
    assert (found.low, found.high) == (0.0, three.high)


def test_a_task_without_a_case_is_not_drawn():
    random = np.random.default_rng(6)
    clusters = [tuple(row) for row in random.integers(0, 4, (30, 4)).tolist()]
    found = Confusion(*map(sum, zip(*clusters, strict=True)), tuple(clusters))
    more = replace(found, clusters=(*clusters, *[(0, 0, 0, 0)] * 50))
    for name in MEASURES:
        assert getattr(more, name) == getattr(found, name), name


def test_one_task_has_no_interval_and_neither_have_tasks_that_are_all_alike():
    found = wilson(3, 5, [[3, 2]])
    assert (found.value, found.low, found.high) == (0.6, None, None)
    found = Confusion(6, 2, 4, 4, clusters=((3, 1, 2, 2),) * 2)
    for name in MEASURES:
        assert (getattr(found, name).low, getattr(found, name).high) == (None, None), name


def test_an_interval_over_tasks_needs_enough_tasks_that_carry_the_figure():
    # Only one task of 20 has successes: in (19/20)^20 = 36% of the resamples there is no F1.
    few = Confusion(2, 1, 57, 0, clusters=((2, 1, 0, 0), *[(0, 0, 3, 0)] * 19))
    assert few.f1.value == pytest.approx(4 / 5)
    assert few.f1.low is None


cells = st.lists(st.tuples(*[st.integers(0, 3)] * 4), max_size=8)


@settings(max_examples=80, deadline=None)
@given(cells)
def test_no_nan_ever_leaves_a_confusion_by_task(clusters):
    found = Confusion(*(sum(column) for column in zip(*clusters, strict=True)) if clusters else (0,) * 4, clusters)
    for name in MEASURES:
        assert is_clean(measure := getattr(found, name)), name
        assert (measure.value, measure.undefined) == (
            (plain := getattr(replace(found, clusters=None), name)).value,
            plain.undefined,
        )
        least = -1 if name in ("kappa", "success_rate_gap") else 0
        assert measure.low is None or least <= measure.low <= measure.high <= 1, name


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 2), max_size=4)), max_size=12))
def test_no_nan_ever_leaves_a_coefficient_by_task(items):
    tally = Tally.of_labels(labels for _, labels in items)
    clusters = tally.clusters(items)
    assert clusters.sum(axis=0).tolist() == tally.times.tolist()
    for coefficient in COEFFICIENTS:
        found = with_interval(tally, coefficient, clusters, resamples=50)
        assert is_clean(found)
        assert (found.value, found.undefined) == (coefficient(tally).value, coefficient(tally).undefined)


def is_clean(measure: Measure) -> bool:
    numbers = [number for number in (measure.value, measure.low, measure.high) if number is not None]
    return all(map(isfinite, numbers)) and (measure.low is None) == (measure.high is None)


def test_ranking_of_two_items_has_no_interval_of_zero_width():
    # The first item is better on all 41 tasks, and by the other ranking on 28: few resamples give -1, and 97.5% give 1.
    found = ranking_by_task([[1, 0]] * 41, [[1, 0]] * 28 + [[0, 1]] * 13, [[1, 1]] * 41)
    assert (found.value, found.n) == (1.0, 2)
    assert (found.low, found.high) == (None, None)
