"""A judge against people in one row: what is counted where, under both rules for label 2."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.records import Verdict
from evaluations.cases import Said as Label
from evaluations.comparison import Judged, Label2, Row, ceiling
from evaluations.comparison.breakdowns import costs, flips
from evaluations.comparison.rows import averages, both, by, paired, pooled
from evaluations.tests import hand_made
from evaluations.tests.hand_made import case, told


def rows(cases: list[Any], said: dict[Any, Judged]) -> tuple[Row, Row]:
    first, second = both("X", pooled(paired(cases, said)))
    assert (first.human_label_2, second.human_label_2) == (Label2.EXCLUDED, Label2.NOT_SUCCESS)
    return first, second


def cells(row: Row) -> tuple[int, int, int, int]:
    return row.confusion.tp, row.confusion.fp, row.confusion.tn, row.confusion.fn


def test_label_2_of_people_is_left_out_under_one_rule_and_no_success_under_the_other() -> None:
    pairs = [(1, 1), (1, 1), (1, 0), (0, 1), (0, 0), (2, 1), (2, 0), (2, 2)]
    out, counted = rows(*hand_made.both(pairs))
    assert (out.n, out.excluded, cells(out)) == (5, 3, (2, 1, 1, 1))
    assert (counted.n, counted.excluded, cells(counted)) == (8, 0, (2, 2, 3, 1))
    assert out.agreement.value == 3 / 5
    assert counted.agreement.value == 5 / 8
    assert (out.success_rate_human.value, out.success_rate_judge.value) == (3 / 5, 3 / 5)
    assert counted.success_rate_gap.value == pytest.approx(4 / 8 - 3 / 8)  # the judge is kinder


def test_label_2_of_a_judge_is_no_success() -> None:
    out, _ = rows(*hand_made.both([(1, 2), (0, 2)]))
    assert cells(out) == (0, 0, 1, 1)


def test_unscored_errors_and_unjudged_are_counted_apart_and_are_never_failures() -> None:
    cases = [case(number, 1) for number in range(5)]
    error = Judged(None, None, error=True)
    said = {cases[0].key: told(1), cases[1].key: told(None), cases[2].key: error, cases[3].key: error}
    out, counted = rows(cases, said)
    assert (out.n, out.unscored, out.errors, out.unjudged, cells(out)) == (1, 1, 2, 1, (1, 0, 0, 0))
    assert out.agreement.value == 1
    assert cells(counted) == cells(out)


def test_under_exclusion_what_was_not_said_of_label_2_is_not_missing_either() -> None:
    cases = [case(0, 2), case(1, 2), case(2, 1)]
    out, counted = rows(cases, {cases[0].key: told(None), cases[2].key: told(1)})
    assert (out.excluded, out.unscored, out.unjudged) == (2, 0, 0)
    assert (counted.excluded, counted.unscored, counted.unjudged) == (0, 1, 1)


def test_cases_without_a_final_verdict_are_not_compared() -> None:
    out, _ = rows(*hand_made.both([(None, 1), (1, 1)]))
    assert out.n == 1


def test_a_row_without_cases_is_undefined_in_words() -> None:
    out, _ = rows([], {})
    assert (out.agreement.value, out.agreement.undefined, out.success_rate_gap.value) == (None, "no cases", None)


def test_the_average_counts_every_agent_once_and_has_gaps_without_their_sign() -> None:
    kind, said = hand_made.both([(0, 1), (0, 0)], agent="kind")
    strict, more = hand_made.both([(1, 0), (1, 1), (1, 1), (1, 1)], agent="strict")
    nobody = [case(0, 1, agent="nobody")]  # the judge was never asked
    pairs = paired([*kind, *strict, *nobody], said | more)
    found = averages([row for name, counts in by(pairs, lambda one: one.agent).items() for row in both(name, counts)])
    assert [mean.human_label_2 for mean in found] == list(Label2)
    mean = found[0]
    assert mean.agents == 2
    assert mean.values["agreement"] == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert mean.values["success_rate_gap"] == pytest.approx((1 / 2 - 1 / 4) / 2)
    assert mean.gap_size == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert mean.values["recall"] == 3 / 4  # of the strict one alone: no case of the other is a success


# --- the human ceiling -----------------------------------------------------------------------------------------------


def test_the_ceiling_sets_every_annotator_and_all_together_beside_the_final_verdicts() -> None:
    said = {  # final: what A1, A2, A10 said
        1: [(1, 1, 1), (1, 1, 0)],
        0: [(1, 0, 0)],
        2: [(1, 2, 2)],
    }
    cases = [
        case(number, final, labels=labels(*verdicts))
        for number, (final, verdicts) in enumerate((final, one) for final, each in said.items() for one in each)
    ]
    cases.append(case(9, None, labels=labels(0, 0, 1)))
    found = ceiling(cases)
    assert [(row.name, row.human_label_2) for row in found[::2]] == [
        (name, Label2.EXCLUDED) for name in ("A1", "A2", "A10", "people")
    ]
    by_name = {(row.name, row.human_label_2): row for row in found}
    assert cells(by_name["A1", Label2.EXCLUDED]) == (2, 1, 0, 0)
    assert cells(by_name["A1", Label2.NOT_SUCCESS]) == (2, 2, 0, 0)
    assert cells(by_name["A10", Label2.NOT_SUCCESS]) == (1, 0, 2, 1)
    people = by_name["people", Label2.EXCLUDED]
    assert (people.n, people.excluded, people.agreement.hits, people.agreement.n) == (9, 3, 7, 9)


def labels(*verdicts: int) -> tuple[Label, ...]:
    return tuple(Label(name, Verdict(verdict)) for name, verdict in zip(("A1", "A2", "A10"), verdicts, strict=True))


# --- how steady, how dear --------------------------------------------------------------------------------------------


def test_flips_are_cases_whose_verdicts_differ_and_unscored_is_no_verdict() -> None:
    repeated = [(1, 1, 1), (1, 0, 1), (0, 2, None), (1, None), (1,)]
    found = flips(told(1, repeated=tuple(None if one is None else Verdict(one) for one in each)) for each in repeated)
    assert (found.hits, found.n) == (2, 3)


def test_without_repetitions_nothing_can_flip() -> None:
    assert flips([told(1, repeated=(Verdict.SUCCESS,))]).undefined == "no case was judged more than once"


def test_costs_are_means_over_the_judgments_that_say_so() -> None:
    found = costs([told(1, tokens=100, cost=0.5), told(1, tokens=300), told(1), told(None, cost=1.5)])
    assert (found.judgments, found.tokens, found.cost, found.total_cost) == (3, 200, 1.0, 2.0)
    none = costs([told(1)])
    assert (none.judgments, none.tokens, none.cost, none.total_cost) == (0, None, None, None)
