"""What is read from replies of the Responses API, Anthropic and Gemini, honest or hostile."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from judges.llm import CallFailed, Reply, Usage
from judges.llm import client as llm_client
from judges.llm.apis import APIS
from judges.llm.apis.base import ReplyBody, UnreadableReply
from judges.models import ModelTerms
from judges.tests.api_bodies import NATIVE, body, call, generate, message, native, respond, speak
from judges.tests.builders import Fake
from judges.tests.clients import FITS, SCHEMA
from judges.working.call_log import compute_cost

DATA = json.loads(FITS)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "FIRST_WAIT", 0.01)


def ask(fake: Fake, api: str, said: Any, **more: Any) -> Reply:
    fake.says({"body": said})
    return native(fake, api, output=more.pop("output", "schema")).ask(**more)


def read(api: str, said: Any) -> ReplyBody:
    return APIS[api].parse(said if isinstance(said, str) else json.dumps(said))


@pytest.mark.parametrize("api", NATIVE)
def test_reply_is_read_with_its_model_and_tokens(fake: Fake, api: str) -> None:
    fake.says({"body": body(api, "Status: success")})
    desk = native(fake, api)
    reply = desk.ask()
    assert (reply.text, reply.refusal, reply.cut, reply.unusable()) == ("Status: success", "", False, "")
    models = {
        "responses": "gpt-4.1-2025-04-14",
        "anthropic": "claude-opus-4-8-20260601",
        "gemini": "gemini-1.5-pro-002",
    }
    assert reply.model == models[api]
    assert (reply.usage.prompt, reply.usage.cached, reply.usage.completion) == (1200, 200, 60)
    assert reply.usage.reasoning == (None if api == "anthropic" else 10)
    [outcome] = desk.call_log.outcomes
    assert json.loads(outcome.reply) == body(api, "Status: success")
    assert outcome.finish == {"responses": "completed", "anthropic": "end_turn", "gemini": "STOP"}[api]


@pytest.mark.parametrize("api", NATIVE)
def test_cost_counts_every_token_once(api: str) -> None:
    """1,000 new tokens at $3, 200 cached ones at $0.30 and 60 at $15 a million: 0.003 + 0.00006 + 0.0009."""
    terms = ModelTerms(input_price=Decimal(3), cached_price=Decimal("0.3"), output_price=Decimal(15))
    assert compute_cost(terms, read(api, body(api, "ok")).usage) == Decimal("0.00396")


def test_cost_of_writing_to_the_cache_is_a_quarter_more() -> None:
    """100 new tokens, 800 written and 300 read, at $4 and $0.40: 0.0004 + 0.0032 * 1.25 + 0.00012, and 10 at $20."""
    counts = {"input_tokens": 100, "cache_creation_input_tokens": 800, "cache_read_input_tokens": 300}
    usage = read("anthropic", speak(usage=counts | {"output_tokens": 10})).usage
    assert usage == Usage(prompt=1200, cached=300, completion=10, written=800)
    terms = ModelTerms(input_price=Decimal(4), cached_price=Decimal("0.4"), output_price=Decimal(20))
    assert compute_cost(terms, usage) == Decimal("0.0004") + Decimal("0.004") + Decimal("0.00012") + Decimal("0.0002")
    details = {"cached_tokens": 300, "cache_write_tokens": 800}
    counts = {"input_tokens": 1200, "input_tokens_details": details, "output_tokens": 10}
    assert compute_cost(terms, read("responses", respond(usage=counts)).usage) == compute_cost(terms, usage)
    counts = {"prompt_tokens": 1200, "prompt_tokens_details": details, "completion_tokens": 10}
    chat = {"choices": [{"message": {"content": "ok"}}], "usage": counts}
    assert compute_cost(terms, read("chat", chat).usage) == compute_cost(terms, usage)
    absurd = Usage(prompt=1200, cached=300, completion=10, written=10**6)  # no more than the rest of the prompt
    assert compute_cost(terms, absurd) == Decimal("0.0045") + Decimal("0.00012") + Decimal("0.0002")


USAGES: list[tuple[str, dict[str, Any], Usage]] = [
    ("gemini", {"promptTokenCount": 5}, Usage(prompt=5, completion=0)),  # counts of 0 are left out
    ("gemini", {"promptTokenCount": 5, "thoughtsTokenCount": 9}, Usage(prompt=5, completion=9, reasoning=9)),
    ("gemini", {}, Usage()),
    # Gemini's address for chat completions: thoughts are in the total only.
    ("chat", {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 16}, Usage(prompt=5, completion=11)),
    ("chat", {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, Usage(prompt=5, completion=2)),
    ("chat", {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 3}, Usage(prompt=5, completion=2)),
    ("chat", {"prompt_tokens": 5, "total_tokens": 16}, Usage(prompt=5)),
    ("anthropic", {"input_tokens": 5, "output_tokens": 2}, Usage(prompt=5, completion=2)),
    ("anthropic", {"cache_read_input_tokens": 5}, Usage(cached=5)),
    ("responses", {"input_tokens": "5", "output_tokens": -2}, Usage()),
    ("anthropic", {"input_tokens": True, "output_tokens": 2.5}, Usage()),
    ("gemini", {"promptTokenCount": 10**12, "candidatesTokenCount": [1]}, Usage()),
]


@pytest.mark.parametrize(("api", "given", "usage"), USAGES)
def test_token_counts_that_are_missing_or_absurd(api: str, given: dict[str, Any], usage: Usage) -> None:
    field = "usageMetadata" if api == "gemini" else "usage"
    chat = {"choices": [{"message": {"content": "ok"}}], "usage": given}
    assert read(api, chat if api == "chat" else body(api, "ok", **{field: given})).usage == usage


@pytest.mark.parametrize("api", NATIVE)
def test_structured_answer_is_read_from_text_and_from_a_call(fake: Fake, api: str) -> None:
    assert ask(fake, api, body(api, FITS), schema=SCHEMA).data == DATA
    reply = ask(fake, api, call(api, DATA), schema=SCHEMA, output="tool")
    assert (reply.data, reply.problem) == (DATA, "")
    wrong = ask(fake, api, call(api, DATA, name="search"), schema=SCHEMA, output="tool")
    assert wrong.problem == "The reply calls the function search; only answer exists."
    missing = ask(fake, api, call(api, {"status": "success"}), schema=SCHEMA, output="tool")
    assert missing.problem == "The answer lacks score."


def test_text_before_a_call_of_anthropic_is_not_the_answer(fake: Fake) -> None:
    tool = {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": DATA}
    reply = ask(fake, "anthropic", speak({"type": "text", "text": "Let me see."}, tool), schema=SCHEMA)
    assert (reply.data, json.loads(reply.text)) == (DATA, DATA)


REFUSALS: dict[str, tuple[str, Any, str]] = {
    "a refusal of a response": (
        "responses",
        respond(message() | {"content": [{"type": "refusal", "refusal": "I cannot judge that."}]}),
        "I cannot judge that.",
    ),
    "a filtered response": (
        "responses",
        respond(message("Half"), status="incomplete", incomplete_details={"reason": "content_filter"}),
        "the endpoint filtered the reply",
    ),
    "a response that failed at an image": (
        "responses",
        respond(
            status="failed", error={"code": "image_content_policy_violation", "message": "The image is not allowed."}
        ),
        "The image is not allowed.",
    ),
    "Anthropic": ("anthropic", speak(stop_reason="refusal"), "the model stopped with a refusal"),
    "Anthropic with a reason": (
        "anthropic",
        speak(stop_reason="refusal", stop_details={"type": "refusal", "explanation": "Too risky."}),
        "Too risky.",
    ),
    "a prompt that Gemini blocked": (
        "gemini",
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 5}},
        "the endpoint blocked the prompt (PROHIBITED_CONTENT)",
    ),
    "a reply that Gemini blocked": ("gemini", generate(finish="SAFETY"), "the endpoint blocked the reply (SAFETY)"),
    **{
        f"a reply that Gemini did not complete ({reason})": (
            "gemini",
            generate({"text": FITS}, finish=reason),
            f"the endpoint blocked the reply ({reason})",
        )
        for reason in ("OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "A_REASON_OF_2027")
    },
    "a reply that Gemini found recited": (
        "gemini",
        {"candidates": [{"finishReason": "RECITATION", "finishMessage": "It was recited."}]},
        "the endpoint blocked the reply (RECITATION): It was recited.",
    ),
}


@pytest.mark.parametrize(("api", "said", "told"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal_is_no_verdict(fake: Fake, api: str, said: Any, told: str) -> None:
    reply = ask(fake, api, said, schema=SCHEMA)
    assert (reply.refusal, reply.data) == (told, None)
    assert reply.unusable() == f"The model refused: {told}"
    assert fake.counts()["calls"] == 1


CUT: dict[str, tuple[str, Any]] = {
    "a response": (
        "responses",
        respond(message(FITS[:9]), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    ),
    "a response without a reason": ("responses", respond(message(FITS), status="incomplete")),
    "a response with a new reason": (
        "responses",
        respond(message(FITS), status="incomplete", incomplete_details={"reason": "max_time"}),
    ),
    "Anthropic": ("anthropic", speak({"type": "text", "text": FITS[:9]}, stop_reason="max_tokens")),
    "Anthropic's context": ("anthropic", speak(stop_reason="model_context_window_exceeded")),
    "Gemini": ("gemini", generate({"text": FITS[:9]}, finish="MAX_TOKENS")),
}


@pytest.mark.parametrize(("api", "said"), CUT.values(), ids=CUT.keys())
def test_cut_reply_is_no_verdict_and_is_not_repaired(fake: Fake, api: str, said: Any) -> None:
    fake.says({"body": said})
    reply = native(fake, api, max_tokens=100).ask(schema=SCHEMA)
    assert reply.cut
    assert reply.unusable() == "The reply was cut off at its length limit."
    assert fake.counts()["calls"] == 1


THOUGHTS: dict[str, tuple[str, Any]] = {
    "reasoning items": (
        "responses",
        respond(
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "No: failure."}]},
            message("Let me look.", phase="commentary"),
            message("yes", phase="final_answer"),
        ),
    ),
    "thinking blocks": (
        "anthropic",
        speak(
            {"type": "thinking", "thinking": "No: failure.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            {"type": "text", "text": "yes"},
        ),
    ),
    "thought parts": ("gemini", generate({"text": "No: failure.", "thought": True}, {"text": "yes"})),
}


@pytest.mark.parametrize(("api", "said"), THOUGHTS.values(), ids=THOUGHTS.keys())
def test_thoughts_are_not_the_answer(api: str, said: Any) -> None:
    found = read(api, said)
    assert (found.text, found.thought) == ("yes", True)


@pytest.mark.parametrize("api", NATIVE)
def test_model_that_thinks_gets_longer_replies_from_then_on(fake: Fake, api: str) -> None:
    """Its thoughts reached the limit of 2,048 tokens: the same call is made with 16,384."""
    silent = {
        "responses": respond(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "anthropic": speak(stop_reason="max_tokens"),
        "gemini": generate(finish="MAX_TOKENS"),
    }
    fake.says({"raw": ":2048", "body": silent[api]}, {"raw": ":16384", "body": body(api, "yes")})
    desk = native(fake, api)
    assert desk.ask().text == "yes"
    assert [outcome.error for outcome in desk.call_log.outcomes] == ["", ""]


def test_parts_of_a_text_are_joined() -> None:
    assert read("responses", respond(message("a", "b"), message("c"))).text == "abc"
    assert read("anthropic", speak({"type": "text", "text": "a"}, {"type": "text", "text": "b"})).text == "ab"
    assert read("gemini", generate({"text": "a"}, {"text": "b"})).text == "ab"


HOSTILE: list[Any] = [
    "",
    "not JSON",
    "[" * 100_000,
    "null",
    "[]",
    '"text"',
    "{}",
    {"error": "text"},
    {"error": {"code": ["content_filter"], "message": {"a": 1}}},
    {"error": {"message": "no"}},
    {"output": None, "content": None, "candidates": None},
    {"output": {}, "content": {}, "candidates": {}},
    {"output": "text", "content": "text", "candidates": "text"},
]


@pytest.mark.parametrize("api", NATIVE)
@pytest.mark.parametrize("said", HOSTILE, ids=range(len(HOSTILE)))
def test_body_that_is_no_reply_is_named_and_tried_again(fake: Fake, api: str, said: Any) -> None:
    fake.says({"body": said})
    desk = native(fake, api)
    with pytest.raises(CallFailed, match=r"^The reply (is|has) "):
        desk.ask()
    assert fake.counts()["calls"] == 3
    assert desk.call_log.outcomes[0].reply is None


STRANGE = [None, 1, -1.5, True, "text", [], {}, [None, 1, "a", []], {"text": 1}, "\ud800\u0000"]


@pytest.mark.parametrize("api", NATIVE)
@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_field_of_another_type_is_never_an_exception(api: str, value: Any) -> None:
    """Every field of a reply takes every strange value; the reply is read, or refused as unreadable."""
    for said in (body(api, "text", tool=1), call(api, DATA)):
        for changed in _replace_each(said, value):
            raw = json.dumps(changed)
            try:
                found = APIS[api].parse(raw)
            except UnreadableReply:
                continue
            found.text.encode(), found.refusal.encode(), found.tool.encode(), found.arguments.encode()
            assert "\x00" not in found.text + found.model + found.finish + found.arguments
            assert found.raw == raw


def _replace_each(value: Any, by: Any) -> list[Any]:
    """Return copies of a document, each with one value replaced."""
    copies = [by]
    if isinstance(value, dict):
        copies += [value | {name: one} for name in value for one in _replace_each(value[name], by)]
    if isinstance(value, list):
        copies += [[*value[:n], one, *value[n + 1 :]] for n in range(len(value)) for one in _replace_each(value[n], by)]
    return copies


@pytest.mark.parametrize("api", NATIVE)
def test_huge_reply_is_not_read(fake: Fake, api: str) -> None:
    fake.says({"fault": "huge", "size": 9 * 1024 * 1024})
    with pytest.raises(CallFailed, match="more than 8,388,608 bytes"):
        native(fake, api).ask()


@pytest.mark.parametrize("api", [*NATIVE, "chat"])
def test_deeply_nested_values_are_read_or_refused(api: str) -> None:
    for depth in range(300, 1000):
        nested = "[" * depth + "]" * depth
        arguments = json.dumps(call("anthropic", 1)).replace('"input": 1', f'"input": {nested}')
        for raw in (f'{{"error": {nested}}}', arguments):
            with suppress(UnreadableReply):
                APIS[api].parse(raw)


def test_log_probabilities_are_read_in_every_form() -> None:
    chosen = {
        "chosenCandidates": [{"token": "suc", "logProbability": -0.5}, {"token": "cess", "logProbability": -0.25}]
    }
    reply = generate({"text": "success"})
    reply["candidates"][0]["logprobsResult"] = chosen
    tokens = [{"token": "suc", "logprob": -0.5, "bytes": [1]}, {"token": "cess", "logprob": -0.25}]
    part = {"type": "output_text", "text": "success", "logprobs": tokens}
    chat = {"choices": [{"message": {"content": "success"}, "logprobs": {"content": tokens}}]}
    for api, said in (("gemini", reply), ("responses", respond(message() | {"content": [part]})), ("chat", chat)):
        assert read(api, said).tokens == (("suc", -0.5), ("cess", -0.25))
    assert read("anthropic", speak()).tokens is None


@pytest.mark.parametrize(
    "tokens",
    [None, {}, [{"token": 1, "logprob": -1}], [{"token": "a"}], ["a"], [{"token": "a", "logprob": 0.1}], [None]],
)
def test_broken_log_probabilities_are_none(tokens: Any) -> None:
    chat = {"choices": [{"message": {"content": "success"}, "logprobs": {"content": tokens}}]}
    assert read("chat", chat).tokens is None
