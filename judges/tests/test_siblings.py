"""Autonomous Eval, AgentTrek and WebVoyager: what they are shown, and how their replies are read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from annotation.records import StepRecord, Verdict
from judges.llm import CallFailed
from judges.prompts import load_builtin
from judges.scorer import REGISTRY, ParameterError, Prompts, parameters_from
from judges.scorers import web_voyager
from judges.tests.siblings import (
    PUBLISHED,
    V2,
    asked,
    foreseen,
    judge,
    picture,
    pictures_in,
    requests,
    subject,
    system_of,
    user_texts,
)

pytestmark = pytest.mark.slow

GARBAGE = "Lorem ipsum dolor sit amet."


def only_request(fake):
    (request,) = requests(fake)
    return request


def request_of(fake, name, about, **parameters):
    fake.says(record=True)
    asked(fake, judge(name, **parameters), about)
    return only_request(fake)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize(("said", "verdict"), [("success", Verdict.SUCCESS), ("failure", Verdict.FAILURE)])
def test_a_stated_verdict_is_taken_with_its_reason(fake, name, said, verdict):
    answer = {"task_kind": "navigation", "reason": "Step 2 shows it.", "verdict": said}
    if name != "autonomous-eval":
        del answer["task_kind"]
    fake.says({"reply": json.dumps(answer)})
    score = asked(fake, judge(name), subject())

    assert (score.verdict, score.unscored, score.explanation) == (verdict, "", "Step 2 shows it.")
    assert "Step 2 shows it." in score.response
    assert dict(score.notes) == ({"task_kind": "navigation"} if name == "autonomous-eval" else {})


@pytest.mark.parametrize("name", [*PUBLISHED, "single-call"])
def test_what_a_reply_has_beyond_its_form_is_noted_nowhere(fake, name):
    answer = {"task_kind": "navigation", "key_points": [], "steps": [], "reason": "x", "verdict": "success"}
    fake.says({"reply": json.dumps(answer | {"injection": [{"step": 0}], "mode": "x"})})
    notes = asked(fake, judge(name), subject()).notes

    assert not {"injection", "mode"} & notes.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_verdict_in_plain_text_is_read_where_the_judge_asks_for_text(fake, name):
    fake.says({"reply": "Thoughts: step 1 does it.\nStatus: success"}, record=True)
    score = asked(fake, judge(name), subject(), output="text")

    assert score.verdict is Verdict.SUCCESS
    assert "step 1 does it" in score.explanation
    assert "response_format" not in only_request(fake)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("output", ["schema", "tool", "text"])
@pytest.mark.parametrize(
    "rule",
    [
        {"reply": GARBAGE},
        {"reply": "NOT SURE"},
        {"reply": '{"verdict": "maybe", "reason": "x"}'},
        {"reply": ""},
        {"message": {"role": "assistant", "content": None, "refusal": "I cannot help with that."}},
        {"reply": "Status: success", "finish": "length"},
        {"reply": "", "finish": "content_filter"},
    ],
    ids=["garbage", "unclear", "unknown verdict", "empty", "refusal", "cut", "filtered"],
)
def test_without_an_explicit_verdict_a_trajectory_is_unscored(fake, name, output, rule):
    fake.says(rule)
    score = asked(fake, judge(name), subject(), output=output)

    assert score.verdict is None
    assert score.unscored


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize(
    "rule",
    [
        {"reply": ""},
        {"message": {"role": "assistant", "content": None, "refusal": "I cannot help with that."}},
        {"reply": "Status: success", "finish": "length"},
    ],
    ids=["empty", "refusal", "cut"],
)
def test_no_whole_reply_is_unscored_in_upstreams_mode_too(fake, name, rule):
    fake.says(rule)
    score = asked(fake, judge(name, mode="upstream"), subject())

    assert score.verdict is None
    assert score.unscored


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("mode", ["default", "upstream"])
def test_an_endpoint_that_fails_is_no_verdict(fake, name, mode):
    fake.says({"status": 401})

    with pytest.raises(CallFailed):
        asked(fake, judge(name, mode=mode), subject())


@pytest.mark.parametrize("name", ["autonomous-eval", "agenttrek"])
@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Thoughts: x\nStatus: success", Verdict.SUCCESS),
        ("Thoughts: x\nStatus: failure", Verdict.FAILURE),
        ("Status: unsuccessful", Verdict.SUCCESS),
        ("failure, status: not a success", Verdict.SUCCESS),
        ("**Status**: success", Verdict.FAILURE),
        (GARBAGE, Verdict.FAILURE),
    ],
)
def test_upstreams_mode_reads_the_status_as_it_was_published(fake, name, reply, verdict):
    fake.says({"reply": reply})

    assert asked(fake, judge(name, mode="upstream"), subject()).verdict is verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("FAILURE", Verdict.FAILURE),
        ("It is a FAILURE, not a SUCCESS", Verdict.FAILURE),
        ("NOT SUCCESS", Verdict.SUCCESS),
        ("failure", Verdict.SUCCESS),
        (GARBAGE, Verdict.SUCCESS),
    ],
)
def test_upstreams_webvoyager_fails_only_by_the_word_in_capitals(fake, reply, verdict):
    fake.says({"reply": reply})

    assert asked(fake, judge("webvoyager", mode="upstream"), subject()).verdict is verdict


@pytest.mark.parametrize("reply", ["NOT SUCCESS", "Verdict: failure", "Status: unsuccessful", "Verdict: not a success"])
def test_what_upstreams_webvoyager_takes_for_a_success_is_a_failure_in_ours(fake, reply):
    fake.says({"reply": reply})

    assert asked(fake, judge("webvoyager"), subject(), output="text").verdict is Verdict.FAILURE


@pytest.mark.parametrize("mode", ["default", "upstream"])
def test_autonomous_eval_is_shown_actions_and_the_last_screenshot_but_no_thought_and_no_answer(fake, mode):
    request = request_of(fake, "autonomous-eval", subject(3), mode=mode)
    text = "\n".join(user_texts(request))

    assert "Buy a lamp." in text
    assert all(f"click button {n}" in text for n in range(3))
    assert "think" not in text
    assert "I bought a lamp." not in text
    assert pictures_in(request) == 1


def test_autonomous_eval_says_truthfully_that_there_is_no_answer(fake):
    request = request_of(fake, "autonomous-eval", subject(3))

    assert "You do not receive what the agent answered" in system_of(request)
    assert "last screenshot: of step 2" in "\n".join(user_texts(request))


def test_the_last_screenshot_is_the_last_that_there_is(fake):
    request = request_of(fake, "autonomous-eval", subject(3, pictures=2))

    assert "last screenshot: of step 1" in "\n".join(user_texts(request))


@pytest.mark.parametrize("mode", ["default", "upstream"])
def test_agenttrek_is_shown_thoughts_and_actions_in_turn(fake, mode):
    request = request_of(fake, "agenttrek", subject(2), mode=mode)
    text = "\n".join(user_texts(request))
    places = [text.index(words) for words in ("think 0", "click button 0", "think 1", "click button 1")]

    assert places == sorted(places)
    assert "I bought a lamp." not in text
    assert pictures_in(request) == 1


@pytest.mark.parametrize("mode", ["default", "upstream"])
def test_missing_thoughts_stop_nobody(fake, mode):
    steps = (StepRecord(0, "click a", None), StepRecord(1, "click b", "because"), StepRecord(2, "click c", None))
    request = request_of(fake, "agenttrek", subject(steps), mode=mode)
    text = "\n".join(user_texts(request))

    assert "click a" in text
    assert "because" in text
    assert "None" not in text


@pytest.mark.parametrize("mode", ["default", "upstream"])
def test_webvoyager_is_shown_the_answer_and_the_first_fifty_screenshots_but_no_action(fake, mode):
    request = request_of(fake, "webvoyager", subject(60), mode=mode)
    text = "\n".join(user_texts(request))

    assert "I bought a lamp." in text
    assert "click button" not in text
    assert "think" not in text
    assert pictures_in(request) == 50
    if mode == "default":
        assert "screenshots: the first 50 of 60" in text
        assert [t for t in user_texts(request) if t.startswith("Screenshot of")][-1] == "Screenshot of step 49:"


def test_webvoyager_says_so_when_there_is_no_answer(fake):
    assert "final answer: there is none" in "\n".join(
        user_texts(request_of(fake, "webvoyager", subject(final_answer=None)))
    )


def test_the_action_that_completes_is_left_out_of_the_actions(fake):
    steps = (StepRecord(0, "click a"), StepRecord(1, "TASK_COMPLETE -> ANSWER: I bought a lamp."))
    for mode in ("default", "upstream"):
        fake.reset()
        about = subject(steps, source_format=V2)
        assert "I bought a lamp." not in "\n".join(user_texts(request_of(fake, "autonomous-eval", about, mode=mode)))


def test_upstreams_mode_drops_the_last_action_of_version_2_whatever_it_is(fake):
    steps = (StepRecord(0, "click a"), StepRecord(1, "click b"))
    about = subject(steps, source_format=V2)

    assert "click b" in "\n".join(user_texts(request_of(fake, "autonomous-eval", about)))
    fake.reset()
    assert "click b" not in "\n".join(user_texts(request_of(fake, "autonomous-eval", about, mode="upstream")))


@pytest.mark.parametrize("name", ["autonomous-eval", "agenttrek"])
def test_without_a_screenshot_ours_judges_by_the_actions_and_says_that_there_is_none(fake, name):
    request = request_of(fake, name, subject(pictures=0))

    assert "last screenshot: there is none" in "\n".join(user_texts(request))
    assert pictures_in(request) == 0


@pytest.mark.parametrize(
    ("name", "mode", "about"),
    [
        ("autonomous-eval", "upstream", {"pictures": 0}),
        ("agenttrek", "upstream", {"pictures": 0}),
        ("autonomous-eval", "default", {"pictures": 0, "steps": 0}),
        ("agenttrek", "default", {"pictures": 0, "steps": 0}),
        ("webvoyager", "default", {"pictures": 0}),
    ],
)
def test_what_the_method_cannot_do_without_is_unscored_before_anything_is_paid(fake, name, mode, about):
    score = asked(fake, judge(name, mode=mode), subject(**about))

    assert score.verdict is None
    assert "none" in score.unscored or "neither" in score.unscored
    assert fake.counts()["calls"] == 0
    assert foreseen(name, subject(**about), mode=mode) == []


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("mode", ["default", "upstream"])
@pytest.mark.parametrize(
    "about",
    [{}, {"steps": 1}, {"steps": 70}, {"pictures": 2}, {"pictures": 0}, {"source_format": V2}, {"final_answer": None}],
    ids=str,
)
def test_the_calls_that_are_foreseen_are_those_that_are_made(fake, name, mode, about):
    fake.says(record=True)
    asked(fake, judge(name, mode=mode), subject(**about))

    assert [("verdict", pictures_in(request)) for request in requests(fake)] == foreseen(
        name, subject(**about), mode=mode
    )


@pytest.mark.parametrize(
    ("name", "place", "said"),
    [
        ("autonomous-eval", "last_actions", "1. click button 0\n2. click button 1"),
        (
            "agenttrek",
            "thoughts_and_actions",
            "Thought 1: think 0\nAction 1: click button 0\n\nThought 2: think 1\nAction 2: click button 1",
        ),
    ],
)
def test_upstreams_actions_are_numbered_from_one_as_text(fake, name, place, said):
    kind, texts = REGISTRY[name], {"verdict.system": "Judge.", "verdict.user": f"{{task}} A[{{{place}}}]"}
    scorer = kind.build(parameters_from(kind.parameters, {"mode": "upstream"}), Prompts("loaded/x", "0", texts))
    fake.says(record=True)
    asked(fake, scorer, subject(2))

    assert user_texts(only_request(fake)) == [f"Buy a lamp. A[{said}]"]


def test_upstreams_agenttrek_joins_paragraphs_and_ends_with_the_shorter_list(fake):
    steps = (
        StepRecord(0, "\nclick a\n\nclick b", "one\n\ntwo\n\n", ""),
        StepRecord(1, "click c", None, ""),
        StepRecord(2, "click d", "last\n", ""),
        StepRecord(3, "click e", None, ""),
    )
    texts = {"verdict.system": "Judge.", "verdict.user": "{task} A[{thoughts_and_actions}]"}
    kind = REGISTRY["agenttrek"]
    scorer = kind.build(parameters_from(kind.parameters, {"mode": "upstream"}), Prompts("loaded/x", "0", texts))
    fake.says(record=True)
    asked(fake, scorer, subject(steps))

    said = "Thought 1: one two \nAction 1: \nclick a click b\n\nThought 2: \nAction 2: click c\n\n"
    said += "Thought 3: last\n\nAction 3: click d"
    assert user_texts(only_request(fake)) == [f"Buy a lamp. A[{said}]"]


def test_upstreams_webvoyager_ends_with_the_published_words_and_writes_no_answer_as_none(fake):
    kind, texts = REGISTRY["webvoyager"], {"verdict.system": "Judge.", "verdict.user": "{task} R[{response}]"}
    scorer = kind.build(parameters_from(kind.parameters, {"mode": "upstream"}), Prompts("loaded/x", "0", texts))
    fake.says(record=True)
    asked(fake, scorer, subject(2, final_answer=None))

    _, message = only_request(fake)["messages"]
    kinds = [part["type"] for part in message["content"]]
    assert kinds == ["text", "image_url", "image_url", "text"]
    assert message["content"][0]["text"] == "Buy a lamp. R[None]"
    assert web_voyager.shows_upstream(subject(2)).media_type == "image/png"  # the endpoint of the tests keeps none
    assert message["content"][3]["text"] == "Your verdict:\n"


@pytest.mark.parametrize("name", ["webvoyager", "single-call"])
def test_equal_pictures_are_sent_once_with_all_their_steps(fake, name):
    about = replace(subject(4), screenshots=(picture(5), picture(6), picture(5), None))
    fake.says(record=True)
    score = asked(fake, judge(name), about)

    assert user_texts(only_request(fake))[1:] == ["Screenshot of steps 0, 2:", "Screenshot of step 1:"]
    assert pictures_in(only_request(fake)) == 2
    assert foreseen(name, about) == [("verdict", 2)]
    assert [one.step for one in score.steps if one.kept] == [0, 1, 2]


def test_upstreams_webvoyager_is_sent_equal_pictures_again(fake):
    about = replace(subject(3), screenshots=(picture(5), picture(5), picture(6)))

    assert pictures_in(request_of(fake, "webvoyager", about, mode="upstream")) == 3
    assert foreseen("webvoyager", about, mode="upstream") == [("verdict", 3)]


def test_webvoyagers_places_may_have_the_names_of_the_published_evaluator(fake):
    kind = REGISTRY["webvoyager"]
    texts = {"verdict.system": "Judge.", "verdict.user": "T {task} R {response} N {num}"}
    scorer = kind.build(parameters_from(kind.parameters, {"mode": "upstream"}), Prompts("loaded/x", "0", texts))
    fake.says(record=True)
    asked(fake, scorer, subject(2))

    assert user_texts(only_request(fake))[0] == "T Buy a lamp. R I bought a lamp. N 2"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_steps_whose_pictures_were_shown_are_evidence(fake, name):
    shown = asked(fake, judge(name), subject(3)).steps

    assert [one.step for one in shown] == ([0, 1, 2] if name == "webvoyager" else [2])
    assert all(one.kept and one.relevance is None for one in shown)


@pytest.mark.parametrize("name", PUBLISHED)
def test_loaded_texts_are_used_in_upstreams_mode_and_are_filled_once(fake, name):
    kind = REGISTRY[name]
    texts = {"verdict.system": "Judge.", "verdict.user": "T {task} {0} {{task}} end"}
    scorer = kind.build(parameters_from(kind.parameters, {"mode": "upstream"}), Prompts("loaded/x", "0", texts))
    fake.says(record=True)
    asked(fake, scorer, subject(task_text="{last_actions} {answer} {task}"))

    assert system_of(only_request(fake)) == "Judge."
    assert (
        user_texts(only_request(fake))[0] == "T {last_actions} {answer} {task} {0} {{last_actions} {answer} {task}} end"
    )


@pytest.mark.parametrize(
    ("mode", "texts", "missing"),
    [
        ("default", {"verdict.system": "x", "verdict.user": "{task}"}, "verdict.framed_system"),
        ("upstream", {"verdict.framed_system": "x", "verdict.framed_user": "{record}"}, "verdict.system"),
        ("default", {"verdict.framed_system": "x", "verdict.framed_user": "no place"}, "{record}"),
        ("upstream", {"verdict.system": "x", "verdict.user": "no place"}, "{task}"),
        ("upstream", {"verdict.system": "x", "verdict.user": "{task} {intent}"}, "{intent}"),
        ("default", {"verdict.framed_system": "x", "verdict.framed_user": "{record} {task}"}, "{task}"),
    ],
)
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_prompt_set_that_does_not_fit_is_refused_when_the_judge_is_built(name, mode, texts, missing):
    kind = REGISTRY[name]

    with pytest.raises(LookupError) as refused:
        kind.build(parameters_from(kind.parameters, {"mode": mode}), Prompts("loaded/mine", "0", texts))
    assert missing in str(refused.value)
    assert "loaded/mine" in str(refused.value)


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_unknown_mode_is_refused(name):
    with pytest.raises(ParameterError):
        parameters_from(REGISTRY[name].parameters, {"mode": "lenient"})


@pytest.mark.parametrize("name", PUBLISHED)
def test_our_own_prompts_have_the_texts_of_both_modes(name):
    texts = load_builtin(REGISTRY[name].prompts).texts

    assert {"verdict.system", "verdict.user", "verdict.framed_system", "verdict.framed_user"} <= texts.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_half_a_pair_of_surrogates_is_sent_in_either_mode(fake, name):
    steps = (StepRecord(0, "x\ud800", "y\ud800"),)
    about = subject(steps, task_text="a\ud800b", final_answer="c\udc00d")
    for mode in ("default", "upstream"):
        asked(fake, judge(name, mode=mode), about)

    assert fake.counts()["answered"] == 2
