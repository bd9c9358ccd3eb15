"""The judge of one call whose instructions, criteria and sight a maintainer decides."""

from __future__ import annotations

import json

import pytest

from annotation.records import Finding, StepRecord, Verdict
from judges.prompts import load_builtin
from judges.scorer import REGISTRY, ParameterError, Prompts, collect_defaults, parameters_from
from judges.tests.siblings import asked, foreseen, judge, picture, pictures_in, requests, subject, system_of, user_texts

KIND = REGISTRY["single-call"]
ANSWER = {
    "reason": "The lamp is in the cart.",
    "key_points": [
        {"text": "a lamp", "finding": "met", "steps": [1, 99, 1], "reason": "step 1"},
        {"text": "red", "finding": "unclear", "steps": [], "reason": "not visible"},
    ],
    "steps": [{"step": 1, "reason": "adds it"}, {"step": 70, "reason": "does not exist"}],
    "verdict": "success",
}


def request_of(fake, about, **parameters):
    fake.says(record=True)
    asked(fake, judge("single-call", **parameters), about)
    (request,) = requests(fake)
    return request


def record_of(request):
    return user_texts(request)[0]


def test_reason_key_points_and_cited_steps_become_evidence(fake):
    fake.says({"reply": json.dumps(ANSWER)})
    score = asked(fake, judge("single-call"), subject(3))

    assert (score.verdict, score.explanation) == (Verdict.SUCCESS, "The lamp is in the cart.")
    assert [(one.text, one.finding, one.steps) for one in score.key_points] == [
        ("a lamp", Finding.MET, (1,)),
        ("red", Finding.UNCLEAR, ()),
    ]
    assert [(one.step, one.kept, one.reason) for one in score.steps] == [
        (0, True, ""),
        (1, True, "adds it"),
        (2, True, ""),
    ]
    assert score.notes["cited"] == [1]


def test_steps_that_do_not_exist_are_noted_and_not_cited(fake):
    fake.says({"reply": json.dumps(ANSWER)})

    assert asked(fake, judge("single-call"), subject(3)).notes["unknown_steps"] == [70, 99]


def test_a_cited_step_without_a_picture_is_evidence_that_was_not_shown(fake):
    fake.says({"reply": json.dumps(ANSWER)})
    score = asked(fake, judge("single-call", images="none"), subject(3))

    assert [(one.step, one.kept) for one in score.steps] == [(1, False)]


def test_instructions_and_criteria_are_the_system_text(fake):
    request = request_of(fake, subject(), instructions="Judge {criteria} sternly.", criteria="Only {record} red lamps.")

    assert system_of(request).startswith("Judge {criteria} sternly.\n\nThe criteria:\n\nOnly {record} red lamps.\n")
    assert "sternly" not in record_of(request)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("show_actions", "click button 1"),
        ("show_thoughts", "think 1"),
        ("show_urls", "https://shop.example/1"),
        ("show_final_answer", "I bought a lamp."),
        ("show_key_points", "with a red shade"),
        ("show_reference_length", "steps that a person needed: 7"),
    ],
)
def test_each_part_is_shown_only_where_it_is_wanted(fake, name, words):
    about = subject(3, key_points=("with a red shade",), reference_length=7)

    assert words in record_of(request_of(fake, about, **{name: True}))
    fake.reset()
    assert words not in record_of(request_of(fake, about, **{name: False}))


def test_without_actions_the_thoughts_keep_their_steps(fake):
    text = record_of(request_of(fake, subject(2), show_actions=False, show_urls=False))

    assert 'step 1 thought: "think 1"' in text
    assert "action" not in text


def test_what_hands_over_the_answer_is_no_action(fake):
    steps = (StepRecord(0, "click a"), StepRecord(1, "send_msg_to_user('I bought a lamp.')", "I bought a lamp."))

    assert "I bought a lamp." not in record_of(request_of(fake, subject(steps)))


@pytest.mark.parametrize(
    ("images", "most", "shown"),
    [
        ("none", 50, []),
        ("last", 50, [9]),
        ("all", 50, list(range(10))),
        ("all", 3, [7, 8, 9]),
        ("sampled", 50, list(range(10))),
        ("sampled", 4, [0, 3, 6, 9]),
        ("sampled", 2, [0, 9]),
        ("sampled", 1, [9]),
    ],
)
def test_the_screenshots_that_are_wanted_are_shown_in_order(fake, images, most, shown):
    request = request_of(fake, subject(10), images=images, max_images=most)

    assert user_texts(request)[1:] == [f"Screenshot of step {step}:" for step in shown]
    assert pictures_in(request) == len(shown)


def test_pictures_that_came_with_the_task_are_shown_after_the_screenshots(fake):
    about = subject(2, input_images=(picture(50), picture(51)))

    assert pictures_in(request_of(fake, about)) == 4
    fake.reset()
    assert pictures_in(request_of(fake, about, show_input_images=False)) == 2


@pytest.mark.parametrize("images", ["none", "last", "all", "sampled"])
@pytest.mark.parametrize(
    "about", [{}, {"steps": 60}, {"pictures": 0}, {"pictures": 1}, {"input_images": (picture(9),)}], ids=str
)
def test_the_calls_that_are_foreseen_are_those_that_are_made(fake, images, about):
    request = request_of(fake, subject(**about), images=images, max_images=7)

    assert [("verdict", pictures_in(request))] == foreseen("single-call", subject(**about), images=images, max_images=7)


@pytest.mark.parametrize(
    "rule",
    [
        {"reply": "I think it went well."},
        {"reply": ""},
        {"reply": json.dumps(ANSWER), "finish": "length"},
        {"message": {"role": "assistant", "content": None, "refusal": "No."}},
        {"reply": json.dumps(ANSWER | {"verdict": "partly"})},
    ],
    ids=["no verdict", "empty", "cut", "refusal", "unknown verdict"],
)
def test_without_an_explicit_verdict_a_trajectory_is_unscored(fake, rule):
    fake.says(rule)
    score = asked(fake, judge("single-call"), subject())

    assert score.verdict is None
    assert score.unscored


def test_a_verdict_in_plain_text_is_read_where_the_judge_asks_for_text(fake):
    fake.says({"reply": "The lamp is in the cart.\nStatus: failure"})

    assert asked(fake, judge("single-call"), subject(), output="text").verdict is Verdict.FAILURE


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"instructions": " "}, "instructions"),
        ({"criteria": ""}, "criteria"),
        ({"criteria": "x" * 20_001}, "criteria"),
        ({"max_images": 0}, "max_images"),
        ({"max_images": "101"}, "max_images"),
        ({"max_images": "many"}, "max_images"),
        ({"images": "first"}, "images"),
        ({"show_everything": True}, "show_everything"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_by_its_name(given, wrong):
    with pytest.raises(ParameterError) as refused:
        parameters_from(KIND.parameters, given)

    assert refused.value.name == wrong


def test_every_parameter_has_a_default_and_a_help_text():
    assert parameters_from(KIND.parameters, collect_defaults(KIND.parameters)) == KIND.parameters()
    assert all(one.metadata["help"] for one in KIND.parameters.__dataclass_fields__.values())


def test_a_loaded_set_without_a_place_for_the_record_is_refused():
    texts = dict(load_builtin("single-call/1").texts) | {"verdict.framed_user": "Judge."}

    with pytest.raises(LookupError, match="record"):
        KIND.build(KIND.parameters(), Prompts("loaded/mine", "0", texts))
