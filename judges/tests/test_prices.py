"""Shipped prices: for which address they hold, what wins over them, and where pages and commands say so."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from judges import defining, planning, quotas, runs
from judges.llm import Usage
from judges.models import Judge, JudgeRun, ModelTerms
from judges.prices import BY_HOST, find_price, list_prices
from judges.ready_judges import RunRefused, prepare
from judges.tests.builders import defined_judge
from judges.tests.pages import read_page
from judges.working.call_log import compute_cost

OPENAI = "https://api.openai.com/v1"
MILLION = 1_000_000


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "model", "known"),
    [
        (OPENAI, "o4-mini", True),
        ("https://api.openai.com:443/v1", "o4-mini-2025-04-16", True),
        ("https://API.OpenAI.com/v1", "o4-mini", True),
        ("https://api.anthropic.com/v1", "claude-sonnet-4-5", True),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", True),
        (OPENAI, "gpt-4o-2024-05-13", False),  # its price was another one
        (OPENAI, "claude-sonnet-4-5", False),
        (OPENAI, "o4-mini-high", False),
        ("http://api.openai.com/v1", "o4-mini", False),
        ("https://api.openai.com:8443/v1", "o4-mini", False),
        ("https://api.openai.com.example/v1", "o4-mini", False),
        ("https://eu.api.openai.com/v1", "o4-mini", False),
        ("https://proxy.example/api.openai.com", "o4-mini", False),
        ("https://api.openai.com:x/v1", "o4-mini", False),
        ("", "o4-mini", False),
    ],
)
def test_price_holds_for_a_model_at_the_address_of_its_provider(address: str, model: str, known: bool) -> None:
    assert (find_price(address, model) is not None) is known


def test_table_names_each_model_once_with_plausible_prices() -> None:
    for prices in BY_HOST.values():
        names = [name for price in prices for name in price.names]
        assert len(names) == len(set(names))
    for host, price in list_prices():
        assert 0 < price.cached < price.input < price.output < 100, (host, price.names)
        assert datetime(2026, 1, 1, tzinfo=UTC).date() <= price.checked <= datetime.now(UTC).date()


# --- what applies ----------------------------------------------------------------------------------------------------


@pytest.fixture
def judge(db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Judge:
    settings.JUDGE_ENDPOINTS = {"default": OPENAI, "elsewhere": "http://127.0.0.1:1/v1"}
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", "sk-for-tests-0123456789")
    return defined_judge(model="o4-mini")


def test_call_costs_what_the_table_says(judge: Judge) -> None:
    """1 million new tokens at 1.10, half a million cached at 0.275, a tenth of a million out at 4.40."""
    usage = Usage(prompt=MILLION * 3 // 2, cached=MILLION // 2, completion=MILLION // 10)
    terms = prepare(judge).terms
    assert compute_cost(terms, usage) == Decimal("1.67750000")
    assert terms is not None
    assert terms.source == "shipped table, checked 2026-03-21"
    assert not ModelTerms.objects.exists()


def test_price_of_a_maintainer_wins_even_if_it_is_incomplete(judge: Judge) -> None:
    defining.set_terms(None, endpoint="default", model="o4-mini", input_price=Decimal(9), output_price=Decimal(9))
    found = ModelTerms.of(judge)
    assert found is not None
    assert (found.input_price, found.cached_price, found.source) == (9, None, "set by a maintainer")
    defining.set_terms(None, endpoint="default", model="o4-mini", input_price=Decimal(9))
    found = ModelTerms.of(judge)
    assert found is not None
    assert (found.output_price, found.has_prices, found.source) == (None, False, "")


def test_limits_of_a_maintainer_go_with_the_shipped_price(judge: Judge) -> None:
    defining.set_terms(None, endpoint="default", model="o4-mini", requests_per_minute=7)
    found = ModelTerms.of(judge)
    assert found is not None
    assert (found.requests_per_minute, found.output_price) == (7, Decimal("4.4"))
    assert ModelTerms.objects.get().output_price is None


def test_another_address_has_no_shipped_price(judge: Judge, settings: Any) -> None:
    assert ModelTerms.of(defined_judge("beside", model="o4-mini", endpoint="elsewhere")) is None
    settings.JUDGE_ENDPOINTS = {}
    assert ModelTerms.of(judge) is None


def test_price_is_unknown_for_a_longer_prompt_than_it_is_stated_for(judge: Judge, settings: Any) -> None:
    settings.JUDGE_ENDPOINTS = {"default": "https://generativelanguage.googleapis.com/v1beta/openai"}
    terms = ModelTerms.of(defined_judge("other", model="gemini-2.5-pro"))
    assert compute_cost(terms, Usage(prompt=200_000, completion=0)) == Decimal("0.25")  # at 1.25
    assert compute_cost(terms, Usage(prompt=200_001, completion=0)) is None
    defining.set_terms(
        None, endpoint="default", model="gemini-2.5-pro", input_price=Decimal(2), output_price=Decimal(2)
    )
    terms = ModelTerms.of(Judge.objects.get(name="other"))
    assert compute_cost(terms, Usage(prompt=500_000, completion=0)) == 1


# --- where it is said ------------------------------------------------------------------------------------------------


@shared_rows
def mira(submission: Submission) -> Person:
    person = testing.cast(submission)["mira"]
    Person.objects.filter(pk=person.pk).update(is_staff=True)
    return person


def read(person: Person, method: str, address: str, *given: Any) -> str:
    client = Client()
    client.force_login(person)
    return " ".join(read_page(getattr(client, method)(address, *given)).split())


def command(submission: Submission, judge: Judge, *words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("run_judge", str(judge), "--submission", str(submission.pk), *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_plan_states_the_source_and_warns_if_there_is_no_price(
    submission: Submission, mira: Person, judge: Judge
) -> None:
    out, err = command(submission, judge, "--plan")
    planned = planning.plan(judge, submission, {})
    assert f"USD ({planned.prices})" in out
    assert planned.prices == "shipped table, checked 2026-03-21"
    assert err == ""
    unknown = defined_judge("beside", model="some-model")
    out, err = command(submission, unknown, "--plan")
    assert "cost:     unknown: the model has no price" in out
    assert err.startswith("warning: some-model at the endpoint default has no price")
    defining.set_terms(None, endpoint="default", model="some-model", input_price=Decimal(1), output_price=Decimal(1))
    assert "USD (set by a maintainer)" in command(submission, unknown, "--plan")[0]


def test_plan_without_a_model_states_no_prices(submission: Submission, mira: Person, judge: Judge) -> None:
    nets = defined_judge("nets", scorer="network-trace", model="")
    out, err = command(submission, nets, "--plan")
    assert ("cost:     about 0.0000 USD\n" in out, err) == (True, "")


def test_budget_and_cost_quota_are_possible_with_a_shipped_price(
    submission: Submission, mira: Person, judge: Judge
) -> None:
    benchmark = submission.benchmark
    benchmark.quota_cost = Decimal(5)
    benchmark.save()
    quotas.require_room(judge, benchmark.pk)
    run = runs.start(mira, judge, submission, {}, max_cost=Decimal(1))
    assert run.estimate["prices"] == "shipped table, checked 2026-03-21"
    with pytest.raises(RunRefused, match="are unknown"):
        quotas.require_room(defined_judge("beside", model="some-model"), benchmark.pk)


def test_pages_and_api_state_where_the_price_comes_from(submission: Submission, mira: Person, judge: Judge) -> None:
    defined_judge("beside", model="some-model")
    source = "shipped table, checked 2026-03-21"
    assert f'1.1 in, 4.4 out, USD per million tokens <span class="dim">({source})' in read(
        mira, "get", reverse("judge", args=[judge.pk])
    )
    page = read(mira, "post", reverse("plan-judge-run", args=[submission.pk]), {"judge": judge.pk, "repetitions": 1})
    assert f"prices: {source}" in page
    prices = read(mira, "get", reverse("model-terms"))
    assert "Models used by judges, with the shipped price:" in prices
    assert "at default, checked 2026-03-21" in prices
    assert "<b>No price:</b>" in prices.partition("with the shipped price:")[2]
    assert "some-model" in prices.partition("<b>No price:</b>")[2]
    assert "up to 200,000 tokens" in prices

    client = Client()
    client.force_login(mira)
    planned = client.post(
        f"/api/v1/submissions/{submission.pk}/judge-runs/plan", {"judge": "careful"}, content_type="application/json"
    )
    assert planned.json()["prices"] == source
    runs.start(mira, judge, submission, {}, max_cost=Decimal(1))
    assert f"Prices at the start: {source}." in read(
        mira, "get", reverse("judge-run", args=[JudgeRun.objects.get().pk])
    )
