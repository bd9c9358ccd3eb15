"""WebJudge in upstream's mode: the requests have the published structure, and replies count as they do there."""

from __future__ import annotations

import json

import pytest

from annotation.records import Verdict
from judges.prompts import compute_digest, load_builtin
from judges.scorer import Prompts
from judges.tests.builders import MemoryCallLog
from judges.tests.webjudging import (
    ANSWER,
    LOOK,
    POINTS,
    V1,
    VERDICT,
    foreseen,
    judge,
    judged,
    parts,
    picture,
    requests,
    sent,
    subject,
    texts,
)

TEXTS = {
    "key_points.system": "system one, {criteria} as it is",
    "key_points.user": "one T[{task}]",
    "screenshot.system": "system two",
    "screenshot.user": "two T[{task}] K[{key_points}]",
    "verdict.system": "system three",
    "verdict.user": "three T[{task}] K[{key_points}] A[{last_actions}] R[{thoughts}]",
    "verdict.user_without_images": "bare T[{task}] K[{key_points}] A[{last_actions}]",
}
LOADED = Prompts("loaded/official@12345678", compute_digest(TEXTS), TEXTS)
REFUSAL = {"message": {"role": "assistant", "content": None, "refusal": "I will not."}}


def strict(name="webjudge", prompts=LOADED, **parameters):
    return judge(name, prompts, mode="upstream", drop_last="always", **parameters)


def replies(*looks, points="**Key Points**:\n1. a\n\n2. b", verdict="Status: success"):
    return [
        {"match": "one T[", "reply": points},
        {"match": " A[", "reply": verdict},
        *({"match": sent(n), "reply": text} for n, text in enumerate(looks)),
    ]


def look(score, reason="It shows the list."):
    return f"**Reasoning**: {reason}\n\n**Score**: {score}"


def test_the_requests_of_all_stages_have_the_published_structure(fake):
    fake.says(*replies(look(5), look(2), look(3, "The\ncart.")))
    call_log = MemoryCallLog()

    score = judged(fake, strict(), subject(), call_log, temperature=0.0, max_tokens=512)

    first, *middle, last = requests(call_log)
    assert score.verdict is Verdict.SUCCESS
    assert texts(first) == ["one T[Buy the cheapest lamp.]"]
    assert [texts(one) for one in middle] == [["two T[Buy the cheapest lamp.] K[\n1. a\n2. b]"]] * 3
    actions = "1. coords(1, 2) -> CLICK -> sort\n2. coords(3, 4) -> CLICK -> lamp"
    reasons = "1. It shows the list.\n2. The cart."
    assert texts(last) == [f"three T[Buy the cheapest lamp.] K[\n1. a\n2. b] A[{actions}] R[{reasons}]"]
    assert [one["messages"][0]["content"] for one in (first, middle[0], last)] == [
        "system one, {criteria} as it is",
        "system two",
        "system three",
    ]
    assert [(one["temperature"], one["max_tokens"]) for one in (first, *middle, last)] == [(0.0, 512)] * 5
    assert not any("response_format" in one or "tools" in one for one in (first, *middle, last))


def test_pictures_say_jpeg_on_their_own_and_png_in_the_verdict_with_high_detail(fake):
    fake.says(*replies(look(5), look(1), look(3)), record=True)
    call_log = MemoryCallLog()

    judged(fake, strict(), subject(), call_log)

    def pictures(request):
        found = [one["image_url"] for one in parts(request) if one["type"] == "image_url"]
        return [(one["screenshot"], one["media_type"], one["detail"]) for one in found]

    assert [pictures(one) for one in requests(call_log, "screenshot")] == [
        [(picture(n).digest, "image/jpeg", "high")] for n in range(3)
    ]
    assert pictures(requests(call_log, "verdict")[0]) == [(picture(n).digest, "image/png", "high") for n in (0, 2)]


def test_the_data_urls_arrive_as_the_published_code_sends_them(fake):
    fake.says(
        {"match": f"data:image/png;base64,{sent(0)}", "name": "png", "reply": "Status: success"},
        {"match": f"data:image/jpeg;base64,{sent(0)}", "name": "jpeg", "reply": look(5)},
    )

    judged(fake, strict(), subject([0, None, None]))

    assert fake.counts()["by_rule"] == {"png": 1, "jpeg": 1}


def test_reasons_are_left_out_when_no_picture_is_kept(fake):
    fake.says(*replies(look(1), look(2), "nothing to read"))
    call_log = MemoryCallLog()

    score = judged(fake, strict(), subject(), call_log)

    (request,) = requests(call_log, "verdict")
    assert texts(request)[0].startswith("bare T[")
    assert len(parts(request)) == 1
    assert [(one.relevance, one.kept) for one in score.steps] == [(1, False), (2, False), (0, False)]


def test_an_empty_reason_has_no_number_so_that_numbers_shift(fake):
    fake.says(*replies("Score: 5\n**Reasoning**:", look(4, "Second."), look(1)))
    call_log = MemoryCallLog()

    judged(fake, strict(), subject(), call_log)

    (request,) = requests(call_log, "verdict")
    assert "R[1. Second.]" in texts(request)[0]
    assert len(parts(request)) == 3


