"""The rubric verifier with the task's written rubric: points are in proportion to weights, conditions are its own,
and no call writes criteria."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from annotation import ingest
from annotation.models import Membership
from annotation.records import Finding, Verdict
from annotation.tests import testing
from judges import access, planning
from judges.expectations import Kind
from judges.llm import CallFailed
from judges.models import Judgment, RunItem
from judges.scorer import Subject
from judges.scorers.verifier.details import read_details
from judges.tests import rows
from judges.tests.builders import MemoryCallLog, defined_judge
from judges.tests.expecting import RUBRIC, expect
from judges.tests.rubric_subjects import expected
from judges.tests.siblings import subject, user_texts
from judges.tests.verifying import (
    TEXTS,
    findings,
    foreseen,
    grade,
    grade_said,
    judged,
    made,
    relevance_said,
    says,
    together,
)

# Weights 4, 2 and 1.5 have the sum 7.5. With a mean of 5 the points have the sum 15: 8, 4 and 3.
CLAIMS: tuple[dict[str, Any], ...] = (
    {"claim": TEXTS[0], "weight": 4, "key_point": 1},
    {"claim": TEXTS[1], "weight": 2, "note": "A second lamp is a fault."},
    {"claim": TEXTS[2], "weight": 1.5, "condition": "The shop offers shades."},
)


def about(*claims: dict[str, Any], steps: int = 3) -> Subject:
    text = json.dumps({"about": "screenshots", "nodes": list(claims or CLAIMS)})
    return replace(subject(steps, key_points=("Cheapest lamp",)), expectations=expected(text))


def cheap(fake, *grades, **more):
    fake.says(relevance_said(3, 3), together(*grades))
    return judged(fake, about(), mode="cheap", criteria="written", **more)


def test_points_are_in_proportion_to_the_weights_of_the_claims(fake):
    score = cheap(fake, grade(1, 8), grade(2, 0), grade(3, 3))

    assert score.score == pytest.approx(11 / 15)  # (8 + 0 + 3) / (8 + 4 + 3)
    assert "(11 earned) of 15 points" in score.explanation
    assert score.verdict is Verdict.SUCCESS
    assert [one.finding for one in score.key_points] == [Finding.MET, Finding.UNMET, Finding.MET]
    assert [one.text for one in score.key_points] == ["Cheapest lamp", *TEXTS[1:]]
    assert (score.notes["criteria_from"], score.notes["rubric"]["version"]) == ("written", 3)
    shown = read_details(score.details)
    assert (shown.possible, [one.max_points for one in shown.criteria]) == (15, [8, 4, 3])


@pytest.mark.parametrize("weight", [0.001, 1, 1000])
def test_penalty_is_as_heavy_whatever_the_scale_of_the_weights_is(fake, weight):
    claims = ({"claim": TEXTS[0], "weight": weight}, {"claim": TEXTS[1], "weight": weight})
    penalty = {"points": 2, "step": None, "reason": "It bought a cable, too."}
    fake.says(relevance_said(3, 2), together(grade(1, 5), grade(2, 5), penalties=[penalty]))

    score = judged(fake, about(*claims), mode="cheap", criteria="written")

    assert score.score == pytest.approx(0.8)  # (5 + 5 - 2) / 10
    assert "(10 earned - 2 in penalties) of 10 points" in score.explanation


def test_rounded_points_of_the_prompt_are_all_the_points(fake):
    """Weights 6 and 1 have the mean 3.5: the points are 60 / 7 = 8.571 and 10 / 7 = 1.429."""
    claims = ({"claim": TEXTS[0], "weight": 6}, {"claim": TEXTS[1], "weight": 1})
    fake.says(relevance_said(3, 2), together(grade(1, 8.57), grade(2, 1.43)))
    call_log = MemoryCallLog()

    score = judged(fake, about(*claims), call_log, mode="cheap", criteria="written")

    assert (score.score, fake.counts()["by_rule"]["together"]) == (1, 1)
    assert [one.finding for one in score.key_points] == [Finding.MET, Finding.MET]
    sent = "".join(user_texts(call_log.outcomes[-1].call.request))
    assert "criterion 1 most points: 8.57\n" in sent
    assert "criterion 2 most points: 1.43\n" in sent
    assert "(10 earned) of 10 points" in score.explanation


def test_condition_of_the_rubric_leaves_both_sums(fake):
    score = cheap(fake, grade(1, 4), grade(2, 4), grade(3, 0, applies=False))

    assert score.score == pytest.approx(8 / 12)  # (4 + 4) / (8 + 4)
    assert score.details["criteria"][2]["state"] == "does not apply"
    assert score.key_points[2].finding is None


def test_more_points_than_a_claim_has_are_asked_about_again(fake):
    fake.says(relevance_said(3, 3), together(grade(1, 9), grade(2, 1), grade(3, 0.5)))

    score = judged(fake, about(), mode="cheap", criteria="written")

    assert fake.counts()["by_rule"]["together"] == 3
    assert score.details["not_graded"] == [1]  # 9 points of 8


@pytest.mark.parametrize(("mode", "calls"), [("full", 1 + 2 * 3 + 1), ("cheap", 1 + 1)])
def test_no_call_writes_criteria_and_the_plan_says_so(fake, mode, calls):
    """One call for relevance of three screenshots; two for each of three claims; one for the verdict."""
    grades = [grade_said(stage, n, 0.5) for n in (1, 2, 3) for stage in ("actions", "images")]
    whole = together(*(grade(n, 0.5) for n in (1, 2, 3)))
    fake.says(relevance_said(3, 3), *grades, says("verdict", findings()), whole)
    call_log = MemoryCallLog()

    judged(fake, about(), call_log, mode=mode, criteria="written")

    assert made(call_log) == sorted(foreseen(about(), mode=mode, criteria="written"))
    assert len(call_log.outcomes) == calls


def test_criteria_of_a_prompt_have_weight_note_and_condition(fake):
    fake.says(relevance_said(3, 3), together(grade(1, 8), grade(2, 4), grade(3, 0)))
    call_log = MemoryCallLog()

    judged(fake, about(), call_log, mode="cheap", criteria="written")

    for one in call_log.outcomes:
        text = "".join(user_texts(one.call.request))
        for line in (
            "criterion 1 most points: 8\n",
            'criterion 2 description: "A second lamp is a fault."',
            'criterion 3 condition: "The shop offers shades."',
            "criterion 3 most points: 3\n",
        ):
            assert line in text


def test_task_without_a_rubric_is_unscored_and_costs_nothing(fake):
    call_log = MemoryCallLog()
    score = judged(fake, subject(3), call_log, criteria="written")

    assert (score.verdict, score.unscored) == (None, "The task has no rubric.")
    assert foreseen(subject(3), criteria="written") == []
    assert call_log.outcomes == []


def test_rubric_with_more_claims_than_the_judge_grades_is_unscored(fake):
    many = about(*({"claim": f"Claim {n}."} for n in range(21)))

    score = judged(fake, many, criteria="written")

    assert score.unscored == "The task's rubric has 21 claims: this judge grades at most 20 criteria."
    assert foreseen(many, criteria="written") == []


def test_rubric_that_cannot_be_read_any_more_fails_the_item_and_has_no_calls(fake):
    broken = replace(subject(3), expectations=expected("nodes: []"))

    with pytest.raises(CallFailed, match="Version 3 of the task's rubric cannot be read"):
        judged(fake, broken, criteria="written")
    assert foreseen(broken, criteria="written") == []


# --- plans, and who may see the judgments -----------------------------------------------------------------------------


@pytest.mark.django_db
def test_plan_counts_the_tasks_with_a_rubric(tmp_path):
    submission = testing.submission(tmp_path, trajectories=2)
    expect(submission.trajectories.earliest("position").task, RUBRIC, Kind.RUBRIC)
    written = defined_judge("written", scorer="rubric-verifier", parameters={"criteria": "written"})

    assert planning.plan(written, submission, {}).meeting_requirement == 1
    own = defined_judge("own", scorer="rubric-verifier", parameters={"criteria": "model"})
    assert planning.plan(own, submission, {}).requirement is None


@pytest.mark.django_db
@pytest.mark.parametrize(("criteria", "hidden"), [("model", False), ("written", True)])
def test_judgment_by_a_written_rubric_is_hidden_from_a_person_who_decides_blind(tmp_path, criteria, hidden):
    submission = testing.submission(tmp_path / "mine", trajectories=1)
    mira = testing.cast(submission)["mira"]
    folder = testing.write_submission(tmp_path / "theirs", trajectories=1, steps=2)
    _, theirs = ingest.import_submission(
        folder, benchmark=submission.benchmark, agent_name="B", maintainer=testing.person("zoe")
    )
    judge = rows.judge_row("v", scorer="rubric-verifier", parameters={"criteria": criteria})
    run = rows.run_row(submission, judge)
    rows.judgment_row(RunItem.objects.get(run=run), 0, "It quotes the rubric.")
    assert access.find_run_judgments(mira, run).count() == 1

    Membership.objects.create(submission=theirs, person=mira, role=Membership.Role.ADJUDICATOR, pseudonym="X1")

    assert access.must_hide(mira, judge, submission) is hidden
    assert access.find_run_judgments(mira, run).count() == (0 if hidden else 1)
    assert Judgment.objects.filter(access.match_disclosing()).count() == (1 if hidden else 0)
