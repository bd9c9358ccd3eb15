"""Files that arrive through the page or the API: kept, written down, read by one worker at a time, and finished once.

The row is the truth. Whoever takes it has the number of a try, and changes nothing any more once another has it. What
reading a file means is said by who calls: packages in `annotation.jobs`, and what upper floors take.
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

from annotation import clock, ingest, screenshots
from annotation.formats import scratch
from annotation.formats.printable import file_name
from annotation.models.arrivals import Arrival

logger = logging.getLogger(__name__)

SILENT = timedelta(minutes=2)  # a worker that has not reported for so long is lost
BEAT = 20.0  # seconds between two reports while nothing else is told
OFTEN = 0.5  # seconds between two times that progress is written down
ON_ITS_WAY = timedelta(minutes=1)  # as long a message may take
MOST_TRIES = 5
ABANDONED = timedelta(days=1)  # a file without its row is no longer on its way then
FAILED = "It failed on our side, and nothing of it was kept."
OPEN = Q(finished_at__isnull=True)

Arrived = TypeVar("Arrived", bound=Arrival)


class Lost(Exception):
    """The arrival was cancelled meanwhile, or another worker has it."""


class Ended(Exception):
    """What arrived was not read, and will not be; ``code`` says it for programs, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


# --- taking in -------------------------------------------------------------------------------------------------------


def receive(arrival: Arrival, file: Any, send: Callable[[str], Any]) -> None:
    """Store the file under a name of our own, save the row, and ``send`` its key to a worker once it is there.

    Raises ingest.ImportStopped when the store is full or gone; then there is no row either.
    With the broker away the row waits until it is queued again; see `waiting`.
    """
    arrival.file_name = file.name[:255]
    try:
        arrival.stored_as = default_storage.save(f"{arrival.folder}/{arrival.pk}{arrival.suffix}", file)
    except screenshots.STORE_ERRORS as error:
        raise ingest.stopped(error, f"The {arrival.thing} could not be stored") from error
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


def waiting(model: type[Arrival]) -> list[str]:
    """What has no message or has lost its worker."""
    now = clock.now()
    sent_at_latest = now - ON_ITS_WAY
    late = Q(heartbeat_at__lt=sent_at_latest) | Q(heartbeat_at__isnull=True, created_at__lt=sent_at_latest)
    unsent = Q(started_at__isnull=True) & late
    found = model._default_manager.filter(OPEN, unsent | _silent(now))
    return [str(pk) for pk in found.order_by("created_at").values_list("pk", flat=True)]


def take(model: type[Arrived], pk: str) -> Arrived | None:
    """The row, for exactly one of those who ask; None while another worker is at it, and when it is finished."""
    now = clock.now()
    free = model._default_manager.filter(OPEN, Q(started_at__isnull=True) | _silent(now), pk=pk)
    if not free.update(started_at=now, heartbeat_at=now, tries=F("tries") + 1):
        return None
    return model._default_manager.filter(pk=pk).first()


def cancel(arrival: Arrival) -> bool:
    """Delete the row with its file; whoever reads it gets Lost. False where it was finished since it was fetched."""
    rows = type(arrival)._default_manager.filter(pk=arrival.pk)
    deleted, _ = rows.filter(finished_at=arrival.finished_at).delete()
    if not deleted and rows.exists():
        return False
    delete_file(arrival.stored_as)
    return True


def _silent(now: datetime) -> Q:
    return Q(started_at__isnull=False, heartbeat_at__lt=now - SILENT)


def _mine(arrival: Arrival) -> QuerySet[Arrival]:
    return type(arrival)._default_manager.filter(OPEN, pk=arrival.pk, tries=arrival.tries)


