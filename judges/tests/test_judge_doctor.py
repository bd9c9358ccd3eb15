"""The command judge_doctor, against an endpoint of our own that supports some things and refuses others."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from judges.tests.builders import Fake

RED = {"match": "Which colour", "reply": "Red."}
READY = {"match": "the one word ready", "reply": "ready"}
NUMBER = '{"number": 7}'


@pytest.fixture
def endpoint(fake: Fake, settings: Any) -> Fake:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    return fake


def examine(model: str = "some-model") -> dict[str, tuple[bool | None, str]]:
    out = io.StringIO()
    call_command("judge_doctor", "default", "--model", model, "--json", stdout=out)
    return {each["name"]: (each["supported"], each["detail"]) for each in json.loads(out.getvalue())["checks"]}


def refuse(param: str) -> dict[str, Any]:
    error = {"message": f"Unsupported parameter: '{param}' is not supported.", "param": param}
    return {"raw": f'"{param}"', "status": 400, "error": error}


def test_endpoint_that_supports_everything(endpoint: Fake) -> None:
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    choice = {"message": {"content": "ready"}, "finish_reason": "stop", "logprobs": {"content": []}}
    answers = {"function": {"name": "answer", "arguments": NUMBER}}
    endpoint.says(
        {"raw": '"logprobs"', "body": {"choices": [choice]}},
        READY | {"usage": usage, "headers": {"x-ratelimit-limit-requests": "500"}},
        RED,
        {"raw": '"json_schema"', "reply": NUMBER},
        {"raw": '"tool_choice"', "message": {"content": None, "tool_calls": [answers]}},
    )
    found = examine()
    assert [name for name, (supported, _) in found.items() if not supported] == []
    assert found["states its limits"] == (True, "requests 500")
    assert found["counts tokens"] == (True, "20 of the question, 2 of the answer")
    assert found["counts cached tokens"] == (True, "stated (0 here)")
    assert found["length limit"] == (True, "as max_tokens")
    assert found["batches"] == (True, "")
    assert endpoint.counts()["calls"] == 5


def test_what_an_endpoint_refuses_or_gets_wrong_is_named(endpoint: Fake) -> None:
    endpoint.says(
        refuse("max_tokens"),
        refuse("temperature"),
        refuse("response_format"),
        {"raw": '"logprobs"', "reply": "ready"},
        {"match": "Which colour", "reply": "Blue."},
        {"raw": '"tool_choice"', "reply": "I do not know tools."},
        READY | {"usage": {}},
        {"match": "Give the number", "reply": "7"},
    )
    found = examine()
    assert found["answers"][0] is True
    assert found["counts tokens"] == (False, "not stated")
    assert found["images"] == (False, "a red image is called 'Blue.' (1200 tokens with the question)")
    assert found["JSON schema"] == (False, "refused; judges then ask for a text and look for JSON in it")
    assert found["tool call"] == (False, "It holds no complete JSON object.")
    assert found["log probabilities"] == (False, "the parameter is ignored")
    assert found["length limit"] == (True, "as max_completion_tokens")
    assert found["temperature"][0] is False
    assert found["seed"] == (True, "")


def test_model_that_takes_no_images_is_told_in_the_words_of_the_endpoint(endpoint: Fake) -> None:
    said = "This model does not support image input."
    endpoint.says({"raw": '"image_url"', "status": 400, "error": {"message": said}}, READY)
    supported, detail = examine()["images"]
    assert (supported, detail) == (False, f"The endpoint default answered 400: {said}")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"status": 404, "error": {"message": "The model does not exist."}}, "The model does not exist."),
        ({"fault": "drop"}, "cannot be reached"),
        ({"reply": ""}, "The reply is empty."),
    ],
)
def test_endpoint_that_does_not_answer_is_asked_nothing_else(endpoint: Fake, rule: dict[str, Any], told: str) -> None:
    endpoint.says(rule)
    out = io.StringIO()
    with pytest.raises(CommandError, match="default does not answer for gone"):
        call_command("judge_doctor", "default", "--model", "gone", stdout=out)
    (line,) = out.getvalue().splitlines()
    assert line.startswith("no  answers")
    assert told in line
    assert endpoint.counts()["calls"] == 1


def test_silent_endpoint_is_given_up_after_the_time_limit(endpoint: Fake) -> None:
    endpoint.says({"hold": True})
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("judge_doctor", "default", "--model", "slow", "--timeout", "0.2", stdout=out)
    assert "did not complete its reply within 0.2 seconds" in out.getvalue()


def test_unknown_endpoint_is_refused(endpoint: Fake) -> None:
    with pytest.raises(CommandError, match=r"The endpoint other is not in JUDGE_ENDPOINTS\. Known: default\."):
        call_command("judge_doctor", "other", "--model", "m")


@pytest.mark.parametrize(("settings_of_batches", "supported"), [({"supported": False}, False), ({"list": 500}, None)])
def test_endpoint_without_batches_is_named(
    endpoint: Fake, settings_of_batches: dict[str, Any], supported: bool | None
) -> None:
    endpoint.batches(**settings_of_batches)
    found = examine()["batches"]
    assert found[0] is supported
    assert f"answered {404 if supported is False else 500}" in found[1]
