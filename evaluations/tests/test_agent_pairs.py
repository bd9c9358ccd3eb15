"""Every two agents, and every two judges, with p corrected for the number of pairs."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.models import Benchmark, Person
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import get as api
from evaluations.comparison import Label2, agent_pairs, versus
from evaluations.comparison.places import MOST_PAIRS
from evaluations.tests import builders as results
from evaluations.tests.hand_made import case, told
from evaluations.tests.test_comparison_pages import csv_rows, get, page, text
from evaluations.tests.test_leaderboard_places import cases, first
from evaluations.tests.test_two_agents import REVIEWED
from judges.tests.rows import judge_row


@shared_rows
def benchmark() -> Benchmark:
    return results.reviewed(agents=3, tasks=20, seed=5)


@shared_rows
def mira(benchmark: Benchmark) -> Person:
    return Person.objects.get(username="mira")


def test_pairs_of_agents_have_mcnemars_p_and_holms() -> None:
    """A and B differ on 3 tasks (p 0.25), B and C on 5 (p 0.0625), A and C on 8 (p 2 / 2^8)."""
    found = [
        each for each in agent_pairs(cases(A=first(20), B=first(17), C=first(12))) if each.human_label_2 == "excluded"
    ]
    assert [(each.first, each.second, each.family) for each in found] == [("A", "C", 3), ("B", "C", 3), ("A", "B", 3)]
    assert [each.p.value for each in found] == [2 / 2**8, 0.0625, 0.25]
    assert [each.p_holm.value for each in found] == [3 * 2 / 2**8, 0.125, 0.25]  # times 3, 2 and 1
    best = found[0]
    assert (best.n, best.both, best.first_only, best.second_only, best.neither) == (20, 12, 8, 0, 0)
    assert best.difference.value == pytest.approx(8 / 20)


def test_pairs_are_of_the_tasks_decided_for_both_by_the_rule_for_label_2() -> None:
    found = {each.human_label_2: each for each in agent_pairs(cases(A=[1, 1, 2], B=[0, 2]))}
    assert (found[Label2.EXCLUDED].n, found[Label2.NOT_SUCCESS].n) == (1, 2)
    assert found[Label2.NOT_SUCCESS].first_only == 2
    assert agent_pairs([case(0, 1, "A"), case(1, 1, "B"), case(2, None, "B")]) == []


def test_pairs_that_never_differ_come_last_and_count_in_the_family() -> None:
    found = agent_pairs(cases(A=first(20), B=first(20), C=first(8)))[:3]
    assert [(each.first, each.second) for each in found] == [("A", "C"), ("B", "C"), ("A", "B")]
    assert found[2].p_holm.undefined == "the two never differ"
    assert found[0].p_holm.value == pytest.approx(3 * found[0].p.value)


def test_of_many_pairs_the_smallest_p_are_listed_and_all_count() -> None:
    many = {f"Agent {number}": first(number % 7, 8) for number in range(16)}
    found = agent_pairs(cases(**many))
    assert len(found) == 2 * MOST_PAIRS
    assert {each.family for each in found} == {16 * 15 // 2}


def test_pairs_of_judges_are_corrected_within_a_rule(db: Any) -> None:
    judges = [judge_row(name) for name in ("a", "b", "c")]
    decided = [case(number, 1) for number in range(20)]
    said = {
        judge.pk: {one.key: told(int(number < right)) for number, one in enumerate(decided)}
        for judge, right in zip(judges, (20, 17, 12), strict=True)
    }
    found = [each for each in versus(judges, decided, said=said) if each.human_label_2 is Label2.NOT_SUCCESS]
    assert [(each.first, each.second) for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [each.p_holm.value for each in found] == [0.25, 3 * 2 / 2**8, 0.125]


def test_leaderboard_file_and_api_have_the_same_pairs(mira: Person) -> None:
    shown = text(get(mira, page("agents")))
    assert "Agent against agent" in shown
    rows = csv_rows(get(mira, page("agents"), csv="agent-pairs"))
    answer = api(mira, "/benchmarks/reviewed/agents").json()["pairs"]
    assert [row["first"] for row in rows] == [each["first"] for each in answer]
    assert len(rows) == 2 * 3
    assert float(rows[0]["holm_p"]) == answer[0]["p_holm"]["value"] == pytest.approx(3 * answer[0]["p"]["value"])


def test_page_of_two_agents_corrects_p_for_all_frozen_ones(mira: Person) -> None:
    found = {
        (each["first"], each["second"]): each for each in api(mira, "/benchmarks/reviewed/agents").json()["pairs"][3:]
    }
    shown = text(get(mira, REVIEWED))
    assert "corrected for the 3 pairs of frozen agents here (Holm)" in shown
    pair = found["Agent 01", "Agent 02"]
    assert pair["human_label_2"] == "not_success"
    assert f"p = {pair['p']['value']:.4f}".rstrip("0")[:8] in shown
    assert "pairs of frozen agents" not in text(get(mira, REVIEWED, q="shop 1"))
