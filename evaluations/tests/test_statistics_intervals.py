"""Bootstrap intervals: the same for the same seed, as a plain bootstrap over items gives, and as wide as they claim."""

from __future__ import annotations

import numpy as np
import pytest

from evaluations.statistics import (
    Confusion,
    Measure,
    Tally,
    alpha_of_label,
    bootstrap,
    fleiss_kappa,
    gwet_ac1,
    intervals,
    kappa_with_interval,
    krippendorff_alpha,
    paired_difference,
    raw_agreement,
    wilson,
    with_interval,
)
from evaluations.tests.counted import tally_of_table

SKILL = np.array([0.9, 0.75, 0.6])
SHARES = np.array([0.5, 0.35, 0.15])


def labels(random: np.random.Generator, items: int) -> np.ndarray:
    """Three raters who know the true label with probability `SKILL` and guess it otherwise."""
    truth = random.choice(3, (items, 1), p=SHARES)
    knows = random.random((items, 3)) < SKILL
    return np.where(knows, truth, random.integers(0, 3, (items, 3)))


@pytest.fixture
def table() -> np.ndarray:
    random = np.random.default_rng(7)
    given = labels(random, 60)
    return np.where(random.random(given.shape) < 0.15, -1, given)


def test_the_same_seed_gives_the_same_interval_and_another_seed_a_close_one(table):
    tally = tally_of_table(table)
    first = with_interval(tally, krippendorff_alpha, seed=3)
    intervals._shared.cache_clear()
    assert with_interval(tally_of_table(table), krippendorff_alpha, seed=3) == first
    other = with_interval(tally, krippendorff_alpha, seed=4)
    assert other != first
    assert (other.low, other.high) == pytest.approx((first.low, first.high), abs=0.05)
    assert first.low < first.value < first.high


def test_the_interval_does_not_depend_on_how_much_is_held_in_memory(table, monkeypatch):
    tally = tally_of_table(table)
    at_once = with_interval(tally, gwet_ac1, resamples=333)
    monkeypatch.setattr(intervals, "SHARED", 0)
    assert with_interval(tally, gwet_ac1, resamples=333) == at_once
    monkeypatch.setattr(intervals, "CHUNK", 100 * len(tally.times))
    assert with_interval(tally, gwet_ac1, resamples=333) == at_once
    monkeypatch.setattr(intervals, "CHUNK", 1)
    assert with_interval(tally, gwet_ac1, resamples=333) == at_once


@pytest.mark.parametrize(
    "coefficient",
    [raw_agreement, krippendorff_alpha, fleiss_kappa, gwet_ac1, alpha_of_label(2)],
    ids=("raw agreement", "alpha", "Fleiss kappa", "AC1", "alpha of 2"),
)
def test_drawing_patterns_is_drawing_items(table, coefficient):
    """Against the plain bootstrap: items drawn one by one, and the coefficient of each resample by itself."""
    table = table[(table >= 0).any(axis=1)]
    random, resamples = np.random.default_rng(11), 1500
    plain = []
    for _ in range(resamples):
        value = coefficient(tally_of_table(table[random.integers(0, len(table), len(table))])).value
        if value is not None:
            plain.append(value)
    found = with_interval(tally_of_table(table), coefficient, resamples=8000)
    # The standard error of a 2.5% quantile is sqrt(0.025 * 0.975 / r) / density = 2.67 sd / sqrt(r): 4.4 of them.
    error = 0.3 * np.std(plain)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(plain, (0.025, 0.975))), abs=error)


def test_nineteen_of_twenty_intervals_hold_the_true_alpha():
    # Raters with skills a and b say the same if both know, or with probability 1/3 if at least one of them guesses.
    # D_o is one minus the mean of that over pairs of raters, D_e = 1 - sum p_c^2 with the mean share p_c of a label.
    equal = [
        a * b + (a * (1 - b) + b * (1 - a) + (1 - a) * (1 - b)) / 3
        for a, b in ((SKILL[0], SKILL[1]), (SKILL[0], SKILL[2]), (SKILL[1], SKILL[2]))
    ]
    given = SKILL.mean() * SHARES + (1 - SKILL.mean()) / 3
    true = 1 - (1 - np.mean(equal)) / (1 - (given**2).sum())
    random, held = np.random.default_rng(2), 0
    for _ in range(400):
        found = with_interval(tally_of_table(labels(random, 120)), krippendorff_alpha, resamples=400)
        held += found.low <= true <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_the_interval_of_raw_agreement_of_two_is_close_to_wilsons():
    tally = Tally.of_labels([(0, 0)] * 700 + [(0, 1)] * 300)
    found, expected = with_interval(tally, raw_agreement, resamples=5000), wilson(700, 1000)
    assert (found.value, found.low, found.high) == pytest.approx((0.7, expected.low, expected.high), abs=0.004)


def test_an_interval_that_would_claim_certainty_is_not_given():
    for items in ([(0, 0), (1, 1), (0, 0)], [(0, 1, 2)] * 5, [(0, 1)]):
        found = with_interval(Tally.of_labels(items), raw_agreement)
        assert (found.low, found.high) == (None, None)
        assert found.value is not None
    assert kappa_with_interval([[4, 0], [0, 4]]) == Measure(1.0, 8)


