"""Errors of the Responses API, Anthropic and Gemini in the form of each, and what the client does about them."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import pytest

from judges.llm import CallFailed
from judges.llm import client as llm_client
from judges.tests.api_bodies import MODELS, NATIVE, body, call, native
from judges.tests.builders import KEY, Fake
from judges.tests.clients import FITS, SCHEMA

NOW = 1_767_225_600.0  # 2026-01-01 00:00:00 UTC


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "FIRST_WAIT", 0.0)


def of_anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def of_gemini(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def of_openai(message: str, **further: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None} | further}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30s"}
QUOTA = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaMetric": "requests"}]}
RESETS = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:01Z",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-input-tokens-remaining": "0",
    "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:25Z",
}
# The answer, and the seconds for which all workers then wait.
BUSY: dict[str, tuple[str, dict[str, Any], float]] = {
    "Anthropic is overloaded": (
        "anthropic",
        {"status": 529, "body": of_anthropic("overloaded_error", "Overloaded")},
        0.0,
    ),
    "Anthropic's limit": (
        "anthropic",
        {
            "status": 429,
            "body": of_anthropic("rate_limit_error", "Slow down."),
            "headers": {"retry-after": "7"} | RESETS,
        },
        7.0,
    ),
    "Anthropic's limit by its reset": (
        "anthropic",
        {"status": 429, "body": of_anthropic("rate_limit_error", "Slow down."), "headers": RESETS},
        25.0,
    ),
    "Gemini's limit": (
        "gemini",
        {"status": 429, "body": of_gemini(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", QUOTA, RETRY_INFO)},
        30.0,
    ),
    "Gemini's limit without a delay": (
        "gemini",
        {"status": 429, "body": of_gemini(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", QUOTA)},
        4.0,
    ),
    "Gemini is overloaded": ("gemini", {"status": 503, "body": of_gemini(503, "UNAVAILABLE", "Try later.")}, 0.0),
    "a list of errors": (
        "gemini",
        {"status": 429, "body": [of_gemini(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", RETRY_INFO)]},
        30.0,
    ),
    "OpenAI's limit": (
        "responses",
        {"status": 429, "body": of_openai("Rate limit reached."), "headers": {"x-ratelimit-reset-tokens": "6s"}},
        6.0,
    ),
    "a response that failed": (
        "responses",
        {"body": body("responses", status="failed", error={"code": "server_error", "message": "Try again."})},
        0.0,
    ),
}


@pytest.mark.parametrize(("api", "said", "wait"), BUSY.values(), ids=BUSY.keys())
def test_passing_error_is_waited_for(fake: Fake, api: str, said: dict[str, Any], wait: float) -> None:
    fake.says({"times": 1} | said, {"body": body(api, "ok")})
    desk = native(fake, api)
    desk.now = NOW
    assert desk.ask().text == "ok"
    assert desk.gate.held == ([wait] if wait else [])
    assert fake.counts()["calls"] == 2


LASTING: dict[str, tuple[str, dict[str, Any], str]] = {
    "no money at OpenAI": (
        "responses",
        {"status": 429, "body": of_openai("You exceeded your current quota.", code="insufficient_quota")},
        "The endpoint fake answered 429: You exceeded your current quota.",
    ),
    "no money at Anthropic": (
        "anthropic",
        {"status": 400, "body": of_anthropic("invalid_request_error", "Your credit balance is too low.")},
        "The endpoint fake answered 400: Your credit balance is too low.",
    ),
    "a bill at Anthropic": (
        "anthropic",
        {"status": 402, "body": of_anthropic("billing_error", "Check your billing.")},
        "The endpoint fake answered 402: Check your billing.",
    ),
    "a wrong key at Anthropic": (
        "anthropic",
        {"status": 401, "body": of_anthropic("authentication_error", "invalid x-api-key")},
        "The endpoint fake answered 401: invalid x-api-key Check the key in JUDGE_API_KEY_FAKE.",
    ),
    "a wrong key at Gemini": (
        "gemini",
        {
            "status": 400,
            "body": of_gemini(400, "INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"}),
        },
        "The endpoint fake answered 400: API key not valid. Check the key in JUDGE_API_KEY_FAKE.",
    ),
    "no such model": (
        "gemini",
        {"status": 404, "body": of_gemini(404, "NOT_FOUND", "models/x is not found.")},
        "The endpoint fake answered 404: models/x is not found.",
    ),
    "an effort that the model lacks": (
        "anthropic",
        {"status": 400, "body": of_anthropic("invalid_request_error", "adaptive thinking is not supported.")},
        "The endpoint fake answered 400: adaptive thinking is not supported.",
    ),
    "an address with another API": ("anthropic", {"status": 405, "body": "<html>no</html>"}, "<html>no</html>"),
}


@pytest.mark.parametrize(("api", "said", "told"), LASTING.values(), ids=LASTING.keys())
def test_lasting_error_is_not_repeated(fake: Fake, api: str, said: dict[str, Any], told: str) -> None:
    fake.says(said)
    with pytest.raises(CallFailed) as failed:
        native(fake, api, reasoning_effort="low").ask()
    assert told in str(failed.value)
    assert not failed.value.passing
    assert fake.counts()["calls"] == 1


def test_prompt_that_a_filter_stopped_is_a_refusal(fake: Fake) -> None:
    said = "Output blocked by content filtering policy"
    fake.says({"status": 400, "body": of_anthropic("invalid_request_error", said)})
    assert native(fake, "anthropic").ask().refusal == said
    fake.says({"status": 400, "body": of_openai("The prompt was filtered.", code="content_filter")})
    assert native(fake, "responses").ask().refusal == "The prompt was filtered."


ADAPTED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "temperature of a response": (
        "responses",
        '"temperature"',
        of_openai("Unsupported parameter: 'temperature' is not supported with this model.", param="temperature"),
        "temperature",
    ),
    "effort of a response": (
        "responses",
        '"reasoning"',
        of_openai("Unsupported parameter: 'reasoning.effort' is not supported.", param="reasoning.effort"),
        "reasoning",
    ),
    "format of a response": (
        "responses",
        '"text"',
        of_openai("Invalid parameter: 'text.format' of type 'json_schema' is not supported.", param="text.format"),
        "format",
    ),
    "log probabilities of a response": (
        "responses",
        '"include"',
        of_openai("logprobs are not supported with reasoning models.", param="include"),
        "include",
    ),
    "temperature at Anthropic": (
        "anthropic",
        '"temperature"',
        of_anthropic("invalid_request_error", "`temperature` is deprecated for this model."),
        "temperature",
    ),
    "a forced call at Anthropic": (
        "anthropic",
        '"tool_choice":{"type":"tool"',
        of_anthropic("invalid_request_error", "Thinking may not be enabled when tool_choice forces tool use."),
        '{"type": "tool"',
    ),
    "seed at Gemini": (
        "gemini",
        '"seed"',
        of_gemini(400, "INVALID_ARGUMENT", "Unknown name \"seed\" at 'generation_config': Cannot find field."),
        "seed",
    ),
    "schema at Gemini": (
        "gemini",
        '"responseJsonSchema"',
        of_gemini(400, "INVALID_ARGUMENT", "JSON mode is not enabled for models/gemma-3-27b-it"),
        "responseMimeType",
    ),
    "log probabilities at Gemini": (
        "gemini",
        '"responseLogprobs"',
        of_gemini(400, "INVALID_ARGUMENT", "Logprobs is not enabled for models/gemini-1.5-pro"),
        "responseLogprobs",
    ),
}


@pytest.mark.parametrize(("api", "sent", "error", "name"), ADAPTED.values(), ids=ADAPTED.keys())
def test_parameter_that_an_endpoint_refuses_is_left_out_from_then_on(
    fake: Fake, api: str, sent: str, error: dict[str, Any], name: str
) -> None:
    said = call(api, json.loads(FITS)) if api == "anthropic" else body(api, FITS)
    fake.says({"raw": sent, "status": 400, "body": error, "name": "refused"}, {"body": said}, record=True)
    effort = {"reasoning_effort": "low"} if name == "reasoning" else {}
    desk = native(fake, api, logprobs=True, **effort)

    async def work(desk: Any) -> list[Any]:
        return [(await desk.asks(f"task {n}", schema=SCHEMA)).data for n in range(2)]

    assert desk.run(work) == [json.loads(FITS)] * 2
    first, *others = (json.dumps(json.loads(each)) for each in fake.counts()["bodies"])
    assert name in first
    assert len(others) == 2
    assert not [one for one in others if name in one]
    assert fake.counts()["by_rule"]["refused"] == 1


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_effort_that_an_endpoint_refuses_is_an_error(fake: Fake, api: str) -> None:
    """Without the effort it would be another judge."""
    message = "thinking thinkingConfig thinking_level reasoning_effort effort: not supported"
    fake.says({"status": 400, "body": {"error": {"message": message}}})
    with pytest.raises(CallFailed, match="not supported"):
        native(fake, api, reasoning_effort="low").ask()
    assert fake.counts()["calls"] == 1


ECHOES: dict[str, dict[str, Any]] = {
    "in an error": {
        "status": 401,
        "body": {"error": {"message": f"invalid key {KEY}", "type": "authentication_error"}},
    },
    "in a page": {"status": 500, "body": f"<pre>x-api-key: {KEY}</pre>"},
    "in a broken body": {"body": f"x-goog-api-key: {KEY}"},
    "in an error with 200": {"body": {"error": {"message": f"{KEY} is wrong"}}},
    "nowhere, and dropped": {"fault": "drop"},
    "nowhere, and redirected": {"status": 308, "headers": {"Location": "http://127.0.0.1:1/"}, "body": ""},
}


@pytest.mark.parametrize("api", NATIVE)
@pytest.mark.parametrize("said", [*ECHOES.values(), None], ids=[*ECHOES.keys(), "in a reply"])
def test_key_is_never_shown(
    fake: Fake,
    api: str,
    said: dict[str, Any] | None,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    said = {"body": body(api, f"Your key is {KEY}.")} if said is None else said
    fake.says({"key": KEY, "name": "with our key"} | said, record=True)
    desk = native(fake, api)
    told = ""
    try:
        told += repr(desk.ask(schema=SCHEMA))
    except CallFailed as failed:
        told += "".join(traceback.format_exception(failed)) + repr(failed.__cause__) + repr(failed.__context__)
    told += repr(desk.call_log.outcomes) + repr(desk.client) + repr(desk.client.__dict__) + repr(desk.endpoint)
    told += "".join(record.getMessage() + repr(record.args) for record in caplog.records)
    told += "".join(capfd.readouterr())
    counts = fake.counts()
    told += "".join(counts["paths"]) + "".join(counts["bodies"])
    assert KEY not in told
    assert desk.call_log.outcomes
    assert counts["by_rule"] == {"with our key": counts["calls"]}


@pytest.mark.parametrize("api", NATIVE)
def test_redirect_is_not_followed(fake: Fake, api: str) -> None:
    fake.says({"status": 307, "headers": {"Location": f"{fake.url}/messages"}, "body": ""})
    with pytest.raises(CallFailed, match="redirects elsewhere"):
        native(fake, api).ask()
    assert fake.counts()["calls"] == 1


def test_nothing_of_the_environment_is_sent(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "leaked")
    for api in NATIVE:
        fake.says({"key": KEY, "body": body(api, MODELS[api])}, {"status": 418}, record=True)
        assert native(fake, api).ask().text == MODELS[api]
    assert "leaked" not in str(fake.counts()["headers"])
