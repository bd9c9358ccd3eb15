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


def conditional(weight: float = 1, **more: Any) -> dict[str, Any]:
    return {"claim": "Second", "weight": weight, "condition": "Shades."} | more


@pytest.mark.parametrize(
    ("missing_pages", "expected", "verdict"),
    [("unscored", None, None), ("unsupported", 0.25, Verdict.FAILURE)],  # 1 / (1 + 3)
)
def test_page_missing_for_a_condition_counts_against_the_claim(fake: Fake, missing_pages, expected, verdict):
    cited = conditional(3, about="pages", sources=["https://dead.example/"])
    fake.says(says("First", True))

    found = score(fake, rubric({"claim": "First"}, cited, pass_score=0.5), missing_pages=missing_pages)

    assert (found.score, found.verdict) == (expected, verdict)
    assert found.details["final_score"] == 0.25
    second = found.details["tree"]["children"][1]
    assert (second["status"], second["missing"]) == (FAILED, ["https://dead.example/"])


@pytest.mark.parametrize("missing_pages", ["unscored", "unsupported"])
@pytest.mark.parametrize(
    ("weight", "verdict"),
    [(1, Verdict.SUCCESS), (9, None)],  # 3/4 to 1, or 3/12 to 1; without the claim's id it would be 0 to 1
)
def test_failed_call_about_a_condition_leaves_open_only_its_claim(fake: Fake, missing_pages, weight, verdict):
    text = rubric({"claim": "First", "weight": 3}, conditional(weight), pass_score=0.5)
    fake.says(says("First", True), met("Shades.", False) | {"reply": "no JSON"})

    found = score(fake, text, missing_pages=missing_pages)

    assert (found.verdict, found.score) == (verdict, None)
    assert found.details["final_score"] == 3 / (3 + weight)
    (fault,) = found.notes["faults"]
    second = found.details["tree"]["children"][1]
    assert fault.startswith(f"{second['id']}: infrastructure error: ")
    assert second["status"] == FAILED


@pytest.mark.parametrize(("is_met", "expected"), [(False, 1.0), (True, 0.5)])
def test_condition_of_a_claim_without_evidence_is_asked_of_the_answer(fake: Fake, is_met, expected):
    text = rubric({"claim": "First"}, conditional(about="pages"))
    citing_nothing = about(text, final_answer="There are no shades.")
    fake.says(says("First", True), met("Shades.", is_met))
    calls = MemoryCallLog()

    found = judged(fake, judge("rubric", votes="1"), citing_nothing, calls)

    assert found.score == expected
    assert [one.call.stage for one in calls.outcomes] == ["verify_answer"] * 2
    assert foreseen(citing_nothing, "rubric", votes=1) == [("verify_answer", 0)] * 2
    assert found.details["tree"]["children"][1]["status"] == (FAILED if is_met else NOT_APPLICABLE)


def test_plan_counts_a_call_for_every_condition(fake: Fake):
    text = rubric({"claim": "First"}, {"claim": "Second", "condition": "Shades."})
    fake.says(says("First", True), met("Shades.", True), says("Second", True))
    calls = MemoryCallLog()

    score(fake, text, calls)

    assert len(calls.outcomes) == len(foreseen(about(text), "rubric", votes=1)) == 3
    assert len(foreseen(about(text), "rubric", votes=3)) == 6  # two of three votes agree
