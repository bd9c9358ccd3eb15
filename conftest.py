"""What every test stands on: nothing outside a temporary folder is written, Chromium is found, skips are explained."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
import redis
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase
from playwright.sync_api import expect

from annotation.models import triggers
from annotation.tests import shared_rows
from tools.chromium import ChromiumMissingError, find_chromium

DATABASE_FIXTURES = {"db", "transactional_db", "live_server"}
REPEATED = Path(__file__).parent / "config" / "tests" / "repeated_on_postgresql.txt"
DATA = Path(tempfile.mkdtemp(prefix="webverdict-test-"))
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(DATA / "metrics")
# The same for all processes of a run, another one for each run: people test at the same time on one server.
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"pid{os.getpid()}")[:12]

# Playwright's loop runs in the thread of the test, where Django then refuses every query.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


# How long a browser may take to show something before that is a failure: with 15 s, one of 150 tests failed on a
# machine that had seven processes for each core.
expect.set_options(timeout=30_000)

# Property tests are about results: on a busy machine the usual limit of 200 ms for an example fails for no fault.
hypothesis.settings.register_profile("webverdict", deadline=None)
hypothesis.settings.load_profile("webverdict")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true"}


def examples(most: int, usual: int = 200) -> int:
    """Return how many examples a test tries: ``most`` if `tools.checks` says so, elsewhere at most ``usual``."""
    return most if os.environ.get("LONG_TESTS") else min(most, usual)


def pytest_configure(config: pytest.Config) -> None:
    """Point the settings at the temporary folder before the first test; they are those of the user otherwise."""
    for name in ("static", "images", "broker"):
        (DATA / name).mkdir()
    if hasattr(config.option, "output"):
        config.option.output = str(DATA / "browser")  # where pytest-playwright keeps traces; else in the checkout
    settings.DATA = DATA
    settings.REQUIRE_MFA = "off"  # as in the embedded profile, for the operators of tests on PostgreSQL
    settings.STATIC_ROOT = DATA / "static"
    settings.MEDIA_ROOT = DATA / "images"
    settings.BROKER_FOLDER = DATA / "broker"
    # Hashed names need a collectstatic first, and hashing passwords slowly is of no use here.
    settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.UNDO_SECONDS = 0  # most tests look at a label right after the submit; those of undoing set another value
    database = settings.DATABASES["default"]
    sqlite = database["ENGINE"].endswith("sqlite3")
    database.setdefault("TEST", {})["NAME"] = str(DATA / "test.sqlite3") if sqlite else f"test_webverdict_{RUN}"
    broker = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    if settings.REDIS_URL:
        broker["global_keyprefix"] = f"webverdict-test-{RUN}:"
        for cache in settings.CACHES.values():
            cache["KEY_PREFIX"] = f"webverdict-test-{RUN}"
    else:
        settings.CACHES["shared"]["LOCATION"] = DATA / "state"
        broker["folder"] = str(DATA / "broker")


def pytest_unconfigure(config: pytest.Config) -> None:
    if settings.REDIS_URL and not hasattr(config, "workerinput"):
        _forget_redis_keys(settings.REDIS_URL)
    shutil.rmtree(DATA, ignore_errors=True)


def _forget_redis_keys(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(f"webverdict-test-{RUN}*"):
            client.delete(key)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of PostgreSQL belong to the run on PostgreSQL (DATABASE_URL); elsewhere they are left out, and counted.
    All that may touch the database are marked `servers`, and those that depend on the engine also `repeated`.

    A test in a browser that fails is tried once more: a loaded machine can be slower than any bound. Each second
    try is named in the last lines; one that comes up again and again is a fault to look for.
    """
    # Playwright keeps an event loop running in the thread of its tests, and no other can be started there afterwards.
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    named, once = read_repeated(), read_repeated(excluded=True)
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))
        _mark_engine(item, named, once)
    if os.environ.get("LONG_TESTS") != "1":
        _leave_out("long", config, items)
    if connection.vendor == "postgresql":
        return
    _leave_out("postgresql", config, items)


