"""Several workers at one run, and runs that are changed while somebody works on them."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connections
from django.utils import timezone

from annotation.models.events import digest
from annotation.tests import testing
from config.tests.waiting import wait_until
from judges import runs
from judges.models import JudgeRun, Judgment, ModelCall, ModelTerms
from judges.scorer import Score
from judges.tests.builders import defined_judge, started_run, worked
from judges.tests.tiny import tiny_scorer
from judges.working import leases, worker
from judges.working.call_log import CallTotals
from judges.working.leases import collect_outcomes
from judges.working.worker import work

pytestmark = pytest.mark.django_db(transaction=True)

SUCCESS = {"reply": "All was done, so: success"}
HELD = {"name": "held", "match": "Judge.", "hold": True, "reply": "At last: success"}


@pytest.fixture
def here(settings, fake, tmp_path, monkeypatch):
    """Twelve trajectories with a picture each; a run is looked at ten times a second."""
    monkeypatch.setattr(worker, "LOOK", 0.1)
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(SUCCESS)
    with tiny_scorer():
        submission = testing.submission(tmp_path, trajectories=12, steps=1)
        people = testing.cast(submission)
        yield submission, people["mira"], defined_judge("tiny", scorer="tiny", concurrency=2)


def in_a_thread(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    finally:
        connections.close_all()


@contextmanager
def working_on(run, worker="w", seconds=60.0):
    """A worker in a thread; the block gets the future of its answer, and ends when it has ended."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(in_a_thread, work, run.pk, worker, seconds=seconds)


def test_two_workers_share_a_run_and_every_item_has_one_judgment(here, fake):
    submission, mira, judge = here
    run = started_run(mira, submission, judge, repetitions=2)
    fake.says(HELD, SUCCESS)
    with working_on(run, "one") as first, working_on(run, "two") as second:
        # Each has taken what it may hold, and nobody has ended anything.
        wait_for_verdicts(fake, 4)
        taken = list(run.items.exclude(worker="").values_list("worker", flat=True))
        assert (taken.count("one"), taken.count("two")) == (2, 2)
        fake.release()
        assert [first.result(60), second.result(60)] == [False, False]
    run.refresh_from_db()
    assert run.state == "finished"
    assert run.items.filter(done_at__isnull=False).count() == Judgment.objects.count() == 24
    assert set(run.items.values_list("worker", flat=True)) == {"one", "two"}
    assert fake.counts()["calls"] == 48
    assert submission.events.filter(kind="judge_run_finished").count() == 1


def test_a_run_waits_for_a_store_that_is_away_and_fails_no_item(here, settings, fake, monkeypatch, caplog):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    monkeypatch.setattr(worker, "STORE_PAUSES", [0.05] * 1000)
    store = Path(settings.MEDIA_ROOT)
    store.rename(store.with_name("away"))
    store.touch()  # every path in the store is an error of the system, and not a missing file
    with working_on(run) as ended:
        wait_until(lambda: "waits for the file store" in caplog.text, "an item waits")
        store.unlink()
        store.with_name("away").rename(store)
        assert ended.result(60) is False
    run.refresh_from_db()
    assert (run.state, run.retried_at) == ("finished", None)
    assert Judgment.objects.filter(verdict=1).count() == 12
    assert fake.counts()["calls"] == 24  # two for an item, none again


def test_an_item_that_has_waited_for_the_store_states_its_cost_once(here, settings, tmp_path, monkeypatch, caplog):
    """The reply that came before the wait is in the sum once, though it is read again."""
    _, mira, _ = here
    submission = testing.submission(tmp_path / "one", trajectories=1, steps=1)
    testing.cast(submission)
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)
    run = started_run(mira, submission, defined_judge("last", scorer="tiny", parameters={"last": True}))
    monkeypatch.setattr(worker, "STORE_PAUSES", [0.05] * 1000)
    store = Path(settings.MEDIA_ROOT)
    store.rename(store.with_name("away"))
    store.touch()
    with working_on(run) as ended:
        wait_until(lambda: "waits for the file store" in caplog.text, "the item waits")
        store.unlink()
        store.with_name("away").rename(store)
        assert ended.result(60) is False
    calls = ModelCall.objects.filter(hit=False)
    assert (calls.count(), ModelCall.objects.filter(hit=True).exists()) == (2, True)
    assert Judgment.objects.get().cost == sum(call.cost for call in calls) > 0


def test_an_item_whose_store_stays_away_is_opened_again_once(here, settings, fake, monkeypatch):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    monkeypatch.setattr(worker, "STORE_PAUSES", [])
    store = Path(settings.MEDIA_ROOT)
    store.rename(store.with_name("away"))
    store.touch()
    assert work(run.pk, "w", seconds=60) is False
    run.refresh_from_db()
    assert run.retried_at is not None
    assert run.items.filter(failed_at__isnull=False, passing=True).count() == 12
    assert fake.counts()["calls"] == 0


