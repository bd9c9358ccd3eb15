"""Process files uploaded through the page or the API: each is read by one worker at a time, and finished once.

The row decides, not the message queue: a worker that takes it gets the number of its try, and can change nothing once
another worker has taken it. The callers read the files: packages in `annotation.jobs`, bundles in `evaluations`. Other
jobs of the kind `WorkerJob` are taken, supervised and finished in the same way.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from django.core.files.storage import default_storage
from django.db import Error, InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet

from annotation import clock, ingest, screenshots, upload_parts
from annotation.formats import scratch
from annotation.formats.printable import file_name
from annotation.models import Arrival, WorkerJob

logger = logging.getLogger(__name__)

HEARTBEAT_TIMEOUT = timedelta(seconds=40)  # a worker without a heartbeat for this long is lost
HEARTBEAT = 10.0  # seconds
PROGRESS_INTERVAL = 0.5  # seconds
MESSAGE_DELAY = timedelta(seconds=40)  # longest time that a message may take
MOST_TRIES = 5
ORPHAN_AGE = timedelta(days=1)  # a file of this age gets no row any more
SERVER_ERROR = "Server error. Nothing was saved. Try again."
OPEN = Q(finished_at__isnull=True)
NO_ROWS = Q(pk=None)

Taken = TypeVar("Taken", bound=WorkerJob)


class ArrivalLost(Exception):
    """The upload was cancelled, or another worker has taken it."""


class ArrivalFailed(Exception):
    """The file could not be read and will not be read again; ``code`` is stable, the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


# --- receiving ------------------------------------------------------------------------------------------------------


def receive(arrival: Arrival, file: Any, send: Callable[[str], Any]) -> None:
    """Store the file under a generated name, save the row, and ``send`` its key to a worker after the commit.

    Raises ingest.ImportStopped, without a row, if the store is full or not available. If the broker is not available,
    the row waits until it is queued again; see `find_waiting`.
    """
    arrival.file_name = file.name[:255]
    try:
        arrival.stored_as = default_storage.save(f"{arrival.folder}/{arrival.pk}{arrival.suffix}", file)
    except screenshots.STORE_ERRORS as error:
        raise ingest.ImportStopped.from_error(error, f"The {arrival.thing} could not be stored") from error
    try:
        with transaction.atomic():
            arrival.heartbeat_at = clock.now()
            arrival.save(force_insert=True)
            # Robust: a message that could not be sent is logged, and the person still gets their page.
            transaction.on_commit(lambda: send(str(arrival.pk)), robust=True)
    except Error:
        delete_file(arrival.stored_as)  # without its row nobody would find it for a day
        raise


# --- taking ----------------------------------------------------------------------------------------------------------


def find_waiting(model: type[WorkerJob]) -> list[str]:
    """Return the keys of rows whose message or worker was lost."""
    now = clock.now()
    sent_at_latest = now - MESSAGE_DELAY
    late = Q(heartbeat_at__lt=sent_at_latest) | Q(heartbeat_at__isnull=True, created_at__lt=sent_at_latest)
    unsent = Q(started_at__isnull=True) & late
    found = model._default_manager.filter(OPEN, unsent | _without_worker(now))
    return [str(pk) for pk in found.order_by("created_at").values_list("pk", flat=True)]


def claim(model: type[Taken], pk: str) -> Taken | None:
    """Return the row to exactly one caller; None while another worker has it, and once it is finished."""
    now = clock.now()
    free = model._default_manager.filter(OPEN, Q(started_at__isnull=True) | _without_worker(now), pk=pk)
    if not free.update(started_at=now, heartbeat_at=now, tries=F("tries") + 1):
        return None
    return model._default_manager.filter(pk=pk).first()


def cancel(arrival: Arrival) -> bool:
    """Delete row and file, and return True; return False if it was finished since it was fetched."""
    rows = type(arrival)._default_manager.filter(pk=arrival.pk)
    deleted, _ = rows.filter(finished_at=arrival.finished_at).delete()
    if not deleted and rows.exists():
        return False
    delete_file(arrival.stored_as)
    return True


def _without_worker(now: datetime) -> Q:
    return Q(started_at__isnull=False, heartbeat_at__lt=now - HEARTBEAT_TIMEOUT)


def _own_rows(job: WorkerJob) -> QuerySet[WorkerJob]:
    return type(job)._default_manager.filter(OPEN, pk=job.pk, tries=job.tries)


