"""Replies that do not answer the verifier's question: repeated twice, then unscored or not graded, never a failure."""

from __future__ import annotations

import json

import pytest

from annotation.records import Verdict
from judges.scorers.verifier.model import Criterion
from judges.scorers.verifier.replies import compute_similarity, find_criterion
from judges.tests.builders import MemoryCallLog
from judges.tests.siblings import subject
from judges.tests.verifying import (
    TEXTS,
    criteria_said,
    findings,
    grade,
    grade_said,
    judged,
    relevance_said,
    says,
    together,
)

GOOD = [criteria_said(4, 6), relevance_said(3, 2)]


def cheap(fake, *rules, call_log=None, **generation):
    fake.reset()
    fake.says(*rules)
    return judged(fake, subject(3), call_log, mode="cheap", generation=generation)


def count(call_log, stage):
    return sum(one.call.stage == stage for one in call_log.outcomes)


# --- names ------------------------------------------------------------------------------------------------------------

ASKED = [Criterion(1, "The cheapest lamp is chosen", 5), Criterion(2, "The basket has one lamp", 5)]
ASKED.append(Criterion(3, "The basket has two lamps", 5))


@pytest.mark.parametrize(
    ("number", "name", "found"),
    [
        (1, "The cheapest lamp is chosen", 1),
        (1, "", 1),  # by position
        (2, "something else altogether", 2),
        (7, "the  CHEAPEST lamp is chosen", 1),  # by name, without regard to case and spaces
        (7, "The cheapest lamp was chosen", 1),
        (7, "something else altogether", None),
        (1, "The basket has one lamp", None),  # number and name mean different ones
        (3, "The basket has two lamps", 3),
        (2, "The basket has two lamps", None),  # similar to 2, but the name of 3
        (2, "The basket has two lamp", 2),
        (0, "", None),
    ],
)
def test_criterion_is_found_by_its_number_or_a_similar_name(number, name, found):
    assert find_criterion(number, name, ASKED) == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("abcdefg", 1),  # 7 of 10 letters: 2 * 7 / (7 + 10) = 0.82
        ("abcdef", 1),  # 2 * 6 / 16 = 0.75
        ("abcde", None),  # 2 * 5 / 15 = 0.67
        ("abcdefgxyz", 1),  # 2 * 7 / 20 = 0.7, the limit itself
        ("abcdefwxyz", None),  # 2 * 6 / 20 = 0.6
    ],
)
def test_names_are_similar_from_0_7(name, found):
    assert find_criterion(9, name, [Criterion(1, "abcdefghij", 5)]) == found
    assert (compute_similarity(name, "abcdefghij") >= 0.7) == (found == 1)


def test_grades_in_another_order_go_to_their_criteria(fake):
    score = cheap(fake, *GOOD, together(grade(2, 3), grade(1, 4)))

    assert [one["earned"] for one in score.details["criteria"]] == [4, 3]


FOREIGN = {"number": 9, "criterion": "The page is beautiful.", "reason": "", "applies": True, "points": 1}


@pytest.mark.parametrize(
    ("grades", "reason"),
    [
        ([grade(1, 4)], "The reply grades 1 criteria, not 2."),
        ([grade(1, 4), grade(2, 3), FOREIGN], "The reply grades 3 criteria, not 2."),
        ([grade(1, 4), grade(1, 4)], "The reply grades criterion 1 twice."),
        (
            [grade(1, 4), FOREIGN],
            "The reply grades a criterion that was not asked for: 'The page is beautiful.'.",
        ),
        ([grade(1, 4)] * 10_000, "The reply grades 10,000 criteria, not 2."),
    ],
)
def test_grades_of_other_criteria_are_asked_for_twice_again_and_then_unscored(fake, grades, reason):
    call_log = MemoryCallLog()
    score = cheap(fake, *GOOD, together(*grades), call_log=call_log)

    assert (score.verdict, score.score, score.unscored) == (None, None, reason)
    assert count(call_log, "together") == 3


def test_repeated_question_can_be_answered(fake):
    call_log = MemoryCallLog()
    first = {**together(grade(1, 4)), "times": 2}
    score = cheap(fake, *GOOD, first, together(grade(1, 4), grade(2, 6)), call_log=call_log)

    assert (score.score, score.verdict) == (1.0, Verdict.SUCCESS)
    assert count(call_log, "together") == 3
    # Each question has a seed of its own, so that a repeated one is not answered from the cache.
    seeds = [one.call.request["seed"] for one in call_log.outcomes if one.call.stage == "together"]
    assert sorted(seeds) == [0, 1, 2]