def test_a_lost_file_fails_its_item_at_once(here, settings, fake):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    shutil.rmtree(Path(settings.MEDIA_ROOT) / "originals")
    assert work(run.pk, "w", seconds=60) is False
    assert run.items.filter(failed_at__isnull=False, passing=False).count() == 12


def test_many_who_take_at_once_take_different_items(here):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    gate = threading.Barrier(6)

    def take_two(number):
        gate.wait()
        return [leases.claim(run.pk, f"w{number}", ()) for _ in range(2)][-1]

    with ThreadPoolExecutor(6) as pool:
        taken = [item.pk for held in pool.map(lambda n: in_a_thread(take_two, n), range(6)) for item in held]
    assert len(taken) == len(set(taken)) == 12
    assert leases.claim(run.pk, "late", ()) == []


def test_of_two_who_settle_the_same_item_one_succeeds(here):
    submission, mira, judge = here
    run = started_run(mira, submission, judge, selection={"limit": 1})
    (item,) = leases.claim(run.pk, "w", ())
    gate = threading.Barrier(4)

    def settle():
        gate.wait()
        return leases.settle(item, "w", Score(None, unscored="x"), CallTotals(), "f")

    with ThreadPoolExecutor(4) as pool:
        settled = [future.result() for future in [pool.submit(in_a_thread, settle) for _ in range(4)]]
    assert sorted(settled) == [False, False, False, True]
    assert Judgment.objects.count() == 1


def test_a_pause_lets_what_was_begun_end_and_takes_nothing_more(here, fake):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    fake.says(HELD, SUCCESS)
    with working_on(run) as worker:
        wait_for_verdicts(fake, 2)
        runs.pause(mira, run)
        fake.release()
        assert worker.result(60) is False
    run.refresh_from_db()
    assert run.state == "paused"
    now = runs.load_progress(run)
    assert (now.done, now.running, now.failed) == (2, 0, 0)
    assert run.items.filter(taken_at__isnull=True).count() == 10
    fake.says(SUCCESS)
    runs.resume(mira, run)
    worked(run)
    assert run.state == "finished"
    assert fake.counts()["calls"] == 24


def test_a_cancelled_run_is_dropped_and_what_was_on_its_way_is_kept(here, fake):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    fake.says(HELD, SUCCESS)
    with working_on(run) as worker:
        wait_for_verdicts(fake, 2)
        runs.cancel(mira, run)
        wait_until(lambda: timezone.now() > run.cancelled_at + timedelta(seconds=1), "ten looks later")
        fake.release()
        assert worker.result(60) is False
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert Judgment.objects.count() == 0
    assert not run.items.filter(taken_at__isnull=False).exists()
    assert ModelCall.objects.filter(item__run=run, reply__isnull=False).count() == fake.counts()["calls"] == 4


def test_the_event_of_a_cancellation_has_the_digest_and_nothing_is_settled_behind_it(here):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    first, second = leases.claim(run.pk, "w", ()) + leases.claim(run.pk, "v", ())
    said = Score(None, unscored="No status."), CallTotals(), "f"
    assert leases.settle(first, "w", *said)
    runs.cancel(mira, run)
    event = submission.events.get(kind="judge_run_cancelled").payload
    assert (event["verdicts"], event["unscored"], event["failed"], event["waiting"]) == ({}, 1, 0, 11)
    assert not leases.settle(second, "v", *said)
    run.items.filter(pk=second.pk).update(worker="v")  # taken at the very moment
    assert not leases.settle(second, "v", *said)
    assert not leases.fail(second, "v", "The endpoint did not answer.")
    assert event["judgments"] == digest(collect_outcomes(run.pk))


def wait_for_verdicts(fake, number):
    """Return when so many verdicts have been asked for, and are held."""
    wait_until(lambda: fake.counts()["by_rule"].get("held", 0) >= number, f"{number} verdicts are asked for")


def test_a_budget_that_was_raised_counts_at_once_for_who_is_still_at_work(here, fake):
    submission, mira, _ = here
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)  # a call costs 0.003
    judge = defined_judge("thrifty", scorer="tiny", concurrency=2)
    run = started_run(mira, submission, judge, selection={"limit": 2}, max_cost=Decimal("0.006"))
    fake.says({"name": "held", "match": "Look.", "hold": True, "reply": "A page."}, SUCCESS)
    with working_on(run) as worker:
        wait_for_verdicts(fake, 2)
        # Somebody else has spent the budget and stopped the run; it goes on while these two are still asked.
        JudgeRun.objects.filter(pk=run.pk).update(stopped="The budget is spent.")
        runs.resume(mira, run, Decimal(1))
        fake.release()
        worker.result(60)
    run.refresh_from_db()
    assert (run.state, run.stopped) == ("finished", "")
    assert submission.events.filter(kind="judge_run_stopped").count() == 0


