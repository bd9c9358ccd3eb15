"""The change in kappa between two judges: by hand, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from annotation.records import Verdict
from evaluations.judge_alignment.figures import LEVEL, compare, compute_level, count_least_tasks, decide
from evaluations.statistics.paired import kappa_change
from evaluations.tests.labelled import case


def test_change_in_kappa_by_hand() -> None:
    # 4 successes and 4 failures. The first judge takes 2 failures for successes: po = 6/8, pe = (4*6 + 4*2)/64 = 1/2,
    # kappa = 1/2. The second is always right: kappa = 1.
    tasks = [[0, 0, 0, 0, 0, 0, 0, 1]] * 4 + [[1, 0, 0, 0, 0, 0, 0, 0]] * 2 + [[0, 0, 1, 0, 0, 0, 0, 0]] * 2
    found = kappa_change(tasks)
    assert found.value == pytest.approx(0.5)
    assert found.n == 8
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.5 <= found.high


def test_change_in_kappa_as_scikit_learn() -> None:
    generator = np.random.default_rng(3)
    people, first, second = generator.integers(0, 2, (3, 200))
    cells = 4 * people + 2 * first + second
    tasks = np.eye(8, dtype=int)[cells]
    expected = cohen_kappa_score(people, second) - cohen_kappa_score(people, first)
    assert kappa_change(tasks).value == pytest.approx(expected)


def test_interval_draws_whole_tasks() -> None:
    # Ten runs of each task, all alike: the interval is that of the tasks, not of ten times as many cases.
    tasks = np.array([[0, 0, 0, 0, 0, 0, 0, 1]] * 4 + [[1, 0, 0, 0, 0, 0, 0, 0]] * 2 + [[0, 0, 1, 0, 0, 0, 0, 0]] * 2)
    one, ten = kappa_change(tasks), kappa_change(10 * tasks)
    assert (ten.low, ten.high) == (pytest.approx(one.low), pytest.approx(one.high))


def test_change_is_undefined_with_one_class_or_without_cases() -> None:
    assert kappa_change([[0, 0, 0, 0, 0, 0, 0, 5]]).undefined == "only one class"
    assert kappa_change([]).undefined == "no cases"


def cases(successes: int, failures: int) -> list:
    finals = [Verdict.SUCCESS] * successes + [Verdict.FAILURE] * failures
    return [case(1, task_id=f"t{at}", trajectory=at, final=final) for at, final in enumerate(finals)]


def say(*verdicts: int | None) -> dict[int, int | None]:
    return dict(enumerate(verdicts))


def test_paired_change_has_the_errors_of_both_kinds() -> None:
    # Of 4 successes the second judge misses 1; of 6 failures the first accepts 3, the second 1 of these.
    found = compare(cases(4, 6), say(1, 1, 1, 1, 1, 1, 1, 0, 0, 0), say(1, 1, 1, 0, 1, 0, 0, 0, 0, 0))
    assert found.before["false_positive_rate"].value == 3 / 6
    assert found.change["false_positive_rate"].value == pytest.approx(-2 / 6)
    assert found.after["false_negative_rate"].value == 1 / 4
    assert found.change["false_negative_rate"].value == 1 / 4


def test_unscored_cases_are_left_out_and_more_of_them_lose() -> None:
    found = compare(cases(2, 2), say(1, 1, 1, 0), say(1, 1, None, 0))
    assert (found.n, found.unscored) == (3, (0, 1))
    assert decide(found) == (False, "It leaves 1 cases unscored instead of 0.")


def test_version_wins_only_beyond_noise() -> None:
    base, small, large = [1] * 20 + [1] * 10 + [0] * 10, [1] * 20 + [0] + [1] * 9 + [0] * 10, [1] * 20 + [0] * 20
    assert decide(compare(cases(20, 20), say(*base), say(*large)))[0]
    won, why = decide(compare(cases(20, 20), say(*base), say(*small)))
    assert not won
    assert "may be noise" in why
    assert not decide(compare(cases(20, 20), say(*base), say(*base)))[0]
    assert not decide(compare(cases(20, 20), say(*large), say(*base)))[0]


def test_more_rounds_need_a_clearer_change() -> None:
    # 5 of 10 false positives less, of 40 cases: at 0.05 / 20 it may be noise.
    base, better = [1] * 20 + [1] * 10 + [0] * 10, [1] * 20 + [1] * 5 + [0] * 15
    change = compare(cases(20, 20), say(*base), say(*better))
    assert decide(change, compute_level(1))[0]
    won, why = decide(change, compute_level(20))
    assert not won
    assert "99.75% interval" in why


def test_perfect_version_beats_a_base_that_says_success_everywhere() -> None:
    change = compare(cases(8, 8), say(*[1] * 16), say(*[1] * 8, *[0] * 8))
    assert change.change["kappa"].low is None  # each resample is +1
    assert decide(change, 0.01)[0]  # 8 against 0: p = 2 / 2^8 = 0.0078
    assert not decide(change, 0.005)[0]


def test_fewest_tasks_are_those_of_the_exact_test() -> None:
    # 2 / 2^6 = 0.031 < 0.05; 2 / 2^8 = 0.0078 < 0.01; 2 / 2^10 = 0.00195 < 0.0025
    assert [count_least_tasks(rounds) for rounds in (1, 5, 20)] == [6, 8, 10]
    assert compute_level(5) == LEVEL / 5
