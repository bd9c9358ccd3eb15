"""Weights and conditions of the claims of a written rubric: how they are read, and what the scorer rubric does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.formats.documents import FormatError
from annotation.records import Finding, Verdict
from judges.scorer import Score
from judges.scorers.rubric.tree import FAILED, NOT_APPLICABLE, PASSED, VerificationNode
from judges.scorers.rubric.written import parse
from judges.tests.builders import Fake, MemoryCallLog
from judges.tests.rubric_subjects import about, says
from judges.tests.webjudging import foreseen, judge, judged


def rubric(*nodes: dict[str, Any], **more: Any) -> str:
    return json.dumps({"about": "answer", "nodes": list(nodes)} | more)


def score(fake: Fake, text: str, calls: MemoryCallLog | None = None, **parameters: Any) -> Score:
    return judged(fake, judge("rubric", votes="1", **parameters), about(text), calls)


def met(condition: str, result: bool) -> dict[str, Any]:
    return says(f"This condition is met: {condition}", result)


# --- reading ----------------------------------------------------------------------------------------------------------


def test_claim_has_weight_1_and_no_condition_unless_it_says_otherwise():
    plain, heavy, part = parse(
        """\
about: answer
nodes:
  - claim: A
  - claim: B
    weight: 3
    condition: The shop offers shades.
  - claim: C
    weight: 0.5
"""
    ).nodes

    assert (plain.weight, plain.condition) == (1, "")
    assert (heavy.weight, heavy.condition) == (3, "The shop offers shades.")
    assert part.weight == 0.5


@pytest.mark.parametrize("weight", ["0", "-1", "1001", "heavy", "true", ".nan", "[1]", '"2"'])
def test_weight_that_is_not_a_positive_number_is_refused_with_its_line_and_what_is_allowed(weight):
    with pytest.raises(FormatError) as error:
        parse(f"about: answer\nnodes:\n  - claim: A\n  - claim: B\n    weight: {weight}\n")

    (problem,) = error.value.problems
    assert (problem.code, problem.where) == ("rubric_weight", "line 5")
    assert "weight must be a number above 0 and at most 1,000" in problem.message


def test_condition_that_is_no_text_is_refused():
    with pytest.raises(FormatError) as error:
        parse("about: answer\nnodes:\n  - claim: A\n    condition: 5\n")

    (problem,) = error.value.problems
    assert problem.where == "line 4"
    assert "condition must be text in quotation marks" in problem.message


def test_weight_and_condition_of_a_group_are_refused_and_belong_to_its_claims():
    with pytest.raises(FormatError) as error:
        parse(
            """\
about: answer
nodes:
  - group: G
    weight: 2
    condition: Shades are offered.
    children:
      - claim: A
