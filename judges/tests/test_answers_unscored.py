"""Judges of what an agent did say of an answer without steps that they do not judge it, and ask nobody."""

from __future__ import annotations

import json
import re

import pytest

from annotation.records import Verdict
from judges.tests.siblings import PUBLISHED, asked, foreseen, judge, subject

STEPPING = [*PUBLISHED, "webjudge", "webjudge-general", "single-call", "rubric-verifier"]
WITHOUT_MODES = ("single-call", "rubric-verifier")  # the verifier's modes differ from those of published judges


@pytest.mark.parametrize("mode", ["default", "upstream"])
@pytest.mark.parametrize("name", STEPPING)
def test_a_trajectory_without_steps_is_unscored_with_a_reason_and_without_a_call(fake, name, mode):
    parameters = {} if name in WITHOUT_MODES else {"mode": mode}
    answer = subject(steps=0, source_format="mind2web-2")
    score = asked(fake, judge(name, **parameters), answer)

    assert score.verdict is None
    assert re.search("no steps|none|neither", score.unscored)
    assert fake.counts()["calls"] == 0
    assert foreseen(name, answer, **parameters) == []


def test_a_single_call_that_is_shown_the_answer_judges_it(fake):
    fake.says({"reply": json.dumps({"reason": "It says so.", "verdict": "failure", "key_points": [], "steps": []})})
    score = asked(fake, judge("single-call", show_final_answer=True), subject(steps=0))

    assert score.verdict is Verdict.FAILURE
