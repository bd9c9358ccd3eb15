"""The leaderboard of agents: places as ranges, one switch for label 2, and rows that can be quoted as they are."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import pytest

from annotation.models import Benchmark, Person, Submission
from annotation.tests.shared_rows import shared_rows
from evaluations import access
from evaluations.cases import Case
from evaluations.comparison import Label2, places, standings
from evaluations.tests import builders as results
from evaluations.tests.hand_made import case
from evaluations.tests.test_comparison_pages import csv_rows, get, page, text
from evaluations.tests.test_leaderboards import judged_alone

People = dict[str, Person]


@shared_rows
def benchmark() -> Benchmark:
    return results.reviewed(agents=3, tasks=20, seed=5)


@shared_rows
def mira(benchmark: Benchmark) -> Person:
    return Person.objects.get(username="mira")


def cases(**verdicts: Sequence[int]) -> list[Case]:
    """The verdicts of each agent on the tasks 0, 1, 2 ..."""
    return [case(number, said, agent) for agent, all_said in verdicts.items() for number, said in enumerate(all_said)]


def first(hits: int, of: int = 20) -> list[int]:
    """Success on the first tasks alone."""
    return [1] * hits + [0] * (of - hits)


def shown(found: list[Case], rule: Label2 = Label2.NOT_SUCCESS) -> dict[str, str]:
    return {agent: str(place) for agent, place in places(found, rule).items()}


# --- places ----------------------------------------------------------------------------------------------------------


def test_agents_that_are_not_shown_to_differ_share_places() -> None:
    assert shown(cases(A=first(20), B=first(5), C=first(5))) == {"A": "1", "B": "2–3", "C": "2–3"}


def test_place_is_a_range_where_only_the_ends_differ() -> None:
    """A and B differ on 3 tasks (p 0.25), B and C on 5 (p 0.0625), A and C on 8 (p 0.008)."""
    assert shown(cases(A=first(20), B=first(17), C=first(12))) == {"A": "1–2", "B": "1–3", "C": "2–3"}


def test_few_tasks_show_no_difference() -> None:
    assert shown(cases(A=first(5, 5), B=first(0, 5))) == {"A": "1–2", "B": "1–2"}  # p 0.0625
    assert shown(cases(A=first(6, 6), B=first(0, 6))) == {"A": "1", "B": "2"}  # p 0.03125


def test_only_tasks_that_both_did_are_compared() -> None:
    apart = [*cases(A=first(20)), *(case(100 + number, 0, "B") for number in range(20))]
    assert shown(apart) == {"A": "1–2", "B": "1–2"}


def test_versions_of_a_task_are_different_tasks() -> None:
    apart = [*cases(A=first(20)), *(case(number, 0, "B", task_version=2) for number in range(20))]
    assert shown(apart) == {"A": "1–2", "B": "1–2"}


def test_label_2_is_counted_as_the_page_counts_it() -> None:
    found = cases(A=[1] * 10 + [0] * 10, B=[2] * 10 + [0] * 10)
    assert shown(found) == {"A": "1", "B": "2"}
    assert shown(found, Label2.EXCLUDED) == {"A": "1–2", "B": "1–2"}


def test_agent_without_a_decision_has_no_place() -> None:
    assert shown([*cases(A=first(3, 3)), case(0, None, "B")]) == {"A": "1"}
    assert shown([]) == {}


# --- the page --------------------------------------------------------------------------------------------------------


def rows_of(answer: Any) -> list[list[str]]:
    """The cells of the leaderboard, as read."""
    body = answer.content.decode().partition('<table class="board"')[2].partition("</table>")[0]
    return [
        [
            " ".join(html.unescape(re.sub("<[^>]+>", " ", part)).split())
            for part in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)[1:]
    ]


@pytest.mark.parametrize(("query", "rule"), [("", Label2.NOT_SUCCESS), ("excluded", Label2.EXCLUDED)])
def test_row_has_place_rate_interval_count_and_basis_under_one_rule(mira: Person, query: str, rule: Label2) -> None:
    _, every = access.benchmark_cases(mira, "reviewed")
    expected = {each.agent: each for each in standings(every)}
    ranks = places(every, rule)
    rows = rows_of(get(mira, page("agents"), **({"label2": query} if query else {})))

    assert len(rows) == 3
    rates = []
    for place, agent, rate, interval, _, successes, label_2, undecided, basis in rows:
        standing = expected[agent]
        measure = standing.under(rule)
        assert measure.value is not None
        assert measure.low is not None
        assert measure.high is not None
        assert place == str(ranks[agent])
        assert rate == f"{100 * measure.value:.1f}%"
        assert interval == f"{100 * measure.low:.1f} to {100 * measure.high:.1f}"
        assert successes.startswith(f"{measure.hits} of {measure.n}")
        assert (label_2, undecided) == (str(standing.not_executable), str(standing.undecided))
        decided = sum(
            case.adjudicated is not None for case in every if case.agent_name == agent and case.final is not None
        )
        assert basis == f"3 labels each, {decided} decided by an adjudicator"
        rates.append(measure.value)
    assert rates == sorted(rates, reverse=True)


def test_switch_is_two_links_that_keep_the_filters_and_one_is_on(mira: Person) -> None:
    answer = get(mira, page("agents"), level="easy", label2="excluded").content.decode()
    switch = answer.partition('class="switch"')[2].partition("</span>")[0]
    links = re.findall(r'href="([^"]*)"( aria-current="true")?>([^<]*)<', switch)

    assert [(html.unescape(link), bool(on), words) for link, on, words in links] == [
        ("?level=easy&label2=not_success", False, "counts as no success"),
        ("?level=easy&label2=excluded", True, "left out"),
    ]
    assert '<input type="hidden" name="label2" value="excluded"' in answer
    other = get(mira, page("agents")).content.decode()
    assert re.search(r'label2=not_success"\s+aria-current="true"', other)


def test_rule_of_places_stands_below_the_leaderboard(mira: Person) -> None:
    assert "with p below 0.05 (McNemar's test, exact for few tasks)" in text(get(mira, page("agents")))


@pytest.mark.parametrize("rule", ["not_success", "excluded"])
def test_file_has_both_rules_whatever_the_page_shows(mira: Person, rule: str) -> None:
    shown = csv_rows(get(mira, page("agents"), csv="standings", label2=rule))

    assert shown == csv_rows(get(mira, page("agents"), csv="standings"))
    assert {"agent", "judged", "by", "cases", "over_all", "without_label_2", "easy_over_all"} <= set(shown[0])


def test_rates_by_level_follow_the_switch(mira: Person) -> None:
    _, every = access.benchmark_cases(mira, "reviewed")
    standing = standings(every)[0]
    for rule in Label2:
        level, rates = next(iter(standing.levels.items()))
        rate = rates.under(rule)
        part = text(get(mira, page("agents"), label2=rule.value)).partition("By level")[2]
        assert level in part
        assert f"{100 * (rate.value or 0):.1f}% {rate.hits}/{rate.n}" in part


def test_agent_that_only_a_judge_has_judged_is_hatched_and_not_ranked(submission: Submission, people: People) -> None:
    judged_alone(submission, [1, 0])
    answer = get(people["mira"], page("agents", "shops"))
    ((place, agent, rate, interval, *_, basis),) = rows_of(answer)

    assert place == "– not ranked"
    assert agent == "Careful Agent judged by strict"
    assert (rate, interval) == ("50.0%", "9.5 to 90.5")
    assert basis == "strict alone: no person has judged this agent"
    assert '<tr class="judged">' in answer.content.decode()
    assert "0 agents decided by people, 0 final verdicts. 1 agent only by a judge" in text(answer)


def test_agent_without_a_verdict_has_no_rate_and_no_place(frozen: Submission, people: People) -> None:
    row = rows_of(get(people["mira"], page("agents", "shops")))[0]
    assert row[0] == "1"
    Submission.objects.filter(pk=frozen.pk).update(frozen_at=None)
    assert "nothing to rank" in text(get(people["mira"], page("agents", "shops")))


def test_leaderboard_is_the_first_tab_of_a_benchmark(mira: Person) -> None:
    tabs = get(mira, page("agents")).content.decode().partition('aria-label="Benchmark"')[2].partition("</nav>")[0]
    assert re.findall(r">([^<]+)</a>", tabs)[0] == "Leaderboard"
    assert 'aria-current="page">Leaderboard' in tabs
