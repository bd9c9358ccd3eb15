"""The S3 file store, with limits that protect a web server from a store that hangs.

The clients have time-outs (`config.s3`), but each request would still wait for one. Two rules limit this in a web
server. Few threads wait for the store at once, so that the others serve pages. After a time-out no thread calls the
store for `PAUSE` seconds, and then one thread tries. All others get `StoreUnavailable` at once.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore import exceptions as botocore
from django.core.files.base import File
from s3transfer.exceptions import RetriesExceededError
from storages.backends.s3 import S3Storage

from config.s3 import PATIENT

THREADS = 2  # of one process; half of those that the Dockerfile starts
PATIENCE = 1.0  # seconds; a healthy store answers within some 10 ms, on a busy machine later
PAUSE = 10.0  # seconds
LARGE = 16 * 1024**2  # bytes; a larger transfer takes seconds to minutes and does not show whether the store hangs
SILENT = (botocore.ConnectionError, botocore.HTTPClientError, RetriesExceededError)


class StoreUnavailable(botocore.BotoCoreError):
    """Error: the store does not answer, so it was not called."""

    fmt = "The file store does not answer. Try again in a few seconds."


class Turns:
    """Semaphore for calls of the store: a few threads at once, and only one after a time-out."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._changed = threading.Condition()
        self._since: dict[object, float] = {}
        self._failed = False
        self._again_at = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a free place and take it; raise StoreUnavailable without an answer of the store or a free place."""
        turn = self._take()
        silent = False
        try:
            yield
        except SILENT:
            silent = True
            raise
        finally:
            with self._changed:
                del self._since[turn]
                self._failed, self._again_at = silent, time.monotonic() + PAUSE
                self._changed.notify()

    def _take(self) -> object:
        turn = object()
        with self._changed:
            while True:
                now = time.monotonic()
                if self._failed and now < self._again_at:
                    raise StoreUnavailable
                if len(self._since) < self._threads:
                    self._since[turn] = now
                    self._again_at = now + PAUSE  # for the one thread that tries after a failure
                    return turn
                until = max(self._since.values()) + PATIENCE  # as long as others get their turn, the store answers
                if now >= until:
                    raise StoreUnavailable
                self._changed.wait(until - now)


class Store(S3Storage):
    """The store. In a web server ``impatient`` is true: opening a file reads it completely, within one turn.

    Large files are saved and read outside of the turns: two of them would block every screenshot meanwhile.
    """

    _turns = Turns()  # shared by the process, because each thread may create its own store

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.impatient:
            self.transfer_config = TransferConfig(num_download_attempts=1)

    def get_default_settings(self) -> dict[str, Any]:
        return {**super().get_default_settings(), "impatient": False}

    def exists(self, name: str) -> bool:
        with self._turn():
            return bool(super().exists(name))

    def delete(self, name: str) -> None:
        with self._turn():
            super().delete(name)

    def _open(self, name: str, mode: str = "rb") -> File:
        with self._turn():
            file = super()._open(name, mode)
            if self.impatient and "r" in mode and file.size <= LARGE:
                file.open()
            return file

    def _save(self, name: str, content: File) -> str:
        if self.impatient and content.size > LARGE:
            return self._copy_for_long_transfer()._save(name, content)
        with self._turn():
            return str(super()._save(name, content))

    def _copy_for_long_transfer(self) -> Store:
        """Return a copy of this store for one long transfer, with the time-outs of a worker and without turns."""
        twin = copy.copy(self)
        twin.impatient, twin.client_config = False, self.client_config.merge(PATIENT)
        twin._connections, twin._bucket = threading.local(), None
        return twin

    def _turn(self) -> Any:
        if not self.impatient:
            return nullcontext()
        _ = self.connection  # loading the client for a thread takes longer than a store may
        return self._turns.turn()
