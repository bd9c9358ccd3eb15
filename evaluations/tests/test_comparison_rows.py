"""A judge against people in one row: what is counted where, under both rules for label 2."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from annotation.models.states import State
from annotation.records import Verdict
from evaluations.cases import BlindLabel as Label
from evaluations.cases import Rules
from evaluations.comparison import Judged, Label2, Row, ceiling, compare
from evaluations.comparison.breakdowns import costs, flips
from evaluations.comparison.results import Flips
from evaluations.comparison.rows import averages, build_rows, by_task, count_by_name, count_together, pair_cases
from evaluations.measures import JUDGE_MEASURES
from evaluations.statistics import Measure, wilson
from evaluations.tests import hand_made
from evaluations.tests.hand_made import case, told
from judges.tests.rows import judge_row


def rows(cases: list[Any], said: dict[Any, Judged]) -> tuple[Row, Row]:
    first, second = build_rows("X", count_together(pair_cases(cases, said)))
    assert (first.human_label_2, second.human_label_2) == (Label2.EXCLUDED, Label2.NOT_SUCCESS)
    return first, second


def cells(row: Row) -> tuple[int, int, int, int]:
    return row.confusion.tp, row.confusion.fp, row.confusion.tn, row.confusion.fn


def test_label_2_of_people_is_left_out_under_one_rule_and_no_success_under_the_other() -> None:
    pairs = [(1, 1), (1, 1), (1, 0), (0, 1), (0, 0), (2, 1), (2, 0), (2, 2)]
    out, counted = rows(*hand_made.both(pairs))
    assert (out.n, out.excluded, cells(out)) == (5, 3, (2, 1, 1, 1))
    assert (counted.n, counted.excluded, cells(counted)) == (8, 0, (2, 2, 3, 1))
    assert out.measures["agreement"].value == 3 / 5
    assert counted.measures["agreement"].value == 5 / 8
    assert (out.measures["success_rate_human"].value, out.measures["success_rate_judge"].value) == (3 / 5, 3 / 5)
    assert counted.measures["success_rate_gap"].value == pytest.approx(4 / 8 - 3 / 8)  # the judge is kinder


def test_label_2_of_a_judge_is_no_success() -> None:
    out, _ = rows(*hand_made.both([(1, 2), (0, 2)]))
    assert cells(out) == (0, 0, 1, 1)


def test_unscored_errors_and_unjudged_are_counted_apart_and_are_never_failures() -> None:
    cases = [case(number, 1) for number in range(5)]
    error = Judged(None, None, error=True)
    said = {cases[0].key: told(1), cases[1].key: told(None), cases[2].key: error, cases[3].key: error}
    out, counted = rows(cases, said)
    assert (out.n, out.unscored, out.errors, out.unjudged, cells(out)) == (1, 1, 2, 1, (1, 0, 0, 0))
    assert out.measures["agreement"].value == 1
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
    assert (
        out.measures["agreement"].value,
        out.measures["agreement"].undefined,
        out.measures["success_rate_gap"].value,
    ) == (None, "no cases", None)


def test_the_average_counts_every_agent_once_and_has_gaps_without_their_sign() -> None:
    kind, said = hand_made.both([(0, 1), (0, 0)], agent="kind")
    strict, more = hand_made.both([(1, 0), (1, 1), (1, 1), (1, 1)], agent="strict")
    nobody = [case(0, 1, agent="nobody")]  # the judge was never asked
    pairs = pair_cases([*kind, *strict, *nobody], said | more)
    found = averages(
        [
            row
            for name, counts in count_by_name(pairs, lambda one: one.agent).items()
            for row in build_rows(name, counts)
        ]
    )
    assert [mean.human_label_2 for mean in found] == list(Label2)
    mean = found[0]
    assert mean.agents == 2
    assert mean.values["agreement"].value == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert mean.values["success_rate_gap"].value == pytest.approx((1 / 2 - 1 / 4) / 2)
    assert mean.gap_size.value == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert mean.values["recall"].value == 3 / 4  # of the strict one alone: no case of the other is a success


def test_an_average_says_on_how_many_agents_it_rests_where_they_are_not_all() -> None:
    kind, said = hand_made.both([(0, 1), (0, 0)], agent="kind")  # no case is a success: no recall
    strict, more = hand_made.both([(1, 0), (1, 1)], agent="strict")  # and here no specificity
    counts = count_by_name(pair_cases([*kind, *strict], said | more), lambda one: one.agent)
    mean = averages([row for name, each in counts.items() for row in build_rows(name, each)])[0]
    assert (mean.agents, mean.values["agreement"].n, mean.gap_size.n) == (2, 2, 2)
    few = {"recall", "specificity", "false_positive_rate", "npv"}
    assert {name: number for name, number in mean.fewer.items() if name in few} == {
        "recall": 1,
        "specificity": 1,
        "false_positive_rate": 1,
    }
    nobody = averages(
        [
            row
            for name, each in count_by_name(pair_cases(kind, said), lambda one: one.agent).items()
            for row in build_rows(name, each)
        ]
    )[0].as_json(Rules.DEFAULT)
    assert (nobody["recall"], nobody["undefined"]["recall"]) == (None, "no agent has a value")
    assert mean.as_json(Rules.DEFAULT)["resting_on"]["recall"] == 1


# --- the human ceiling -----------------------------------------------------------------------------------------------


def test_the_ceiling_sets_every_annotator_and_all_together_beside_the_final_verdicts() -> None:
    said = {  # final: what A1, A2, A10 said
        1: [(1, 1, 1), (1, 1, 0)],
        0: [(1, 0, 0)],
        2: [(1, 2, 2)],
    }
    cases = [
        case(number, final, labels=labels(*verdicts), state=State.ADJUDICATED)
        for number, (final, verdicts) in enumerate((final, one) for final, each in said.items() for one in each)
    ]
    cases.append(case(9, None, labels=labels(0, 0, 1), state=State.DISPUTE))
    found = ceiling(cases)
    assert [(row.name, row.human_label_2) for row in found[::2]] == [
        (name, Label2.EXCLUDED) for name in ("A1", "A2", "A10", "people")
    ]
    by_name = {(row.name, row.human_label_2): row for row in found}
    assert cells(by_name["A1", Label2.EXCLUDED]) == (2, 1, 0, 0)
    assert cells(by_name["A1", Label2.NOT_SUCCESS]) == (2, 2, 0, 0)
    assert cells(by_name["A10", Label2.NOT_SUCCESS]) == (1, 0, 2, 1)
    people = by_name["people", Label2.EXCLUDED]
    assert (people.n, people.excluded, people.measures["agreement"].hits, people.measures["agreement"].n) == (
        9,
        3,
        7,
        9,
    )


def test_labels_made_elsewhere_are_no_ceiling_because_they_are_their_own_verdict() -> None:
    found = ceiling([case(number, 1) for number in range(3)])
    assert [(row.name, row.n, row.measures["agreement"].value) for row in found] == [("people", 0, None)] * 2
    assert {found[0].measures[name].undefined for name in JUDGE_MEASURES} == {"nothing was reviewed"}
    reviewed = case(9, 1, labels=labels(1, 1, 1), state=State.UNANIMOUS)
    assert ceiling([case(0, 1), reviewed])[-1].n == 3


def test_the_ceiling_follows_the_published_rules_as_the_judges_beside_it_do() -> None:
    cases = [
        case(number, final, labels=labels(*said), state=State.ADJUDICATED)
        for number, (final, said) in enumerate([(1, (1, 1, 0)), (0, (1, 1, 0)), (1, (1, 1, 1))])
    ]
    agreement = ceiling(cases, Rules.PUBLISHED)[-1].measures["agreement"]  # 6 of 9
    assert (agreement.value, agreement.low, agreement.high) == (0.667, None, None)
    by_default = ceiling(cases)[-1].measures["agreement"]
    assert (by_default.value, by_default.low is None) == (6 / 9, False)


def test_the_three_labels_of_a_case_are_no_three_cases_in_the_interval_of_people() -> None:
    """Where all three say the same of a case, there are as many observations as cases."""
    together = [
        case(number, 1, labels=labels(*([1] * 3 if number % 2 else [0] * 3)), state=State.ADJUDICATED)
        for number in range(40)
    ]
    people = ceiling(together)[-1].measures["agreement"]
    alone = wilson(20, 40)
    assert (people.hits, people.n) == (60, 120)
    assert width(people) == pytest.approx(width(alone), rel=0.1)
    assert width(people) > 1.5 * width(wilson(60, 120))


def width(found: Measure) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


# --- several agents on the same tasks --------------------------------------------------------------------------------


def alike(agents: int, tasks: int = 40) -> tuple[list[Any], dict[Any, Judged]]:
    """Every agent's case of a task is the same, and the judge is right about every second task."""
    cases = [case(number, 1, agent=f"Agent {n}") for n in range(agents) for number in range(tasks)]
    return cases, {one.key: told(int(one.task_id[-1]) % 2) for one in cases}


