"""The success rate of a submission: whose labels and verdicts count, strata, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from annotation.models import PlannedItem, SamplePlan, Submission
from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.estimating import NO_LABELS, SMALLEST_STRATUM, UNPLANNED, Population, estimate, name_strata
from evaluations.statistics.estimates import Estimand
from evaluations.statistics.sequential import confidence_sequence
from evaluations.tests.labelled import case
from judges.models import Judge


def trajectories(*finals: int | None, level: str = "easy", first: int = 1) -> list[Case]:
    """Cases with these final verdicts, numbered from ``first``."""
    return [
        case(trajectory=n, task_id=f"t{n}", level=level, final=None if final is None else Verdict(final))
        for n, final in enumerate(finals, first)
    ]


def population(cases: list[Case], said: str = "", drawn: str = "", **fields: Any) -> Population:
    """``said`` is the judge's verdict on each case ("1", "0", "-": unscored); ``drawn`` has an "x" for each drawn."""
    judge = Judge(name="careful") if said else None
    verdicts = {n: None if mark == "-" else int(mark) for n, mark in enumerate(said, 1)}
    strata = name_strata(cases, verdicts, judge is not None)
    plan = SamplePlan(goal={}, rule={"rule": "fixed"}, estimand=fields.pop("estimand", "runs")) if drawn else None
    size, marked = Counter(strata.values()), Counter(strata[n] for n, mark in enumerate(drawn, 1) if mark == "x")
    items = {
        n: PlannedItem(
            trajectory_id=n,
            stratum=strata[n],
            probability=marked[strata[n]] / size[strata[n]],
            position=n if mark == "x" else None,
        )
        for n, mark in enumerate(drawn, 1)
    }
    return Population(Submission(pk=7), cases, judge, verdicts, strata, plan=plan, items=items, **fields)


# --- strata -----------------------------------------------------------------------------------------------------------


def sizes(levels: dict[tuple[str, str], int], by_judge: bool = True) -> dict[str, int]:
    """The sizes of the strata of so many trajectories by verdict ("1", "0" or "-") and level."""
    cases, verdicts = [], {}
    for (said, level), number in levels.items():
        for one in trajectories(*[None] * number, level=level, first=len(cases) + 1):
            cases.append(one)
            verdicts[len(cases)] = None if said == "-" else int(said)
    found: dict[str, int] = {}
    for name in name_strata(cases, verdicts, by_judge).values():
        found[name] = found.get(name, 0) + 1
    return found


def test_strata_are_verdict_and_level_and_unscored_ones_are_one_stratum() -> None:
    levels = {
        ("1", "easy"): 20,
        ("1", "hard"): 30,
        ("0", "easy"): 25,
        ("0", "hard"): 21,
        ("-", "easy"): 1,
        ("-", "hard"): 2,
    }
    assert sizes(levels) == {
        "success, easy": 20, "success, hard": 30, "no success, easy": 25, "no success, hard": 21, "no verdict": 3,
    }  # fmt: skip


def test_small_levels_are_merged_until_they_are_large_enough() -> None:
    assert SMALLEST_STRATUM == 20
    levels = {("1", "a"): 5, ("1", "b"): 14, ("1", "c"): 22, ("1", "d"): 40}
    assert sizes(levels) == {"success, other levels": 41, "success, d": 40}  # 5 and 14 are 19: c joins them


def test_level_that_has_the_name_of_merged_ones_keeps_its_trajectories() -> None:
    levels = {("-", "other levels"): 30, ("-", "b"): 30, ("-", "c"): 25, ("-", "a"): 5, ("-", "z"): 16}
    assert sizes(levels, by_judge=False) == {"other levels": 51, "b": 30, "c": 25}
    assert sizes({("1", "other levels"): 30, ("1", "a"): 5, ("1", "z"): 16}) == {"success": 51}


def test_verdicts_are_never_merged() -> None:
    assert sizes({("1", "easy"): 2, ("0", "easy"): 3, ("0", "hard"): 4}) == {"success": 2, "no success": 7}


def test_strata_without_a_judge_are_levels() -> None:
    assert sizes({("-", "easy"): 20, ("-", "hard"): 30}, by_judge=False) == {"easy": 20, "hard": 30}
    assert sizes({("-", "easy"): 2}, by_judge=False) == {"all": 2}
    assert sizes({("-", ""): 20, ("-", "hard"): 30}, by_judge=False) == {"level not known": 20, "hard": 30}


# --- estimates --------------------------------------------------------------------------------------------------------


def test_rate_of_a_full_count_is_exact_and_label_2_is_no_success() -> None:
    found = estimate(population(trajectories(1, 1, 1, 0, 2), "11100"))
    assert (found.people.value, found.people.low, found.people.high) == (0.6, 0.6, 0.6)
    assert (found.combined.value, found.n_labelled, found.n_total) == (0.6, 5, 5)
    assert (found.planned, found.bounds, found.meaning) == (False, None, "the success rate of these 5 trajectories")