# --- points -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [-1, 4.5, 10**400, 1e300])
def test_impossible_points_leave_a_criterion_ungraded_after_two_more_questions(fake, points):
    call_log = MemoryCallLog()
    score = cheap(fake, *GOOD, together(grade(1, points), grade(2, 3)), call_log=call_log)

    assert count(call_log, "together") == 3
    assert (score.score, score.details["not_graded"]) == (0.5, [1])  # 3 / 6
    assert f"Criterion 1 has {str(points)[:20]} points, not 0 to 4." in json.dumps(score.details)


@pytest.mark.parametrize("points", ["NaN", "Infinity", '"4"', "true", "[4]"])
def test_points_that_are_no_number_are_no_answer(fake, points):
    rule = together(grade(1, 4), grade(2, 3))
    rule["reply"] = rule["reply"].replace('"points": 4', f'"points": {points}')
    score = cheap(fake, *GOOD, rule)

    assert (score.verdict, score.score) == (None, None)
    assert score.unscored


@pytest.mark.parametrize("points", [-1, 11, 10**400])
def test_impossible_penalties_are_unscored(fake, points):
    penalties = [{"step": 1, "reason": "A second order.", "points": points}]
    score = cheap(fake, *GOOD, together(grade(1, 4), grade(2, 3), penalties=penalties))

    assert score.verdict is None
    assert score.unscored == f"A penalty has {str(points)[:20]} points, not 0 to 10."


def test_more_than_twenty_penalties_and_unknown_blocked_criteria_are_unscored(fake):
    one = {"step": 1, "reason": "A second order.", "points": 1}
    many = cheap(fake, *GOOD, together(grade(1, 4), grade(2, 3), penalties=[one] * 21))
    assert many.unscored == "The reply lists 21 penalties, not at most 20."
    blockers = [{"criterion": 3, "step": 1, "reason": "Sold out."}]
    unknown = cheap(fake, *GOOD, together(grade(1, 4), grade(2, 3), blockers=blockers))
    assert unknown.unscored == "The reply names a blocked criterion that does not exist."


def test_extra_keys_are_ignored(fake):
    score = cheap(fake, *GOOD, together(grade(1, 4, verdict="failure"), grade(2, 6), score=0, verdict="failure"))

    assert (score.score, score.verdict) == (1.0, Verdict.SUCCESS)


# --- criteria and relevance -------------------------------------------------------------------------------------------


def criterion(text="A lamp.", points=5):
    return {"criterion": text, "description": "", "max_points": points, "condition": ""}


@pytest.mark.parametrize(
    ("criteria", "reason"),
    [
        ([], "The reply lists 0 criteria, not 1 to 8."),
        ([criterion(f"Lamp {n}") for n in range(9)], "The reply lists 9 criteria, not 1 to 8."),
        ([criterion(f"Lamp {n}") for n in range(10_000)], "The reply lists 10,000 criteria, not 1 to 8."),
        ([criterion(points=0)], "Criterion 1 has 0 points, not 1 to 10."),
        ([criterion("One"), criterion(points=11)], "Criterion 2 has 11 points, not 1 to 10."),
        ([criterion("  ")], "Criterion 1 has no text."),
        ([criterion("A lamp."), criterion("a LAMP.")], "Criterion 2 repeats another one."),
    ],
)
def test_criteria_against_the_rules_are_unscored_after_three_questions(fake, criteria, reason):
    call_log = MemoryCallLog()
    score = cheap(fake, says("criteria", {"criteria": criteria}), call_log=call_log)

    assert (score.verdict, score.unscored) == (None, reason)
    assert count(call_log, "criteria") == len(call_log.outcomes) == 3


@pytest.mark.parametrize(
    "rows",
    [
        [[5, 5], [5, 5]],  # a screenshot is missing
        [[5, 5], [5, 5], [5]],
        [[5, 5], [5, 5], [5, 11]],
        [[5, 5], [5, 5], [-1, 5]],
        [[5, 5]] * 10_000,
    ],
)
def test_incomplete_ratings_are_unscored(fake, rows):
    entries = [{"number": n, "note": "", "relevance": row} for n, row in enumerate(rows, start=1)]
    call_log = MemoryCallLog()
    score = cheap(fake, GOOD[0], says("relevance", {"screenshots": entries}), call_log=call_log)

    assert score.verdict is None
    assert score.unscored.startswith("3 of 3 screenshots have no readable rating. Step 0: ")
    assert count(call_log, "relevance") == 3
    assert score.notes["unread_screenshots"] == [0, 1, 2]


