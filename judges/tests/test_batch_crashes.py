"""Whatever happens to the workers of a run in batches, each call is paid for once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connections
from django.utils import timezone

from config.tests.waiting import wait_until
from judges import jobs, runs, trace
from judges.llm import Call
from judges.llm.collecting import CollectedCall
from judges.models import JudgeRun, Judgment, ModelBatch, ModelCall
from judges.tests.batching import SUCCESS, Here, age, other_worker, poll, short_pauses, work_once, work_to_end
from judges.tests.builders import Fake, started_run, worked
from judges.working import batches, leases, worker
from judges.working.database import DatabaseThread
from judges.working.worker import work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def here(settings: Any, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(SUCCESS)
    with short_pauses(monkeypatch):
        yield Here(tmp_path, fake, trajectories=4)


@contextmanager
def working_on(run: JudgeRun, name: str, *, waits: bool = True) -> Iterator[Future[bool]]:
    """A worker in a thread; if it does not wait, it ends when everything is submitted."""

    def work_here() -> bool:
        try:
            with nullcontext() if waits else patch.object(worker, "SHORT_WAIT", -1.0):
                return work(run.pk, name, seconds=60.0)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work_here)


def assert_paid_once(here: Here, run: JudgeRun, batches_made: int = 2) -> None:
    counts = here.fake.counts()
    assert (run.state, counts["paid"], counts["batches"]) == ("finished", 8, batches_made)
    assert Judgment.objects.filter(item__run=run, verdict=1).count() == 4
    assert ModelCall.objects.filter(item__run=run, hit=False, error="", reply__isnull=False).count() == 8


def test_worker_killed_between_submission_and_results(here: Here, settings: Any) -> None:
    here.fake.batches(hold=True)
    run = here.start()
    with other_worker(run, settings):
        wait_until(lambda: here.fake.counts()["polls"] > 0, "the batch is polled")
    assert ModelBatch.objects.get().provider_id == "batch-1"
    here.fake.batches(hold=False)
    work_to_end(run)
    assert_paid_once(here, run)


def test_worker_killed_between_the_row_and_the_submission(here: Here, settings: Any) -> None:
    here.fake.batches(upload="wait")
    run = here.start()
    leases.claim(run.pk, "third", ())
    with other_worker(run, settings):
        wait_until(lambda: here.fake.counts()["waiting"] == 1, "the file is uploaded")
    assert ModelBatch.objects.get().provider_id == ""
    assert ModelCall.objects.filter(reply=None).count() == 3
    here.fake.batches(upload=None, hold=True)
    leases.release_all(run.pk, "third")
    # Its worker may still be alive: another one may submit the fourth item only.
    work_once(run)
    assert here.fake.counts()["sizes"] == [1]
    age(run)
    here.fake.batches(hold=False)
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, counts["paid"], Judgment.objects.filter(verdict=1).count()) == ("finished", 8, 4)


@pytest.mark.parametrize("forgets", [False, True])
def test_worker_killed_between_the_submission_and_its_answer(here: Here, settings: Any, forgets: bool) -> None:
    here.fake.batches(create="wait", forgets=forgets)
    run = here.start()
    with other_worker(run, settings):
        wait_until(lambda: here.fake.counts()["waiting"] == 1, "the batch is submitted")
    assert ModelBatch.objects.get().provider_id == ""
    here.fake.batches(create=None)
    age(run)
    work_to_end(run)
    assert_paid_once(here, run)


def test_worker_killed_while_it_reads_results(here: Here, settings: Any) -> None:
    here.fake.batches(content="wait")
    run = here.start()
    with other_worker(run, settings):
        wait_until(lambda: here.fake.counts()["waiting"] == 1, "the results are read")
    here.fake.batches(content=None)
    work_to_end(run)
    assert_paid_once(here, run)


def test_results_may_be_stored_twice(here: Here) -> None:
    run = here.start()
    work_to_end(run)
    before = list(ModelCall.objects.order_by("pk").values())
    ModelBatch.objects.filter(provider_id="batch-1").update(ended_at=None, poll_at=timezone.now())
    worked(run)
    assert list(ModelCall.objects.order_by("pk").values()) == before
    assert not ModelBatch.objects.filter(ended_at=None).exists()


def test_batch_of_many_is_found_on_a_later_page(here: Here, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from judges.llm import batch

    monkeypatch.setattr(batch, "PAGE", 2)
    here.fake.batches(create="wait")
    run = here.start()
    with other_worker(run, settings):
        wait_until(lambda: here.fake.counts()["waiting"] == 1, "the batch is submitted")
    here.fake.batches(create=None)
    for _ in range(3):  # newer ones, of another run
        work_to_end(here.start(fresh=True, selection={"limit": 1}))
    age(run)
    work_to_end(run)
    assert here.fake.counts()["paid"] == 8 + 3 * 2
    assert run.state == "finished"


def test_two_workers_at_once(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "OPEN_ITEMS", 1)  # so that each gets some
    run = here.start()
    with working_on(run, "one") as one, working_on(run, "two") as two:
        one.result(60), two.result(60)
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, counts["paid"], len(counts["sizes"])) == ("finished", 8, 8)
    assert Judgment.objects.count() == 4


def test_slow_worker_submits_nothing_that_another_has_taken_over(here: Here) -> None:
    here.fake.batches(upload="wait", times=1)
    run = here.start()
    with working_on(run, "slow") as slow:
        wait_until(lambda: here.fake.counts()["waiting"] == 1, "the file is uploaded")
        age(run)
        work_to_end(run)
        here.fake.batches(upload=None)
        slow.result(60)
    assert_paid_once(here, run)


def test_batch_that_its_slow_worker_has_just_submitted_is_not_removed(here: Here) -> None:
    here.fake.batches(upload="wait", list="wait", hold=True)
    run = here.start()
    with working_on(run, "slow") as slow:
        wait_until(lambda: here.fake.counts()["waiting"] == 1, "the file is uploaded")
        age(run)
        with working_on(run, "quick", waits=False) as quick:
            wait_until(lambda: here.fake.counts()["waiting"] == 2, "the batches are listed, and there is none yet")
            here.fake.batches(upload=None)
            wait_until(lambda: ModelBatch.objects.filter(provider_id="batch-1").exists(), "the batch is submitted")
            here.fake.batches(list=None)
            quick.result(60)
        here.fake.batches(hold=False)
        slow.result(60)
    work_to_end(run)
    assert_paid_once(here, run)


@pytest.mark.parametrize(("refusals", "cancelled"), [(0, True), (1, True), (2, False)])
def test_batch_that_was_submitted_too_late_is_cancelled(here: Here, refusals: int, cancelled: bool) -> None:
    here.fake.batches(create="wait", hold=True)
    run = here.start()
    with working_on(run, "slow", waits=False) as slow:
        wait_until(lambda: here.fake.counts()["waiting"] == 1, "the batch is submitted")
        batches.discard(ModelBatch.objects.get().token)  # as another worker does that does not find it
        here.fake.batches(create=None, cancel=503, times=refusals)
        slow.result(60)
    run.refresh_from_db()
    assert (here.fake.counts()["statuses"][0] == "cancelling", run.stopped) == (cancelled, "")


def test_calls_that_wait_in_a_batch_are_not_pruned(here: Here) -> None:
    here.fake.batches(hold=True)
    run = here.start()
    work_once(run)
    assert trace.prune(timezone.now() + timedelta(days=1)) == 0
    here.fake.batches(hold=False)
    work_to_end(run)
    assert_paid_once(here, run)
    assert trace.prune(timezone.now() + timedelta(days=1)) == 8


def collect(item: leases.LeasedItem) -> CollectedCall:
    log = batches.BatchedCallLog(item.pk, item.attempt, "1", database=DatabaseThread())
    return CollectedCall(log.take_name(), log, Call("k" * 64, "look", 0, {"messages": []}), 10, 0, 1)


def test_calls_of_an_item_that_was_lost_are_not_submitted(here: Here) -> None:
    run = here.start(selection={"limit": 2})
    [first] = leases.claim(run.pk, "slow", ())
    [second] = leases.claim(run.pk, "slow", (first.pk,))
    calls = [collect(first), collect(second)]
    run.items.filter(pk=first.pk).update(worker="quick", attempt=2)
    for _ in range(2):  # the second time after an uncertain commit
        committed = batches.commit(run.pk, "slow", None, [("token", calls)])
        assert committed.names == {"token": {f"{second.pk}-1-1"}}
        assert list(run.items.values_list("worker", flat=True)) == ["quick", ""]
        assert ModelCall.objects.get().item_id == second.pk


def test_nothing_is_committed_for_a_run_that_was_cancelled(here: Here) -> None:
    run = here.start(selection={"limit": 1})
    [item] = leases.claim(run.pk, "w", ())
    runs.cancel(here.mira, run)
    assert batches.commit(run.pk, "w", None, [("token", [collect(item)])]).names == {}
    assert not ModelBatch.objects.exists()


def test_attempt_that_ended_with_a_batch_is_not_lost(here: Here) -> None:
    run = here.start(selection={"limit": 1})
    work_to_end(run)
    assert run.items.get().attempt == 3  # two of them ended with a batch
    later = here.start(selection={"limit": 1}, fresh=True)
    work_once(later)
    for _ in range(2):
        poll(later)
    later.items.update(attempt=11, done_at=None, worker="w", taken_at=timezone.now())
    age(later)
    assert len(leases.claim(later.pk, "another", ())) == 0  # the run has ended
    JudgeRun.objects.filter(pk=later.pk).update(finished_at=None)
    [item] = leases.claim(later.pk, "another", ())
    assert item.attempt == 12
    later.items.update(attempt=12)
    age(later)
    assert leases.claim(later.pk, "third", ()) == []
    assert "started 10 times" in later.items.get().error


# --- what people do meanwhile ----------------------------------------------------------------------------------------


def test_cancelled_run_cancels_its_batches_and_keeps_what_was_answered(here: Here) -> None:
    here.fake.batches(hold=True, answers=3)
    run = here.start()
    work_once(run)
    runs.cancel(here.mira, run)
    poll(run)
    poll(run)
    assert here.fake.counts()["statuses"] == ["cancelled"]
    assert ModelBatch.objects.get().ended_at is not None
    calls = ModelCall.objects.filter(item__run=run)
    assert (calls.filter(error="").count(), calls.exclude(error="").count(), Judgment.objects.count()) == (3, 1, 0)
    later = started_run(here.mira, here.submission, here.judge)
    before = here.fake.counts()["calls"]
    worked(later)
    assert (later.state, here.fake.counts()["calls"] - before) == ("finished", 1 + 4)


def test_cancelled_run_whose_batch_is_lost_is_left_alone(here: Here) -> None:
    here.fake.batches(hold=True)
    run = here.start()
    work_once(run)
    ModelBatch.objects.update(provider_id="batch-of-another-account")
    poll(run)
    assert (run.state, "cannot be read" in run.stopped) == ("stopped", True)
    runs.cancel(here.mira, run)
    poll(run)
    assert ModelBatch.objects.get().status == "lost"
    assert not batches.is_due(run.pk)


def test_paused_run_submits_nothing_and_continues_after_it_is_resumed(here: Here) -> None:
    here.fake.batches(hold=True)
    run = here.start()
    work_once(run)
    runs.pause(here.mira, run)
    here.fake.batches(hold=False)
    poll(run)
    assert (run.state, here.fake.counts()["sizes"]) == ("paused", [4])
    assert ModelCall.objects.filter(reply__isnull=False).count() == 4  # the results are stored
    runs.resume(here.mira, run)
    work_to_end(run)
    assert_paid_once(here, run)


def test_reconciler_calls_a_worker_when_a_batch_is_due(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FIRST_POLL", 3600.0)
    here.fake.batches(hold=True)
    run = here.start()
    work_once(run)
    JudgeRun.objects.update(called_at=timezone.now() - timedelta(hours=1))
    assert (leases.claim_idle_runs(), batches.claim_due_runs()) == ([], [])
    ModelBatch.objects.update(poll_at=timezone.now())
    assert batches.claim_due_runs() == [run.pk]
    assert batches.claim_due_runs() == []  # a worker was called
    called: list[int] = []
    monkeypatch.setattr(jobs.work_on, "delay", called.append)
    JudgeRun.objects.update(called_at=None)
    jobs.resume_runs()
    assert called == [run.pk]


def test_polls_become_rarer_up_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FIRST_POLL", 2.0)
    monkeypatch.setattr(batches, "LAST_POLL", 60.0)
    assert [batches.compute_pause(polls) for polls in (0, 1, 2, 3, 4, 5, 6, 1000)] == [2, 4, 8, 16, 32, 60, 60, 60]


def test_one_worker_is_called_for_a_run_in_batches(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    monkeypatch.setattr(jobs.work_on, "delay", called.append)
    jobs.call_workers(7, 100, alone=True)
    assert called == [7]
    jobs.call_workers(8, 100)
    assert called == [7, 8, 8, 8, 8]