def test_the_first_reasons_that_say_something_are_shown_whichever_pictures_they_are_of(fake):
    fake.says(*replies("Score: 5\n**Reasoning**:", look(4, "Second."), look(4, "Third.")))
    call_log = MemoryCallLog()

    judged(fake, strict(max_images=2), subject(), call_log)

    (request,) = requests(call_log, "verdict")
    assert "R[1. Second.\n2. Third.]" in texts(request)[0]
    assert [one["image_url"]["screenshot"] for one in parts(request)[1:]] == [picture(n).digest for n in (0, 1)]


def test_key_points_of_people_are_numbered_lines_and_recorded_as_theirs(fake):
    fake.says(*replies(look(5), look(1), look(1)))
    call_log = MemoryCallLog()

    score = judged(fake, strict(key_points="people"), subject(key_points=("cheapest", "a lamp")), call_log)

    assert not requests(call_log, "key_points")
    assert all("K[1. cheapest\n2. a lamp]" in texts(request)[0] for request in requests(call_log))
    assert score.notes["key_points_from"] == "people"


def test_equal_pictures_are_asked_about_once_and_shown_as_often_as_they_were_kept(fake):
    fake.says(*replies(look(5), look(1)))
    call_log = MemoryCallLog()

    score = judged(fake, strict(max_images=2), subject([0, 1, 0, 0], ["a", "b", "c", "TASK_COMPLETE"]), call_log)

    (request,) = requests(call_log, "verdict")
    assert len(requests(call_log, "screenshot")) == 2
    assert [one["image_url"]["screenshot"] for one in parts(request)[1:]] == [picture(0).digest] * 2
    assert "R[1. It shows the list.\n2. It shows the list.]" in texts(request)[0]
    assert [(one.step, one.kept, one.same_as) for one in score.steps] == [
        (0, True, None),
        (1, False, None),
        (2, True, 0),
        (3, False, 0),
    ]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("Status: unsuccessful", Verdict.SUCCESS),
        ("Status: failure, not a success", Verdict.SUCCESS),
        ("**Status**: success", Verdict.FAILURE),
        ("I would call it a success.", Verdict.FAILURE),
    ],
)
def test_a_text_is_read_as_upstream_reads_it_faults_included(fake, verdict, expected):
    fake.says(*replies(look(3), look(3), look(3), verdict=verdict))

    assert judged(fake, strict(), subject()).verdict is expected


def test_a_verdict_that_was_cut_after_its_status_is_read(fake):
    fake.says({"match": " A[", "reply": "Status: failure", "finish": "length"})

    assert judged(fake, strict(), subject()).verdict is Verdict.FAILURE


@pytest.mark.parametrize("text", ["Thoughts: Every", "Thoughts: All. Status:", "Status: fail", 'Status: "'])
def test_a_verdict_that_was_cut_before_the_end_of_its_word_is_unscored(fake, text):
    fake.says({"match": " A[", "reply": text, "finish": "length"})

    assert judged(fake, strict(), subject()).verdict is None


@pytest.mark.parametrize("said", [REFUSAL, {"reply": ""}], ids=["refusal", "empty"])
def test_an_unread_picture_counts_as_zero(fake, said):
    fake.says({"match": " A[", "reply": "Status: success"}, {"match": "two T[", **said})

    score = judged(fake, strict(), subject())

    assert score.verdict is Verdict.SUCCESS
    assert [one.relevance for one in score.steps] == [0, 0, 0]


def test_placeholders_in_texts_of_the_task_are_not_filled_again(fake):
    call_log = MemoryCallLog()

    judged(fake, strict(), subject(task_text="find {key_points} {0} {}"), call_log)

    assert texts(requests(call_log, "verdict")[0])[0].startswith("three T[find {key_points} {0} {}]")


def test_a_set_without_framed_texts_is_refused_in_the_default_mode():
    with pytest.raises(LookupError, match=r"key_points\.framed_system.*upstream's mode"):
        judge("webjudge", LOADED)


def test_a_set_without_a_stage_is_refused_by_name():
    some = {name: text for name, text in TEXTS.items() if not name.startswith("screenshot")}
    with pytest.raises(LookupError, match=r"screenshot\.system, screenshot\.user"):
        judge("webjudge", Prompts("loaded/some", compute_digest(some), some), mode="upstream")


def test_the_general_variant_shows_thoughts_beside_actions_as_far_as_the_shorter_list_goes(fake):
    call_log = MemoryCallLog()
    about = subject(actions=["a", "b", "c"], source_format=V1, thoughts=["first", "second", None])

    judged(fake, strict("webjudge-general"), about, call_log)

    assert "A[1. a. Reasoning: first\n2. b. Reasoning: second]" in texts(requests(call_log, "verdict")[0])[0]


