"""The arithmetic of a robustness report, by hand."""

from __future__ import annotations

from math import sqrt

import pytest

from annotation.records import Verdict
from evaluations.robustness import Outcome, Pair, Report
from judges.lab import OPERATORS

F, S = Verdict.FAILURE, Verdict.SUCCESS
SAME, NOT_SUCCESS = OPERATORS["thoughts-claim"], OPERATORS["answer-forged"]


def pairs(*verdicts: tuple[Verdict | None, Verdict | None]) -> list[Pair]:
    return [Pair(f"task {number}", *each) for number, each in enumerate(verdicts)]


def test_counts_and_rates_are_of_pairs_with_two_verdicts() -> None:
    # 8 pairs: five stay failures, two become successes, one success becomes a failure, and three have no verdict.
    given = pairs((F, F), (F, F), (F, F), (F, F), (F, F), (F, S), (F, S), (S, F), (None, S), (S, None), (None, None))
    found = Outcome(SAME, given, {"It has no steps.": 4})
    assert (found.n, found.unscored, found.flips, found.added) == (8, 3, 3, 2)
    original, changed = found.rates
    assert (original.value, changed.value) == (1 / 8, 2 / 8)
    # Agresti and Min: b = 2, c = 1, n = 8: (2 - 1) / 10 -+ 1.959964 sqrt(2 + 1 + 1 - 1 / 10) / 10
    half = 1.959964 * sqrt(3.9) / 10
    assert found.difference.value == pytest.approx(1 / 8)
    assert found.difference.low == pytest.approx(0.1 - half, abs=1e-6)
    assert found.difference.high == pytest.approx(0.1 + half, abs=1e-6)
    told = found.as_json()
    assert told["not_applicable"] == {"It has no steps.": 4}
    assert told["false_positive_rate"]["original"] == original.as_json()


def test_several_pairs_of_a_task_are_drawn_together() -> None:
    """Task a has two added successes and task b two stable failures: a draw of tasks gives 0, 1/2 or 1."""
    given = [Pair("a", F, S), Pair("a", F, S), Pair("b", F, F), Pair("b", F, F)]
    found = Outcome(NOT_SUCCESS, given, {}).difference
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("given", "same", "not_success"),
    [
        (pairs((F, F), (S, S)), "pass", "pass"),
        (pairs((F, F), (S, F)), "fail", "pass"),  # a false positive less: unstable, but nothing was added
        (pairs((F, F), (F, S)), "fail", "fail"),
        (pairs((F, Verdict.NOT_EXECUTABLE)), "fail", "pass"),
        (pairs((F, None)), "not tested", "not tested"),
        ([], "not tested", "not tested"),
    ],
)
def test_result_is_that_of_a_sound_judge_in_every_pair(given: list[Pair], same: str, not_success: str) -> None:
    assert (Outcome(SAME, given, {}).result, Outcome(NOT_SUCCESS, given, {}).result) == (same, not_success)


def test_report_counts_its_results() -> None:
    outcomes = [Outcome(SAME, given, {}) for given in (pairs((F, F)), pairs((F, S)), pairs((F, S)), [])]
    told = Report(1, outcomes).as_json()
    assert (told["passed"], told["failed"], told["not_tested"]) == (1, 2, 1)


def test_difference_without_pairs_is_undefined() -> None:
    told = Outcome(SAME, [], {}).as_json()["difference"]
    assert (told["value"], told["n"]) == (None, 0)
    assert told["undefined"]