def _leave_out(marker: str, config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.get_closest_marker(marker)]
    items[:] = [item for item in items if not item.get_closest_marker(marker)]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Keep the thousands of collected tests out of every later garbage collection."""
    gc.freeze()


def _mark_engine(item: pytest.Item, named: set[str], once_enough: set[str]) -> None:
    """Mark a test that may query the database, and one that depends on its engine; `make test-long` repeats both."""
    once = item.get_closest_marker("once")
    of_engine = item.get_closest_marker("postgresql") or (item.get_closest_marker("servers") and not once)
    database, fixtures = item.get_closest_marker("django_db"), set(getattr(item, "fixturenames", ()))
    commits = "transactional_db" in fixtures or (database and database.kwargs.get("transaction"))
    # pytest-django refuses every query of the others.
    queries = (database or DATABASE_FIXTURES & fixtures) and not once
    if not (queries or of_engine):
        return
    item.add_marker(pytest.mark.servers)
    module, function = item.nodeid.split("::")[0], item.nodeid.split("[")[0]
    depends = (commits and module not in once_enough) or module in named or function in named
    if of_engine or depends or os.environ.get("LONG_TESTS") == "1":
        item.add_marker(pytest.mark.repeated)


def read_repeated(*, excluded: bool = False) -> set[str]:
    """Return the modules and tests (module::function) that `make test` repeats on PostgreSQL, or does not repeat."""
    lines = REPEATED.read_text(encoding="utf-8").splitlines()
    named = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    return {name.removeprefix("not ") for name in named if name.startswith("not ") == excluded}


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not item.get_closest_marker("browser"):
        return
    try:
        find_chromium()
    except ChromiumMissingError as missing:
        if in_ci():
            pytest.fail(f"CI must run the browser tests. {missing}", pytrace=False)
        pytest.skip(str(missing))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Every reason of a skip, once, and every test that was tried twice, in the last lines."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_line(f"tried twice: {report.nodeid}")
    counts: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else "?"
        counts[reason] = counts.get(reason, 0) + 1
    for reason, count in sorted(counts.items()):
        terminalreporter.write_line(f"skipped {count}: {reason}")


@pytest.fixture(scope="session")
def base_url() -> None:
    """Tests name the address of their server. pytest-playwright's own fixture is a method, which pytest deprecates."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    arguments = ["--disable-gpu", "--disable-background-networking"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses its sandbox to root
    return {**browser_type_launch_args, "executable_path": find_chromium(), "args": arguments}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """The screen that the desk is designed for."""
    return {**browser_context_args, "viewport": {"width": 1440, "height": 900}, "locale": "en-US"}


@pytest.fixture
def stacked_rows(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> None:
    """Let the rows that the test shares with others stand before its own savepoint begins."""
    with django_db_blocker.unblock():
        shared_rows.STACK.require(shared_rows.find_shared(request))


@pytest.fixture
def _django_db_helper(stacked_rows: None, _django_db_helper: None) -> None:
    """That of pytest-django, which opens the savepoint, after `stacked_rows`."""


@pytest.fixture(autouse=True, scope="session")
def roll_back_shared_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    _roll_back_shared_rows(request)


def _roll_back_shared_rows(request: pytest.FixtureRequest) -> None:
    if shared_rows.STACK.layers:
        with request.getfixturevalue("django_db_blocker").unblock():
            shared_rows.STACK.require([])


@pytest.fixture(scope="session")
def shared_rows_ended(request: pytest.FixtureRequest) -> None:
    _roll_back_shared_rows(request)


@pytest.fixture(scope="session")
def playwright(shared_rows_ended: None, playwright: Any) -> Any:
    """Roll back before pytest-playwright: its event loop hides the open transaction from Django."""
    return playwright


@pytest.fixture(autouse=True, scope="session")
def append_only_rows_can_be_flushed() -> Iterator[None]:
    """On SQLite a flush deletes row by row, which the triggers refuse: they are taken away for the flush alone.

    On PostgreSQL it truncates, which takes half a second for 60 small tables; without triggers, deleting takes 0.01 s.
    """
    flush = TransactionTestCase._fixture_teardown

    def flush_without_triggers(case: TransactionTestCase) -> None:
        editor = SimpleNamespace(connection=connection)
        triggers.remove(None, editor)
        try:
            flush(case)
        finally:
            triggers.install(None, editor)

    def delete_without_triggers(_operations: Any, _style: Any, tables: Iterable[str], **_options: Any) -> list[str]:
        quoted = map(connection.ops.quote_name, tables)
        return ["SET LOCAL session_replication_role = replica", *(f"DELETE FROM {table}" for table in quoted)]

    with pytest.MonkeyPatch.context() as patch:
        if connection.vendor == "sqlite":
            patch.setattr(TransactionTestCase, "_fixture_teardown", flush_without_triggers)
        else:
            patch.setattr(type(connection.ops), "sql_flush", delete_without_triggers)
        yield