def test_the_interval_of_all_agents_knows_that_they_attempted_the_same_tasks(db: Any) -> None:
    one, five = (compare(judge_row(), cases, "", benchmark="b", said=said) for cases, said in (alike(1), alike(5)))
    pooled, alone = five.overall[0].measures, one.overall[0].measures
    assert (pooled["agreement"].hits, pooled["agreement"].n) == (100, 200)
    for name in ("agreement", "recall", "success_rate_judge", "success_rate_gap"):
        assert width(pooled[name]) == pytest.approx(width(alone[name]), rel=0.12), (
            name
        )  # not divided by the root of five
    assert width(five.groups["level"][0].measures["agreement"]) == width(pooled["agreement"])
    assert one.overall[0].measures["agreement"] == wilson(20, 40)  # one agent: cases are as good as independent
    assert {row.measures["agreement"] for row in five.rows} == {one.overall[0].measures["agreement"]}


def test_tasks_that_each_agent_has_alone_are_independent() -> None:
    cases = [case(number, 1, agent=f"Agent {number % 2}") for number in range(10)]
    pairs = pair_cases(cases, {one.key: told(1) for one in cases})
    assert by_task(pairs, lambda _: "all") == {}


def test_clusters_are_those_of_the_rule_and_hold_what_was_compared() -> None:
    cases = [case(number, final, agent=agent) for agent in "ab" for number, final in enumerate((1, 2, 0))]
    said = {one.key: told(1) for one in cases} | {cases[2].key: told(None)}
    found = by_task(pair_cases(cases, said), lambda _: "all")
    assert found["all", Label2.EXCLUDED] == ((0, 1, 0, 0), (2, 0, 0, 0))
    assert found["all", Label2.NOT_SUCCESS] == ((0, 1, 0, 0), (0, 2, 0, 0), (2, 0, 0, 0))


