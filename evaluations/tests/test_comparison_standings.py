"""How good the agents are, by people and by judges, and which of two judges is better."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation import testing
from annotation.models import Benchmark
from evaluations.cases import Case
from evaluations.comparison import judged, ranking, standings, versus
from evaluations.tests.hand_made import case
from judges.imports import import_judgments
from judges.models import Judge


def judge_saying(benchmark: Benchmark, name: str, *rows: tuple[Case, int | None]) -> Judge:
    lines = [json.dumps({"task_id": one.task_id, "agent": one.agent, "verdict": verdict}) for one, verdict in rows]
    outcome = import_judgments("\n".join(lines).encode(), "j.jsonl", benchmark=benchmark, judge=name)
    assert not outcome.report.rejected, outcome.report.as_json()
    return Judge.objects.get(name=name)


@pytest.fixture
def shops(db: Any) -> Benchmark:
    return testing.benchmark(12)


# --- agents ----------------------------------------------------------------------------------------------------------


def test_success_rates_are_over_all_and_without_label_2_and_by_level() -> None:
    cases = [case(0, 1), case(1, 0), case(2, 2), case(3, 1, level="hard"), case(4, None), case(5, 0, level="")]
    (found,) = standings(cases)
    assert (found.agent, found.by, found.n, found.undecided, found.not_executable) == ("X", "people", 5, 1, 1)
    assert (found.over_all.hits, found.over_all.n, found.over_all.value) == (2, 5, 0.4)
    assert (found.without_2.hits, found.without_2.n, found.without_2.value) == (2, 4, 0.5)
    assert found.over_all.low is not None
    assert {name: (every.value, fewer.value) for name, (every, fewer) in found.levels.items()} == {
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


def test_rankings_by_people_and_by_the_judge_are_compared_on_decided_cases(shops: Benchmark) -> None:
    rates = {"a": ((1, 1), (1, 1)), "b": ((1, 0), (0, 0)), "c": ((0, 0), (1, 0))}  # people's, the judge's
    pairs = [
        (case(number, human, agent), verdict)
        for agent, (people, judge) in rates.items()
        for number, (human, verdict) in enumerate(zip(people, judge, strict=True))
    ]
    pairs += [
        (case(2, None, "b"), 1),
        (case(3, None, "b"), 1),
        (case(0, None, "open"), 1),
    ]  # undecided: they do not count
    judge = judge_saying(shops, "webjudge", *pairs)
    cases = [one for one, _ in pairs]
    # People a > b > c, the judge a > c > b: two pairs of agents in the same order, one not.
    found = ranking(standings(cases, judge), judge, cases)
    assert (found.value, found.n) == (pytest.approx(1 / 3), 3)
    assert ranking(standings(cases, judge), judge, cases, said=judged(judge, cases)) == found


def test_one_agent_has_no_ranking(shops: Benchmark) -> None:
    judge = judge_saying(shops, "webjudge", (case(0, 1), 1))
    assert ranking(standings([case(0, 1)]), judge, [case(0, 1)]).undefined


# --- judges ----------------------------------------------------------------------------------------------------------


def test_two_judges_are_compared_on_the_cases_that_both_have_scored(shops: Benchmark) -> None:
    #             people, first, second
    table = [(1, 1, 1), (0, 0, 2), (1, 1, 0), (0, 0, 1), (2, 0, 1), (1, 0, 1), (1, 0, 0), (2, 1, 1)]
    table_and_more = [*table, (1, 1, None), (1, None, 0), (None, 1, 0)]
    cases = [case(number, human) for number, (human, _, _) in enumerate(table_and_more)]
    first = judge_saying(shops, "first", *zip(cases, [row[1] for row in table_and_more], strict=True))
    second = judge_saying(shops, "second", *zip(cases, [row[2] for row in table_and_more], strict=True))
    (found,) = versus([first, second], cases)
    assert (found.first, found.second, found.n) == ("first", "second", 8)
    assert (found.both, found.first_only, found.second_only, found.neither) == (2, 3, 1, 2)
    # Four differ, split 3 to 1: p = 2 * (1 + 4) / 16
    assert (found.p.value, found.exact) == (10 / 16, True)
    assert (found.difference.value, found.same.hits, found.same.n) == (2 / 8, 4, 8)
    said = {judge.pk: judged(judge, cases) for judge in (first, second)}
    assert versus([first, second], cases, said=said) == [found]


def test_every_two_judges_are_set_against_each_other_and_one_alone_is_not(shops: Benchmark) -> None:
    judges = [judge_saying(shops, name, (case(0, 1), 1)) for name in ("a", "b", "c")]
    found = versus(judges, [case(0, 1)])
    assert [(each.first, each.second) for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found[0].p.undefined == "the two never differ"
    assert versus(judges[:1], [case(0, 1)]) == []


def test_judges_without_a_common_case_are_undefined(shops: Benchmark) -> None:
    judges = [judge_saying(shops, name, (case(number, 1), 1)) for number, name in enumerate(("a", "b"))]
    (found,) = versus(judges, [case(0, 1), case(1, 1)])
    assert (found.n, found.same.value, found.difference.value, found.p.value) == (0, None, None, None)
