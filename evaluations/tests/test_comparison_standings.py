"""How good the agents are, by people and by judges, and which of two judges is better."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.models import Benchmark
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations import comparison_tables
from evaluations.cases import Case
from evaluations.comparison import Label2, compare, find_judgments, ranking, standings, versus
from evaluations.comparison.rows import pair_cases
from evaluations.statistics import Measure, paired_difference
from evaluations.tests import hand_made
from evaluations.tests.hand_made import case, told
from judges.imports import import_judgments
from judges.models import Judge
from judges.tests.rows import judge_row


def judge_saying(benchmark: Benchmark, name: str, *rows: tuple[Case, int | None]) -> Judge:
    lines = [json.dumps({"task_id": one.task_id, "agent": one.agent, "verdict": verdict}) for one, verdict in rows]
    outcome = import_judgments("\n".join(lines).encode(), "j.jsonl", benchmark=benchmark, judge=name)
    assert not outcome.report.rejected, outcome.report.as_json()
    return Judge.objects.get(name=name)


@shared_rows
def shops() -> Benchmark:
    return testing.benchmark(12)


# --- agents ----------------------------------------------------------------------------------------------------------


def test_success_rates_are_over_all_and_without_label_2_and_by_level() -> None:
    cases = [case(0, 1), case(1, 0), case(2, 2), case(3, 1, level="hard"), case(4, None), case(5, 0, level="")]
    (found,) = standings(cases)
    assert (found.agent, found.by, found.n, found.undecided, found.not_executable) == ("X", "people", 5, 1, 1)
    assert (found.over_all.hits, found.over_all.n, found.over_all.value) == (2, 5, 0.4)
    assert (found.without_2.hits, found.without_2.n, found.without_2.value) == (2, 4, 0.5)
    assert found.over_all.low is not None
    assert {name: (rates.over_all.value, rates.without_2.value) for name, rates in found.levels.items()} == {
        "easy": (1 / 3, 1 / 2),
        "hard": (1, 1),
        "not known": (0, 0),
    }
    assert list(found.levels) == ["easy", "hard", "not known"]


def test_the_best_stands_first_and_who_has_no_verdict_last() -> None:
    cases = [case(0, 0, "a"), case(1, 1, "b"), case(2, None, "c"), case(3, 1, "d"), case(4, 2, "e")]
    found = standings(cases)
    assert [each.agent for each in found] == ["b", "d", "a", "e", "c"]
    assert (found[-1].by, found[-1].over_all.value, found[-1].undecided) == ("people", None, 1)
    assert (found[-2].over_all.value, found[-2].without_2.undefined) == (0, "no cases")


def test_a_judge_speaks_only_for_agents_about_whom_people_have_decided_nothing(shops: Benchmark) -> None:
    mixed = [case(0, 1, "mixed"), case(1, None, "mixed")]
    undecided = [case(number, None, "new") for number in range(4)]
    said = zip([*mixed, *undecided], (0, 0, 1, 1, 2, None), strict=True)
    judge = judge_saying(shops, "webjudge", *said)
    people, new = standings([*mixed, *undecided], judge)
    assert (people.agent, people.by, people.n, people.over_all.value) == ("mixed", "people", 1, 1)
    assert (new.agent, new.by, new.n, new.undecided, new.not_executable) == ("new", "webjudge", 3, 1, 1)
    assert (new.over_all.value, new.without_2.value) == (2 / 3, 1)
    alone = standings([*mixed, *undecided])
    assert [(each.agent, each.by, each.n) for each in alone] == [("mixed", "people", 1), ("new", "people", 0)]


def test_agents_that_people_have_decided_come_before_those_that_only_a_judge_has(shops: Benchmark) -> None:
    weak = [case(0, 0, "weak"), case(1, 0, "weak")]
    new = [case(number, None, "new") for number in range(2)]
    empty = [case(5, None, "a")]
    judge = judge_saying(shops, "people", *zip(new, (1, 1), strict=True))
    found = standings([*empty, *new, *weak], judge)
    assert [(each.agent, each.by, each.judged) for each in found] == [
        ("weak", "people", False),
        ("new", "people", True),  # a judge of that name
        ("a", "people", False),
    ]


def test_a_second_submission_of_an_agent_stands_by_itself(db: Any) -> None:
    cases = [case(0, 1, "X"), case(1, 1, "X"), case(0, 0, "X", attempt=2)]
    assert [(each.agent, each.n, each.over_all.value) for each in standings(cases)] == [
        ("X", 2, 1),
        ("X (attempt 2)", 1, 0),
    ]
    found = compare(judge_row(), cases, "", benchmark="b", said={cases[1].key: told(1)})
    assert [(row.name, row.n) for row in found.rows[::2]] == [("X", 1), ("X (attempt 2)", 0)]


# --- the ranking of a judge ------------------------------------------------------------------------------------------


def ranked(rule: Label2, *agents: list[tuple[int | None, int | None]]) -> Measure:
    """From what people and the judge say of each case of some agents."""
    cases, said = [], {}
    for number, pairs in enumerate(agents):
        own, told_of = hand_made.both(pairs, agent=f"Agent {number}")
        cases += own
        said |= told_of
    return ranking(pair_cases(cases, said), rule)


def test_rankings_by_people_and_by_the_judge_are_compared_on_decided_cases(db: Any) -> None:
    a, b, c = [(1, 1), (1, 1)], [(1, 0), (0, 0), (None, 1), (None, 1)], [(0, 0), (0, 1)]
    # People a > b > c, the judge a > c > b: two pairs of agents in the same order, one not.
    found = ranked(Label2.NOT_SUCCESS, a, b, c, [(None, 1)])
    assert (found.value, found.n) == (pytest.approx(1 / 3), 3)


def test_people_s_rates_in_a_ranking_are_those_of_the_cases_that_the_judge_has_scored(db: Any) -> None:
    first = [(1, 1), (0, 0), (0, None), (0, None)]  # by people 1 of 4, of the scored ones 1 of 2
    second = [(1, 1), (0, 0), (0, 0)]  # 1 of 3
    assert ranked(Label2.NOT_SUCCESS, first, second).value == 1  # and not the reverse of the judge's order


def test_a_ranking_follows_the_rule_for_label_2(db: Any) -> None:
    first = [(1, 1), (2, 0), (2, 0)]  # without label 2: people 1, judge 1; over all 1/3 each
    second = [(1, 1), (0, 1)]  # people 1/2, judge 1
    third = [(0, 0), (1, 0)]
    assert ranked(Label2.NOT_SUCCESS, first, second).value == 1
    # People first > second = third, the judge first = second > third: one pair in order, the other two tied in one.
    assert ranked(Label2.EXCLUDED, first, second, third).value == pytest.approx(1 / 2)


def test_ranking_has_the_interval_of_drawn_tasks(db: Any) -> None:
    better, worse = [(1, 1)] * 30 + [(0, 0)] * 10, [(1, 1)] * 4 + [(0, 0)] * 36
    between = [(1, 1)] * 18 + [(0, 0)] * 20 + [(0, 1)] * 2
    found = ranked(Label2.NOT_SUCCESS, better, worse, between)
    assert (found.value, found.low, found.high) == (1, None, None)  # all drawn tasks give the same
    close = ranked(Label2.NOT_SUCCESS, better, [(1, 1)] * 29 + [(0, 1)] * 3 + [(0, 0)] * 8, between)
    assert close.value is not None
    assert close.low is not None
    assert -1 <= close.low <= close.value <= 1


def test_one_agent_has_no_ranking(db: Any) -> None:
    assert ranked(Label2.EXCLUDED, [(1, 1)]).undefined


# --- judges ----------------------------------------------------------------------------------------------------------


def test_two_judges_are_compared_on_the_cases_that_both_have_scored(shops: Benchmark) -> None:
    #             people, first, second
    table = [(1, 1, 1), (0, 0, 2), (1, 1, 0), (0, 0, 1), (2, 0, 1), (1, 0, 1), (1, 0, 0), (2, 1, 1)]
    table_and_more = [*table, (1, 1, None), (1, None, 0), (None, 1, 0)]
    cases = [case(number, human) for number, (human, _, _) in enumerate(table_and_more)]
    first = judge_saying(shops, "first", *zip(cases, [row[1] for row in table_and_more], strict=True))
    second = judge_saying(shops, "second", *zip(cases, [row[2] for row in table_and_more], strict=True))
    without, found = versus([first, second], cases)
    assert (found.first, found.second, found.n) == ("first", "second", 8)
    assert (without.human_label_2, found.human_label_2) == (Label2.EXCLUDED, Label2.NOT_SUCCESS)
    assert (without.both, without.first_only, without.second_only, without.neither) == (2, 2, 1, 1)
    assert (found.both, found.first_only, found.second_only, found.neither) == (2, 3, 1, 2)
    # Four differ, split 3 to 1: p = 2 * (1 + 4) / 16
    assert (found.p.value, found.exact) == (10 / 16, True)
    assert (found.difference.value, found.same.hits, found.same.n) == (2 / 8, 4, 8)
    said = {judge.pk: find_judgments(judge, cases) for judge in (first, second)}
    assert versus([second, first], cases, said=said) == [without, found]  # the better one first
    assert found.difference == paired_difference(2, 3, 1, 2)


def test_every_two_judges_are_set_against_each_other_and_one_alone_is_not(shops: Benchmark) -> None:
    judges = [judge_saying(shops, name, (case(0, 1), 1)) for name in ("a", "b", "c")]
    found = versus(judges, [case(0, 1)])
    assert [(each.first, each.second) for each in found[::2]] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found[0].p.undefined == "the two never differ"
    assert versus(judges[:1], [case(0, 1)]) == []


def test_judges_without_a_common_case_are_undefined(shops: Benchmark) -> None:
    judges = [judge_saying(shops, name, (case(number, 1), 1)) for number, name in enumerate(("a", "b"))]
    found = versus(judges, [case(0, 1), case(1, 1)])[0]
    assert (found.n, found.same.value, found.difference.value, found.p.value) == (0, None, None, None)


def test_the_interval_of_a_difference_knows_that_agents_attempted_the_same_tasks(db: Any) -> None:
    """What five agents do alike on 30 tasks tells as much of two judges as what one does."""
    judges = [judge_row("a"), judge_row("b")]
    widths = []
    for agents in (1, 5):
        cases = [case(number, 1, agent=f"Agent {n}") for n in range(agents) for number in range(30)]
        a = {one.key: told(int(int(one.task_id[-1]) < 8)) for one in cases}
        b = {one.key: told(int(int(one.task_id[-1]) > 3)) for one in cases}
        found = versus(judges, cases, said={judges[0].pk: a, judges[1].pk: b})[0]
        assert found.difference.value == pytest.approx((8 - 6) / 10)
        assert found.difference.low is not None and found.difference.high is not None  # noqa: PT018
        widths.append(found.difference.high - found.difference.low)
    assert widths[1] == pytest.approx(widths[0], rel=0.12)


def test_p_value_of_two_judges_does_not_fall_with_agents_that_are_alike(db: Any) -> None:
    """Five agents that do the same tasks alike tell no more of two judges than one agent does."""
    judges, found = [judge_row("a"), judge_row("b")], {}
    for agents in (1, 5):
        cases = [case(number, 1, agent=f"Agent {n}") for n in range(agents) for number in range(12)]
        a = {one.key: told(int(number % 12 < 9)) for number, one in enumerate(cases)}
        b = {one.key: told(int(number % 12 > 7)) for number, one in enumerate(cases)}
        found[agents] = versus(judges, cases, said={judges[0].pk: a, judges[1].pk: b})[0]
    # On 8 tasks only the first is right, on 3 only the second: 2 P(X <= 3) of 11 = 2 (1 + 11 + 55 + 165) / 2048.
    assert [each.p.value for each in found.values()] == pytest.approx([2 * 232 / 2048] * 2)
    assert [(each.by_task, each.exact, each.permutations) for each in found.values()] == [
        (False, True, None),
        (True, True, None),
    ]
    assert [row[11:13] for row in comparison_tables.versus(list(found.values())).rows] == [
        ["exact", found[1].same],
        ["tasks swapped, exact", found[5].same],
    ]


def test_of_many_judges_the_ten_that_agree_best_are_set_against_each_other(db: Any) -> None:
    judges = [judge_row(f"judge {number}") for number in range(12)]
    cases = [case(number, 1) for number in range(12)]
    said = {
        judge.pk: {one.key: told(int(number <= place)) for number, one in enumerate(cases)}
        for place, judge in enumerate(judges)
    }
    found = versus(judges, cases, said=said)
    assert len(found) == 2 * 45
    assert (found[0].first, found[0].second) == ("judge 11", "judge 10")
    assert not {"judge 0", "judge 1"} & {name for each in found for name in (each.first, each.second)}
