"""Intervals that were drawn with NumPy, checked by draws of one's own."""

from __future__ import annotations

from math import comb
from random import Random

import pytest

from evaluations import statistics
from evaluations.statistics import Confusion, Tally
from evaluations.verifier import numbers
from evaluations.verifier.numbers import NOWHERE, RARE, Ends, Resamples, is_within, possible_ends, ranks

FORMULAS = (
    (statistics.raw_agreement, numbers.raw_agreement),
    (statistics.krippendorff_alpha, numbers.krippendorff_alpha),
    (statistics.fleiss_kappa, numbers.fleiss_kappa),
    (statistics.gwet_ac1, numbers.gwet_ac1),
    (statistics.alpha_of_label(2), lambda patterns: numbers.alpha_of_one_label(patterns, 2)),
)


def fits(ends: Ends, low: float | None, high: float | None) -> bool:
    if low is None or high is None:
        return not ends.needed
    return ends.allowed and is_within(low, ends.low) and is_within(high, ends.high)


def statistic(formula, patterns):
    return lambda times: formula(dict(zip(patterns, times, strict=True)))


def labelled(seed: int, items: int, careful: float) -> list[tuple[int, ...]]:
    """Three labels of each item, its true verdict with this probability each."""
    random = Random(seed)
    found = []
    for _ in range(items):
        truth = random.choices((0, 1, 2), (5, 5, 0.5))[0]
        found.append(tuple(truth if random.random() < careful else random.randrange(3) for _ in range(3)))
    return found


def test_the_bounds_leave_out_what_is_rare_on_either_side():
    own, theirs, place = 12, 9, 3
    chance = [comb(k + place - 1, k) * comb(own - k + theirs - place, own - k) / comb(own + theirs, own)
              for k in range(own + 1)]  # fmt: skip
    assert sum(chance) == pytest.approx(1)
    for rare in (0.01, 0.1, 0.2):
        least, most = ranks(own, theirs, place, rare)
        assert sum(chance[:least]) <= rare < sum(chance[: least + 1])
        assert sum(chance[most + 1 :]) <= rare < sum(chance[most:])


@pytest.mark.slow
@pytest.mark.parametrize("items", [3, 8, 30, 300])
def test_every_honest_interval_of_agreement_is_taken(items):
    for seed in range(8):
        given = labelled(seed, items, careful=(0.5, 0.8, 0.95, 1.0)[seed % 4])
        tally, patterns = Tally.of_labels(given), numbers.patterns_of(given)
        draws = Resamples(list(patterns.values()))
        for theirs, ours in FORMULAS:
            resamples = 1000 * (1 + seed % 2)
            found = statistics.with_interval(tally, theirs, resamples=resamples, seed=seed)
            if found.value is not None:
                ends = draws.ends(statistic(ours, patterns), resamples)
                assert fits(ends, found.low, found.high), (seed, items, found, ends)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 30, 400])
def test_every_honest_interval_of_a_judge_is_taken(size):
    for seed in range(16):
        random = Random(seed)
        cells = [random.randrange(1 + size // (1 + (seed + place) % 4)) for place in range(4)]
        found = Confusion(*cells)
        draws = Resamples(cells)
        for measure, formula in ((found.f1, numbers.f1_score), (found.kappa, numbers.kappa_of_cells)):
            if measure.value is not None:
                ends = draws.ends(lambda times, formula=formula: formula(*times), 2000)
                assert fits(ends, measure.low, measure.high), (cells, measure, ends)


@pytest.mark.parametrize(("low", "high"), [(0.2, 0), (-0.2, 0), (0, 0.2), (0, -0.2)])
def test_an_interval_that_was_moved_by_a_fifth_of_its_width_is_not(low, high):
    given = labelled(7, 200, careful=0.8)
    patterns = numbers.patterns_of(given)
    found = statistics.with_interval(Tally.of_labels(given), statistics.krippendorff_alpha)
    draws = Resamples(list(patterns.values()))
    ends = draws.ends(statistic(numbers.krippendorff_alpha, patterns), 2000)
    width = found.high - found.low
    assert fits(ends, found.low, found.high)
    assert not fits(ends, found.low + low * width, found.high + high * width)


def test_an_interval_that_must_be_there_cannot_be_left_out():
    patterns = numbers.patterns_of(labelled(7, 200, careful=0.8))
    ends = Resamples(list(patterns.values())).ends(statistic(numbers.krippendorff_alpha, patterns), 2000)
    assert ends.needed


def test_there_is_no_interval_where_all_draws_give_the_same_or_too_many_give_nothing():
    assert possible_ends([1.0] * 2000, 2000, 2000) == NOWHERE
    assert possible_ends([number / 1800 for number in range(1800)], 2000, 2000) == NOWHERE
    assert Resamples([]).ends(lambda times: 1.0, 2000) == NOWHERE


def test_close_to_the_most_that_may_be_undefined_both_are_taken():
    ends = possible_ends([number / 1980 for number in range(1980)], 2000, 2000)
    assert ends.allowed
    assert not ends.needed
    assert RARE < 1e-6
