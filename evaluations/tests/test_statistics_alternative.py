"""The alternative annotator test: by hand, and its t test against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaluations.statistics import LabelledItem, alternative_annotator_test
from evaluations.statistics.alternative import student_t_below


def items_of(rows, tasks=None) -> list[LabelledItem]:
    """Items from rows of the judge's label and those of A, B, C ...; None is no label."""
    return [
        LabelledItem(
            number if tasks is None else tasks[number],
            judge,
            {name: label for name, label in zip("ABCDE", labels, strict=False) if label is not None},
        )
        for number, (judge, *labels) in enumerate(rows)
    ]


def random_rows(seed: int, n: int, right=(0.9, 0.8, 0.8, 0.7)) -> np.ndarray:
    random = np.random.default_rng(seed)
    truth = random.random((n, 1)) < 0.5
    return np.where(random.random((n, len(right))) < right, truth, ~truth).astype(int)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 29, 30, 200, 501])
@pytest.mark.parametrize("t", [-6.0, -1.7, 0.0, 0.4, 2.5])
def test_student_t_is_that_of_scipy(df: int, t: float) -> None:
    assert student_t_below(t, df) == pytest.approx(stats.t.cdf(t, df), abs=1e-13)


def test_degrees_of_freedom_are_needed() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        student_t_below(0.0, 0)


def test_advantages_are_counted_by_hand() -> None:
    # Against A (others B, C): row 1 judge 1 of 2, A 1 of 2: both as close; row 2: judge 2 of 2, A 0; row 3: 0 and 2.
    rows = [(1, 1, 1, 0), (1, 0, 1, 1), (0, 1, 1, 1)]
    found = {each.annotator: each for each in alternative_annotator_test(items_of(rows)).annotators}
    assert (found["A"].judge.hits, found["A"].person.hits, found["A"].judge.n) == (2, 2, 3)
    # Against C: row 1: judge agrees with A and B, C with neither; row 2: 1 of 2 and 1 of 2; row 3: 0 and 2.
    assert (found["C"].judge.hits, found["C"].person.hits) == (2, 2)
    # Against B: row 1: 1 of 2 and 1 of 2; row 2: judge agrees with C, not with A, like B; row 3: 0 and 2.
    assert (found["B"].judge.hits, found["B"].person.hits) == (2, 3)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("epsilon", [0.1, 0.15, 0.3])
def test_p_is_that_of_a_t_test_on_items(seed: int, epsilon: float) -> None:
    rows = random_rows(seed, 60)
    found = alternative_annotator_test(items_of(rows), epsilon=epsilon)
    raw = []
    for j in (1, 2, 3):
        others = np.delete(rows[:, 1:], j - 1, axis=1)
        judge, person = ((others == rows[:, [at]]).mean(axis=1) for at in (0, j))
        d = (person >= judge).astype(int) - (judge >= person).astype(int)
        raw.append(stats.ttest_1samp(d, epsilon, alternative="less").pvalue)
        assert found.annotators[j - 1].judge.value == pytest.approx((judge >= person).mean())
    assert [each.p.value for each in found.annotators] == pytest.approx(raw)
    corrected = stats.false_discovery_control(raw, method="by")
    assert [each.p_corrected.value for each in found.annotators] == pytest.approx(corrected.tolist())
    assert found.winning_rate.value == pytest.approx((corrected < 0.05).mean())
    assert found.advantage.value == pytest.approx(np.mean([each.judge.value for each in found.annotators]))
    assert found.advantage.low < found.advantage.value < found.advantage.high
    assert found.passed is bool((corrected < 0.05).sum() * 2 >= 3)


def test_a_judge_that_repeats_the_majority_passes_and_one_that_contradicts_it_does_not() -> None:
    people = random_rows(3, 80, (0.8, 0.8, 0.8))
    majority = (people.sum(axis=1) > 1).astype(int)
    assert alternative_annotator_test(items_of(np.column_stack([majority, people]))).passed is True
    assert alternative_annotator_test(items_of(np.column_stack([1 - majority, people]))).passed is False


def test_people_and_judge_that_always_agree_have_the_probability_of_so_many_equal_tasks() -> None:
    found = alternative_annotator_test(items_of([(1, 1, 1, 1)] * 30))
    assert [each.p.value for each in found.annotators] == pytest.approx([0.85**30] * 3)  # 0.0076
    assert found.passed is True  # corrected: 0.0076 * (1 + 1/2 + 1/3) = 0.014
    assert alternative_annotator_test(items_of([(1, 1, 1, 1)] * 30), epsilon=0.0).passed is False
    assert [each.p.value for each in alternative_annotator_test(items_of([(0, 1, 1, 1)] * 30)).annotators] == [1.0] * 3


def test_items_of_a_task_are_not_taken_for_independent() -> None:
    rows = random_rows(5, 40)
    once = alternative_annotator_test(items_of(rows))
    four = alternative_annotator_test(items_of(np.tile(rows, (4, 1)), list(range(40)) * 4))
    assert [each.p.value for each in four.annotators] == pytest.approx([each.p.value for each in once.annotators])


def test_too_few_annotators_or_items_are_named() -> None:
    two = alternative_annotator_test(items_of(random_rows(1, 50, (0.9, 0.9, 0.9))))
    assert (two.passed, two.winning_rate.value) == (None, None)
    assert two.missing.endswith("labelled too; 2 of 2 have them")
    few = alternative_annotator_test(items_of(random_rows(1, 29)))
    assert few.missing.endswith("0 of 3 have them")
    assert few.annotators[0].p.undefined == "fewer than 30 tasks that others labelled too"
    assert few.annotators[0].wins is None
    assert alternative_annotator_test([]).missing.endswith("0 of 0 have them")


def test_an_annotator_with_few_items_is_not_tested_and_does_not_count() -> None:
    rows = [(*row, 1 if number < 10 else None) for number, row in enumerate(random_rows(2, 60).tolist())]
    found = alternative_annotator_test(items_of(rows))
    assert [each.wins is None for each in found.annotators] == [False, False, False, True]
    assert found.winning_rate.n == 3


def test_one_label_alone_is_compared_with_nobody() -> None:
    assert alternative_annotator_test([LabelledItem(1, 1, {"A": 1}), LabelledItem(2, 1, {})]).annotators == []


@pytest.mark.parametrize("terms", [{"epsilon": -0.1}, {"epsilon": 1.1}, {"level": 0.0}, {"level": 1.0}])
def test_impossible_terms_are_refused(terms) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        alternative_annotator_test([], **terms)


@pytest.mark.parametrize("epsilon", [0.0, 0.15])
def test_judge_that_is_better_everywhere_has_a_small_p(epsilon: float) -> None:
    # A against B and C who agree with the judge: each d of A is -1, with a chance of at most (1 - epsilon) / 2.
    found = alternative_annotator_test(items_of([(1, 0, 1, 1)] * 30), epsilon=epsilon)
    assert found.annotators[0].p.value == pytest.approx(((1 - epsilon) / 2) ** 30)
    assert found.annotators[0].wins is True
