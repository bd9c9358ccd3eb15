"""What is sent to the Responses API, Anthropic and Gemini: every request is compared as a whole."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from judges.llm import Endpoint, Generation, SentImage
from judges.llm.wire import build_call, estimate_tokens
from judges.tests.api_bodies import NATIVE, body, call, native
from judges.tests.builders import KEY, Fake, FolderImages, MemoryCallLog
from judges.tests.clients import FITS, SCHEMA, Desk

CLOSED = SCHEMA | {"additionalProperties": False}
JPEG = b"\xff\xd8\xff the bytes of a picture"
PICTURE = base64.b64encode(JPEG).decode()


def sent(fake: Fake) -> list[dict[str, Any]]:
    return [json.loads(each) for each in fake.counts()["bodies"]]


def ask(fake: Fake, api: str, *parts: Any, said: Any = None, model: str = "", **more: Any) -> dict[str, Any]:
    """Ask once; return the request that arrived."""
    fake.says({"body": said or body(api, "ok")}, record=True)
    asked = {name: more.pop(name) for name in ("schema", "vote") if name in more}
    before = len(fake.counts()["bodies"])
    native(fake, api, model=model, **more).ask(*parts, **asked)
    return sent(fake)[before]


TEXTS = {
    "responses": {
        "model": "gpt-4.1",
        "temperature": 0.0,
        "store": False,
        "max_output_tokens": 2048,
        "instructions": "You judge.",
        "input": [{"role": "user", "content": "Did it succeed?"}],
    },
    "anthropic": {
        "model": "claude-opus-4-8",
        "temperature": 0.0,
        "max_tokens": 2048,
        "system": "You judge.",
        "messages": [{"role": "user", "content": "Did it succeed?"}],
    },
    "gemini": {
        "generationConfig": {"maxOutputTokens": 2048, "temperature": 0.0, "seed": 0},
        "systemInstruction": {"parts": [{"text": "You judge."}]},
        "contents": [{"role": "user", "parts": [{"text": "Did it succeed?"}]}],
    },
}
PATHS = {
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-1.5-pro:generateContent",
}


@pytest.mark.parametrize("api", NATIVE)
def test_text_is_sent_in_the_form_of_the_api(fake: Fake, api: str) -> None:
    assert ask(fake, api) == TEXTS[api]
    assert fake.counts()["paths"] == [PATHS[api]]
    assert list(sent(fake)[0])[-1] in ("input", "messages", "contents")  # settings come first


@pytest.mark.parametrize("api", NATIVE)
def test_key_is_in_the_header_of_the_api_alone(fake: Fake, api: str) -> None:
    fake.says({"key": KEY, "body": body(api, "ok")}, {"status": 418}, record=True)
    assert native(fake, api).ask().text == "ok"
    [headers], [path] = fake.counts()["headers"], fake.counts()["paths"]
    assert KEY not in str(headers) + path
    assert headers.get("anthropic-version") == ("2023-06-01" if api == "anthropic" else None)


def test_anthropic_and_gemini_get_no_bearer_token(fake: Fake) -> None:
    """The fake joins all three headers: with a bearer token beside the key, the rule would not fit."""
    for api in ("anthropic", "gemini"):
        fake.says({"key": KEY, "body": body(api, "ok")}, {"status": 418})
        assert native(fake, api).ask().text == "ok"


def test_address_of_anthropic_may_end_before_the_version(fake: Fake) -> None:
    fake.says({"body": body("anthropic", "ok")}, record=True)
    desk = native(fake, "anthropic")
    desk.endpoint = Endpoint("fake", f"http://127.0.0.1:{fake.port}", KEY)
    desk.ask()
    assert fake.counts()["paths"] == ["/v1/messages"]


def test_name_of_a_gemini_model_cannot_change_the_path(fake: Fake) -> None:
    ask(fake, "gemini", model="models/gemini-1.5-pro")
    ask(fake, "gemini", model="a/../b?key=1")
    assert fake.counts()["paths"] == [PATHS["gemini"], "/v1beta/models/a%2F..%2Fb%3Fkey%3D1:generateContent"]


IMAGES = {
    "responses": [
        {"type": "input_text", "text": "Before."},
        {"type": "input_image", "detail": "high", "image_url": "data:image"},  # the fake cuts data addresses
        {"type": "input_text", "text": "After."},
    ],
    "anthropic": [
        {"type": "text", "text": "Before."},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PICTURE}},
        {"type": "text", "text": "After."},
    ],
    "gemini": [
        {"text": "Before."},
        {"inlineData": {"mimeType": "image/jpeg", "data": PICTURE}},
        {"text": "After."},
    ],
}


@pytest.mark.parametrize("api", NATIVE)
def test_images_are_sent_in_base64_and_traced_by_digest(fake: Fake, api: str) -> None:
    fake.says({"body": body(api, "ok")}, record=True)
    images = FolderImages()
    ref = images.add(JPEG)
    desk = native(fake, api)
    desk.images = images
    desk.ask("Before.", "", SentImage(ref, media_type="image/png"), "After.")  # some modes state another type
    [request] = sent(fake)
    message = (request.get("input") or request.get("messages") or request.get("contents"))[0]
    assert message.get("content", message.get("parts")) == IMAGES[api]
    traced = json.dumps(desk.call_log.outcomes[0].call.request)
    assert hashlib.sha256(JPEG).hexdigest() in traced
    assert ref.digest in traced
    assert PICTURE not in traced


def test_data_address_of_a_response_states_the_media_type_and_holds_the_image(fake: Fake) -> None:
    images = FolderImages()
    ref = images.add(JPEG)
    fake.says(
        {"raw": f'"image_url":"data:image/png;base64,{PICTURE}"', "body": body("responses", "seen")}, {"status": 418}
    )
    desk = native(fake, "responses")
    desk.images = images
    assert desk.ask(SentImage(ref, media_type="image/png")).text == "seen"


SCHEMAS = {
    "responses": {
        "text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": CLOSED}},
    },
    "anthropic": {
        "tools": [{"name": "answer", "description": "Give the answer.", "input_schema": CLOSED}],
        "tool_choice": {"type": "tool", "name": "answer"},
    },
    "gemini": {
        "generationConfig": {
            "maxOutputTokens": 2048,
            "temperature": 0.0,
            "seed": 0,
            "responseMimeType": "application/json",
            "responseJsonSchema": CLOSED,
        }
    },
}
FUNCTION = {"name": "answer", "description": "Give the answer."}
TOOLS = {
    "responses": {
        "tools": [FUNCTION | {"type": "function", "strict": True, "parameters": CLOSED}],
        "tool_choice": {"type": "function", "name": "answer"},
    },
    "anthropic": SCHEMAS["anthropic"],
    "gemini": {
        "tools": [{"functionDeclarations": [FUNCTION | {"parametersJsonSchema": CLOSED}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["answer"]}},
    },
}


@pytest.mark.parametrize("api", NATIVE)
def test_structured_answer_is_requested_in_both_ways(fake: Fake, api: str) -> None:
    fits = json.loads(FITS)
    schema = ask(fake, api, said=call(api, fits) if api == "anthropic" else body(api, FITS), schema=SCHEMA)
    assert schema == TEXTS[api] | SCHEMAS[api]
    tool = ask(fake, api, said=call(api, fits), schema=SCHEMA, output="tool")
    assert tool == TEXTS[api] | TOOLS[api]
    assert ask(fake, api, said=body(api, FITS), schema=SCHEMA, output="text") == TEXTS[api]


@pytest.mark.parametrize("api", NATIVE)
def test_repair_shows_the_reply_and_its_problem(fake: Fake, api: str) -> None:
    fake.says(
        {"match": "could not be used", "body": body(api, FITS)}, {"body": body(api, "It succeeded.")}, record=True
    )
    reply = native(fake, api).ask(schema=SCHEMA)
    assert (reply.data, reply.problem) == (json.loads(FITS), "")
    first, second = (each.get("input") or each.get("messages") or each.get("contents") for each in sent(fake))
    assert second[0] == first[0]
    assert [one["role"] for one in second] == ["user", "model" if api == "gemini" else "assistant", "user"]
    assert "It succeeded." in json.dumps(second[1])
    assert "no complete JSON object" in json.dumps(second[2])


def test_effort_becomes_the_parameter_of_the_model(fake: Fake) -> None:
    """Shares of 16,384 tokens: 3,276.8 and 13,107.2, rounded down; at Anthropic 1,024 is the least."""
    assert ask(fake, "responses", model="gpt-5", reasoning_effort="low")["reasoning"] == {"effort": "low"}
    adaptive = ask(fake, "anthropic", reasoning_effort="minimal")
    assert adaptive["thinking"] == {"type": "adaptive"}
    assert adaptive["output_config"] == {"effort": "low"}
    assert "temperature" not in adaptive
    assert adaptive["max_tokens"] == 16_384
    budget = ask(fake, "anthropic", model="claude-sonnet-4-5-20250929", reasoning_effort="low")
    assert budget["thinking"] == {"type": "enabled", "budget_tokens": 3276}
    assert "output_config" not in budget
    small = ask(fake, "anthropic", model="claude-haiku-4-5", reasoning_effort="minimal", max_tokens=2000)
    assert (small["thinking"]["budget_tokens"], small["max_tokens"]) == (1024, 2000)
    assert "thinking" not in ask(fake, "anthropic", reasoning_effort="none")
    config = ask(fake, "gemini", model="gemini-2.5-pro", reasoning_effort="high")["generationConfig"]
    assert config["thinkingConfig"] == {"thinkingBudget": 13_107}
    config = ask(fake, "gemini", model="gemini-2.5-flash", reasoning_effort="none")["generationConfig"]
    assert config["thinkingConfig"] == {"thinkingBudget": 0}
    config = ask(fake, "gemini", model="gemini-3-flash-preview", reasoning_effort="xhigh")["generationConfig"]
    assert config["thinkingConfig"] == {"thinkingLevel": "high"}


@pytest.mark.parametrize(
    ("model", "budget"),
    [
        ("claude-3-7-sonnet-latest", True),
        ("claude-opus-4-20250514", True),
        ("claude-opus-4-1", True),
        ("claude-opus-4-5-20251101", True),
        ("anthropic/claude-sonnet-4.5", True),
        ("claude-opus-4-6", False),
        ("claude-sonnet-4-6-20260217", False),
        ("claude-opus-5", False),
        ("claude-fable-5", False),
    ],
)
def test_models_up_to_claude_4_5_get_a_budget(fake: Fake, model: str, budget: bool) -> None:
    thinking = ask(fake, "anthropic", model=model, reasoning_effort="high")["thinking"]
    assert (thinking["type"] == "enabled") == budget


@pytest.mark.parametrize("more", [{"reasoning_effort": "low"}, {"extra_body": '{"thinking": {"type": "adaptive"}}'}])
def test_model_that_thinks_is_not_forced_to_call_the_tool(fake: Fake, more: dict[str, Any]) -> None:
    request = ask(fake, "anthropic", said=call("anthropic", json.loads(FITS)), schema=SCHEMA, **more)
    assert request["tool_choice"] == {"type": "auto"}
    assert request["tools"] == TOOLS["anthropic"]["tools"]
    assert "temperature" not in request


def test_further_settings_are_sent_where_the_api_has_them(fake: Fake) -> None:
    extra = '{"text": {"verbosity": "low"}, "service_tier": "flex"}'
    request = ask(fake, "responses", said=body("responses", FITS), schema=SCHEMA, extra_body=extra, top_p=0.5)
    assert request["text"] == SCHEMAS["responses"]["text"] | {"verbosity": "low"}
    assert (request["service_tier"], request["top_p"]) == ("flex", 0.5)
    extra = '{"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_HIGH"}}'
    config = ask(fake, "gemini", extra_body=extra, top_p=0.5, temperature=-1, seed=-1)["generationConfig"]
    assert config == {"maxOutputTokens": 2048, "topP": 0.5, "mediaResolution": "MEDIA_RESOLUTION_HIGH"}
    assert ask(fake, "gemini", seed=5, vote=2)["generationConfig"]["seed"] == 7
    request = ask(fake, "anthropic", max_tokens=7, top_p=0.9, temperature=-1)
    assert (request["max_tokens"], request["top_p"], "temperature" in request) == (7, 0.9, False)


def test_log_probabilities_are_requested_where_the_api_has_them(fake: Fake) -> None:
    assert ask(fake, "responses", logprobs=True)["include"] == ["message.output_text.logprobs"]
    assert ask(fake, "gemini", logprobs=True)["generationConfig"]["responseLogprobs"] is True
    assert ask(fake, "anthropic", logprobs=True) == TEXTS["anthropic"]


def test_marks_for_the_cache_are_on_the_system_text_and_before_the_first_image(fake: Fake) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    images = FolderImages()
    shots = [SentImage(images.add(JPEG)), SentImage(images.add(JPEG + b"2"))]
    fake.says({"body": body("anthropic", "ok")}, record=True)
    for parts in (("Same.", shots[0], "Other.", shots[1]), (shots[0],), ("Only text.",)):
        desk = native(fake, "anthropic", prompt_cache=True)
        desk.images = images
        desk.ask(*parts)
    several, image, text = sent(fake)
    assert several["system"] == [{"type": "text", "text": "You judge."} | mark]
    assert [mark.items() <= part.items() for part in several["messages"][0]["content"]] == [True, False, False, False]
    assert "cache_control" not in json.dumps(image["messages"])
    assert text["messages"] == [{"role": "user", "content": "Only text."}]
    fake.says({"reply": "ok"}, record=True)
    Desk(fake, Generation(prompt_cache=True)).ask()
    assert "prompt_cache" not in sent(fake)[-1]  # chat completions have no such field


def test_key_of_a_call_names_the_api_unless_it_is_chat() -> None:
    endpoint = Endpoint("fake", "http://localhost/v1")
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    chat, same, other = (build_call(endpoint, request, "s", None, 0, api) for api in ("chat", "chat", "anthropic"))
    written = '{"call":{"messages":[{"content":"Hello","role":"user"}],"model":"m"},"endpoint":["fake","http://localhost/v1"]}'
    assert chat.key == same.key == hashlib.sha256(written.encode()).hexdigest()
    assert other.key != chat.key
    assert other.former_key == ""


@pytest.mark.parametrize("api", NATIVE)
def test_second_run_finds_the_replies_of_the_first(fake: Fake, api: str) -> None:
    fake.says({"body": body(api, "ok")})
    first = native(fake, api)
    assert first.ask().text == "ok"
    second = native(fake, api)
    second.call_log = MemoryCallLog(first.call_log.replies)
    reply = second.ask()
    assert (reply.text, reply.usage.prompt) == ("ok", 1200)
    assert second.call_log.outcomes[0].hit_of == 1
    assert fake.counts()["calls"] == 1


@pytest.mark.parametrize("api", NATIVE)
def test_tokens_of_a_request_are_estimated_from_its_texts_and_images(fake: Fake, api: str) -> None:
    """ "You judge." and 30 letters are 40 characters, so 10 tokens, and 1,100 for the image."""
    fake.says({"body": body(api, "ok")})
    images = FolderImages()
    desk = native(fake, api)
    desk.images = images
    desk.ask("x" * 30, SentImage(images.add(JPEG)))
    assert desk.gate.admitted == [1110]
    assert desk.gate.settled == [(1110, 1260)]
    assert estimate_tokens(TEXTS[api]) == (10 + 15) // 4