def test_labels_without_a_plan_give_bounds_and_no_estimate() -> None:
    found = estimate(population(trajectories(1, 1, 0, None, None, None, None, None), "11000000"))
    why = "the 3 labelled of 8 trajectories are not a planned sample: nothing is assumed about which were labelled"
    assert [each.undefined for each in (found.people, found.combined)] == [why, why]
    assert found.bounds == [0.25, 0.875]  # 2 of 8, if all others fail, and 7 of 8
    assert (found.method, found.judge_only.value) == (UNPLANNED, 0.25)
    assert {each.people.undefined for each in found.levels} == {why}


def test_nothing_is_estimated_before_all_drawn_trajectories_are_decided() -> None:
    found = estimate(population(trajectories(1, None, None, None, 0), "11000", "xx--x"))
    assert found.combined.undefined == "1 of the 3 drawn trajectories have no final verdict yet"
    assert found.bounds is None
    assert estimate(population(trajectories(None, None), "11", "xx")).people.undefined == NO_LABELS


def test_labels_outside_of_the_draw_do_not_count() -> None:
    cases = trajectories(1, 0, 1, None, None, 1)
    found = estimate(population(cases, drawn="xxx---"))
    assert (found.n_labelled, found.n_total) == (3, 6)
    assert found.people.value == pytest.approx(2 / 3)
    (stratum,) = found.strata
    assert (stratum.total, stratum.drawn, stratum.labelled, stratum.successes) == (6, 3, 3, 2)


def test_estimand_is_that_of_the_plan_unless_another_is_asked_for() -> None:
    given = population(trajectories(1, 0, 1, 1, None, None), drawn="xxxx--", estimand="agent")
    agent, runs = estimate(given), estimate(given, Estimand.RUNS)
    assert (agent.estimand, runs.estimand) == (Estimand.AGENT, Estimand.RUNS)
    assert agent.people.high - agent.people.low > runs.people.high - runs.people.low
    assert "the agent" in agent.meaning


def test_without_a_judge_people_stand_alone() -> None:
    found = estimate(population(trajectories(1, 0, 1, 0), drawn="xxxx"))
    assert (found.combined.value, found.judge_only.undefined) == (0.5, "no judge was chosen")
    assert found.method == "people alone"


def test_verdicts_that_came_after_the_plan_change_no_estimate() -> None:
    # The judge knows the labels: it is right about all of them, and calls all others a success.
    cases = trajectories(1, 0, 1, 0, *[None] * 26)
    alone = population(cases, drawn="xxxx" + "-" * 26)
    said = {n: int(mark) for n, mark in enumerate("1010" + "1" * 26, 1)}
    late = estimate(replace(alone, judge=Judge(name="careful"), verdicts=said, later_verdicts=True))
    assert (late.combined, late.method) == (late.people, "people alone")
    assert late.people == estimate(alone).people
    assert late.people.value == 0.5
    assert late.reason == "The sample plan was made without the verdicts of this judge."
    assert [each.combined for each in late.levels] == [each.people for each in late.levels]


def test_levels_have_their_own_estimates() -> None:
    cases = trajectories(1, 1, 0) + trajectories(0, 0, level="hard", first=4)
    found = estimate(population(cases, "11100"))
    assert [(each.level, each.people.value, each.n_total) for each in found.levels] == [
        ("easy", pytest.approx(2 / 3), 3),
        ("hard", 0.0, 2),
    ]


@pytest.mark.parametrize("rule", [{"rule": "fixed"}, {"rule": "anytime", "half_width": 0.3}])
def test_draw_may_take_more_of_a_level_than_of_others(rule: dict[str, Any]) -> None:
    # All four of "easy" were drawn by chance, and one of the six of "hard": the draw was of 5 of 10.
    cases = trajectories(1, 1, 0, 1) + trajectories(0, *[None] * 5, level="hard", first=5)
    given = population(cases, drawn="xxxxx" + "-" * 5)
    assert given.plan is not None
    given.plan.rule = rule
    found = estimate(given)
    assert [(each.level, each.people.value, each.n_labelled) for each in found.levels] == [
        ("easy", 0.75, 4),
        ("hard", 0.0, 1),
    ]
    assert found.people.value == pytest.approx(3 / 5)
    if rule["rule"] == "anytime":
        assert found.levels[1].people == confidence_sequence([0], 6)[-1]
        assert found.people == confidence_sequence([1, 1, 0, 1, 0], 10)[-1]


def test_item_that_the_plan_lacks_counts_as_not_drawn() -> None:
    # Audits leave out items that a bundle states wrongly.
    given = population(trajectories(1, 0, None, None), drawn="xx--")
    assert given.plan is not None
    given.plan.rule = {"rule": "anytime", "half_width": 0.3}
    del given.items[4]  # type: ignore[attr-defined]
    found = estimate(given)
    assert (found.n_labelled, found.n_total) == (2, 4)
