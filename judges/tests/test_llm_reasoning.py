"""Models that think are detected by name or by their replies, and get a higher token limit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.tests import testing
from judges import defining
from judges.llm import CallFailed, Generation
from judges.llm.wire import is_reasoning
from judges.models import Judge
from judges.scorer import parameters_from
from judges.tests.builders import Fake, MemoryCallLog, defined_judge
from judges.tests.clients import FITS, SCHEMA, Desk

THOUGHTS = {"prompt_tokens": 900, "completion_tokens": 2048, "completion_tokens_details": {"reasoning_tokens": 2048}}
CUT = {"reply": "", "finish": "length", "usage": {"prompt_tokens": 900, "completion_tokens": 2048}}

THINKING = [
    "o4-mini", "gpt-5-mini", "gpt-5.2", "gemini-2.5-pro", "google/gemini-2.5-flash", "models/gemini-3-pro-preview",
    "gemini-flash-latest", "deepseek-reasoner", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "us.deepseek.r1-v1:0",
    "deepseek-v3.1-thinking", "DeepSeek-V3.2-Speciale", "qwq-32b", "qwen3-235b-a22b-thinking-2507", "Qwen/Qwen3-32B",
    "openai/gpt-oss-120b", "gpt-oss:20b", "grok-4", "x-ai/grok-4-fast-reasoning", "grok-3-mini",
    "claude-3-7-sonnet-thinking", "anthropic/claude-3.7-sonnet:thinking", "glm-4.6", "kimi-k2-thinking",
    "magistral-medium-latest", "phi-4-reasoning-plus",
]  # fmt: skip
NOT_THINKING = [
    "gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "gemini-2.0-flash", "deepseek-chat", "deepseek-v3", "grok-3",
    "x-ai/grok-4-fast-non-reasoning", "qwen3-235b-a22b-instruct-2507", "qwen3-coder-plus", "qwen2.5-vl-72b-instruct",
    "claude-sonnet-4-5", "mistral-large-latest", "llama-4-maverick", "fake-model-1", "llama-o1", "my-thinker",
]  # fmt: skip


@pytest.mark.parametrize(("models", "thinks"), [(THINKING, True), (NOT_THINKING, False)])
def test_a_family_of_models_that_think_is_known_by_name(models: list[str], thinks: bool) -> None:
    assert {model for model in models if is_reasoning(model, Generation()) is not thinks} == set()


def settings(fake: Fake) -> list[dict[str, Any]]:
    bodies = map(json.loads, fake.counts()["bodies"])
    return [{name: value for name, value in body.items() if name != "messages"} for body in bodies]


def test_a_thinking_model_of_another_maker_gets_room_under_the_usual_names(fake: Fake) -> None:
    fake.says({"reply": "ok"}, record=True)
    Desk(fake, model="gemini-2.5-pro").ask()
    assert settings(fake) == [{"model": "gemini-2.5-pro", "max_tokens": 16_384, "temperature": 0.0, "seed": 0}]


@pytest.mark.parametrize(("reasoning", "longest"), [("yes", 16_384), ("no", 2_048)])
@pytest.mark.parametrize("model", ["my-deployment", "gemini-2.5-flash"])
def test_judge_may_state_that_its_model_thinks(fake: Fake, model: str, reasoning: Any, longest: int) -> None:
    fake.says({"reply": "ok", "usage": THOUGHTS}, record=True)
    Desk(fake, Generation(reasoning=reasoning), model=model).ask()
    assert [one["max_tokens"] for one in settings(fake)] == [longest]


SIGNS: dict[str, dict[str, Any]] = {
    "reasoning tokens": {"reply": "Stat", "finish": "length", "usage": THOUGHTS},
    "not a word": CUT,
    "reasoning content": {"message": {"content": "St", "reasoning_content": "Hm."}, "finish": "length"},
    "thoughts in the text": {"reply": "<think>Let me see", "finish": "length"},
}


@pytest.mark.parametrize("cut", SIGNS.values(), ids=SIGNS.keys())
def test_a_reply_that_thoughts_cut_off_is_asked_for_again_with_room_for_them(fake: Fake, cut: dict[str, Any]) -> None:
    fake.says({"raw": '"max_tokens":2048'} | cut, {"reply": "Status: success"}, record=True)
    desk = Desk(fake, model="my-deployment")
    reply = desk.ask()
    assert (reply.text, reply.unusable()) == ("Status: success", "")
    assert [one["max_tokens"] for one in settings(fake)] == [2_048, 16_384]
    assert [bool(outcome.reply) for outcome in desk.call_log.outcomes] == [True, True]  # both were paid for


def test_thoughts_in_one_reply_change_the_calls_after_it(fake: Fake) -> None:
    fake.says({"reply": "ok", "usage": THOUGHTS | {"completion_tokens": 300}}, record=True)

    async def work(desk: Desk) -> None:
        for n in range(3):
            await desk.asks(f"task {n}")

    Desk(fake, model="my-deployment").run(work)
    assert [one["max_tokens"] for one in settings(fake)] == [2_048, 16_384, 16_384]


def test_the_same_question_later_is_answered_from_the_cache(fake: Fake) -> None:
    fake.says({"raw": '"max_tokens":2048'} | CUT, {"reply": "ok"})
    call_log = MemoryCallLog()
    for _ in range(2):
        assert Desk(fake, model="my-deployment", call_log=call_log).ask().text == "ok"
    assert fake.counts()["calls"] == 2


DRAFT = '<think>Perhaps {"status": "failure", "score": 2}?</think>\n'


@pytest.mark.parametrize("answer", [FITS, f"```json\n{FITS}\n```"])
def test_a_draft_in_the_thoughts_is_no_answer(fake: Fake, answer: str) -> None:
    fake.says({"reply": DRAFT + answer})
    reply = Desk(fake).ask(schema=SCHEMA)
    assert (reply.data, reply.problem) == ({"status": "success", "score": 4}, "")
    assert fake.counts()["calls"] == 1


def test_a_draft_in_the_thoughts_does_not_stand_for_an_answer_in_words(fake: Fake) -> None:
    fake.says({"reply": f"{DRAFT}Status: success"})
    reply = Desk(fake, Generation(output="text")).ask(schema=SCHEMA)
    assert (reply.data, reply.text) == (None, "Status: success")


def test_thoughts_are_kept_where_no_form_is_asked_for(fake: Fake) -> None:
    fake.says({"reply": f"{DRAFT}Status: success"})
    assert Desk(fake).ask().text == f"{DRAFT}Status: success"  # upstream's rules read all of a reply


@pytest.mark.parametrize(
    ("generation", "cut"),
    [
        (Generation(), {"reply": "A long answer", "finish": "length"}),  # no sign of thoughts
        (Generation(max_tokens=500), CUT),
        (Generation(reasoning="no"), CUT),
        (Generation(reasoning="yes"), CUT),
    ],
)
def test_a_cut_reply_is_final_when_no_more_room_is_due(fake: Fake, generation: Generation, cut: dict[str, Any]) -> None:
    fake.says(cut)
    assert (
        Desk(fake, generation, model="my-deployment").ask().unusable() == "The reply was cut off at its length limit."
    )
    assert fake.counts()["calls"] == 1


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh"])
def test_every_effort_is_accepted_and_passed_on(fake: Fake, effort: str) -> None:
    fake.says({"reply": "ok"}, record=True)
    Desk(fake, parameters_from(Generation, {"reasoning_effort": effort}), model="gpt-5.2").ask()
    assert settings(fake)[0]["reasoning_effort"] == effort


def test_an_effort_that_the_endpoint_does_not_have_is_an_error_and_not_left_out(fake: Fake) -> None:
    message = "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model."
    fake.says({"status": 400, "error": {"message": message, "param": "reasoning_effort"}})
    with pytest.raises(CallFailed, match="does not support 'xhigh'"):
        Desk(fake, Generation(reasoning_effort="xhigh")).ask()
    assert fake.counts()["calls"] == 1


def test_a_temperature_that_thinking_forbids_is_left_out(fake: Fake) -> None:
    error = {"message": "`temperature` may only be set to 1 when thinking is enabled."}
    fake.says({"raw": '"temperature"', "status": 400, "error": error}, {"reply": "ok"})
    assert Desk(fake, model="claude-sonnet-thinking").ask().text == "ok"


# --- as a property of a judge ----------------------------------------------------------------------------------------

BEFORE = {
    "temperature": 0.0, "max_tokens": 0, "seed": 0, "dialect": "auto", "reasoning_effort": "", "output": "schema",
}  # fmt: skip


@pytest.mark.django_db
def test_a_judge_that_does_not_set_it_has_the_fingerprint_that_it_always_had() -> None:
    plain, named = defined_judge("plain"), defined_judge("named", generation={"reasoning": "auto"})
    assert plain.generation == named.generation == BEFORE
    assert plain.fingerprint == named.fingerprint
    assert defined_judge("sets", generation={"reasoning": "yes"}).fingerprint != plain.fingerprint


@pytest.mark.django_db
def test_a_judge_is_defined_with_it_on_its_page(settings: Any) -> None:
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:9/v1"}
    client = Client()
    client.force_login(testing.person("mira", is_staff=True))
    found = defined_judge(model="gemini-2.5-pro")
    assert "auto: yes, by its name" in client.get(reverse("judge", args=[found.pk])).content.decode()

    page = client.get(reverse("edit-judge", args=[found.pk])).content.decode()
    assert 'name="generation_reasoning"' in page
    changed = defining.change(None, found, generation={"reasoning": "no", "reasoning_effort": "xhigh"})
    assert Judge.objects.get(pk=found.pk).generation == BEFORE | {"reasoning": "no", "reasoning_effort": "xhigh"}
    assert changed.fingerprint == Judge.objects.get(pk=found.pk).fingerprint
