"""Quotas of a benchmark stop its judge runs, as a budget stops one run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Benchmark, Person
from annotation.workflow import Conflict
from judges import quotas, runs
from judges.models import ModelCall, ModelTerms
from judges.ready_judges import RunRefused
from judges.tests.builders import defined_judge, started_run, worked
from judges.tests.test_runs_working import here  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)


def limit(**fields: Any) -> None:
    Benchmark.objects.update(**fields)


def test_quota_of_calls_stops_a_run_until_it_is_raised(here, fake):  # noqa: F811
    submission, mira, _ = here
    judge = defined_judge("thrifty", scorer="tiny", concurrency=1)
    limit(quota_calls=4)
    run = started_run(mira, submission, judge)
    assert worked(run) is False
    assert run.state == "stopped"
    assert "has a quota of 4 model calls" in run.stopped
    assert "Ask the operator" in run.stopped
    assert fake.counts()["calls"] in (4, 5)  # the one that uses it up, and one that was on its way
    recorded = submission.events.get(kind="judge_run_stopped").payload
    assert recorded["reason"] == "A quota of the benchmark is used up."
    for refused in (lambda: runs.resume(mira, run), lambda: started_run(mira, submission, judge)):
        with pytest.raises(RunRefused, match="has a quota of 4 model calls"):
            refused()

    limit(quota_calls=100)
    runs.resume(mira, run)
    worked(run)
    assert run.state == "finished"
    assert quotas.load_use(submission.benchmark_id, quotas.CALLS) == fake.counts()["calls"] == 9


def test_quota_of_cost_counts_all_runs_of_the_benchmark(here, fake):  # noqa: F811
    submission, mira, judge = here
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)
    worked(started_run(mira, submission, judge))  # nine calls of 0.003
    limit(quota_cost=Decimal("0.03"))
    thrifty = defined_judge("thrifty", scorer="tiny", concurrency=1)
    run = started_run(mira, submission, thrifty, fresh=True)
    worked(run)
    assert run.state == "stopped"
    assert "has a quota of 0.03 US dollars for judges and has spent 0.03" in run.stopped
    assert fake.counts()["calls"] in (10, 11)


def test_replies_from_the_cache_use_up_nothing(here, fake):  # noqa: F811
    submission, mira, judge = here
    worked(started_run(mira, submission, judge))
    limit(quota_calls=10)
    again = started_run(mira, submission, judge)
    worked(again)
    assert again.state == "finished"


def test_calls_without_an_answer_use_up_nothing(here, fake):  # noqa: F811
    submission, mira, judge = here
    fake.says({"status": 401})
    worked(started_run(mira, submission, judge))
    assert ModelCall.objects.exclude(error="").exists()
    assert quotas.load_use(submission.benchmark_id, quotas.CALLS) == 0


def test_quota_of_cost_needs_prices(here):  # noqa: F811
    submission, mira, judge = here
    limit(quota_cost=1)
    with pytest.raises(RunRefused, match="has a cost quota"):
        started_run(mira, submission, judge)


def test_quota_of_another_benchmark_does_not_count(here, fake):  # noqa: F811
    submission, mira, judge = here
    Benchmark.objects.create(slug="other", name="Other", quota_calls=0)
    run = started_run(mira, submission, judge)
    worked(run)
    assert run.state == "finished"


def test_maintainer_sees_use_and_quotas(here, fake):  # noqa: F811
    submission, mira, judge = here
    worked(started_run(mira, submission, judge))
    limit(quota_calls=9)
    client, address = Client(), reverse("benchmark-quotas", args=[submission.benchmark.slug])
    client.force_login(mira)
    page = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "used up" in page
    assert "/admin/" not in page
    assert client.get(address).status_code == 302
    assert address in client.get(reverse("benchmark", args=[submission.benchmark.slug])).content.decode()
    client.force_login(Person.objects.create_superuser("root"))
    assert "/admin/" in client.get(address, headers={"HX-Request": "true"}).content.decode()


def test_submission_with_an_open_run_is_not_archived(here, fake):  # noqa: F811
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    with pytest.raises(Conflict, match="has a judge run that has not ended"):
        workflow.archive(mira, submission)
    worked(run)
    workflow.archive(mira, submission)
    with pytest.raises(Conflict, match="archived"):
        started_run(mira, submission, judge)
    with pytest.raises(Conflict, match="archived"):
        runs.retry_failed(mira, run)
