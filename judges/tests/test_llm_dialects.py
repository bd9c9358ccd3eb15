"""Both dialects, and endpoints that refuse what they do not know: adapted to once, and remembered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from judges.llm import CallFailed, Generation, Patience
from judges.tests.builders import Fake, MemoryCallLog
from judges.tests.clients import FITS, SCHEMA, Desk

OPENAI_LENGTH = {
    "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    "type": "invalid_request_error",
    "param": "max_tokens",
    "code": "unsupported_parameter",
}
OPENAI_TEMPERATURE = {
    "message": "Unsupported value: 'temperature' does not support 0.0 with this model. "
    "Only the default (1) value is supported.",
    "type": "invalid_request_error",
    "param": "temperature",
    "code": "unsupported_value",
}


def settings(fake: Fake) -> list[dict[str, Any]]:
    bodies = map(json.loads, fake.counts()["bodies"])
    return [{name: value for name, value in body.items() if name != "messages"} for body in bodies]


@pytest.mark.parametrize(
    ("model", "reasoning"),
    [
        ("gpt-4o", False),
        ("gpt-4o-mini-2024-07-18", False),
        ("gpt-5-chat-latest", False),
        ("o4-mini", True),
        ("openai/o3-mini-2025", True),
        ("o1", True),
        ("gpt-5", True),
        ("GPT-5-mini", True),
        ("llama-o1", False),
        ("o4x", False),
    ],
)
def test_the_dialect_follows_the_name_of_the_model(fake: Fake, model: str, reasoning: bool) -> None:
    fake.says({"reply": "ok"}, record=True)
    Desk(fake, model=model).ask()
    [body] = settings(fake)
    if reasoning:
        assert body == {"model": model, "max_completion_tokens": 16_384, "seed": 0}
    else:
        assert body == {"model": model, "max_tokens": 2_048, "temperature": 0.0, "seed": 0}


def test_further_fields_of_a_request_are_sent_and_unset_ones_are_not(fake: Fake) -> None:
    fake.says({"reply": "ok"}, record=True)
    generation = Generation(temperature=-1, top_p=0.5, seed=-1, extra_body='{"service_tier": "flex"}')
    Desk(fake, model="llama", generation=generation).ask()
    [body] = settings(fake)
    assert body == {"model": "llama", "max_tokens": 2_048, "top_p": 0.5, "service_tier": "flex"}


def test_a_judge_may_name_its_dialect_and_its_effort(fake: Fake) -> None:
    fake.says({"reply": "ok"}, record=True)
    Desk(fake, Generation(dialect="reasoning", reasoning_effort="low", max_tokens=100, seed=-1), model="mine").ask()
    Desk(fake, Generation(dialect="classic"), model="o4-mini").ask()
    assert settings(fake) == [
        {"model": "mine", "max_completion_tokens": 100, "reasoning_effort": "low"},
        {"model": "o4-mini", "max_tokens": 16_384, "temperature": 0.0, "seed": 0},  # another name, the same thoughts
    ]


REFUSALS = {
    "OpenAI's length limit": ('"max_tokens"', OPENAI_LENGTH, "max_tokens"),
    "OpenAI's temperature": ('"temperature"', OPENAI_TEMPERATURE, "temperature"),
    "an older server's seed": ('"seed"', {"message": "Unrecognized request argument supplied: seed"}, "seed"),
    "a strict server's seed": ('"seed"', {"message": "body.seed: Extra inputs are not permitted"}, "seed"),
    "an effort": ('"reasoning_effort"', {"message": "Unknown parameter: 'reasoning_effort'."}, "reasoning_effort"),
    "structured output": (
        '"response_format"',
        {"message": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."},
        "response_format",
    ),
    "structured output by another name": (
        '"response_format"',
        {"message": "json_schema is not supported", "param": None},
        "response_format",
    ),
}


@pytest.mark.parametrize(("sent", "error", "name"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_an_endpoint_refuses_is_left_out_from_then_on(
    fake: Fake, sent: str, error: dict[str, Any], name: str
) -> None:
    rule = {"status": 400, "error": error, "name": "refused"}
    fake.says({"raw": sent} | rule, {"reply": FITS}, record=True)
    desk = Desk(fake, Generation(reasoning_effort="low"))

    async def work(desk: Desk) -> None:
        for n in range(3):
            await desk.asks(f"task {n}", schema=SCHEMA)

    desk.run(work)
    first, *others = settings(fake)
    assert name in first
    assert len(others) == 3
    assert all(name not in one for one in others)
    assert fake.counts()["by_rule"]["refused"] == 1
    kept = [outcome.call.request for outcome in desk.call_log.outcomes]
    assert all(name not in request for request in kept)


def test_a_renamed_length_limit_has_the_length_of_reasoning_models(fake: Fake) -> None:
    fake.says({"raw": '"max_tokens"', "status": 400, "error": OPENAI_LENGTH}, {"reply": "ok"}, record=True)
    Desk(fake, model="my-deployment").ask()
    assert settings(fake)[1]["max_completion_tokens"] == 16_384


def test_an_endpoint_that_refuses_nearly_everything_is_still_asked(fake: Fake) -> None:
    fake.says(
        {"raw": '"max_tokens"', "status": 400, "error": OPENAI_LENGTH},
        {"raw": '"temperature"', "status": 400, "error": OPENAI_TEMPERATURE},
        {"raw": '"seed"', "status": 422, "body": {"detail": "seed: Extra inputs are not permitted"}},
        {"raw": '"response_format"', "status": 400, "error": {"message": "response_format is not supported"}},
        {"reply": f"```json\n{FITS}\n```"},
        record=True,
    )
    desk = Desk(fake, patience=Patience(attempts=1))
    assert desk.ask(schema=SCHEMA).data == json.loads(FITS)
    assert settings(fake)[-1].keys() == {"model", "max_completion_tokens"}
    assert desk.call_log.outcomes[0].retries == 4


def test_an_older_endpoint_gets_the_older_name_of_the_length_limit(fake: Fake) -> None:
    error = {"message": "Unrecognized request argument supplied: max_completion_tokens"}
    fake.says({"raw": '"max_completion_tokens"', "status": 400, "error": error}, {"reply": "ok"}, record=True)
    Desk(fake, model="o4-mini").ask()
    assert "max_tokens" in settings(fake)[1]


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens, however max_tokens unsupported size 9000 was requested.",
        "max_tokens must be at least 1",
        "The image is broken.",
        "Unsupported image.",
    ],
)
def test_a_request_that_is_wrong_in_another_way_is_not_changed(fake: Fake, message: str) -> None:
    fake.says({"status": 400, "error": {"message": message}})
    with pytest.raises(CallFailed):
        Desk(fake).ask()
    assert fake.counts()["calls"] == 1


def test_an_endpoint_that_refuses_both_names_is_asked_twice_and_no_more(fake: Fake) -> None:
    both = {"message": "max_completion_tokens and max_tokens are not supported"}
    other = {"message": "max_tokens and max_completion_tokens are not supported"}
    fake.says(
        {"raw": '"max_tokens"', "status": 400, "error": other},
        {"raw": '"max_completion_tokens"', "status": 400, "error": both},
    )
    with pytest.raises(CallFailed, match="not supported"):
        Desk(fake).ask()
    assert fake.counts()["calls"] <= 3


def test_a_judge_that_names_its_dialect_is_taken_at_its_word(fake: Fake) -> None:
    fake.says({"raw": '"max_tokens"', "status": 400, "error": OPENAI_LENGTH}, {"reply": "ok"})
    with pytest.raises(CallFailed, match="max_completion_tokens"):
        Desk(fake, Generation(dialect="classic")).ask()
    assert fake.counts()["calls"] == 1


def test_a_second_run_finds_the_replies_of_the_adapted_requests(fake: Fake) -> None:
    fake.says({"raw": '"max_tokens"', "status": 400, "error": OPENAI_LENGTH, "name": "refused"}, {"reply": "ok"})

    async def work(desk: Desk) -> None:
        await asyncio.gather(*(desk.asks(f"task {n}") for n in range(6)))

    first = Desk(fake, patience=Patience(concurrency=2))
    first.run(work)
    before = fake.counts()
    second = Desk(fake, patience=Patience(concurrency=2), call_log=MemoryCallLog(first.call_log.replies))
    second.run(work)
    after = fake.counts()
    assert [outcome.hit_of is None for outcome in second.call_log.outcomes] == [False] * 6
    paid = after["calls"] - before["calls"] - (after["by_rule"]["refused"] - before["by_rule"]["refused"])
    assert paid == 0
