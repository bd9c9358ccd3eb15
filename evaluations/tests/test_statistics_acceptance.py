"""The rule that accepts, queries or rejects a claimed rate: its error rates, exact and simulated, and its intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from evaluations.statistics import acceptance
from evaluations.statistics.acceptance import Acceptance, Audited, Decision, share_out

ACCEPT, QUERY, REJECT, CONTINUE = Decision.ACCEPT, Decision.QUERY, Decision.REJECT, Decision.CONTINUE
SUCCESSES, OTHERS, SIZE = 36, 24, 40
TOLERANCE = 0.2  # of 60 runs: 12
Chance = Callable[[Audited], float]


@pytest.fixture(scope="module")
def decide() -> Callable[[Audited], Decision]:
    return cache(Acceptance(SUCCESSES, OTHERS, TOLERANCE).decide)


def probabilities(
    decide: Callable[[Audited], Decision], refuted: Chance, missed: Chance, ever: Decision
) -> dict[Decision, float]:
    """The exact probability that ``ever`` is the decision at any of the looks, after each of `SIZE` runs.

    ``refuted`` and ``missed`` are the chances that the next claimed success is none, and that the next other run is a
    success. Every third run is one of the others, as far as they last.
    """
    drawn, _ = share_out(SUCCESSES, OTHERS, SIZE)
    claims = [True, True, False] * SIZE
    states, found = {Audited(): 1.0}, defaultdict[Decision, float](float)
    for claim in claims[:SIZE]:
        later: dict[Audited, float] = defaultdict(float)
        for state, weight in states.items():
            chance = refuted(state) if claim else missed(state)
            for wrong, share in ((True, chance), (False, 1 - chance)):
                if share > 0:
                    later[state.add(claim, wrong != claim)] += weight * share
        states = {}
        for state, weight in later.items():
            decision = decide(state)
            if decision is ever:
                found[ever] += weight
            else:
                states[state] = weight
    assert drawn <= SUCCESSES
    return found


def without_replacement(refuted: int, missed: int) -> tuple[Chance, Chance]:
    return (
        lambda seen: (refuted - seen.refuted) / (SUCCESSES - seen.successes),
        lambda seen: (missed - seen.missed) / (OTHERS - seen.others),
    )


@pytest.mark.parametrize("missed", [0, 1, 2, 4, 8, 16, 24])
def test_rate_too_high_by_the_tolerance_is_accepted_in_at_most_5_percent_of_all_looks(
    decide: Callable[[Audited], Decision], missed: int
) -> None:
    found = probabilities(decide, *without_replacement(12 + missed, missed), ACCEPT)
    assert found[ACCEPT] <= 0.05


def test_false_acceptance_is_not_far_below_what_is_allowed(decide: Callable[[Audited], Decision]) -> None:
    """A rule that accepts next to nothing would keep the error rates, too."""
    worst = max(probabilities(decide, *without_replacement(12 + v, v), ACCEPT)[ACCEPT] for v in (0, 1, 2, 4))
    assert worst > 0.005


@pytest.mark.parametrize("differing", [0.02, 0.05, 0.1, 0.15, 0.3, 0.6])
def test_people_who_differ_evenly_are_rejected_in_at_most_5_percent_of_all_looks(
    decide: Callable[[Audited], Decision], differing: float
) -> None:
    each = differing / 2 * (SUCCESSES + OTHERS)
    found = probabilities(decide, lambda _: each / SUCCESSES, lambda _: each / OTHERS, REJECT)
    assert found[REJECT] <= 0.05


def test_decisions_reach_the_right_side(decide: Callable[[Audited], Decision]) -> None:
    honest = probabilities(decide, *without_replacement(2, 2), ACCEPT)
    too_high = probabilities(decide, *without_replacement(24, 1), REJECT)
    assert honest[ACCEPT] > 0.9
    assert too_high[REJECT] > 0.9


def test_ratio_of_the_truth_has_mean_1_after_any_number_of_runs() -> None:
    """The definition of a martingale that starts at 1, which Ville's inequality needs: sum over labels of L Q / L."""
    rule, size = Acceptance(6, 4, 0.2), 5
    total, shares = 0.0, 0.0
    for labels in np.ndindex(*(2,) * size):
        seen = Audited()
        for claim, wrong in zip([True, False, True, True, False], labels, strict=True):
            seen = seen.add(claim, bool(wrong) != claim)
        total += float(np.exp(rule._log_mixture(seen, rule._honest)))
        refuted, missed = rule._log_likelihoods(seen)
        shares += float(np.exp(refuted[3] + missed[1]))
    assert total == pytest.approx(1)
    assert shares == pytest.approx(1)