# --- reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def working(arrival: Arrival) -> Iterator[None]:
    """Around reading what `take` gave: reports that its worker lives, and raises Ended for what cannot be read.

    Raises OperationalError and InterfaceError when the database was away: then the row waits to be taken again.
    """
    if arrival.tries > MOST_TRIES:
        raise Ended("import_given_up", _died(arrival))
    try:
        with _beating(arrival):
            yield
    except (ingest.ImportStopped, *screenshots.STORE_ERRORS) as failure:
        kept = f"The {arrival.thing} was not read, and nothing of it was kept"
        stopped = failure if isinstance(failure, ingest.ImportStopped) else ingest.stopped(failure, kept)
        raise Ended("import_stopped", f"{stopped} Upload the {arrival.thing} again.") from failure
    except (Lost, Ended, OperationalError, InterfaceError):
        raise
    except Exception as error:
        # Our own mistake: it is in the log, and it ends instead of failing again every few minutes.
        logger.exception("Reading the %s %s failed", arrival.thing, arrival.pk)
        raise Ended("import_failed", FAILED) from error


def _died(arrival: Arrival) -> str:
    return (
        f"It was begun {MOST_TRIES} times, and each time its worker fell silent: it may need more memory than the "
        f"worker has. Use the command {arrival.command}, or ask who runs this instance."
    )


def finish(arrival: Arrival, **outcome: Any) -> None:
    """Write down what came of it, in the caller's transaction if there is one; raises Lost when it is not theirs."""
    if not _mine(arrival).update(finished_at=clock.now(), **outcome):
        raise Lost


@contextmanager
def as_file(arrival: Arrival, suffix: str) -> Iterator[Path]:
    """What arrived, as a file of this machine with that suffix: the store's own where it is one, or else a copy."""
    path = _own_file(arrival.stored_as)
    if path is not None and path.suffix == suffix:
        yield path
        return
    with scratch.folder(arrival.thing) as folder:
        copy = folder / file_name(arrival.file_name, suffix)
        with default_storage.open(arrival.stored_as) as source, copy.open("wb") as target:
            target.writelines(source.chunks())
        yield copy


def _own_file(name: str) -> Path | None:
    try:
        path = Path(default_storage.path(name))
    except NotImplementedError:
        return None
    return path if path.is_file() else None


def progress(arrival: Arrival) -> Callable[[int, int], None]:
    """Writes down how far it is, a few times a second at most; raises Lost when it is somebody else's."""
    said, last = -OFTEN, (-1, -1)

    def tell(done: int, total: int) -> None:
        nonlocal said, last
        now = monotonic()
        if now - said < OFTEN and (done < total or (done, total) == last):
            return
        said, last = now, (done, total)
        if not _mine(arrival).update(done=done, total=total, heartbeat_at=clock.now()):
            raise Lost

    return tell


@contextmanager
def _beating(arrival: Arrival) -> Iterator[None]:
    """Reports that the worker lives: some works take longer than a silence without any progress to tell."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT):
            with suppress(Error):  # what is really wrong with the database is noticed by who works
                _mine(arrival).update(heartbeat_at=clock.now())
            connection.close()

    thread = threading.Thread(target=beat, name=f"{arrival.thing}-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# --- deleting --------------------------------------------------------------------------------------------------------


def delete_file(name: str) -> None:
    """A file that cannot be deleted now costs room for a day: `forget_files` comes back to it."""
    try:
        default_storage.delete(name)
    except screenshots.STORE_ERRORS as error:
        logger.warning("The file %s could not be deleted: %s", name, error)


def forget_files(model: type[Arrival]) -> None:
    """Delete files of the model's folder that belong to nothing that waits."""
    now = clock.now()
    try:
        present = default_storage.listdir(model.folder)[1]
    except FileNotFoundError:  # a local store before its first file
        return
    needed = set(model._default_manager.filter(OPEN).values_list("stored_as", flat=True))
    for name in (f"{model.folder}/{each}" for each in present):
        # A file is stored before its row is there, so a fresh one may be on its way.
        if name not in needed and screenshots.stored_at(name) < now - ABANDONED:
            delete_file(name)
