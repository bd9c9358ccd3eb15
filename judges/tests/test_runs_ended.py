"""Items and state of runs that do not end with their last item: cancelled or paused runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Message, Person, Submission
from judges import jobs, run_table, runs
from judges.models import JudgeRun
from judges.scorer import Score
from judges.tests.builders import defined_judge, started_run
from judges.working import leases
from judges.working.call_log import CallTotals

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(submission: Submission, people: dict[str, Person], settings: Any) -> JudgeRun:
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:9/v1"}
    return started_run(people["mira"], submission, defined_judge())


def settle(run: JudgeRun, worker: str = "a worker") -> None:
    [item] = leases.claim(run.pk, worker, ())
    assert leases.settle(item, worker, Score(None, unscored="Nothing."), CallTotals(), run.judge.fingerprint)


def test_an_item_of_a_cancelled_run_is_not_shown_as_waiting(run: JudgeRun, people: dict[str, Person]) -> None:
    settle(run)
    runs.cancel(people["mira"], run)
    client = Client()
    client.force_login(people["mira"])
    page = client.get(reverse("judge-run", args=[run.pk])).content.decode()
    rows = page[page.index("<tbody>") : page.index("</tbody>")]
    assert ("not judged" in rows, "waiting" in rows) == (True, False)
    assert run_table.filter_trajectories(run, show="waiting").count() == 0
    assert run_table.filter_trajectories(run, show="not judged").count() == 1


def test_an_item_of_a_run_at_work_is_shown_as_waiting(run: JudgeRun) -> None:
    assert run_table.filter_trajectories(run, show="waiting").count() == 2
    assert run_table.filter_trajectories(run, show="not judged").count() == 0


@pytest.mark.parametrize("verb", ["pause", "stop"])
def test_a_run_whose_last_worker_died_before_it_could_end_it_ends_all_the_same(
    run: JudgeRun, people: dict[str, Person], verb: str
) -> None:
    first, last = leases.claim(run.pk, "one", ()), leases.claim(run.pk, "two", ())
    if verb == "pause":
        runs.pause(people["mira"], run)
    else:
        leases.stop_run(run.pk, "The budget is spent.", "The budget is spent, or its use cannot be measured.")
    for worker, [item] in (("one", first), ("two", last)):
        assert leases.settle(item, worker, Score(None, unscored="None."), CallTotals(), run.judge.fingerprint)
    jobs.resume_runs()
    run.refresh_from_db()
    assert run.state == "finished"


@pytest.mark.parametrize("how", ["stopped", "finished"])
@pytest.mark.parametrize(("minutes", "count"), [(1, 0), (4, 1)])
def test_starter_of_a_long_run_is_told_of_its_end_once(
    run: JudgeRun, people: dict[str, Person], how: str, minutes: int, count: int
) -> None:
    JudgeRun.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(minutes=minutes))
    for _ in range(2):
        if how == "stopped":
            leases.stop_run(run.pk, "http://secret.example does not answer.", "An endpoint cannot be used.")
            continue
        if leases.has_free_items(run.pk):
            settle(run)
            settle(run)
        leases.finish_run(run.pk)

    told = Message.objects.filter(subject=f"Judge run {how}")
    assert [message.person for message in told] == [people["mira"]] * count
    assert not Message.objects.filter(text__contains="secret").exists()
    assert {message.link for message in told} <= {reverse("judge-run", args=[run.pk])}


def test_run_of_a_command_tells_nobody(run: JudgeRun) -> None:
    JudgeRun.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(hours=1), created_by=None)
    leases.stop_run(run.pk, "Stopped.", "Stopped.")

    assert not Message.objects.exists()
