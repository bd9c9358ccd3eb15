"""Receive packages in parts, so that a cut connection costs one part at most.

Each part is a file of its own in the store, so any web server can receive it. A conditional update of the row decides
which part continues the upload: a part counts completely or not at all. Files that were stored but not counted, as
those of a killed server, are deleted a day later.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q
from django.http import UnreadablePostError

from annotation import arrivals, clock, ingest, quotas, screenshots, upload_parts
from annotation.formats.printable import counted
from annotation.models import ResumableUpload, Upload, UploadPart
from annotation.models.trajectories import PackageOptions
from annotation.outages import Outage
from annotation.problem_details import CHECKSUM_DIFFERS, Refused
from annotation.records import Problem
from annotation.workflow import Conflict

CHUNK = 1 << 20  # bytes of a part in memory
COPIES = 2  # of a package on the disk of a local store: its parts, and the file into which a worker joins them
OPTIONS = [field.name for field in PackageOptions._meta.local_fields]

Read = Callable[[int], bytes]
Send = Callable[[str], Any]


def create(upload: ResumableUpload) -> None:
    """Save the row of a new upload. Raises Refused if a package of this length cannot be accepted."""
    if upload.length > settings.MAX_RESUMABLE_BYTES:
        message = f"The file has {upload.length:,} bytes; at most {settings.MAX_RESUMABLE_BYTES:,} are accepted."
        raise Refused(message, [Problem("file_too_large", message, "file")], 413)
    if excess := quotas.find_excess_of(upload.benchmark, upload.length):
        raise Refused(excess.message, [excess])
    free, needed = _find_free_bytes(), COPIES * upload.length
    if free is not None and free < needed:
        message = f"The server has {free:,} bytes of free disk space; this file needs {needed:,}. Try again later."
        problem = Problem("disk_too_small", message, "file")
        raise Refused(message, [problem], Outage.DISK.status, Outage.DISK.retry_after)
    upload.expires_at = _find_expiry()
    upload.save(force_insert=True)


def append(upload: ResumableUpload, offset: int, size: int, read: Read, checksum: bytes | None, send: Send) -> None:
    """Store the next ``size`` bytes that ``read`` returns; with the last ones, ``send`` the key to a worker.

    If the client disconnects, the bytes that have arrived count, except with a ``checksum`` (SHA-256), which would
    not match. Raises Conflict if another request was faster, and Refused if nothing was stored.
    """
    if offset != upload.offset:
        raise _conflict(upload)
    if offset + size > upload.length:
        message = f"These are {offset + size - upload.length:,} bytes more than the upload has. Check the file."
        raise Refused(message, [Problem("too_many_bytes", message)], 413)
    name = f"{offset:015}-{secrets.token_hex(8)}"
    try:
        received = _store(f"{upload.stored_as}/{name}", size, read, checksum)
    except screenshots.STORE_ERRORS as error:
        stopped = ingest.ImportStopped.from_error(error, "This part could not be stored")
        message = f"{stopped} Earlier parts are stored: continue later at the same offset."
        problem = Problem("import_stopped", message)
        raise Refused(message, [problem], stopped.outage.status, stopped.outage.retry_after) from error
    if received and not _count(upload, UploadPart(upload=upload, start=offset, size=received, name=name), send):
        arrivals.delete_file(f"{upload.stored_as}/{name}")
        raise _conflict(ResumableUpload.objects.filter(pk=upload.pk).first())


def cancel(upload: ResumableUpload) -> None:
    """Delete an unfinished upload with its parts. Raises Conflict if it is complete."""
    if not _delete(upload, Q(offset__lt=upload.length)):
        raise Conflict("This upload is complete, so it cannot be given up. Open its report.")


def forget_expired() -> None:
    """Delete uploads to which nothing was added for `UNFINISHED_UPLOAD_HOURS`, and records of complete ones."""
    now = clock.now()
    for upload in ResumableUpload.objects.filter(expires_at__lte=now):
        reading = Upload.objects.filter(Q(finished_at=None) | Q(dry_run=True) & ~Q(stored_as=""), pk=upload.pk)
        if not reading.exists():
            _delete(upload, Q(expires_at__lte=now))


def delete_unneeded_parts() -> None:
    """Delete files that no row names, a day after they were stored: a part is stored before it is counted."""
    try:
        folders = default_storage.listdir(ResumableUpload.folder)[0]
    except FileNotFoundError:  # a local store before its first part
        return
    before = clock.now() - arrivals.ORPHAN_AGE
    for folder in (f"{ResumableUpload.folder}/{name}" for name in folders):
        stored = [f"{folder}/{name}" for name in default_storage.listdir(folder)[1]]
        unneeded = set(stored).difference(upload_parts.list_files(folder))
        for name in unneeded:
            if screenshots.stored_at(name) < before:
                arrivals.delete_file(name)
        if not stored:
            with suppress(*screenshots.STORE_ERRORS):
                default_storage.delete(folder)  # not if a part has arrived meanwhile


def _find_expiry() -> datetime:
    return clock.now() + timedelta(hours=settings.UNFINISHED_UPLOAD_HOURS)


def _find_free_bytes() -> int | None:
    """Return the free space of a local store; None for an object store."""
    try:
        folder = Path(default_storage.path(""))
    except NotImplementedError:
        return None
    return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists())).free


def _conflict(upload: ResumableUpload | None) -> Conflict:
    if upload is None:
        return Conflict("The upload was given up or has expired. Start again.")
    return Conflict(f"The upload has {counted(upload.offset, 'byte')}. Continue at this offset.")


def _store(name: str, size: int, read: Read, checksum: bytes | None) -> int:
    """Store what arrives of a body and return its size; 0 if nothing was stored."""
    hashed = hashlib.sha256()
    folder, in_memory = os.fspath(settings.FILE_UPLOAD_TEMP_DIR), settings.FILE_UPLOAD_MAX_MEMORY_SIZE
    with tempfile.SpooledTemporaryFile(in_memory, dir=folder) as spool:
        received = _receive(spool, size, read, hashed.update)
        if checksum is not None and received < size:
            return 0
        if checksum not in (None, hashed.digest()):
            message = "The SHA-256 of the received bytes differs from Upload-Checksum. Send them again."
            raise Refused(message, [Problem("checksum_differs", message)], CHECKSUM_DIFFERS)
        if received:
            spool.seek(0)
            default_storage.save(name, File(spool, name))
    return received


def _receive(target: IO[bytes], size: int, read: Read, update: Callable[[bytes], None]) -> int:
    received = 0
    while received < size:
        try:
            data = read(min(CHUNK, size - received))
        except UnreadablePostError:
            break
        if not data:
            break
        update(data)
        target.write(data)
        received += len(data)
    return received


def _count(upload: ResumableUpload, part: UploadPart, send: Send) -> bool:
    """Add a stored part to the upload; return False if another one was faster."""
    end = part.start + part.size
    with transaction.atomic():
        row = ResumableUpload.objects.filter(pk=upload.pk, offset=part.start)
        if not row.update(offset=end, expires_at=(expiry := _find_expiry())):
            return False
        part.save(force_insert=True)
        if end == upload.length:
            _finish(upload, send)
    upload.offset, upload.expires_at = end, expiry
    return True


def _finish(upload: ResumableUpload, send: Send) -> None:
    options = {name: getattr(upload, name) for name in (*OPTIONS, "uploaded_by", "file_name", "stored_as")}
    Upload(pk=upload.pk, heartbeat_at=clock.now(), **options).save(force_insert=True)
    transaction.on_commit(lambda: send(str(upload.pk)), robust=True)


def _delete(upload: ResumableUpload, condition: Q) -> bool:
    """Delete the row if the condition holds, so that nothing can be added, and then the files."""
    with transaction.atomic():
        row = ResumableUpload.objects.select_for_update().filter(condition, pk=upload.pk).first()
        if row is None:
            return False
        names = upload_parts.list_files(upload.stored_as)
        row.delete()
    for name in [*names, upload.stored_as]:
        arrivals.delete_file(name)
    return True