def test_resamples_where_it_is_undefined_are_left_out():
    # Five items of 20 have another label: (15/20)^20 = 0.3% of the resamples have one label only, and no alpha.
    rare = with_interval(Tally.of_labels([(0, 0)] * 15 + [(0, 1)] * 5), krippendorff_alpha)
    assert rare.low is not None
    assert rare.high < 0.01  # with it, alpha is always a little below 0: an undefined one does not count as 1 or 0


def test_a_rare_class_has_no_interval():
    # One item of 20: (19/20)^20 = 36% of the resamples have no alpha. Four: (16/20)^20 = 1.2%.
    for carrying in (1, 4):
        tally = Tally.of_labels([(0, 0)] * (20 - carrying) + [(0, 1)] * carrying)
        found = with_interval(tally, krippendorff_alpha)
        assert (found.low, found.high) == (None, None)
        assert found.value is not None


def test_there_is_no_interval_where_more_than_one_percent_of_the_resamples_are_undefined():
    found, times = Measure(0.5, 9), np.array([4, 5])

    def undefined(number: int):
        return lambda drawn: np.where(np.arange(len(drawn)) < number, np.nan, drawn[:, 0])

    assert bootstrap(found, times, undefined(11), resamples=1000) == found
    assert bootstrap(found, times, undefined(10), resamples=1000).low is not None
    assert bootstrap(found, times, undefined(100), resamples=100) == found
    assert bootstrap(found, times, undefined(0), resamples=0) == found


@pytest.mark.parametrize("resamples", [2, 39, 400, 2000])
def test_an_interval_has_the_percentiles_of_the_resamples(resamples):
    seen: list[np.ndarray] = []
    found = bootstrap(
        Measure(0.5, 9), np.array([40, 50]), lambda drawn: seen.append(drawn[:, 0]) or drawn[:, 0], resamples=resamples
    )
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(seen[0], (0.025, 0.975))), rel=1e-12)


def test_nothing_undefined_gets_an_interval():
    nothing = with_interval(Tally.of_labels([]), krippendorff_alpha)
    assert nothing == Measure.missing("no labels")
    assert kappa_with_interval([[0, 0], [0, 0]]) == Measure.missing("no cases")


def test_a_kind_without_a_case_is_never_drawn():
    def values(times: np.ndarray) -> np.ndarray:
        assert not times[:, [0, 2, 4]].any()
        assert (times.sum(axis=1) == 700).all()
        return times[:, 1]

    bootstrap(Measure(0.5, 700), np.array([0, 100, 0, 600, 0]), values)


def test_the_interval_of_a_paired_difference_is_close_to_the_textbooks():
    # (b - c) / n -+ 1.96 sqrt(b + c - (b - c)^2 / n) / n = 0.05 -+ 1.96 sqrt(150 - 2.5) / 1000
    found = paired_difference(700, 100, 50, 150)
    half = 1.96 * np.sqrt(150 - 2.5) / 1000
    assert (found.value, found.low, found.high) == pytest.approx((0.05, 0.05 - half, 0.05 + half), abs=0.002)


def test_the_interval_of_kappa_is_close_to_its_large_sample_error():
    # Cohen (1960): the standard error is about sqrt(p_o (1 - p_o) / (n (1 - p_e)^2)) = sqrt(.8 * .2 / (1000 * .25)).
    found = kappa_with_interval([[400, 100], [100, 400]], resamples=5000)
    half = 1.96 * np.sqrt(0.8 * 0.2 / (1000 * 0.25))
    assert (found.value, found.low, found.high) == pytest.approx((0.6, 0.6 - half, 0.6 + half), abs=0.004)


def test_a_rate_that_is_none_is_refused():
    for hits, n in ((-1, 3), (4, 3), (0, -1)):
        with pytest.raises(ValueError, match="no rate"):
            wilson(hits, n)
    assert wilson(0, 0) == Measure(None, 0, hits=0, undefined="no cases")


def test_the_measures_of_a_confusion_have_intervals_from_the_same_four_counts():
    found = Confusion(tp=40, fp=10, tn=35, fn=15)
    # 40 + 15 successes, 40 + 10 called so: 10 - 15 of 100
    assert found.success_rate_gap.value == pytest.approx(-0.05)
    middle, half = -5 / 102, 1.96 * np.sqrt(26 - 25 / 102) / 102  # Agresti and Min's, not of the same draws
    assert (found.success_rate_gap.low, found.success_rate_gap.high) == pytest.approx(
        (middle - half, middle + half), abs=1e-5
    )
    assert found.f1.low < found.f1.value < found.f1.high
    assert found.kappa == kappa_like(found)


def kappa_like(confusion: Confusion) -> Measure:
    """The same table as people x judge, with the interval of the same draws."""
    from evaluations.statistics.coefficients import cohen_kappa, kappa_values

    cells = np.array([confusion.tp, confusion.fp, confusion.tn, confusion.fn])
    table = [[confusion.tp, confusion.fn], [confusion.fp, confusion.tn]]
    return bootstrap(cohen_kappa(table), cells, lambda drawn: kappa_values(drawn[:, [0, 3, 1, 2]]))
