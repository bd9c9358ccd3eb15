"""The calls of the rubric verifier: what each contains, and that the plan predicts their number and images."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from annotation.records import Verdict
from judges.tests.builders import MemoryCallLog
from judges.tests.siblings import picture, subject, user_texts
from judges.tests.verifying import (
    TEXTS,
    criteria_said,
    findings,
    foreseen,
    grade,
    grade_said,
    judged,
    made,
    relevance_said,
    says,
    sent,
    together,
)


def relevance(*rows):
    """Ratings of the screenshots of one call."""
    entries = [{"number": n, "note": f"Note {n}.", "relevance": list(row)} for n, row in enumerate(rows, start=1)]
    return {"screenshots": entries}


def every_reply(shots, points=(4, 5)):
    """Rules for both modes; a call for relevance is told by the last screenshot that it has."""
    numbers = range(1, len(points) + 1)
    full = range(4, shots + 1, 4)
    batches = [relevance_said(4, len(points), sent(last - 1)) for last in full]
    rest = [relevance_said(shots % 4, len(points))] if shots % 4 else []
    grades = [grade_said(stage, n, points[n - 1]) for n in numbers for stage in ("actions", "images")]
    whole = [says("verdict", findings()), together(*(grade(n, points[n - 1]) for n in numbers))]
    return [criteria_said(*points), *batches, *rest, *grades, *whole]


@pytest.mark.parametrize(
    ("shots", "mode", "calls"),
    [
        # One for the criteria; ceil(M / 4); 2 N with N = 2, or N without screenshots; one for the verdict.
        (0, "full", 1 + 0 + 2 + 1),
        (1, "full", 1 + 1 + 4 + 1),
        (4, "full", 1 + 1 + 4 + 1),
        (5, "full", 1 + 2 + 4 + 1),
        (9, "full", 1 + 3 + 4 + 1),
        # One for the criteria; ceil(M / 4); one for everything else.
        (0, "cheap", 1 + 0 + 1),
        (4, "cheap", 1 + 1 + 1),
        (5, "cheap", 1 + 2 + 1),
        (9, "cheap", 1 + 3 + 1),
    ],
)
def test_calls_and_images_are_those_of_the_plan(fake, shots, mode, calls):
    for criteria in ("model", "people"):
        fake.reset()
        fake.says(*every_reply(shots))
        about = subject(max(shots, 1), pictures=shots, key_points=TEXTS[:2])
        about = replace(about, input_images=(picture(99),))
        parameters = {"mode": mode, "criteria": criteria, "max_criteria": 2, "top_k": 3, "max_images": 6}
        call_log = MemoryCallLog()

        assert judged(fake, about, call_log, **parameters).verdict is Verdict.SUCCESS
        assert made(call_log) == sorted(foreseen(about, **parameters))
        assert len(call_log.outcomes) == calls - (criteria == "people")


def test_images_of_the_plan_are_bounded_by_the_parameters():
    about = subject(9, key_points=TEXTS[:2])

    full = foreseen(about, criteria="people", top_k=3, max_images=6)
    assert full == [("relevance", 4), ("relevance", 4), ("relevance", 1)] + [("actions", 0)] * 2 + [
        ("images", 3)
    ] * 2 + [("verdict", 6)]
    assert foreseen(about, criteria="people", mode="cheap")[-1] == ("together", 9)


def test_criteria_are_written_from_the_task_alone(fake):
    fake.says(*every_reply(3))
    call_log = MemoryCallLog()
    judged(fake, subject(3, website="https://shop.example/"), call_log)
    (call,) = [one.call for one in call_log.outcomes if one.call.stage == "criteria"]
    text = json.dumps(call.request["messages"])

    assert user_texts(call.request)[0].startswith(
        '<record>\ntask: "Buy a lamp."\nwebsite: "https://shop.example/"\nmost criteria: 8\n</record>'
    )
    for part in ("click button", "think", "I bought a lamp", "step 0", "image_url"):
        assert part not in text


def test_pass_from_actions_has_the_log_with_its_claims_and_no_image(fake):
    fake.says(*every_reply(3))
    call_log = MemoryCallLog()
    judged(fake, subject(3), call_log)
    calls = [one.call for one in call_log.outcomes if one.call.stage == "actions"]

    assert len(calls) == 2
    for call in calls:
        (text,) = user_texts(call.request)
        assert 'step 1 thought: "think 1"\nstep 1 action: "click button 1"' in text
        assert 'final answer: "I bought a lamp."' in text
        assert sum(f": {json.dumps(one)}\n" in text for one in TEXTS) == 1


def test_equal_screenshots_are_rated_once(fake):
    fake.says(*every_reply(2))
    about = subject(4, key_points=TEXTS[:2])
    about = replace(about, screenshots=(picture(0), picture(1), picture(0), picture(1)))
    call_log = MemoryCallLog()
    score = judged(fake, about, call_log)

    assert made(call_log).count(("relevance", 2)) == 1
    assert [(one.step, one.same_as, one.kept) for one in score.steps] == [
        (0, None, True), (1, None, True), (2, 0, True), (3, 1, True)
    ]  # fmt: skip
    assert score.details["relevance"][0]["steps"] == [0, 2]


def images_of(call_log, stage):
    """The pictures of each call of a stage, by the text of its first criterion."""
    known = {picture(number).digest: number for number in range(10)}
    found = {}
    for one in call_log.outcomes:
        if one.call.stage == stage:
            text = json.dumps(one.call.request["messages"])
            (first, *_) = [number for number, each in enumerate(TEXTS, start=1) if each in text]
            found[first] = [known[digest] for digest in known if digest in text]
    return found


def test_most_relevant_screenshots_of_each_criterion_are_shown(fake):
    fake.says(
        criteria_said(4, 6),
        # A call for the first four, and one for the fifth.
        says("relevance", relevance((9, 0), (1, 5), (3, 5), (3, 10)), sent(3)),
        says("relevance", relevance((2, 5))),
        *every_reply(0)[1:],
    )
    call_log = MemoryCallLog()
    score = judged(fake, subject(5), call_log, top_k=2, max_images=3)

    # Criterion 1 has 9, 1, 3, 3, 2: screenshots 0 and 3, since of equal ones the later counts more.
    # Criterion 2 has 0, 5, 5, 10, 5: screenshots 3 and 4.
    assert images_of(call_log, "images") == {1: [0, 3], 2: [3, 4]}
    assert [one["steps"] for one in score.details["criteria"]] == [[0, 3], [3, 4]]
    # The best of each: 0 and 3; the second best: 3 again, then 4.
    assert images_of(call_log, "verdict") == {1: [0, 3, 4]}
    assert [one.step for one in score.steps if one.kept] == [0, 3, 4]
    assert score.details["relevance"][3] == {"steps": [3], "ratings": [3, 10]}


def test_more_key_points_than_criteria_are_unscored_without_a_call(fake):
    about = subject(2, key_points=tuple(f"Point {number}" for number in range(21)))
    score = judged(fake, about, criteria="people")

    assert score.unscored == "The task has 21 key points: this judge grades at most 20 criteria."
    assert fake.counts()["calls"] == 0
    assert foreseen(about, criteria="people") == []


def test_key_points_are_criteria_of_five_points_each(fake):
    fake.says(relevance_said(2, 2), together(grade(1, 5), grade(2, 2)))
    score = judged(fake, subject(2, key_points=TEXTS[:2]), criteria="people", mode="cheap")

    assert (score.score, score.notes["criteria_from"]) == (0.7, "people")  # (5 + 2) / (5 + 5)
    fake.says(*every_reply(2))
    none = judged(fake, subject(2), criteria="people", mode="cheap")
    assert (none.notes["criteria_from"], none.notes["key_points_of_people"]) == ("model", "none were there")


def test_full_mode_has_both_passes_and_gives_them_to_the_last_call(fake):
    fake.says(
        criteria_said(4, 6),
        relevance_said(3, 2),
        grade_said("actions", 1, 4),
        grade_said("images", 1, 1),
        grade_said("actions", 2, 2),
        grade_said("images", 2, 6),
        says("verdict", findings(outcome=False)),
    )
    call_log = MemoryCallLog()
    score = judged(fake, subject(3), call_log)

    assert (score.score, score.verdict) == (0.7, Verdict.FAILURE)  # (1 + 6) / 10
    assert score.details["claimed_but_not_visible"] == [1]
    (last,) = [one.call for one in call_log.outcomes if one.call.stage == "verdict"]
    text = user_texts(last.request)[0]
    assert "criterion 1 from actions points: 4\n" in text
    assert 'criterion 1 from screenshots points: 1\ncriterion 1 from screenshots reason: "Because 1."\n' in text
