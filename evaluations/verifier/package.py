"""Open a package, a zip or the folder that was unpacked from one, as files that can be read safely.

Nothing is ever written to the disk, and files are read piece by piece.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from evaluations.verifier import zip_reader
from evaluations.verifier.values import Refused, escape

MIB = 1 << 20
# Bytes of a file, by how its name begins or ends. Trajectories are read line by line, and only their digests stay.
LARGEST_TRAJECTORIES = 512 * MIB
LARGEST_LINES = 128 * MIB  # of any other document of many lines
LARGEST_VALUE = 64 * MIB  # of any other document
LARGEST_DOCUMENTS = 768 * MIB  # of all of them together
LARGEST_PICTURE = 64 * MIB
LARGEST_ATTACHMENT = 512 * MIB
LARGEST_PACKAGE = 1 << 40


@dataclass(frozen=True)
class Package:
    """The files of a package: their sizes in bytes by name, with / between folders.

    ``stream`` yields the bytes of a file in pieces; Refused when they are not those that were declared.
    """

    sizes: dict[str, int]
    stream: Callable[[str], Iterator[bytes]]
    is_folder: bool = False

    def names(self) -> list[str]:
        return sorted(self.sizes)

    def size(self, name: str) -> int:
        return self.sizes[name]

    def read(self, name: str) -> bytes:
        return b"".join(self.stream(name))

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        for piece in self.stream(name):
            digest.update(piece)
        return digest.hexdigest()


@contextmanager
def open_package(path: str) -> Iterator[Package]:
    """The package at ``path``; Refused for everything that is none, or that is not safe to read."""
    try:
        if os.path.isdir(path):  # noqa: PTH112 - plain functions, as everywhere in the single file
            yield _check_sizes(_open_folder(path))
        elif os.path.isfile(path):  # noqa: PTH113
            with open(path, "rb") as file:  # noqa: PTH123
                entries = zip_reader.zip_entries(file, os.fstat(file.fileno()).st_size)
                sizes = {name: entry.size for name, entry in entries.items()}
                yield _check_sizes(Package(sizes, lambda name: zip_reader.unpack(file, entries[name])))
        else:
            raise Refused(f"{escape(path, 200)} is no file and no folder; name the bundle.")
    except OSError as error:
        raise Refused(f"{escape(path, 200)} cannot be read: {escape(error.strerror or str(error))}.") from error


def _check_sizes(package: Package) -> Package:
    zip_reader.check_collisions(package.names())
    documents = 0
    for name in package.names():
        size, most = package.size(name), _largest(name)
        if size > most:
            raise Refused(f"{escape(name, 200)} has {size:,} bytes; at most {most:,} are read.")
        documents += 0 if name.startswith(("screenshots/", "attachments/")) else size
    if documents > LARGEST_DOCUMENTS:
        raise Refused(f"The documents have {documents:,} bytes together; at most {LARGEST_DOCUMENTS:,} are read.")
    total = sum(package.sizes.values())
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


def _open_folder(path: str) -> Package:
    sizes: dict[str, int] = {}
    for name, size in _walk_folder(path, ""):
        zip_reader.check_name(name)
        sizes[name] = size
        if len(sizes) > zip_reader.MOST_ENTRIES:
            raise Refused(f"The folder has more than {zip_reader.MOST_ENTRIES:,} files; at most so many are read.")
    return Package(sizes, lambda name: _read_pieces(path, name, sizes[name]), is_folder=True)


def _walk_folder(root: str, inside: str, depth: int = 0) -> Iterator[tuple[str, int]]:
    if depth > zip_reader.DEEPEST_FOLDER:
        raise Refused(f"{escape(inside, 200)} lies too deep; a bundle has no such folder.")
    with os.scandir(os.path.join(root, inside)) as entries:  # noqa: PTH118
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk_folder(root, name, depth + 1)
            elif entry.is_file(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False).st_size
            else:
                raise Refused(f"{escape(name, 200)} is a symbolic link or a special file; put the file itself there.")


def _read_pieces(root: str, name: str, size: int) -> Iterator[bytes]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(os.path.join(root, *name.split("/")), flags)  # noqa: PTH118
    with os.fdopen(handle, "rb") as file:
        read = 0
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused(f"{escape(name, 200)} is no ordinary file any more; leave the folder alone while it is read.")
        while piece := file.read(zip_reader.AT_ONCE):
            read += len(piece)
            if read > size:
                break
            yield piece
    if read != size:
        raise Refused(f"{escape(name, 200)} changed while it was read; leave the folder alone meanwhile.")
