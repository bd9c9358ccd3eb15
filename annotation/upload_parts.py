"""The stored package of an upload: one file, or the parts in which it arrived. See `annotation.resumable`."""

from __future__ import annotations

import re
from typing import BinaryIO
from uuid import UUID

from django.core.files.storage import default_storage

from annotation.models import ResumableUpload, UploadPart

FOLDER = re.compile(rf"{ResumableUpload.folder}/([0-9a-f-]{{36}})")  # of the parts of one upload


def list_files(stored_as: str) -> list[str]:
    """Return the names in the store of the files that hold a package, in their order."""
    if not (found := FOLDER.fullmatch(stored_as)):
        return [stored_as]
    return [part.stored_as for part in UploadPart.objects.filter(upload=UUID(found[1])).order_by("start")]


def copy(stored_as: str, target: BinaryIO) -> None:
    """Write the whole package. Raises one of `screenshots.STORE_ERRORS`, FileNotFoundError if a file is missing."""
    names = list_files(stored_as)
    if not names or not _is_complete(stored_as):
        raise FileNotFoundError(f"Parts of {stored_as} are not stored any more.")
    for name in names:
        with default_storage.open(name) as source:
            target.writelines(source.chunks())


def _is_complete(stored_as: str) -> bool:
    """Return whether each part of a package begins where the one before ends, and the last one at its end."""
    if not (found := FOLDER.fullmatch(stored_as)):
        return True
    reached = 0
    parts = UploadPart.objects.filter(upload=UUID(found[1])).order_by("start")
    for start, size in parts.values_list("start", "size"):
        if start != reached:
            return False
        reached += size
    return ResumableUpload.objects.filter(pk=UUID(found[1]), length=reached).exists()


def exists(stored_as: str) -> bool:
    names = list_files(stored_as)
    return bool(names) and default_storage.exists(names[-1])


def delete(stored_as: str) -> None:
    """Delete the files, then the rows of parts. Raises one of `screenshots.STORE_ERRORS`."""
    names = list_files(stored_as)
    for name in names:
        default_storage.delete(name)
    if names != [stored_as]:
        default_storage.delete(stored_as)  # of a local store: the folder
        UploadPart.objects.filter(upload=UUID(stored_as.rpartition("/")[2])).delete()