def test_the_general_variant_shows_plain_actions_when_there_are_no_thoughts(fake):
    call_log = MemoryCallLog()

    judged(
        fake, strict("webjudge-general"), subject(actions=["a", "b"], source_format=V1, thoughts=[None, None]), call_log
    )

    assert "A[1. a\n2. b]" in texts(requests(call_log, "verdict")[0])[0]


def test_the_thought_of_the_completing_step_is_not_shown(fake):
    call_log = MemoryCallLog()
    thoughts = ["first", None, f"I say: {ANSWER}"]

    judged(fake, strict("webjudge-general"), subject(thoughts=thoughts), call_log)

    assert "lamp. Reasoning: None]" in texts(requests(call_log, "verdict")[0])[0]
    assert ANSWER not in json.dumps(requests(call_log))


@pytest.mark.parametrize("actions", [["a", f"send_msg_to_user({ANSWER!r})", "noop()"], ["a", "", "noop()"]])
def test_every_thought_stays_with_its_own_action_where_one_is_left_out(fake, actions):
    call_log = MemoryCallLog()
    about = subject(actions=actions, source_format=V1, thoughts=["first", f"I say: {ANSWER}", "third"])

    judged(fake, judge("webjudge-general", LOADED, mode="upstream"), about, call_log)

    assert "A[1. a. Reasoning: first\n2. noop(). Reasoning: third]" in texts(requests(call_log, "verdict")[0])[0]


def test_the_general_variant_sends_input_images_behind_the_task_then_in_a_message_of_their_own(fake):
    call_log = MemoryCallLog()

    texts = {**TEXTS, "inputs.user": "look here"}
    with_line = Prompts("loaded/x@12345678", compute_digest(texts), texts)

    judged(fake, strict("webjudge-general", with_line), subject(input_images=(picture(8), picture(9))), call_log)

    digests = [picture(8).digest, picture(9).digest]
    key_points, *later = requests(call_log)
    system, main = key_points["messages"]
    assert [part["type"] for part in main["content"]] == ["text", "image_url", "image_url"]
    assert [one["image_url"]["screenshot"] for one in main["content"][1:]] == digests
    assert {one["image_url"]["media_type"] for one in main["content"][1:]} == {"image/png"}
    assert len(later) > 1
    for request in later:
        system, own, main = request["messages"]
        assert (system["role"], own["role"], main["role"]) == ("system", "user", "user")
        assert own["content"][0]["text"] == "look here"
        assert {one["image_url"]["media_type"] for one in own["content"][1:]} == {"image/png"}
        assert [one["image_url"]["screenshot"] for one in own["content"][1:]] == digests


def test_the_line_above_input_images_is_that_of_the_prompt_set_or_none(fake):
    about = subject([0], input_images=(picture(8),))
    for prompts, line in ((LOADED, []), (None, [load_builtin("webjudge-general/1").texts["inputs.user"]])):
        call_log = MemoryCallLog()
        judged(fake, strict("webjudge-general", prompts), about, call_log)

        own = requests(call_log)[1]["messages"][1]["content"]
        assert [part["text"] for part in own if part["type"] == "text"] == line
        assert sum(part["type"] == "image_url" for part in own) == 1


def test_the_other_variant_sends_no_input_images(fake):
    call_log = MemoryCallLog()

    judged(fake, strict(), subject(input_images=(picture(8),)), call_log)

    assert {len(request["messages"]) for request in requests(call_log)} == {2}
    assert picture(8).digest not in json.dumps(requests(call_log))


@pytest.mark.parametrize("parameters", [{}, {"max_images": 2}, {"max_images": 1}])
@pytest.mark.parametrize("pictures", [[5, 6, 5], [5, 5, 5], [None, 6, None], [None, None, None]])
def test_the_calls_are_foreseen_in_upstreams_mode_where_equal_pictures_are_shown_again(fake, pictures, parameters):
    call_log = MemoryCallLog()
    about = subject(pictures)

    judged(fake, strict(**parameters), about, call_log)

    made = [
        (one.call.stage, sum(part["type"] == "image_url" for part in parts(one.call.request)))
        for one in call_log.outcomes
    ]
    assert foreseen(about, mode="upstream", **parameters) == made


@pytest.mark.parametrize("name", ["webjudge", "webjudge-general"])
def test_our_own_prompts_work_in_upstreams_mode_too(fake, name):
    form = "### Reasoning: It shows it.\n### Score: 4" if name == "webjudge-general" else look(4)
    fake.says(
        {"match": POINTS, "reply": "**Key Points**:\n1. a"},
        {"match": VERDICT, "reply": 'Thoughts: no.\nStatus: "failure"'},
        {"match": LOOK, "reply": form},
    )
    call_log = MemoryCallLog()

    score = judged(fake, strict(name, None), subject(), call_log)

    assert (score.verdict, score.explanation) == (Verdict.FAILURE, "no.")
    assert [one.text for one in score.key_points] == ["a"]
    assert [one.relevance for one in score.steps] == [4, 4, 4]
    for request in requests(call_log):
        assert "{" not in texts(request)[0] + request["messages"][0]["content"]
