"""A judge that speaks another API, from its definition to its pages; and judge_doctor for every API."""

from __future__ import annotations

import asyncio
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Person
from annotation.tests import testing
from annotation.workflow import Incomplete
from judges import defining
from judges.llm.probing import check
from judges.models import Judge, Judgment, ModelCall
from judges.tests.api_bodies import MODELS, NATIVE, body, call, generate, message, native, respond
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.tests.pages import read_page

ADDRESSES = {"responses": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}
ANSWER = {"reason": "The lamp is in the cart.", "verdict": "success"}


@pytest.fixture
def point_to(fake: Fake, settings: Any) -> Any:
    def point(api: str) -> None:
        settings.JUDGE_ENDPOINTS = {"default": f"http://127.0.0.1:{fake.port}{ADDRESSES[api]}"}

    return point


def define(api: str) -> Judge:
    """A judge, defined on the command line."""
    words = ("define_judge", "native", "--scorer", "agenttrek", "--model", "m", "--generation", f"api={api}")
    call_command(*words, stdout=io.StringIO())
    return Judge.objects.get()


def page(person: Person, name: str, pk: int) -> str:
    client = Client()
    client.force_login(person)
    response = client.get(reverse(name, args=[pk]))
    assert response.status_code == 200
    return read_page(response)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("api", NATIVE)
def test_judge_with_another_api_judges_and_its_trace_is_shown(
    tmp_path: Path, fake: Fake, point_to: Any, api: str
) -> None:
    """1,000 tokens are new, 200 from the cache, 60 written: 0.002 + 0.0001 + 0.0006 dollars."""
    point_to(api)
    submission = testing.submission(tmp_path, trajectories=1, steps=2)
    mira = testing.cast(submission)["mira"]
    judge = define(api)
    assert judge.generation["api"] == api
    prices = {"input_price": Decimal(2), "cached_price": Decimal("0.5"), "output_price": Decimal(10)}
    defining.set_terms(None, endpoint="default", model="m", **prices)
    fake.says({"body": call(api, ANSWER) if api == "anthropic" else body(api, json.dumps(ANSWER))})
    worked(started_run(mira, submission, judge))
    made = Judgment.objects.get()
    assert (made.verdict, made.explanation, made.tokens, made.cost) == (1, ANSWER["reason"], 1260, Decimal("0.0027"))
    row = ModelCall.objects.get()
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens) == (1200, 200, 60)
    shown = page(mira, "judgment-trace", made.pk)
    prompt, settings = shown.split("Settings of the call")
    digest = made.trajectory.steps.get(index=1).screenshot.sha256
    roles = ["system", "user"]
    assert re.findall(r'<p class="part-title">(\w+)</p>', prompt) == roles
    for words in ("&lt;record&gt;", digest, f'href="/judgments/{made.pk}?step=1"'):
        assert words in prompt, words
    settings, reply = settings.split('<p class="part-title">Reply</p>')
    assert "&lt;record&gt;" not in settings
    assert "The lamp is in the cart." in reply.split("Raw reply")[0]
    assert f"<dt>Api</dt><dd>{api}" in page(mira, "judge", judge.pk)


@pytest.mark.django_db
def test_settings_of_the_apis_leave_the_fingerprint_of_earlier_judges() -> None:
    former = defined_judge()
    assert not {"api", "prompt_cache", "logprobs"} & former.generation.keys()
    other = defined_judge(generation={"api": "anthropic", "prompt_cache": True})
    assert other.generation == former.generation | {"api": "anthropic", "prompt_cache": True}
    assert other.fingerprint != former.fingerprint


@pytest.mark.django_db
def test_form_offers_the_apis_and_defines_a_judge_with_one() -> None:
    boss = testing.person("boss", is_superuser=True)
    client = Client()
    client.force_login(boss)
    shown = client.get(reverse("define-judge"), {"scorer": "single-call"})
    fields = {field.html_name: field.value() for field in shown.context["form"]}
    values = {name: value for name, value in fields.items() if value is not None and value is not False}
    assert '<option value="gemini">gemini</option>' in shown.content.decode()
    given = {"scorer": "single-call", "name": "native", "model": "m", "generation_api": "gemini"}
    response = client.post(reverse("create-judge"), values | given)
    assert response.status_code == 302, response.context["form"].errors
    assert Judge.objects.get().generation["api"] == "gemini"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({"api": "anthropic", "extra_body": '{"system": "x"}'}, "extra_body must not set system."),
        ({"api": "gemini", "extra_body": '{"contents": []}'}, "extra_body must not set contents."),
        ({"api": "responses", "extra_body": '{"input": "x"}'}, "extra_body must not set input."),
        ({"api": "cohere"}, "api must be one of chat, responses, anthropic, gemini"),
    ],
)
def test_generation_that_the_api_does_not_take_is_refused(generation: dict[str, Any], message: str) -> None:
    with pytest.raises(Incomplete) as refused:
        defined_judge(generation=generation)
    assert message in refused.value.problems[0].message