# --- reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def supervise(job: WorkerJob) -> Iterator[None]:
    """Send heartbeats while a row of `claim` is read; raise ArrivalFailed for every failure that a retry cannot cure.

    Raises OperationalError and InterfaceError if the database is not available: the row waits to be taken again.
    """
    if job.tries > MOST_TRIES:
        message = (
            f"{MOST_TRIES} workers started this job and stopped without an error message. It may need more memory "
            f"than a worker has. Use the command {job.command}, or ask the operator of this server."
        )
        raise ArrivalFailed("import_given_up", message)
    try:
        with _send_heartbeats(job):
            yield
    except (ingest.ImportStopped, *screenshots.STORE_ERRORS) as failure:
        stopped = failure
        if not isinstance(failure, ingest.ImportStopped):
            stopped = ingest.ImportStopped.from_error(failure, f"The {job.thing} was not read")
        raise ArrivalFailed("import_stopped", f"{stopped} {job.repeat}") from failure
    except (ArrivalLost, ArrivalFailed, OperationalError, InterfaceError):
        raise
    except Exception as error:
        # A bug: it is logged once instead of failing again every few minutes.
        logger.exception("Processing the %s %s failed", job.thing, job.pk)
        raise ArrivalFailed("import_failed", SERVER_ERROR) from error


def finish(job: WorkerJob, **outcome: Any) -> None:
    """Save the outcome, in the transaction of the caller if there is one. Raises ArrivalLost."""
    if not _own_rows(job).update(finished_at=clock.now(), **outcome):
        raise ArrivalLost


@contextmanager
def open_as_file(arrival: Arrival, suffix: str) -> Iterator[Path]:
    """Yield a local path, named like the uploaded file, with that suffix: a link to the stored file, or else a copy,
    into which parts are joined.

    A log is matched with its task by the name of its file.
    """
    path = None
    with suppress(NotImplementedError):  # an object store has no paths
        path = Path(default_storage.path(arrival.stored_as))
    with scratch.folder(arrival.thing) as folder:
        named = folder / file_name(arrival.file_name, suffix)
        if path is not None and path.is_file():
            named.symlink_to(path)
        else:
            with named.open("wb") as target:
                upload_parts.copy(arrival.stored_as, target)
        yield named


def make_progress_saver(job: WorkerJob) -> Callable[[int, int], None]:
    """Return a function that saves the progress now and then; it raises ArrivalLost if another worker has the row."""
    saved_at, last = -PROGRESS_INTERVAL, (-1, -1)

    def save(done: int, total: int) -> None:
        nonlocal saved_at, last
        now = monotonic()
        if now - saved_at < PROGRESS_INTERVAL and (done < total or (done, total) == last):
            return
        saved_at, last = now, (done, total)
        if not _own_rows(job).update(done=done, total=total, heartbeat_at=clock.now()):
            raise ArrivalLost

    return save


@contextmanager
def _send_heartbeats(job: WorkerJob) -> Iterator[None]:
    # Some steps take longer than HEARTBEAT_TIMEOUT without any progress to report.
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT):
            with suppress(Error):  # the thread that reads the file raises it
                _own_rows(job).update(heartbeat_at=clock.now())
            connection.close()

    thread = threading.Thread(target=beat, name=f"{job.thing}-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# --- deleting --------------------------------------------------------------------------------------------------------


def delete_file(name: str) -> None:
    # A file that cannot be deleted now is deleted by `delete_unneeded_files` a day later.
    try:
        upload_parts.delete(name)
    except screenshots.STORE_ERRORS as error:
        logger.warning("The file %s could not be deleted: %s", name, error)


def delete_unneeded_files(model: type[Arrival], also_needed: Q = NO_ROWS) -> None:
    """Delete the files in the folder of the model that neither an open row needs nor one that is ``also_needed``."""
    now = clock.now()
    try:
        present = default_storage.listdir(model.folder)[1]
    except FileNotFoundError:  # a local store before its first file
        return
    needed = set(model._default_manager.filter(OPEN | also_needed).values_list("stored_as", flat=True))
    for name in (f"{model.folder}/{each}" for each in present):
        # A file is stored before its row is there, so a fresh one may be on its way.
        if name not in needed and screenshots.stored_at(name) < now - ORPHAN_AGE:
            delete_file(name)
