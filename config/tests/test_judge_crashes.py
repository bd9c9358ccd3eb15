"""Workers, Redis and PostgreSQL die in the middle of a judge run; it ends as if nothing had been.

Real processes on servers of their own: PostgreSQL and Redis when the tests run on PostgreSQL, else SQLite and the
broker of files. The fake endpoint counts what would have been paid.
"""

import os

import pytest
from django.conf import settings

from config.tests.instance import EVERYTHING_ELSE, JUDGES, Instance, kill
from config.tests.judge_run import begin, check
from config.tests.judging import CONCURRENCY
from config.tests.servers import own_postgres, own_redis
from config.tests.waiting import wait_until
from judges.tests.builders import fake_endpoint

SILENCE = 4  # seconds: a worker on a busy machine must not count as dead
LATENCY = 0.05  # seconds, so that there are calls in flight
# 300 trajectories are 6,600 calls, which take a minute or two: JUDGE_CRASH_TRAJECTORIES=300
TRAJECTORIES = int(os.environ.get("JUDGE_CRASH_TRAJECTORIES", "40"))


@pytest.fixture(scope="module")
def model():
    with fake_endpoint(LATENCY) as fake:
        yield fake


@pytest.fixture(scope="module")
def postgres():
    with own_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def broker():
    with own_redis() as server:
        yield server


@pytest.fixture(scope="module")
def instance(request, tmp_path_factory, model):
    """In the profile of this test run, with a housekeeper: the ordinary worker with its scheduler."""
    further = {"JUDGE_ENDPOINTS": model.url, "JUDGE_SILENCE_SECONDS": str(SILENCE)}
    made = Instance(tmp_path_factory.mktemp("instance"), further=further)
    if settings.PRODUCTION:
        made.database_url = request.getfixturevalue("postgres").url
        made.redis_url = request.getfixturevalue("broker").url
    made.migrate()
    with made.worker("housekeeper", EVERYTHING_ELSE, "--beat"):
        yield made


def test_what_a_killed_worker_held_is_finished_by_another_one(instance, model):
    run = begin(instance, model, "killed", 15, 4, repetitions=2)
    model.holds(after=run.calls // 3)
    with instance.worker("first", JUDGES) as first, instance.worker("second", JUDGES):
        wait_until(lambda: run.at_work == 2, "both workers have begun")
        model.wait(held=1)
        kill(first)
        assert not run.finished
        model.release()
        run.wait_for_the_end()
    check(run, model, lost=CONCURRENCY)


def test_a_long_run_is_resumed_after_a_kill_and_pays_nothing_twice_but_what_was_in_flight(instance, model):
    run = begin(instance, model, "long", TRAJECTORIES, 20)
    assert run.calls == TRAJECTORIES * 22
    model.holds(after=run.calls // 2)
    with instance.worker("first", JUDGES) as first:
        model.wait(held=1)
        kill(first)
    assert not run.finished
    model.release()
    with instance.worker("second", JUDGES):
        run.wait_for_the_end()
    check(run, model, lost=CONCURRENCY)


@pytest.mark.postgresql
def test_a_run_outlives_a_redis_that_forgets_everything(instance, model, broker):
    run = begin(instance, model, "flushed", 30, 4)
    model.holds(after=run.calls // 4)
    with instance.worker("first", JUDGES) as first:
        model.wait(held=1)
        broker.flush()
        model.holds(after=run.calls // 4)
        model.wait(calls=run.calls // 2 + 1, held=1)  # nobody has to be called for what is running
        broker.stop()
        kill(first)
        broker.start()
    assert not run.finished
    model.release()
    with instance.worker("second", JUDGES):  # nothing in the queue tells it
        run.wait_for_the_end()
    check(run, model, lost=CONCURRENCY)


@pytest.mark.postgresql
def test_a_run_outlives_a_crash_of_postgresql(instance, model, postgres):
    run = begin(instance, model, "restarted", 30, 4)
    model.holds(after=run.calls // 3)
    with instance.worker("first", JUDGES), instance.worker("second", JUDGES):
        wait_until(lambda: run.at_work == 2, "both workers have begun")
        model.wait(held=1)
        postgres.stop("immediate")
        assert not postgres.running()
        model.release()  # the replies find no database
        postgres.start()
        assert not run.finished
        run.wait_for_the_end()
    check(run, model, lost=2 * CONCURRENCY)
