"""Opening a package, a zip or the folder that was unpacked from one, as files that can be read safely.

Nothing is ever written to the disk, and files are read piece by piece.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evaluations.verifier.findings import Refused, escape
from evaluations.verifier.zip_reader import (
    AT_ONCE,
    DEEPEST_FOLDER,
    MOST_ENTRIES,
    refuse_collisions,
    refuse_name,
    unpack,
    zip_entries,
)

MIB = 1 << 20
LARGEST_TRAJECTORIES = 512 * MIB  # bytes: they are read line by line, and only their digests stay
LARGEST_LINES = 128 * MIB  # of any other document of many lines
LARGEST_VALUE = 64 * MIB  # of any other document
LARGEST_DOCUMENTS = 768 * MIB  # of all of them together
LARGEST_PICTURE = 64 * MIB
LARGEST_ATTACHMENT = 512 * MIB
LARGEST_PACKAGE = 1 << 40


class Package:
    """The files of a package by name, with / between folders; ``pieces`` reads one of them."""

    def __init__(
        self, sizes: dict[str, int], pieces: Callable[[str], Iterator[bytes]], *, is_folder: bool = False
    ) -> None:
        self._sizes = sizes
        self._pieces = pieces
        self.is_folder = is_folder

    def names(self) -> list[str]:
        """Every file, sorted."""
        return sorted(self._sizes)

    def size(self, name: str) -> int:
        """In bytes; KeyError for a file that is not there."""
        return self._sizes[name]

    def stream(self, name: str) -> Iterator[bytes]:
        """The bytes of a file in pieces; Refused when they are not those that were declared."""
        return self._pieces(name)

    def read(self, name: str) -> bytes:
        """The whole of a file that is known to be small."""
        return b"".join(self._pieces(name))

    def sha256(self, name: str) -> str:
        hashed = hashlib.sha256()
        for piece in self._pieces(name):
            hashed.update(piece)
        return hashed.hexdigest()


@contextmanager
def open_package(path: str) -> Iterator[Package]:
    """The package at ``path``; Refused for everything that is none, or that is not safe to read."""
    try:
        if os.path.isdir(path):  # noqa: PTH112 - plain functions, as everywhere in the single file
            yield _checked(_folder(path))
        elif os.path.isfile(path):  # noqa: PTH113
            with open(path, "rb") as file:  # noqa: PTH123
                entries = zip_entries(file, os.fstat(file.fileno()).st_size)
                sizes = {name: entry.size for name, entry in entries.items()}
                yield _checked(Package(sizes, lambda name: unpack(file, entries[name])))
        else:
            raise Refused(f"{escape(path, 200)} is no file and no folder; name the bundle.")
    except OSError as error:
        raise Refused(f"{escape(path, 200)} cannot be read: {escape(error.strerror or str(error))}.") from error


def _checked(package: Package) -> Package:
    names = package.names()
    refuse_collisions(names)
    documents = 0
    for name in names:
        size, most = package.size(name), _largest(name)
        if size > most:
            raise Refused(f"{escape(name, 200)} has {size:,} bytes; at most {most:,} are read.")
        documents += 0 if name.startswith(("screenshots/", "attachments/")) else size
    if documents > LARGEST_DOCUMENTS:
        raise Refused(f"The documents have {documents:,} bytes together; at most {LARGEST_DOCUMENTS:,} are read.")
    total = sum(package.size(name) for name in names)
    if total > LARGEST_PACKAGE:
        raise Refused(f"The package unpacks to {total:,} bytes; at most {LARGEST_PACKAGE:,} are read.")
    return package


def _largest(name: str) -> int:
    if name.startswith("attachments/"):
        return LARGEST_ATTACHMENT
    if name.startswith("screenshots/"):
        return LARGEST_PICTURE
    if name == "trajectories.jsonl":
        return LARGEST_TRAJECTORIES
    return LARGEST_LINES if name.endswith(".jsonl") else LARGEST_VALUE


# --- a folder ------------------------------------------------------------------------------------------------------


def _folder(path: str) -> Package:
    sizes: dict[str, int] = {}
    for name, size in _walked(path, ""):
        refuse_name(name)
        sizes[name] = size
        if len(sizes) > MOST_ENTRIES:
            raise Refused(f"The folder has more than {MOST_ENTRIES:,} files; at most so many are read.")
    return Package(sizes, lambda name: _file_pieces(path, name, sizes[name]), is_folder=True)


def _walked(root: str, inside: str, depth: int = 0) -> Iterator[tuple[str, int]]:
    if depth > DEEPEST_FOLDER:
        raise Refused(f"{escape(inside, 200)} lies too deep; a bundle has no such folder.")
    with os.scandir(os.path.join(root, inside)) as entries:  # noqa: PTH118
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walked(root, name, depth + 1)
            elif entry.is_file(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False).st_size
            else:
                raise Refused(f"{escape(name, 200)} is a symbolic link or a special file; put the file itself there.")


def _file_pieces(root: str, name: str, size: int) -> Iterator[bytes]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(os.path.join(root, *name.split("/")), flags)  # noqa: PTH118
    with os.fdopen(handle, "rb") as file:
        told = 0
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused(f"{escape(name, 200)} is no ordinary file any more; leave the folder alone while it is read.")
        while piece := file.read(AT_ONCE):
            told += len(piece)
            if told > size:
                break
            yield piece
    if told != size:
        raise Refused(f"{escape(name, 200)} changed while it was read; leave the folder alone meanwhile.")
