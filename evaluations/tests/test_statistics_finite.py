"""Hits left among cases that were not drawn: coverage by enumeration, never by simulation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement, product
from math import comb, prod

import pytest
from scipy.stats import binom

from evaluations.statistics import Sample, hits_left
from evaluations.verifier.numbers import hits_left as verified

Bounds = tuple[float, float, float]
Part = tuple[int, int, int]  # left, hits, checked
Formula = Callable[[Sequence[Part]], Bounds]


def by_product(parts: Sequence[Part]) -> Bounds:
    found = hits_left([Sample(*part) for part in parts])
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return found.value, found.low, found.high


FORMULAS = pytest.mark.parametrize("formula", [by_product, verified], ids=["product", "verifier"])


@cache
def chance(hits: int, population: int, true: int, drawn: int) -> float:
    return comb(true, hits) * comb(population - true, drawn - hits) / comb(population, drawn)


def possible(population: int, true: int, drawn: int) -> range:
    """How many hits a draw can have."""
    return range(max(0, drawn - population + true), min(drawn, true) + 1)


def coverages(formula: Formula, draws: Sequence[tuple[int, int]]) -> Iterator[float]:
    """For all true numbers of hits in the populations: how often the interval holds the number that is left."""
    parts = {
        hits: formula([(size - n, k, n) for (size, n), k in zip(draws, hits, strict=True)])
        for hits in product(*(range(n + 1) for _, n in draws))
    }
    for true in product(*(range(size + 1) for size, _ in draws)):
        held = 0.0
        for hits in product(*(possible(size, k, n) for (size, n), k in zip(draws, true, strict=True))):
            _, low, high = parts[hits]
            if low <= sum(true) - sum(hits) <= high:
                drawn = zip(draws, true, hits, strict=True)
                held += prod(chance(found, size, k, n) for (size, n), k, found in drawn)
        yield held


@FORMULAS
def test_interval_holds_every_true_number_at_every_rate(formula: Formula) -> None:
    draws = [(size, n) for size in range(1, 26) for n in range(1, size + 1)]
    assert min(min(coverages(formula, [draw])) for draw in draws) >= 0.95


@FORMULAS
@pytest.mark.parametrize("drawn", [10, 50, 80, 99])
def test_interval_of_a_hundred_holds_every_true_number(formula: Formula, drawn: int) -> None:
    assert min(coverages(formula, [(100, drawn)])) >= 0.95


def test_interval_of_two_draws_holds_every_true_number() -> None:
    draws = [(size, n) for size in range(2, 9) for n in range(1, size)]
    assert min(min(coverages(by_product, pair)) for pair in combinations_with_replacement(draws, 2)) >= 0.95


def test_interval_has_the_numbers_that_neither_tail_excludes() -> None:
    for size, n in ((12, 3), (20, 16), (31, 10)):
        for k in range(n + 1):
            held = []
            for left in range(size - n + 1):
                can = possible(size, k + left, n)
                below = sum(chance(x, size, k + left, n) for x in can if x <= k)
                above = sum(chance(x, size, k + left, n) for x in can if x >= k)
                if min(below, above) > 0.025 * (1 - 1e-9):
                    held.append(left)
            value = (size - n) * k / n
            assert by_product([(size - n, k, n)]) == pytest.approx((value, min(held[0], value), max(held[-1], value)))


@FORMULAS
def test_interval_by_hand(formula: Formula) -> None:
    # One of four drawn, and it is no hit. With r hits among the other three P(X = 0) = (4 - r) / 4 > 0.025 for all.
    assert formula([(3, 0, 1)]) == (0, 0, 3)
    # Eight of ten drawn, none a hit: with both others hits P(X = 0) = C(8, 8) / C(10, 8) = 1 / 45 < 0.025.
    assert formula([(2, 0, 8)]) == (0, 0, 1)
    # A tail of exactly 2.5% is not excluded: of 40 one was drawn, a hit; with no other, P(X >= 1) = 1 / 40.
    assert formula([(39, 1, 1)]) == (39, 0, 39)
    # Everything was drawn: none is left.
    assert formula([(0, 3, 9)]) == (0, 0, 0)


@FORMULAS
def test_draws_of_everything_change_nothing(formula: Formula) -> None:
    assert formula([(90, 1, 10), (0, 5, 10)])[1:] == formula([(90, 1, 10)])[1:]


def test_product_and_verifier_agree() -> None:
    parts = [(17, 2, 9), (250, 3, 31), (4, 4, 4), (60, 0, 240), (3000, 30, 300), (1, 0, 1)]
    for several in [*([part] for part in parts), parts, parts[:3], parts[3:], [parts[1]] * 40]:
        assert by_product(several) == pytest.approx(verified(several), rel=1e-12)


@FORMULAS
def test_interval_of_very_many_draws_takes_seconds(formula: Formula) -> None:
    began = time.process_time()
    # One of two cases was drawn, and is no hit: the other one is at most a coin toss, and their sum binomial.
    draws = 10_000
    assert formula([(1, 0, 1)] * draws) == (0, 0, binom.ppf(0.975, draws, 0.5))
    assert time.process_time() - began < 20  # about two; one draw after the other takes more than a minute


@pytest.mark.parametrize("sample", [(3, 2, 1), (3, 0, 0), (-1, 0, 1), (3, -1, 1)])
def test_impossible_sample_is_refused(sample: Part) -> None:
    with pytest.raises(ValueError, match="is no sample"):
        Sample(*sample)


def test_no_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="There is no sample"):
        hits_left([])
