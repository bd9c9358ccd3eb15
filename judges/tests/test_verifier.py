"""The rubric verifier over a scripted endpoint: its arithmetic in the cheap mode, each rule computed by hand."""

from __future__ import annotations

import pytest

from annotation.records import Finding, Verdict
from judges.tests.siblings import subject
from judges.tests.verifying import criteria_said, grade, judged, relevance_said, together


def cheap(fake, grades, points=(4, 6), conditions=(), steps=3, **fields):
    """What the judge says of criteria with ``points`` and ``grades``; ``fields`` are findings."""
    fake.says(
        criteria_said(*points, conditions=conditions),
        relevance_said(min(steps, 4), len(points)),
        together(*grades, **fields),
    )
    return judged(fake, subject(steps), mode="cheap")


def test_score_is_earned_over_possible_and_verdict_is_outcome(fake):
    score = cheap(fake, [grade(1, 4), grade(2, 3)], outcome=False)

    # (4 + 3) / (4 + 6), and a failure: the score does not decide.
    assert (score.score, score.verdict, score.unscored) == (0.7, Verdict.FAILURE, "")
    assert [one.finding for one in score.key_points] == [Finding.MET, Finding.UNMET]
    assert "(7 earned) of 10 points" in score.explanation
    assert cheap(fake, [grade(1, 0), grade(2, 0)]).verdict is Verdict.SUCCESS


def test_condition_that_is_not_met_leaves_both_sums(fake):
    conditions = {2: "if shades are offered"}
    score = cheap(fake, [grade(1, 3), grade(2, 6, applies=False)], conditions=conditions)

    assert score.score == 0.75  # 3 / 4: criterion 2 counts neither as earned nor as possible
    assert score.details["criteria"][1]["state"] == "does not apply"
    assert score.key_points[1].finding is None
    # Without a condition a criterion always applies: (3 + 6) / (4 + 6).
    assert cheap(fake, [grade(1, 3), grade(2, 6, applies=False)]).score == 0.9


def test_no_criterion_that_applies_is_unscored(fake):
    score = cheap(fake, [grade(1, 3, applies=False)], points=(4,), conditions={1: "if it is sold out"})

    assert (score.verdict, score.score) == (None, None)
    assert score.unscored == "The condition of no criterion is met, so none applies."


def test_criterion_that_is_not_graded_leaves_both_sums_and_is_listed(fake):
    score = cheap(fake, [grade(1, None), grade(2, 3)])

    assert (score.score, score.verdict) == (0.5, Verdict.SUCCESS)  # 3 / 6
    assert score.details["not_graded"] == [1]
    assert score.key_points[0].finding is Finding.UNCLEAR


def test_no_graded_criterion_is_unscored(fake):
    score = cheap(fake, [grade(1, None), grade(2, None)])

    assert (score.verdict, score.score) == (None, None)
    assert score.unscored == "No criterion could be graded. Criterion 1: Because 1."


def test_blocked_criterion_earns_all_its_points_and_excludes_success(fake):
    blockers = [{"criterion": 2, "step": 1, "reason": "A test against robots."}]
    score = cheap(fake, [grade(1, 2), grade(2, 0)], blockers=blockers)

    assert (score.score, score.verdict) == (0.8, Verdict.FAILURE)  # (2 + 6) / 10
    assert score.key_points[1].finding is Finding.UNMET
    assert "Criterion 2 was blocked, so it was not met." in score.explanation
    assert score.details["stated_outcome"] is True
    # It is graded by the blocker: (4 + 6) / 10.
    assert cheap(fake, [grade(1, 4), grade(2, None)], blockers=blockers).score == 1.0
    # A criterion that does not apply cannot be blocked: 2 / 4, and a success.
    out = cheap(fake, [grade(1, 2), grade(2, 0, applies=False)], conditions={2: "if x"}, blockers=blockers)
    assert (out.score, out.verdict) == (0.5, Verdict.SUCCESS)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([2], 0.5),  # (4 + 3 - 2) / 10
        ([2, 1.5], 0.35),  # (7 - 3.5) / 10
        ([8, 9], 0.0),  # (7 - 17) / 10, cut to 0
        ([0], 0.7),
    ],
)
def test_penalties_are_subtracted_from_earned_points(fake, points, expected):
    penalties = [{"step": 1, "reason": "A second order.", "points": each} for each in points]
    score = cheap(fake, [grade(1, 4), grade(2, 3)], penalties=penalties)

    assert score.score == pytest.approx(expected)
    assert len(score.details["penalties"]) == sum(each > 0 for each in points)


def test_violated_critical_point_excludes_success(fake):
    critical = {"violated": True, "step": 2, "reason": "It paid."}
    score = cheap(fake, [grade(1, 4), grade(2, 6)], critical_point=critical)

    assert (score.score, score.verdict) == (1.0, Verdict.FAILURE)
    assert score.details["critical_point"] == {"reason": "It paid.", "step": 2}


def test_criterion_with_more_points_from_actions_is_claimed_but_not_visible(fake):
    score = cheap(
        fake,
        [grade(1, 1, points_from_actions=4), grade(2, 6, points_from_actions=2), grade(3, 2, points_from_actions=None)],
        points=(4, 6, 2),
    )

    assert score.score == 0.75  # by the screenshots: (1 + 6 + 2) / 12
    assert cheap(fake, [grade(1, 4), grade(2, 3)]).details["claimed_but_not_visible"] == []  # equal points
    assert score.details["claimed_but_not_visible"] == [1]
    first = score.details["criteria"][0]
    assert (first["from_actions"]["points"], first["from_images"]["points"]) == (4, 1)
    blockers = [{"criterion": 1, "step": 1, "reason": "Sold out."}]
    blocked = cheap(fake, [grade(1, 1, points_from_actions=4)], points=(4,), blockers=blockers)
    assert blocked.details["claimed_but_not_visible"] == []


def test_first_failure_and_validity_are_stored_and_unknown_steps_are_not(fake):
    first = {"step": 1, "category": "selection", "reason": "The wrong lamp."}
    validity = {"ambiguous": True, "invalid": False, "reason": "Two kinds of lamps."}
    score = cheap(fake, [grade(1, 4), grade(2, 3)], first_failure=first, validity=validity, outcome=False)
    assert score.details["first_failure"] == {"category": "selection", "step": 1, "reason": "The wrong lamp."}
    assert score.details["validity"] == validity

    for step in (3, -1, 10**30):
        again = cheap(fake, [grade(1, 4), grade(2, 3)], first_failure=first | {"step": step})
        assert again.details["first_failure"]["step"] is None


def test_without_screenshots_the_actions_decide(fake):
    fake.says(criteria_said(4, 6), together(grade(1, None, points_from_actions=2), grade(2, 0, points_from_actions=3)))
    score = judged(fake, subject(3, pictures=0), mode="cheap")

    assert score.score == 0.5  # (2 + 3) / 10
    assert score.details["criteria"][0]["from_images"] is None
    assert score.details["claimed_but_not_visible"] == []
