"""Intervals where several agents did the same tasks: cases of one task are alike, so tasks are drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from annotation.records import Verdict
from evaluations.agreement import Group
from evaluations.statistics import Measure, wilson
from evaluations.tests.labelled import of, tasks


def width(measure: Measure) -> float:
    assert measure.low is not None
    assert measure.high is not None
    return measure.high - measure.low


def figure(group: Group, name: str) -> Measure:
    return group.coefficients.get(name) or getattr(group if name == "raw_agreement" else group.outcomes, name)


def test_the_same_tasks_by_more_agents_do_not_narrow_the_intervals() -> None:
    alone, pooled = of(*tasks(1)).overall, of(*tasks(4)).overall
    for name in ("raw_agreement", "alpha", "ac1", "fleiss_kappa", "unanimous", "majority"):
        one, many = figure(alone, name), figure(pooled, name)
        # Four times as many independent cases would halve the width. Shares of one agent are by Wilson's formula.
        assert width(many) == pytest.approx(width(one), rel=0.2), name
    assert width(pooled.per_label[Verdict.SUCCESS]) > 0.88 * width(alone.per_label[Verdict.SUCCESS])


def test_one_agent_and_different_tasks_keep_the_intervals_of_independent_cases() -> None:
    groups = of(*tasks(2)).groups["agent"]
    assert [group.outcomes.unanimous for group in groups] == [wilson(15, 24)] * 2
    twice = [replace(each, agent="X") for each in tasks(2)]  # two versions of every task
    assert of(*twice).overall.outcomes.unanimous == wilson(30, 48)
    apart = [replace(each, task_id=f"{each.agent} {each.task_id}") for each in tasks(2)]
    assert of(*apart).overall.outcomes.unanimous == wilson(30, 48)


def test_two_people_who_labelled_several_agents_on_the_same_tasks_have_intervals_by_task() -> None:
    one, many = of(*tasks(1)), of(*tasks(4))
    for name in ("raw_agreement", "kappa", "alpha"):
        assert width(getattr(many.pairs[0], name)) == pytest.approx(width(getattr(one.pairs[0], name)), rel=0.12), name
    imported: dict[str, Any] = {"state": None, "trajectory": None, "submission": None, "expected": 2}
    first, fourth = of(*tasks(1, **imported)).first_against_second, of(*tasks(4, **imported)).first_against_second
    assert first is not None
    assert fourth is not None
    assert width(fourth.kappa) == pytest.approx(width(first.kappa), rel=0.12)