def test_ratio_by_hand() -> None:
    """Two of two claimed successes are right, one of one other is: 10 runs, claims 6, and the tolerance is 2 runs.

    L(U, V) = (6 - U)(5 - U) / 30 * (4 - V) / 4 is largest for U = 2, V = 0: 12 / 30 = 0.4. Each share of `HONEST` gives
    (1 - u)^2 (1 - v), with u = 0.25 / 6 and 0.75 / 6, v = 0.25 / 4 and 0.75 / 4; all shares alike give 1/3 * 1/2.
    """
    rule = Acceptance(6, 4, 0.2)
    mixture = 0.95 / 2 * ((1 - 0.25 / 6) ** 2 * (1 - 0.25 / 4) + (1 - 0.75 / 6) ** 2 * (1 - 0.75 / 4)) + 0.05 / 6
    assert np.exp(rule._log_ratio_above(Audited(2, 0, 1, 0), 2)) == pytest.approx(mixture / 0.4)


def test_honest_likelihood_is_the_largest_of_a_fine_grid() -> None:
    rule, seen = Acceptance(36, 24, 0.2), Audited(20, 8, 10, 1)
    u, v = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 1, 2001)[1:-1], np.linspace(0, 1, 2001)[1:-1]))
    allowed = 36 * u <= 24 * v + 1e-9
    logs = 8 * np.log(u) + 12 * np.log(1 - u) + np.log(v) + 9 * np.log(1 - v)
    assert rule._log_honest(seen) == pytest.approx(logs[allowed].max(), abs=1e-4)


def test_intervals_hold_the_difference_at_every_look_and_end_at_it() -> None:
    random, missing, rule = np.random.default_rng(7), 0, Acceptance(24, 16, 0.2)
    truth = (7 - 2) / 40
    for _ in range(200):
        wrong = {True: random.permutation(24) < 7, False: random.permutation(16) < 2}
        places = {claim: iter(each.tolist()) for claim, each in wrong.items()}
        claims = random.permutation(np.repeat([True, False], (24, 16))).tolist()
        labels = [(claim, next(places[claim]) != claim) for claim in claims]
        outcome = rule.follow(labels, 40)
        held = outcome.low <= truth <= outcome.high
        missing += not held
        assert outcome.difference == pytest.approx(truth)
        assert not held or (outcome.low, outcome.high) == pytest.approx((truth, truth))
    assert missing <= 0.1 * 200  # 5% on each side


def test_first_decision_stands_and_looks_are_as_stated() -> None:
    rule = Acceptance(60, 40, 0.1)
    labels = [(True, True)] * 40 + [(True, False)] * 20
    every = rule.follow(labels, 60)
    tens = rule.follow(labels, 60, every=10)
    assert (every.decision, tens.decision) == (ACCEPT, ACCEPT)
    assert every.after is not None
    assert tens.after == (every.after + 9) // 10 * 10
    assert tens.audited == Audited(60, 20, 0, 0)
    assert rule.follow(labels[:19], 60, every=10).audited.runs == 10
    assert rule.follow(labels[:5], 60, every=10).decision is CONTINUE
    assert tens.difference is None  # nothing is known of the others


def test_undecided_sample_ends_in_a_query() -> None:
    rule = Acceptance(60, 40, 0.1)
    labels = [(True, True)] * 7 + [(True, False)] + [(False, False)] * 3
    assert rule.follow(labels, 11).decision is QUERY
    assert rule.follow(labels, 12).decision is CONTINUE


@pytest.mark.parametrize(("successes", "others", "tolerance"), [(0, 10, 0.1), (10, 0, 0.1), (5, 95, 0.1), (50, 50, 0)])
def test_rate_that_cannot_be_too_high_has_no_rule(successes: int, others: int, tolerance: float) -> None:
    with pytest.raises(ValueError, match="claimed rate"):
        Acceptance(successes, others, tolerance)


@pytest.mark.parametrize(
    ("successes", "others", "size", "drawn"),
    [(120, 180, 100, (70, 30)), (240, 60, 100, (80, 20)), (10, 90, 50, (10, 40)), (95, 5, 100, (95, 5))],
)
def test_sample_has_at_least_7_in_10_claimed_successes(
    successes: int, others: int, size: int, drawn: tuple[int, int]
) -> None:
    assert share_out(successes, others, size) == drawn


def test_limit_is_that_of_5_percent() -> None:
    assert np.exp(acceptance.LIMIT) == pytest.approx(20)
