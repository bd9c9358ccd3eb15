"""Changes by QA, and what the spot checks say about the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from annotation.models.states import State
from annotation.records import Verdict
from evaluations.agreement import REASONS
from evaluations.statistics import Measure
from evaluations.tests.labelled import case, checked, elsewhere, of, unchecked, undefined


def test_the_spot_check_miss_rate_counts_random_blind_checks_only_and_is_extrapolated() -> None:
    drawn: dict[str, Any] = {"drawn": True, "state": State.ADJUDICATED}
    right = case(1, 1, 1, adjudicated=Verdict.SUCCESS, adjudicated_blind=Verdict.SUCCESS, **drawn)
    missed = case(1, 1, 1, adjudicated=Verdict.FAILURE, adjudicated_blind=Verdict.FAILURE, **drawn)
    flagged = replace(missed, drawn=None, flagged=True)  # chosen by people, not by chance
    seen = replace(missed, adjudicated_blind=None)
    unchecked = case(1, 1, 1, state=State.UNANIMOUS, drawn=False, final=Verdict.SUCCESS)
    qa = of(right, right, right, missed, flagged, seen, *[unchecked] * 50).adjudications
    assert qa is not None
    assert (qa.drawn, qa.missed.hits, qa.missed.n, qa.unchecked) == (5, 1, 4, 50)
    # 4 of 54 drawn. With 1 + 41 missed in all of them P(X <= 1) is 3.1%, with 1 + 42 it is 2.4%; with 1 alone
    # P(X >= 1) is 4 / 54.
    assert bounds(qa.expected_missed) == (12.5, 0, 41)


def bounds(measure: Measure) -> tuple[float | None, float | None, float | None]:
    return measure.value, measure.low, measure.high


@pytest.mark.parametrize("other", [{"draw": 2}, {"submission": 2}])
def test_what_one_draw_missed_is_not_carried_over_to_the_unchecked_of_another(other: dict[str, int]) -> None:
    # The second was made of everything: nothing is left to carry its 5 of 10 over to.
    # 10 of 100 drawn, none missed: P(X = 0) is 2.7% with 29 missed in all of them, 2.3% with 30.
    second = [checked(n < 5, **other) for n in range(10)]
    qa = of(*[checked(False)] * 10, *unchecked(90), *second).adjudications
    assert qa is not None
    assert bounds(qa.expected_missed) == (0, 0, 29)
    assert (qa.missed.hits, qa.missed.n, qa.unchecked, qa.unknown) == (5, 20, 90, 0)


def test_several_draws_are_each_carried_over_to_their_own_and_summed() -> None:
    # 1 of 4 times 20 and 1 of 10 times 50: 5 + 5. Alone their intervals are 0 to 17 and 0 to 24, and the sum of two
    # independent numbers is less uncertain than the sum of their bounds.
    first = [checked(n < 1) for n in range(4)] + unchecked(20)
    second = [checked(n < 1, draw=2) for n in range(10)] + unchecked(50, draw=2)
    alone = [of(*draw).adjudications for draw in (first, second)]
    assert [bounds(qa.expected_missed) for qa in alone if qa] == [(5, 0, 17), (5, 0, 24)]
    qa = of(*first, *second).adjudications
    assert qa is not None
    value, low, high = bounds(qa.expected_missed)
    assert (value, low) == (10, 0)
    assert high is not None
    assert 24 < high < 17 + 24


def test_the_unchecked_of_a_draw_without_a_blind_check_are_left_out_and_counted() -> None:
    qa = of(checked(True), checked(False), *unchecked(8), *unchecked(3, draw=2)).adjudications
    assert qa is not None
    assert (qa.unchecked, qa.unknown, qa.expected_missed.value) == (11, 3, 4)
    none = of(*unchecked(3, draw=2), checked(False)).adjudications
    assert none is not None
    assert undefined(none.expected_missed) == "no drawn spot check was judged blind"


def test_changes_of_disputes_of_the_drawn_and_of_the_flagged_are_told_apart() -> None:
    disputes = [case(1, 1, 0, adjudicated=Verdict(n % 2), flagged=True) for n in range(10)]
    drawn = [replace(checked(False), flagged=n < 3) for n in range(40)]
    flagged = case(1, 1, 1, adjudicated=Verdict.FAILURE, flagged=True, drawn=False)
    asked_again = case(1, 1, 1, adjudicated=Verdict.FAILURE, drawn=False)
    qa = of(*disputes, *drawn, flagged, asked_again).adjudications
    assert qa is not None
    assert (qa.changed.hits, qa.changed.n) == (7, 52)
    apart = {reason: (getattr(qa.changed_of, reason).hits, getattr(qa.changed_of, reason).n) for reason in REASONS}
    assert apart == {"disputes": (5, 10), "drawn": (0, 40), "flagged": (1, 1)}
    assert undefined(of(case(1, 1, 1)).adjudications.changed_of.drawn) == "no such case was adjudicated"  # type: ignore[union-attr]


def test_a_blind_check_that_was_corrected_later_still_counts_as_it_was_made_blind() -> None:
    later = case(
        1, 1, 1, drawn=True, state=State.ADJUDICATED, adjudicated=Verdict.SUCCESS, adjudicated_blind=Verdict.FAILURE
    )
    qa = of(later).adjudications
    assert qa is not None
    assert (qa.missed.hits, qa.missed.n) == (1, 1)


def test_labels_that_differ_are_a_dispute_only_once_all_are_there() -> None:
    qa = of(case(0, 1, state=State.IN_REVIEW), case(0, 1, 1), case(1, 1, 1)).adjudications
    assert qa is not None
    assert qa.disputes == 1


def test_undecided_cases_have_labels_and_no_verdict() -> None:
    assert of(case(1, 0, 1), case(1, 1, 1, final=Verdict.SUCCESS), case(), elsewhere(0, 1)).undecided == 2
