"""One real call before a judge is stored: by the command, the page and the API, over HTTP."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from judges.models import Judge
from judges.tests.builders import KEY, Fake
from judges.tests.test_judge_doctor import NUMBER, refuse

pytestmark = pytest.mark.django_db
ASKED = "Give the number 7."
RIGHT = {"match": ASKED, "reply": NUMBER}


@pytest.fixture
def endpoint(fake: Fake, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Fake:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", KEY)
    return fake


@shared_rows
def mira(submission: Submission) -> Person:
    person = testing.cast(submission)["mira"]
    Person.objects.filter(pk=person.pk).update(is_staff=True)
    return person


def define(*words: str) -> tuple[int, list[str], str]:
    """The exit code of define_judge --check, its output by lines, and its errors."""
    out, err = io.StringIO(), io.StringIO()
    command = ("define_judge", "careful", "--scorer", "webjudge", "--model", "some-model", "--check", *words)
    try:
        call_command(*command, stdout=out, stderr=err)
    except CommandError as error:
        return error.returncode, out.getvalue().splitlines(), f"{err.getvalue()}{error}"
    return 0, out.getvalue().splitlines(), err.getvalue()


def bodies(fake: Fake) -> list[dict[str, Any]]:
    return [json.loads(body) for body in fake.counts()["bodies"]]


def test_judge_that_answers_is_defined_after_one_call_with_its_settings(endpoint: Fake) -> None:
    endpoint.says(RIGHT | {"model": "some-model-2026"}, record=True)
    settings = ("temperature=0.5", "max_tokens=77", "reasoning_effort=low", 'extra_body={"user": "x"}')
    code, lines, _ = define(*(word for each in settings for word in ("--generation", each)))
    assert (code, Judge.objects.count()) == (0, 1)
    assert lines[0].startswith("answers: in ")
    (body,) = bodies(endpoint)
    sent = {name: body[name] for name in ("model", "temperature", "max_tokens", "reasoning_effort", "user")}
    assert sent == {
        "model": "some-model",
        "temperature": 0.5,
        "max_tokens": 77,
        "reasoning_effort": "low",
        "user": "x",
    }
    assert body["response_format"]["type"] == "json_schema"


def test_refused_parameters_are_named_and_the_judge_is_defined(endpoint: Fake) -> None:
    endpoint.says(refuse("max_tokens"), refuse("seed"), RIGHT)
    code, lines, _ = define()
    assert code == 0
    assert lines[1:3] == [
        "max_tokens: refused; sent as max_completion_tokens",
        "seed: refused; judges do not send it",
    ]
    assert endpoint.counts()["calls"] == 3


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (refuse("response_format"), "refused; judges then ask for a text and look for JSON in it"),
        ({"match": ASKED, "reply": "It is 7."}, "It holds no complete JSON object."),
        (
            {"match": ASKED, "reply": '{"number": 4}'},
            """asked for the number 7, the model answered '{"number": 4}'""",
        ),
    ],
)
def test_answer_in_another_form_is_a_warning(endpoint: Fake, rule: dict[str, Any], line: str) -> None:
    endpoint.says(rule, {"match": ASKED, "reply": "7"})
    code, lines, _ = define()
    assert (code, lines[1]) == (0, f"structured answer: {line}")


def test_server_without_the_key_says_where_to_ask(endpoint: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", "none")
    hint = "On this server, the endpoint's key is `none`. If only workers have the key"
    endpoint.says({"status": 404, "error": {"message": "No such model."}})
    assert hint not in define()[2]
    endpoint.says({"status": 401, "error": {"message": "No key."}})
    assert hint in define()[2]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"status": 404, "error": {"message": "No such model."}}, "The endpoint default answered 404: No such model."),
        ({"status": 401, "error": {"message": "Wrong key."}}, "Check the key in JUDGE_API_KEY_DEFAULT."),
        ({"status": 400, "error": {"message": "user: unknown field."}}, "answered 400: user: unknown field."),
        ({"status": 400, "error": {"message": "Unsupported value: 'low'", "param": "reasoning_effort"}}, "'low'"),
        ({"status": 429, "error": {"message": "Slow down."}}, "answered 429: Slow down."),
        ({"fault": "drop"}, "cannot be reached"),
        ({"reply": ""}, "The reply is empty."),
    ],
)
def test_nothing_is_defined_if_the_call_fails(endpoint: Fake, rule: dict[str, Any], reason: str) -> None:
    endpoint.says(rule)
    code, _, said = define("--generation", "reasoning_effort=low")
    assert code == 1
    assert "refused: model: The model gives no usable answer:" in said
    assert reason in said
    assert KEY not in said
    assert not Judge.objects.exists()
    assert endpoint.counts()["calls"] == 1


def test_silent_model_is_given_up_after_the_time_limit_of_all_attempts(endpoint: Fake) -> None:
    from asgiref.sync import async_to_sync

    from judges.llm import Generation, Patience
    from judges.llm.probing import check

    endpoint.says({"hold": True})
    (found,) = async_to_sync(check)(endpoint.endpoint, "m", Generation(), Patience(timeout=0.2))
    assert (found.supported, "within 0.2 seconds" in found.detail) == (False, True)


def test_wrong_definition_or_endpoint_is_refused_before_any_call(endpoint: Fake) -> None:
    assert "parameters.threshold" in define("--set", "threshold=9")[2]
    assert "refused: endpoint: The endpoint other is not in JUDGE_ENDPOINTS." in define("--endpoint", "other")[2]
    assert endpoint.counts()["calls"] == 0
    assert not Judge.objects.exists()


def test_scorer_without_a_model_is_defined_without_a_call(endpoint: Fake) -> None:
    out = io.StringIO()
    call_command("define_judge", "nets", "--scorer", "network-trace", "--check", stdout=out)
    assert out.getvalue().startswith("This scorer asks no model, so there is nothing to check.\nnets@1 defined.")
    assert endpoint.counts()["calls"] == 0


# --- the page and the API --------------------------------------------------------------------------------------------


def fields(client: Client, **given: Any) -> dict[str, Any]:
    form = client.get(reverse("define-judge") + "?scorer=webjudge").context["form"]
    values = {
        bound.html_name: bound.value() for bound in form if bound.value() is not None and bound.value() is not False
    }
    return values | {"scorer": "webjudge", "name": "careful", "model": "some-model"} | given


def test_page_asks_only_if_it_is_ticked(endpoint: Fake, mira: Person) -> None:
    client = Client()
    client.force_login(mira)
    endpoint.says({"status": 404, "error": {"message": "No such model."}})
    refused = client.post(reverse("create-judge"), fields(client, check="on"))
    assert refused.status_code == 400
    assert refused.context["form"].errors == {
        "model": ["The model gives no usable answer: The endpoint default answered 404: No such model."]
    }
    assert refused.context["form"]["check"].value() is True
    assert not Judge.objects.exists()
    assert client.post(reverse("create-judge"), fields(client)).status_code == 302
    assert endpoint.counts()["calls"] == 1

    endpoint.says(RIGHT)
    made = Judge.objects.get()
    saved = client.post(reverse("change-judge", args=[made.pk]), fields(client, check="on"), follow=True)
    assert "careful is changed. The model answers: in " in saved.content.decode()
    none = client.get(reverse("define-judge") + "?scorer=network-trace").context["form"]
    assert "check" not in none.fields


def test_api_defines_nothing_if_the_check_fails(endpoint: Fake, mira: Person) -> None:
    client = Client()
    client.force_login(mira)
    given = {"name": "careful", "scorer": "webjudge", "model": "some-model", "check": True}
    endpoint.says({"status": 404, "error": {"message": "No such model."}})
    answer = client.post("/api/v1/judges", given, content_type="application/json")
    assert answer.status_code == 400
    assert "No such model." in answer.content.decode()
    assert not Judge.objects.exists()
    endpoint.says(RIGHT)
    assert client.post("/api/v1/judges", given, content_type="application/json").status_code == 201
    assert endpoint.counts()["calls"] == 2


def test_people_who_may_not_define_judges_cause_no_call(endpoint: Fake, mira: Person) -> None:
    Person.objects.filter(pk=mira.pk).update(is_staff=False)
    client = Client()
    client.force_login(Person.objects.get(pk=mira.pk))
    given = {"name": "careful", "scorer": "webjudge", "model": "some-model", "check": True}
    assert client.post("/api/v1/judges", given, content_type="application/json").status_code == 403
    assert client.post(reverse("create-judge"), given | {"check": "on"}).status_code == 403
    assert endpoint.counts()["calls"] == 0