def labels(*verdicts: int) -> tuple[Label, ...]:
    return tuple(Label(name, Verdict(verdict)) for name, verdict in zip(("A1", "A2", "A10"), verdicts, strict=True))


# --- how steady, how dear --------------------------------------------------------------------------------------------


def flipped(*repeated: tuple[int | None, ...]) -> Flips:
    cases = [case(number, 1) for number in range(len(repeated))]
    verdicts = [tuple(None if verdict is None else Verdict(verdict) for verdict in each) for each in repeated]
    said = {one.key: told(1, repeated=each) for one, each in zip(cases, verdicts, strict=True)}
    return flips(said, cases)


def test_flips_are_pairs_of_repetitions_that_differ_and_unscored_is_no_verdict() -> None:
    found = flipped((1, 1, 1), (1, 0, 1), (0, 2, None), (1, None), (1,))
    # No pair of three, two pairs of three, one of one; the others have no pair.
    assert (found.rate.value, found.rate.n, found.differing) == (pytest.approx((0 + 2 / 3 + 1) / 3), 3, 2)
    assert found.as_json()["hits"] == 2


def test_flip_rate_of_two_repetitions_has_wilsons_interval() -> None:
    found = flipped((1, 1), (1, 0), (0, 2), (0, 0)).rate
    assert (found.value, found.low, found.high) == (0.5, wilson(2, 4).low, wilson(2, 4).high)


@pytest.mark.parametrize("repetitions", [2, 3, 5, 8])
def test_flip_rate_does_not_grow_with_the_number_of_repetitions(repetitions: int) -> None:
    # A judge that says success in half of its repetitions: every outcome once, so that the mean is the expected rate.
    found = flipped(*product((0, 1), repeat=repetitions))
    assert found.rate.value == pytest.approx(0.5)
    assert found.differing == 2**repetitions - 2


def test_without_repetitions_nothing_can_flip() -> None:
    one = case(0, 1)
    found = flips({one.key: told(1, repeated=(Verdict.SUCCESS,))}, [one, case(1, 1)])
    assert found.rate.undefined == "no case was judged more than once"
    assert found.as_json()["value"] is None


def test_costs_are_means_over_the_judgments_that_say_so() -> None:
    found = costs([told(1, tokens=100, cost=0.5), told(1, tokens=300), told(1), told(None, cost=1.5)])
    assert (found.judgments, found.with_tokens, found.with_cost) == (4, 2, 2)
    assert (found.tokens, found.cost, found.total_cost) == (200, 1.0, 2.0)
    none = costs([told(1)])
    assert (none.judgments, none.with_tokens, none.with_cost) == (1, 0, 0)
    assert (none.tokens, none.cost, none.total_cost) == (None, None, None)


def test_repetitions_were_paid_for_too() -> None:
    found = costs([told(1, spent=((100, 0.5), (200, 0.25), (None, None))), told(None, error=True, spent=())])
    assert (found.judgments, found.tokens, found.cost, found.total_cost) == (3, 150, 0.375, 0.75)
