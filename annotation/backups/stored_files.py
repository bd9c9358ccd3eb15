"""Copy files between the store and the objects of a backup folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

from django.apps import apps
from django.core.files.base import File
from django.core.files.storage import default_storage

from annotation import store_checks
from annotation.backups.manifest import LostFile, StoredFile, open_untrusted
from annotation.models import WorkerJob
from annotation.screenshots import CHUNK, WRITING

OBJECTS = "objects"
CACHES = frozenset(["renditions"])  # folders of the store that are created again when needed


def list_referenced() -> tuple[list[str], list[str]]:
    """Return the names in the store of all originals that rows name, and of files that jobs use or offer.

    Rows of finished jobs may name files that were deleted.
    """
    originals = [f"originals/{sha256[:2]}/{sha256}" for sha256 in sorted(store_checks.named_digests())]
    jobs = [model for model in apps.get_models() if issubclass(model, WorkerJob)]
    return originals, sorted({name for model in jobs for name in model.stored_names()})


def list_stored(folder: str = "") -> Iterator[str]:
    """Yield the names of all files in the store, without caches and unfinished files."""
    try:
        folders, files = default_storage.listdir(folder)
    except FileNotFoundError:  # a local store before its first file
        return
    yield from (f"{folder}{name}" for name in files if not name.startswith(WRITING))
    for name in folders:
        if folder or name not in CACHES:
            yield from list_stored(f"{folder}{name}/")


def object_path(folder: Path, sha256: str) -> Path:
    return folder / OBJECTS / sha256[:2] / sha256


def copy_to_backup(folder: Path, names: list[str]) -> Iterator[StoredFile | LostFile]:
    """Copy the files that the folder does not have yet, several at a time. Raises one of `screenshots.STORE_ERRORS`."""
    with ThreadPoolExecutor(store_checks.READERS) as readers:
        for start in range(0, len(names), store_checks.AT_ONCE):  # so that an error ends the copying soon
            yield from readers.map(partial(_copy_to_backup, folder), names[start : start + store_checks.AT_ONCE])


def _copy_to_backup(folder: Path, name: str) -> StoredFile | LostFile:
    expected = name.rpartition("/")[2] if name.startswith("originals/") else None
    try:
        if expected is not None and (path := object_path(folder, expected)).is_file():
            size = path.stat().st_size
            if _is_complete(path, size, name, expected):
                return StoredFile(name=name, sha256=expected, size=size)
        source = default_storage.open(name, "rb")
    except FileNotFoundError:
        return LostFile(name=name, problem="missing")
    handle, temporary = tempfile.mkstemp(dir=folder / OBJECTS, prefix=WRITING)  # mode 0600
    try:
        with source, os.fdopen(handle, "wb") as target:
            sha256, size = digest(source, target.write)
            target.flush()
            os.fsync(target.fileno())  # the next backup trusts a file that has its name
        if expected not in (None, sha256):
            return LostFile(name=name, problem="damaged")
        path = object_path(folder, sha256)
        path.parent.mkdir(exist_ok=True, mode=0o700)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return StoredFile(name=name, sha256=sha256, size=size)


def _is_complete(path: Path, size: int, name: str, sha256: str) -> bool:
    """Return whether a copy has the size of the stored file, or the right digest if the store has lost the file."""
    try:
        return size == default_storage.size(name)  # a truncated copy is replaced
    except FileNotFoundError:
        return not explain_file(path, sha256, size)


def digest(stream: BinaryIO | File, write: Callable[[bytes], object] = lambda chunk: None) -> tuple[str, int]:
    """Return the SHA-256 of a stream and its size in bytes, and ``write`` its chunks."""
    hashed, size = hashlib.sha256(), 0
    while chunk := stream.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
        write(chunk)
    return hashed.hexdigest(), size


def explain_file(path: Path, sha256: str, size: int) -> str:
    """Return "" for a file with this content, "damaged" or "missing"."""
    try:
        with open_untrusted(path) as stream:
            return "" if digest(stream) == (sha256, size) else "damaged"
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "damaged"


def is_stored(file: StoredFile) -> bool:
    """Return whether the store has exactly this file."""
    with default_storage.open(file.name, "rb") as stream:
        return digest(stream) == (file.sha256, file.size)


def copy_to_store(folder: Path, file: StoredFile) -> None:
    with open_untrusted(object_path(folder, file.sha256)) as stream:
        default_storage.save(file.name, File(stream))
