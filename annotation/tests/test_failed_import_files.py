"""The files of a failed import are deleted at once, except files that another import uses."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection, connections

from annotation import file_cleanup, ingest, screenshots, workflow
from annotation.models import Benchmark, Redaction, Screenshot, Submission
from annotation.tests import testing
from annotation.tests.full_disk import find_originals, small_disk

LIMIT = 120  # seconds until a thread that waits for the other gives up

Progress = Callable[[int, int], None]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


def run_import(package: Path, agent: str, progress: Progress = lambda done, total: None) -> Submission | None:
    shops = Benchmark.objects.get(slug="shops")
    return ingest.import_submission(package, benchmark=shops, agent_name=agent, progress=progress)[1]


class AfterFiles:
    """Progress that calls ``act`` once the files of ``number`` of ``total`` trajectories are stored."""

    def __init__(self, total: int, number: int, act: Callable[[], object]) -> None:
        self.calls, self.at, self.act = 0, total + number, act  # the check reports each trajectory first

    def __call__(self, done: int, total: int) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.act()


def fail() -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.django_db
def test_failed_import_leaves_no_files_when_the_disk_is_full(tmp_path: Path, settings: Any) -> None:
    testing.benchmark(20)
    package = testing.write_submission(tmp_path / "package", trajectories=20)  # 60 images: 240 KiB in pages of 4 KiB
    small = testing.write_submission(tmp_path / "small", trajectories=1)
    with small_disk(settings, tmp_path / "disk", kibibytes=40):
        with pytest.raises(ingest.ImportStopped, match="No space left on device"):
            run_import(package, "Large")

        assert find_originals() == []
        assert run_import(small, "Small") is not None  # there is room again


@pytest.mark.django_db
def test_failed_import_keeps_files_of_earlier_imports(tmp_path: Path) -> None:
    testing.benchmark(2)
    run_import(testing.write_submission(tmp_path / "one", trajectories=1), "Earlier")
    before = find_originals()
    assert before
    both = testing.write_submission(tmp_path / "both", trajectories=2)

    with pytest.raises(ingest.ImportStopped):
        run_import(both, "Later", AfterFiles(2, 2, fail))

    assert find_originals() == before


@pytest.mark.django_db
def test_import_that_fails_in_its_transaction_leaves_no_files(tmp_path: Path) -> None:
    testing.benchmark(1)
    package = testing.write_submission(tmp_path / "package", trajectories=1)

    with refuse("annotation_trajectory"), pytest.raises(OperationalError):
        run_import(package, "Agent")

    assert find_originals() == []


@pytest.mark.django_db
def test_failed_redaction_leaves_no_file(submission: Submission, people: dict[str, Any]) -> None:
    before = find_originals()
    shown = Screenshot.objects.earliest("pk")

    with refuse("annotation_redaction"), pytest.raises(OperationalError):
        workflow.redact(people["mira"], submission, shown, [[1, 2, 3, 4]], "A face.")

    assert not Redaction.objects.exists()
    assert find_originals() == before


@pytest.mark.django_db(transaction=True)
def test_failed_import_takes_no_file_from_an_import_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failing one writes the files of the first trajectory, the other one finds them there."""
    testing.benchmark(2)
    package = testing.write_submission(tmp_path / "package", trajectories=2)
    first_written, all_found, failing_is_done = threading.Event(), threading.Event(), threading.Event()

    def fail_after_the_other_has_found() -> None:
        first_written.set()
        assert all_found.wait(LIMIT)
        fail()

    def sleep(seconds: float) -> None:  # the failing import cannot delete yet
        failing_is_done.set()
        threading.Event().wait(seconds)

    def failing() -> None:
        try:
            with pytest.raises(ingest.ImportStopped):
                run_import(package, "Failing", AfterFiles(2, 1, fail_after_the_other_has_found))
        finally:
            failing_is_done.set()
            first_written.set()
            connections.close_all()

    def finds() -> None:
        all_found.set()
        assert failing_is_done.wait(LIMIT)

    def other() -> Submission | None:
        try:
            assert first_written.wait(LIMIT)
            return run_import(package, "Other", AfterFiles(2, 2, finds))
        finally:
            all_found.set()
            connections.close_all()

    monkeypatch.setattr(file_cleanup, "sleep", sleep)
    with ThreadPoolExecutor(2) as pool:
        failed, made = pool.submit(failing), pool.submit(other)
        failed.result()
        assert made.result() is not None

    digests = sorted(Screenshot.objects.values_list("sha256", flat=True))
    assert len(digests) == 6
    assert find_originals() == digests


@pytest.mark.django_db(transaction=True)
def test_two_failed_imports_of_the_same_files_leave_none(tmp_path: Path) -> None:
    testing.benchmark(1)
    package = testing.write_submission(tmp_path / "package", trajectories=1)
    meeting = threading.Barrier(2, timeout=LIMIT)

    def fail_together() -> None:
        meeting.wait()
        fail()

    def failing(agent: str) -> None:
        try:
            with pytest.raises(ingest.ImportStopped):
                run_import(package, agent, AfterFiles(1, 1, fail_together))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(failing, ["One", "Two"]))

    assert find_originals() == []


@pytest.mark.django_db(transaction=True)
def test_killed_import_leaves_its_files_to_the_daily_job_and_its_lock_to_others(tmp_path: Path) -> None:
    testing.benchmark(2)
    package = testing.write_submission(tmp_path / "package", trajectories=2)
    connections.close_all()  # each process connects by itself
    child = os.fork()
    if child == 0:
        try:
            run_import(package, "Killed", AfterFiles(2, 2, lambda: os.kill(os.getpid(), signal.SIGKILL)))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    assert len(find_originals()) == 6
    assert screenshots.prune(timedelta(days=1)) == 0
    part = testing.write_submission(tmp_path / "part", trajectories=1)
    with pytest.raises(ingest.ImportStopped):
        run_import(part, "Failing", AfterFiles(1, 1, fail))
    assert len(find_originals()) == 3  # what the failed one shared is gone: nothing held the lock any more
    assert screenshots.prune(timedelta(days=-1)) == 3


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_import_commits_nothing_when_the_session_with_its_lock_is_lost(tmp_path: Path) -> None:
    testing.benchmark(1)
    package = testing.write_submission(tmp_path / "package", trajectories=1)

    def end_session() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 30000)", [pid])  # waits until it has ended
                assert cursor.fetchone() == (True,)
        finally:
            other.close()

    with pytest.raises((OperationalError, InterfaceError)):
        run_import(package, "Agent", AfterFiles(1, 1, end_session))

    assert not Submission.objects.exists()
    assert find_originals() == []


@pytest.mark.django_db
def test_import_waits_no_longer_than_allowed_while_files_are_deleted() -> None:
    """With another session or open file, as another process has."""
    ready, end = threading.Event(), threading.Event()

    def delete() -> None:
        try:
            with file_cleanup._lock(exclusive=True, seconds=LIMIT):
                ready.set()
                assert end.wait(LIMIT)
        finally:
            ready.set()
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(delete)
        assert ready.wait(LIMIT)
        try:
            with pytest.raises(TimeoutError), file_cleanup.delete_files_on_failure(start_within=0):
                pytest.fail("began beside a deletion")
        finally:
            end.set()
        deleting.result()
    with file_cleanup.delete_files_on_failure(start_within=0):
        pass


def refuse(table: str) -> Any:
    """Let the database be away for rows of one table."""

    def away(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(f'INSERT INTO "{table}"'):
            raise OperationalError("the server closed the connection")
        return execute(sql, params, many, context)

    return connection.execute_wrapper(away)