def test_screenshots_without_a_rating_are_not_shown_and_are_noted(fake):
    call = says("relevance", "", "Screenshot 4, of")
    fake.says(GOOD[0], {**call, "message": {"content": None, "refusal": "No."}}, *_rated(2), _all_graded())
    score = judged(fake, subject(6), mode="cheap")
    assert score.unscored.startswith("4 of 6 screenshots have no readable rating. Step 0: The model refused: No.")

    fake.says(GOOD[0], *_rated(4, "Screenshot 4, of"), {**says("relevance", ""), "finish": "length"}, _all_graded())
    score = judged(fake, subject(6), mode="cheap")
    assert score.verdict is Verdict.SUCCESS
    assert score.notes["unread_screenshots"] == [4, 5]
    assert [one.step for one in score.steps if one.kept] == [0, 1, 2, 3]


def _rated(shots, *match):
    return [relevance_said(shots, 2, *match)]


def _all_graded():
    return together(grade(1, 4), grade(2, 6))


# --- refusals, empty and cut-off replies ------------------------------------------------------------------------------

UNUSABLE = {
    "refusal": ({"message": {"content": None, "refusal": "I cannot."}}, "The model refused: I cannot."),
    "empty": ({"reply": ""}, "The reply is empty."),
    "cut": ({"reply": '{"verdict": "failure"', "finish": "length"}, "The reply was cut off at its length limit."),
}


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("stage", ["criteria", "relevance", "together"])
def test_unusable_reply_is_unscored_with_its_reason(fake, stage, name):
    rule, reason = UNUSABLE[name]
    broken = {key: value for key, value in says(stage, "").items() if key != "reply"} | rule
    score = cheap(fake, broken, *GOOD, _all_graded())

    assert (score.verdict, score.score) == (None, None)
    assert reason in score.unscored


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("stage", ["actions", "images"])
def test_unusable_reply_on_one_criterion_leaves_it_ungraded(fake, stage, name):
    rule, reason = UNUSABLE[name]
    broken = {key: value for key, value in grade_said(stage, 1, 0).items() if key != "reply"} | rule
    grades = [grade_said(each, n, points) for each in ("actions", "images") for n, points in ((1, 4), (2, 3))]
    fake.says(broken, *GOOD, *grades, says("verdict", findings()))
    score = judged(fake, subject(3))

    shown = score.details["criteria"][0]
    assert shown[f"from_{stage}"] == {"points": None, "reason": reason}
    # The screenshots decide: without their pass 3 / 6, without that of the actions (4 + 3) / 10.
    assert (score.score, score.verdict) == (0.5 if stage == "images" else 0.7, Verdict.SUCCESS)


def test_reply_on_another_criterion_is_unscored_in_the_full_mode(fake):
    other = says("images", grade(2, 3), f'criterion 1: "{TEXTS[0]}"')
    grades = [grade_said(each, n, points) for each in ("actions", "images") for n, points in ((1, 4), (2, 3))]
    fake.says(other, *GOOD, *grades, says("verdict", findings()))
    score = judged(fake, subject(3))

    assert score.verdict is None
    assert score.unscored == f"The reply on criterion 1 grades '{TEXTS[1]}'."


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_last_reply_of_the_full_mode_is_unscored(fake, name):
    rule, reason = UNUSABLE[name]
    grades = [grade_said(each, n, points) for each in ("actions", "images") for n, points in ((1, 4), (2, 3))]
    broken = {key: value for key, value in says("verdict", "").items() if key != "reply"} | rule
    fake.says(*GOOD, *grades, broken)
    score = judged(fake, subject(3))

    assert (score.verdict, score.score, score.unscored) == (None, None, reason)


@pytest.mark.parametrize("output", ["tool", "text"])
def test_answers_are_read_however_they_are_asked_for(fake, output):
    score = cheap(fake, *GOOD, _all_graded(), output=output)

    assert (score.score, score.verdict) == (1.0, Verdict.SUCCESS)


@pytest.mark.parametrize("text", ["Status: success", "[]", '{"outcome": true}', '{"outcome": true} {"outcome": false}'])
def test_text_without_the_form_is_unscored(fake, text):
    for output in ("schema", "text"):
        score = cheap(fake, *GOOD, says("together", text), output=output)
        assert score.verdict is None
        assert score.unscored