def test_a_budget_that_a_run_is_given_ends_the_shifts_that_know_of_none(here, fake):
    submission, mira, judge = here
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)
    run = started_run(mira, submission, judge)
    fake.says(HELD, SUCCESS)
    with working_on(run) as worker:
        wait_for_verdicts(fake, 2)
        JudgeRun.objects.filter(pk=run.pk).update(max_cost=Decimal(1))  # between two looks at its state
        wait_until(lambda: timezone.now() > run.created_at + timedelta(seconds=2), "two seconds later")
        fake.release()
        assert worker.result(60) is True
    assert Judgment.objects.count() == 2


def test_items_that_others_have_taken_are_dropped_and_judged_once(here, fake, settings):
    settings.JUDGE_SILENCE_SECONDS = 3
    submission, mira, judge = here
    run = started_run(mira, submission, judge, selection={"limit": 2})
    fake.says(HELD, SUCCESS)
    with working_on(run, "slow") as slow:
        wait_for_verdicts(fake, 2)
        # As if it had been silent: its machine slept.
        run.items.update(worker="quick", attempt=2)
        fake.release()
        slow.result(60)
    assert Judgment.objects.count() == 0
    run.items.update(heartbeat_at=timezone.now() - timedelta(seconds=10))
    fake.says(SUCCESS)
    before = fake.counts()["calls"]
    worked(run, worker="third")
    assert fake.counts()["calls"] == before, "the slow one's replies are in the cache"
    assert set(run.items.values_list("attempt", "worker", "judgment__verdict")) == {(3, "third", 1)}


def test_a_worker_reports_that_it_lives_and_is_not_taken_for_dead(here, fake, settings):
    settings.JUDGE_SILENCE_SECONDS = 1
    submission, mira, judge = here
    run = started_run(mira, submission, judge, selection={"limit": 1})
    fake.says(HELD, SUCCESS)
    with working_on(run) as worker:
        wait_for_verdicts(fake, 1)
        began = run.items.get().heartbeat_at
        wait_until(lambda: run.items.get().heartbeat_at > began + timedelta(seconds=1), "a heartbeat")
        assert leases.claim(run.pk, "another", ()) == []
        JudgeRun.objects.update(called_at=None)
        assert leases.claim_idle_runs() == []
        fake.release()
        worker.result(60)
    assert run.items.get().attempt == 1


def test_a_worker_whose_time_is_over_ends_what_it_began_and_leaves_the_rest(here, fake):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    assert worked(run, seconds=0.0) is True
    assert Judgment.objects.count() == 0
    fake.says(HELD, SUCCESS)
    with working_on(run, seconds=0.5) as worker:
        wait_for_verdicts(fake, 2)
        # Two items are held; their verdicts come after the time is over.
        wait_until(lambda: timezone.now() > run.items.first().taken_at + timedelta(seconds=1), "a second later")
        fake.release()
        assert worker.result(60) is True
    assert Judgment.objects.count() == 2
    assert worked(run) is False


def test_at_most_as_many_calls_as_the_judge_allows_are_in_flight(here, fake):
    submission, mira, judge = here
    fake.says(SUCCESS, latency=0.05)
    worked(started_run(mira, submission, judge))
    assert fake.counts()["peak"] == 2


def test_an_item_that_ends_every_worker_fails_at_last_and_the_run_ends(here, fake, settings):
    submission, mira, judge = here
    run = started_run(mira, submission, judge, selection={"limit": 2})
    first, second = run.items.all()
    long_ago = timezone.now() - timedelta(hours=1)
    for attempt in range(1, 11):
        (held, *_) = leases.claim(run.pk, f"w{attempt}", ())
        assert (held.pk, held.attempt) == (first.pk, attempt)
        run.items.filter(pk=first.pk).update(heartbeat_at=long_ago)  # it was killed
    worked(run)
    assert run.state == "finished"
    first.refresh_from_db()
    assert (first.attempt, first.done_at, "started 10 times" in first.error) == (10, None, True)
    assert Judgment.objects.get().item == second
    assert runs.retry_failed(mira, run) == 1
    worked(run)
    assert Judgment.objects.count() == 2


def test_a_run_whose_last_item_is_lost_for_good_is_ended_by_who_finds_it(here, fake):
    submission, mira, judge = here
    run = started_run(mira, submission, judge, selection={"limit": 1})
    long_ago = timezone.now() - timedelta(hours=1)
    run.items.update(worker="w", attempt=10, taken_at=long_ago, heartbeat_at=long_ago)
    assert worked(run) is False
    assert (run.state, runs.load_progress(run).failed) == ("finished", 1)
    assert submission.events.filter(kind="judge_run_finished").count() == 1
