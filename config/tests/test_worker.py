"""A real worker on the broker of this test run: a job is done once, and survives the death of who does it."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import pytest
import redis
from django.conf import settings
from kombu import Connection

from config.celery import app
from config.filesystem_broker import return_taken
from config.tests import probe
from config.tests.waiting import wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def queue(tmp_path):
    """A queue of this test alone; one on Redis is forgotten afterwards."""
    name = f"test-{os.getpid()}-{tmp_path.name}"
    yield name
    if settings.REDIS_URL:
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            for key in client.scan_iter(f"*{name}*"):
                client.delete(key)


def connect(tmp_path, redis_url):
    """The broker as the worker of this test sees it, which has settings of its own."""
    if redis_url:
        return Connection(redis_url, transport_options={"global_keyprefix": "webverdict:"})
    options = {"folder": str(tmp_path / "var" / "broker")}
    return Connection(
        "filesystem://localhost//", transport="config.filesystem_broker:Transport", transport_options=options
    )


def send(job, tmp_path, queue, *arguments, redis_url=settings.REDIS_URL):
    with connect(tmp_path, redis_url) as connection:
        job.apply_async((str(tmp_path), *arguments), connection=connection, queue=queue)


@contextmanager
def worker(tmp_path, queue, redis_url=settings.REDIS_URL):
    """A worker in a process group of its own; all of it is gone afterwards."""
    command = [sys.executable, "-m", "celery", "--app", "config.tests.probe", "worker", "--queues", queue]
    command += ["--concurrency", "1", "--without-gossip", "--without-mingle", "--hostname", f"{queue}@test"]
    environment = {**os.environ, "WEBVERDICT_DATA": str(tmp_path / "var"), "REDIS_URL": redis_url}
    with (tmp_path / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log, process_group=0
        )
    try:
        yield process
        process.terminate()
        process.wait(30)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def lines(tmp_path, name):
    return (tmp_path / name).read_text().splitlines() if (tmp_path / name).exists() else []


def test_every_queue_has_a_worker_in_both_profiles_and_judge_runs_have_one_of_their_own():
    app.loader.import_default_modules()
    jobs = [name for name in app.tasks if name.startswith(("annotation.", "judges."))]
    queue_of = {name: app.amqp.router.route({}, name)["queue"].name for name in jobs}
    assert [name for name in jobs if queue_of[name] == "webverdict-judges"] == ["judges.jobs.work_on"]
    compose = (settings.BASE_DIR / "docker-compose.yml").read_text()
    embedded = (settings.BASE_DIR / "config" / "embedded.py").read_text()
    assert sorted(re.findall(r'"--queues", "([\w-]+)"', compose)) == sorted(set(queue_of.values()))
    started = re.findall(r'worker\(("[\w-]+"(?:, "[\w-]+")*)\)', embedded)
    assert sorted(re.findall(r"[\w-]+", " ".join(started))) == sorted(set(queue_of.values()))


def test_a_worker_takes_nothing_from_another_queue(tmp_path, queue):
    send(probe.note, tmp_path, f"{queue}-judges", "for another worker")
    send(probe.note, tmp_path, queue, "for this one")
    with worker(tmp_path, queue):
        wait_until(lambda: lines(tmp_path, "for this one"), "the note")
    with worker(tmp_path, f"{queue}-judges"):
        assert not lines(tmp_path, "for another worker")
        wait_until(lambda: lines(tmp_path, "for another worker"), "the other note")


def test_every_job_is_done_exactly_once(tmp_path, queue):
    for number in range(20):
        send(probe.note, tmp_path, queue, f"note{number}")
    with worker(tmp_path, queue):
        wait_until(lambda: all(lines(tmp_path, f"note{n}") for n in range(20)), "twenty notes")
    assert [lines(tmp_path, f"note{n}") for n in range(20)] == [["done"]] * 20


def test_a_job_whose_process_is_killed_is_done_again(tmp_path, queue):
    send(probe.die_once, tmp_path, queue)
    with worker(tmp_path, queue):
        wait_until(lambda: lines(tmp_path, "survived"), "the second attempt")
    assert lines(tmp_path, "survived") == ["done"]


def test_a_job_of_a_worker_that_was_killed_is_done_by_the_next_one(tmp_path, queue):
    send(probe.hang_once, tmp_path, queue, redis_url="")
    with worker(tmp_path, queue, redis_url="") as process:
        wait_until((tmp_path / "hanging").exists, "the job has begun")
        os.killpg(process.pid, signal.SIGKILL)
    assert return_taken(tmp_path / "var" / "broker") == 1
    with worker(tmp_path, queue, redis_url=""):
        wait_until(lambda: lines(tmp_path, "finished"), "the second attempt")
    assert lines(tmp_path, "finished") == ["done"]