"""
        )

    assert [(one.code, one.where) for one in error.value.problems] == [
        ("rubric_weight_of_group", "line 4"),
        ("rubric_condition_of_group", "line 5"),
    ]
    assert "move it to the claims of this group" in error.value.problems[0].message


# --- the arithmetic of a tree -----------------------------------------------------------------------------------------


def leaf(status: str, weight: float = 1, **more: Any) -> VerificationNode:
    return VerificationNode("n", score=float(status == PASSED), status=status, weight=weight, **more)


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ([leaf(PASSED, 3), leaf(FAILED, 1)], 0.75),  # 3 / 4
        ([leaf(PASSED, 0.5), leaf(FAILED, 1.5)], 0.25),  # 0.5 / 2
        ([leaf(PASSED, 3), leaf(FAILED, 1), leaf(NOT_APPLICABLE, 4)], 0.75),  # 3 / 4
        ([leaf(PASSED, critical=True), leaf(PASSED, 2), leaf(FAILED, 3)], 0.4),  # the gate is open: 2 / 5
        ([leaf(FAILED, critical=True), leaf(PASSED, 9)], 0.0),
        ([leaf(NOT_APPLICABLE, critical=True), leaf(PASSED, 2)], 1.0),  # no gate
        ([leaf(NOT_APPLICABLE, critical=True), leaf(PASSED, critical=True)], 1.0),
        ([leaf(NOT_APPLICABLE), leaf(NOT_APPLICABLE)], 0.0),
    ],
)
def test_group_is_the_weighted_mean_of_the_children_that_apply(children, expected):
    group = VerificationNode("g", children=children)
    assert group.compute_score(mutate=False) == expected
    assert group.compute_score() == expected


def test_group_without_a_child_that_applies_does_not_count_itself():
    empty = VerificationNode("e", children=[leaf(NOT_APPLICABLE)])
    root = VerificationNode("r", children=[empty, leaf(PASSED), leaf(FAILED)])

    assert root.compute_score() == 0.5  # 1 / 2, not 1 / 3
    assert empty.status == NOT_APPLICABLE
    assert (root.status, root.applies) == ("partial", True)


def test_claim_that_does_not_apply_does_not_stop_a_sequence_and_stays_so_after_a_failure():
    children = [leaf(PASSED), leaf(NOT_APPLICABLE), leaf(PASSED), leaf(FAILED), leaf(PASSED), leaf(NOT_APPLICABLE)]
    root = VerificationNode("r", strategy="sequential", children=children)

    assert root.compute_score() == 0.5  # 1 + 1 + 0 + 0 of four that apply
    assert [one.status for one in children] == [
        PASSED, NOT_APPLICABLE, PASSED, FAILED, "skipped", NOT_APPLICABLE,
    ]  # fmt: skip


# --- the scorer -------------------------------------------------------------------------------------------------------


def test_weights_decide_the_score_of_a_judgment(fake: Fake):
    fake.says(says("First", True), says("Second", False))

    found = score(fake, rubric({"claim": "First", "weight": 3}, {"claim": "Second"}, pass_score=0.75))

    assert (found.score, found.verdict) == (0.75, Verdict.SUCCESS)
    assert [one.get("weight") for one in found.details["tree"]["children"]] == [3, None]


@pytest.mark.parametrize(
    ("is_met", "expected", "finding", "asked"),
    [
        (False, 1.0, None, {"First": 1, "This condition is met: Shades.": 1}),
        (True, 0.25, Finding.UNMET, {"First": 1, "This condition is met: Shades.": 1, "Second": 1}),  # 1 / (1 + 3)
    ],
)
def test_claim_counts_only_if_its_condition_is_met(fake: Fake, is_met, expected, finding, asked):
    text = rubric({"claim": "First"}, {"claim": "Second", "weight": 3, "condition": "Shades.", "key_point": "P"})
    fake.says(says("First", True), met("Shades.", is_met), says("Second", False))

    found = score(fake, text)

    assert found.score == expected
    assert fake.counts()["by_rule"] == asked
    assert [one.finding for one in found.key_points] == [finding]
    assert ("Not counted, since the condition is not met: 1 claim." in found.explanation) is not is_met
    second = found.details["tree"]["children"][1]
    assert (second["status"] == NOT_APPLICABLE) is not is_met
    assert second["votes"]  # of the condition, or of the claim


def test_condition_of_a_skipped_claim_is_not_asked_about(fake: Fake):
    text = rubric({"claim": "First", "critical": True}, {"claim": "Second", "condition": "Shades."})
    fake.says(says("First", False), met("Shades.", False))

    found = score(fake, text)

    assert found.score == 0.0
    assert fake.counts()["by_rule"] == {"First": 1}
    assert found.details["tree"]["children"][1]["status"] == "skipped"


def test_rubric_of_which_no_claim_applies_is_unscored(fake: Fake):
    fake.says(met("Shades.", False))

    found = score(fake, rubric({"claim": "First", "condition": "Shades."}))

    assert (found.verdict, found.score) == (None, None)
    assert found.unscored == "The condition of no claim is met, so the rubric does not apply."
    assert found.details["tree"]["status"] == NOT_APPLICABLE


def test_condition_without_a_readable_reply_leaves_the_trajectory_unscored(fake: Fake):
    fake.says(says("First", True), met("Shades.", False) | {"reply": "no JSON"})

    found = score(fake, rubric({"claim": "First"}, {"claim": "Second", "condition": "Shades."}))

    assert found.verdict is None
    assert found.unscored.startswith("An error decides the score: ")


def test_plan_counts_a_call_for_every_condition(fake: Fake):
    text = rubric({"claim": "First"}, {"claim": "Second", "condition": "Shades."})
    fake.says(says("First", True), met("Shades.", True), says("Second", True))
    calls = MemoryCallLog()

    score(fake, text, calls)

    assert len(calls.outcomes) == len(foreseen(about(text), "rubric", votes=1)) == 3
    assert len(foreseen(about(text), "rubric", votes=3)) == 6  # two of three votes agree
