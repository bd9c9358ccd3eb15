"""The services of a run, standard, flex and batch, where they are chosen; calls with the flex service."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.models import ApiToken
from judges import planning, runs
from judges.llm import client
from judges.models import JudgeRun, Judgment, ModelCall, ModelTerms
from judges.ready_judges import RunRefused
from judges.tests.batching import SUCCESS, Here, poll, short_pauses, work_once
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.working.call_log import compute_cost

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def here(settings: Any, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(SUCCESS, record=True)
    # 1,200 and 60 tokens: 0.0024 + 0.0006 = 0.003 for a call.
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)
    with short_pauses(monkeypatch):
        yield Here(tmp_path, fake, trajectories=2)


def start_flex(here: Here, **options: Any) -> JudgeRun:
    return started_run(here.mira, here.submission, options.pop("judge", here.judge), service="flex", **options)


# --- flex ------------------------------------------------------------------------------------------------------------


def test_flex_calls_state_their_tier_cost_half_and_are_the_same_calls(here: Here) -> None:
    run = start_flex(here)
    worked(run)
    bodies = [json.loads(body) for body in here.fake.counts()["bodies"]]
    assert [body["service_tier"] for body in bodies] == ["flex"] * 4
    assert (run.state, runs.load_progress(run).cost) == ("finished", Decimal("0.006"))
    assert not any("service_tier" in call.request for call in ModelCall.objects.all())
    standard = started_run(here.mira, here.submission, here.judge)
    worked(standard)
    assert (standard.state, here.fake.counts()["calls"]) == ("finished", 4)
    assert len(set(Judgment.objects.values_list("fingerprint", flat=True))) == 1


@pytest.mark.parametrize(("tier", "cost"), [("flex", "0.003"), (None, "0.003"), ("default", "0.006")])
def test_flex_call_that_was_answered_in_another_tier_costs_the_usual_price(
    here: Here, tier: str | None, cost: str
) -> None:
    body = {
        "model": "fake-model-1",
        "choices": [{"index": 0, "message": {"content": SUCCESS["reply"]}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 60},
    }
    here.fake.says({"body": body | ({"service_tier": tier} if tier else {})})
    run = start_flex(here, selection={"limit": 1})
    worked(run)
    assert (run.state, runs.load_progress(run).cost) == ("finished", Decimal(cost))


def test_standard_calls_state_no_tier(here: Here) -> None:
    worked(started_run(here.mira, here.submission, here.judge))
    assert not any("service_tier" in body for body in here.fake.counts()["bodies"])


def test_flex_of_the_run_replaces_the_tier_of_the_judge(here: Here) -> None:
    judge = defined_judge("tiered", scorer="tiny", generation={"extra_body": '{"service_tier": "priority"}'})
    worked(start_flex(here, judge=judge))
    assert {json.loads(body)["service_tier"] for body in here.fake.counts()["bodies"]} == {"flex"}


def test_flex_call_may_take_longer_than_the_judge_allows(here: Here) -> None:
    judge = defined_judge("hasty", scorer="tiny", timeout=1, attempts=1)
    here.fake.says(SUCCESS | {"latency": 1.5})
    run = start_flex(here, judge=judge)
    worked(run)
    assert (run.state, Judgment.objects.filter(verdict=1).count()) == ("finished", 2)


def test_flex_call_without_resources_is_repeated(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LIMITED_WAIT", 0.01)
    busy = {"message": "Resource unavailable", "code": "resource_unavailable"}
    here.fake.says({"status": 429, "error": busy, "times": 1}, SUCCESS)
    run = start_flex(here)
    worked(run)
    assert (run.state, Judgment.objects.filter(verdict=1).count()) == ("finished", 2)
    assert here.fake.counts()["calls"] == 5


# --- estimates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["batch", "flex"])
def test_plan_of_a_service_costs_half(here: Here, service: str) -> None:
    usual = planning.plan(here.judge, here.submission, {})
    half = planning.plan(here.judge, here.submission, {}, 1, service)
    # 2 images and 4 replies: at least 2 * 1100 * 2 + 4 * 300 * 10 = 16,400 millionths.
    assert usual.cost is not None
    assert half.cost is not None
    assert usual.cost > Decimal("0.0164")
    assert abs(half.cost * 2 - usual.cost) <= Decimal("0.0001")
    assert (half.calls, half.prompt_tokens) == (usual.calls, usual.prompt_tokens)


def test_share_applies_to_cached_tokens_too() -> None:
    from judges.llm import Usage

    terms = ModelTerms(input_price=Decimal(2), cached_price=Decimal(1), output_price=Decimal(10))
    usage = Usage(prompt=1000, cached=400, completion=100)  # 0.0012 + 0.0004 + 0.001
    assert compute_cost(terms, usage) == Decimal("0.0026")
    assert compute_cost(terms, usage, "batch") == compute_cost(terms, usage, "flex") == Decimal("0.0013")


# --- where a service is chosen ---------------------------------------------------------------------------------------


def run_judge(here: Here, *words: str) -> str:
    out = io.StringIO()
    call_command("run_judge", "tiny", "--submission", str(here.submission.pk), *words, stdout=out)
    return out.getvalue()


def test_command_runs_batches_to_the_end(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    text = run_judge(here, "--service", "batch", "--wait")
    assert "time:     up to 24 hours for each stage of the judge" in text
    assert "2 of 2 judged" in text
    assert "4 calls paid, 0 from the cache, 0.0060 USD" in text
    assert here.fake.counts()["sizes"] == [2, 2]


def test_command_refuses_other_services(here: Here) -> None:
    with pytest.raises(CommandError, match="invalid choice: 'turbo'"):
        run_judge(here, "--service", "turbo")


def test_api_plans_and_starts_a_run_in_batches(here: Here) -> None:
    api = Client(headers={"Authorization": f"Bearer {ApiToken.issue(here.mira, 'test', 'admin')[1]}"})
    path, asked = f"/api/v1/submissions/{here.submission.pk}/judge-runs", {"judge": "tiny", "service": "batch"}
    usual = api.post(f"{path}/plan", {"judge": "tiny"}, content_type="application/json").json()
    planned = api.post(f"{path}/plan", asked, content_type="application/json").json()
    assert abs(float(usual["cost"]) - 2 * float(planned["cost"])) <= 0.0001
    started = api.post(path, asked, content_type="application/json")
    assert (started.status_code, started.json()["service"]) == (201, "batch")
    assert JudgeRun.objects.get().service == "batch"
    wrong = api.post(path, asked | {"service": "turbo"}, content_type="application/json")
    assert (wrong.status_code, "turbo" in wrong.content.decode()) == (400, True)
    assert api.get(path).json()["results"][0]["service"] == "batch"


def test_event_of_the_start_names_a_service_only_if_there_is_one(here: Here) -> None:
    here.start()
    started_run(here.mira, here.submission, here.judge)
    events = here.submission.events.filter(kind="judge_run_started").order_by("pk")
    assert [event.payload.get("service") for event in events] == ["batch", None]
    assert "service" not in events.last().payload


def test_page_of_a_run_says_that_it_waits_for_a_batch(here: Here) -> None:
    browser = Client()
    browser.force_login(here.mira)
    form = {"judge": here.judge.pk, "repetitions": 1, "service": "batch"}
    plan = browser.post(reverse("plan-judge-run", args=[here.submission.pk]), form).content.decode()
    assert "up to 24 hours for each stage of the judge" in plan
    assert 'name="service" value="batch"' in plan
    browser.post(reverse("start-judge-run", args=[here.submission.pk]), form)
    run = JudgeRun.objects.get()
    here.fake.batches(hold=True)
    work_once(run)
    page = browser.get(reverse("judge-run", args=[run.pk])).content.decode()
    assert "Waiting for 1 batch at the endpoint" in page
    assert 'class="chip">batch</span>' in page
    here.fake.batches(hold=False)
    poll(run)
    poll(run)
    page = browser.get(reverse("judge-run", args=[run.pk])).content.decode()
    assert (run.state, "Waiting for" in page) == ("finished", False)


@pytest.mark.parametrize(("service", "api"), [("batch", "responses"), ("batch", "anthropic"), ("flex", "gemini")])
def test_service_that_an_api_does_not_have_is_refused(here: Here, service: str, api: str) -> None:
    judge = defined_judge("other", generation={"api": api})
    with pytest.raises(RunRefused, match=f"The service {service} is OpenAI's, and other uses the API {api}"):
        started_run(here.mira, here.submission, judge, service=service)
