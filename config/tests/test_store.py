"""A store that accepts connections and never answers does not block the threads of pages."""

import queue
import re
import socket
import threading

import pytest
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from django.conf import settings
from django.core.files.base import ContentFile

from config import s3, store
from config.store import StoreUnavailable, Turns
from config.tests.waiting import wait_until

SILENCE = ReadTimeoutError(endpoint_url="http://store")


def test_the_docker_image_starts_more_threads_than_may_wait_for_the_store():
    command = (settings.BASE_DIR / "Dockerfile").read_text()
    assert int(re.search(r'"--threads", "(\d+)"', command)[1]) >= 2 * store.THREADS


@pytest.fixture
def clock(monkeypatch):
    """Turns read this clock; waiting for a turn moves it on at once."""
    now = [1000.0]
    monkeypatch.setattr(store.time, "monotonic", lambda: now[0])
    return now


def fail(turns, error=SILENCE):
    with pytest.raises(type(error)), turns.turn():
        raise error


def test_store_is_not_called_after_a_time_out_until_one_thread_tries(clock):
    turns = Turns()
    fail(turns)
    with pytest.raises(StoreUnavailable), turns.turn():
        pass
    clock[0] += store.PAUSE
    with turns.turn(), pytest.raises(StoreUnavailable), turns.turn():  # the second would wait beside the one that tries
        pass
    with turns.turn(), turns.turn():  # it answered
        pass


def test_a_failed_try_begins_another_pause(clock):
    turns = Turns()
    fail(turns)
    clock[0] += store.PAUSE
    fail(turns, ConnectTimeoutError(endpoint_url="http://store"))
    clock[0] += store.PAUSE - 1
    with pytest.raises(StoreUnavailable), turns.turn():
        pass


def test_web_server_sends_a_request_to_a_silent_store_twice(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = s3.s3_options(
            bucket="images", endpoint_url=address, access_key="a", secret_key="b", region="r", in_web_server=True
        )
        config = options["client_config"].merge(Config(read_timeout=0.1))
        web = store.Store(**options | {"client_config": config})
        monkeypatch.setattr(web, "_turns", Turns())
        with pytest.raises(ReadTimeoutError):
            web.exists("x")
        silent.setblocking(False)
        for _ in range(2):
            silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_an_answer_that_is_an_error_is_no_silence():
    turns = Turns()
    fail(turns, FileNotFoundError())
    with turns.turn():
        pass


def test_waiting_thread_gets_a_turn_when_another_ends():
    turns, inside, release = Turns(threads=1), threading.Event(), threading.Event()

    def hold():
        with turns.turn():
            inside.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(30)
    threading.Timer(0.05, release.set).start()
    with turns.turn():
        pass
    holder.join()


def test_threads_beyond_the_bound_are_refused_when_the_store_is_slow(clock):
    turns = Turns(threads=2)
    with turns.turn(), turns.turn():
        clock[0] += store.PATIENCE
        with pytest.raises(StoreUnavailable), turns.turn():
            pass


def test_threads_are_not_refused_as_long_as_others_get_their_turn(clock):
    turns, served = Turns(threads=1), queue.SimpleQueue()
    go_on = threading.Semaphore(0)

    def ask():
        try:
            with turns.turn():
                served.put("served")
                go_on.acquire()
        except StoreUnavailable:
            served.put("refused")

    with turns.turn():
        threads = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(turns._changed._waiters) == 2, "both wait")
        clock[0] += 0.9 * store.PATIENCE
    assert served.get(timeout=30) == "served"
    clock[0] += 0.9 * store.PATIENCE
    with turns._changed:
        turns._changed.notify_all()  # the other looks at the clock again
    wait_until(lambda: turns._changed._waiters or not served.empty(), "it waits on or is refused")
    go_on.release(2)
    assert served.get(timeout=30) == "served"


def test_long_transfer_does_not_block_short_ones(clock):
    turns = Turns(threads=2)
    with turns.turn():
        clock[0] += 60
        for _ in range(3):
            with turns.turn():
                pass


def test_a_large_file_of_a_web_server_is_saved_with_the_patience_of_a_worker(bucket, monkeypatch):
    monkeypatch.setattr(store, "LARGE", 10)
    options = {**settings.STORAGES["default"]["OPTIONS"], "impatient": True}
    web = store.Store(**options | {"client_config": options["client_config"].merge(s3.IMPATIENT)})
    fail(web._turns)  # nobody would ask the store now, but a long transfer is no waiting for an answer
    try:
        assert web.save("large", ContentFile(b"x" * 20)) == "large"
        with pytest.raises(StoreUnavailable):
            web.save("small", ContentFile(b"x"))
    finally:
        web._turns._failed = False
    with web.open("large") as file:
        assert file.read() == b"x" * 20


def test_a_large_file_of_a_web_server_is_read_without_a_turn(bucket, monkeypatch):
    monkeypatch.setattr(store, "LARGE", 10)
    options = {**settings.STORAGES["default"]["OPTIONS"], "impatient": True}
    web = store.Store(**options | {"client_config": options["client_config"].merge(s3.IMPATIENT)})
    held = []
    events = web.connection.meta.client.meta.events
    events.register("before-send.s3.GetObject", lambda **_: held.append(len(web._turns._since)))
    for name, size in (("small", 10), ("large", 11)):
        bucket.save(name, ContentFile(b"x" * size))
        with web.open(name) as file:
            assert file.read() == b"x" * size
    assert held == [1, 0]
