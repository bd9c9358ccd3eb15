"""Save files and the rows that name them; if that fails, delete the files at once.

Originals are named by their content, so imports share them. An import that finds a file in the store names it in a row
only later. So every process that saves files holds a shared lock until its rows are committed, and files are deleted
under the exclusive lock. While a process holds it, no other process is between finding a file and naming it, so no
process needs a file without a row. docs/decisions/0027-files-of-failed-imports.md has the details.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from django.conf import settings
from django.db import Error, connection

from annotation import screenshots

logger = logging.getLogger(__name__)

KEY = 0x57565F66696C6573  # of the advisory lock in PostgreSQL
POLL_SECONDS = 0.2
START_SECONDS = 600.0  # deleting the files of a large import from S3 takes minutes
DELETE_SECONDS = 60.0  # waits for running imports; on a full disk they fail soon

Acquire = Callable[[], bool]


@contextmanager
def delete_files_on_failure(
    *, start_within: float = START_SECONDS, delete_within: float = DELETE_SECONDS
) -> Iterator[None]:
    """If the block raises, delete the files that `screenshots.keep_bytes` and `keep_file` saved in it and no row names.

    Commit the rows inside the block. Raises TimeoutError, before anything is saved, if another process deletes files
    for too long. `screenshots.prune` deletes later what cannot be deleted within ``delete_within`` seconds.
    """
    if screenshots.saved_digests.get() is not None:  # the outermost block commits
        yield
        return
    digests: set[str] = set()
    token = screenshots.saved_digests.set(digests)
    try:
        with _lock(exclusive=False, seconds=start_within):
            yield
    except BaseException:
        _delete(digests, delete_within)
        raise
    finally:
        screenshots.saved_digests.reset(token)


@contextmanager
def exclude_imports(seconds: float) -> Iterator[None]:
    """Keep imports from using stored files, while rows that name them, and then the files, are deleted.

    Raises TimeoutError if an import does not end within ``seconds``.
    """
    with _lock(exclusive=True, seconds=seconds):
        yield


def _delete(digests: set[str], seconds: float) -> None:
    if not digests:
        return
    try:
        with _lock(exclusive=True, seconds=seconds):
            screenshots.delete_unnamed(digests)
    except (Error, *screenshots.STORE_ERRORS) as error:
        logger.warning("The files of a failed import stay until the daily clean-up: %s", error)


@contextmanager
def _lock(*, exclusive: bool, seconds: float) -> Iterator[None]:
    # Polling: PostgreSQL queues new shared locks behind a waiting exclusive one.
    until = monotonic() + seconds
    lock = _advisory if connection.vendor == "postgresql" else _flock
    with lock(exclusive) as acquire:
        while not acquire():
            if monotonic() >= until:
                raise TimeoutError(errno.ETIMEDOUT, "Another import is using or deleting files. Try again in a minute")
            sleep(POLL_SECONDS)
        yield


@contextmanager
def _advisory(exclusive: bool) -> Iterator[Acquire]:
    """Lock in the session that also commits the rows: if the session is lost, the rows cannot be committed either."""
    suffix = "" if exclusive else "_shared"
    is_locked = False

    def acquire() -> bool:
        nonlocal is_locked
        is_locked = _call(f"pg_try_advisory_lock{suffix}")
        return is_locked

    try:
        yield acquire
    finally:
        if is_locked:
            try:
                _call(f"pg_advisory_unlock{suffix}")
            except Error:
                connection.close()  # ends the session and so the lock


def _call(function: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [KEY])
        return bool(cursor.fetchone()[0])


@contextmanager
def _flock(exclusive: bool) -> Iterator[Acquire]:
    """Lock for SQLite, whose processes share a machine. It needs no disk space and ends with its process."""
    folder = Path(settings.MEDIA_ROOT)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def acquire() -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        yield acquire
    finally:
        os.close(descriptor)
