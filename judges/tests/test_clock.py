"""Heartbeats of workers are compared by the database's clock, not by the clock of the process."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation import clock
from annotation.tests import testing
from judges.models import JudgeRun, ModelCall
from judges.tests.builders import defined_judge, fake_endpoint, started_run, worked
from judges.tests.tiny import tiny_scorer
from judges.working import leases


@pytest.mark.postgresql
@pytest.mark.django_db
def test_worker_with_a_fast_clock_takes_no_item_in_work(settings, monkeypatch):
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:1/v1"}
    with tiny_scorer():
        submission = testing.bare_submission(1)
        run = started_run(testing.cast(submission)["mira"], submission, defined_judge("tiny", scorer="tiny"))
    (held,) = leases.claim(run.pk, "first", [])
    ahead = timezone.now() + timedelta(hours=3)
    monkeypatch.setattr(timezone, "now", lambda: ahead)
    assert leases.claim(run.pk, "second", []) == []
    assert leases.claim_idle_runs() == []
    assert leases.renew("first", [held.pk]) == {held.pk}
    assert JudgeRun.objects.get().state == "running"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_the_event_loop_of_a_run_never_asks_the_database_for_the_time(settings, monkeypatch, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "images"
    monkeypatch.setattr(clock, "MEASURED_FOR", -1.0)  # each call asks, so that none is spared by an earlier one
    submission = testing.submission(tmp_path / "package")
    with fake_endpoint() as endpoint:
        settings.JUDGE_ENDPOINTS = {"default": f"http://127.0.0.1:{endpoint.port}/v1"}
        run = started_run(testing.cast(submission)["mira"], submission, defined_judge())
        worked(run)
    assert [item.error for item in run.items.all() if item.failed_at] == []
    assert ModelCall.objects.filter(item__run=run).exists()