# --- judge_doctor ----------------------------------------------------------------------------------------------------


def examine(model: str, api: str) -> dict[str, tuple[bool | None, str]]:
    out = io.StringIO()
    call_command("judge_doctor", "default", "--model", model, "--api", api, "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert told["api"] == api
    return {each["name"]: (each["supported"], each["detail"]) for each in told["checks"]}


def test_doctor_finds_what_every_api_supports(fake: Fake, point_to: Any) -> None:
    tokens = [{"token": "ready", "logprob": -0.1, "logProbability": -0.1}]
    with_tokens = {
        "responses": respond(message() | {"content": [{"type": "output_text", "text": "ready", "logprobs": tokens}]}),
        "gemini": generate({"text": "ready"}),
    }
    with_tokens["gemini"]["candidates"][0]["logprobsResult"] = {"chosenCandidates": tokens}
    asks_for_tokens = {"responses": '"include"', "gemini": '"responseLogprobs"'}
    limit = {
        "responses": {"x-ratelimit-limit-requests": "500"},
        "anthropic": {"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-input-tokens-limit": "30000"},
        "gemini": {},
    }
    for api in NATIVE:
        point_to(api)
        tokens_rule = [{"raw": asks_for_tokens[api], "body": with_tokens[api]}] if api in asks_for_tokens else []
        fake.says(
            *tokens_rule,
            {"match": "the one word ready", "body": body(api, "ready"), "headers": limit[api]},
            {"match": "Which colour", "body": body(api, "Red.")},
            {"raw": '"tools"', "body": call(api, {"number": 7})},
            {"match": "Give the number", "body": body(api, '{"number": 7}')},
        )
        found = examine(MODELS[api], api)
        without = {"responses": {"seed"}, "anthropic": {"log probabilities", "seed"}, "gemini": {"states its limits"}}
        assert {name for name, (supported, _) in found.items() if not supported} == without[api]
        assert found["counts tokens"] == (True, "1200 of the question, 60 of the answer")
        assert found["counts cached tokens"] == (True, "stated (200 here)")
        if "seed" in without[api]:
            assert found["seed"] == (False, "not part of this API")
        told = {
            "responses": ("max_output_tokens", "requests 500"),
            "anthropic": ("max_tokens", "input-tokens 30000, requests 50"),
            "gemini": ("maxOutputTokens", "no x-ratelimit-limit headers"),
        }
        assert (found["length limit"][1], found["states its limits"][1]) == (f"as {told[api][0]}", told[api][1])


def test_doctor_names_what_an_api_refuses(fake: Fake, point_to: Any) -> None:
    point_to("gemini")
    error = {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "NAME is not enabled for models/gemma"}}

    def refuse(sent: str, name: str) -> dict[str, Any]:
        return {"raw": sent, "status": 400, "body": json.dumps(error).replace("NAME", name)}

    fake.says(
        refuse('"responseJsonSchema"', "JSON mode"),
        refuse('"toolConfig"', "Function calling"),
        refuse('"responseLogprobs"', "Logprobs"),
        {"body": body("gemini", "ready")},
    )
    found = examine("gemma", "gemini")
    refused = (False, "refused; judges then ask for a text and look for JSON in it")
    assert (found["JSON schema"], found["tool call"]) == (refused, refused)
    assert found["log probabilities"] == (False, "refused")


def test_doctor_at_the_wrong_api_says_what_the_endpoint_answered(fake: Fake, point_to: Any) -> None:
    point_to("anthropic")
    fake.says({"reply": "ready"})  # a chat completion
    out = io.StringIO()
    with pytest.raises(CommandError, match="does not answer"):
        call_command("judge_doctor", "default", "--model", "m", "--api", "anthropic", stdout=out)
    assert out.getvalue().split() == ["no", "answers", "The", "reply", "has", "no", "content."]


@pytest.mark.parametrize("api", NATIVE)
def test_check_of_a_judge_asks_in_its_api_and_names_no_setting_that_was_sent(fake: Fake, api: Any) -> None:
    said = {"number": 7}
    fake.says({"body": call(api, said) if api == "anthropic" else body(api, json.dumps(said))})
    desk = native(fake, api, logprobs=True)
    found = asyncio.run(check(desk.endpoint, desk.model, desk.generation, desk.patience))
    assert [(one.name, one.supported) for one in found] == [("answers", True), ("structured answer", True)]
