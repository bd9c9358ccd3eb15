"""Read packages (folders or zips) without extracting files or following links."""

from __future__ import annotations

import io
import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from annotation.formats.documents import FormatError
from annotation.formats.printable import printable
from annotation.records import Problem

MIB = 2**20
CHUNK = MIB
# zipfile bounds its output only for these two: one chunk of bzip2 or LZMA may unpack to gigabytes.
READABLE_COMPRESSION = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
ZIP_FAILURES = (
    zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, RuntimeError, LookupError,
    OverflowError,
)  # fmt: skip

NOISE_NAMES = frozenset({"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"})
NOISE_PREFIXES = ("._", ".git")
ARCHIVE_SUFFIXES = frozenset({".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst"})
LONGEST_NAME = 1024  # characters of a whole path
LONGEST_PART = 255  # bytes of one part; the limit of file systems
LONGEST_WHERE = 300  # characters of a path in a report
LINKED = "is a symbolic link; replace it with the file itself"
DRIVE = re.compile(r"[A-Za-z]:")
# Control characters, line separators, lone surrogates, and marks that change the reading direction.
UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a package. Sizes in bytes, unpacked; ``ratio`` is unpacked to packed size.

    ``ratio_from`` is the size below which any ratio is harmless. ``directory_bytes`` limits the directory of a zip,
    which is in memory.
    """

    entries: int = 100_000
    total_bytes: int = 32 * 1024 * MIB
    member_bytes: int = 512 * MIB
    ratio: int = 200
    ratio_from: int = 16 * MIB
    directory_bytes: int = 16 * MIB


DEFAULT_LIMITS = Limits()


class PackageError(FormatError):
    """A file of a package cannot be read."""

    @property
    def problem(self) -> Problem:
        return self.problems[0]


class Package:
    """The files of a folder or zip.

    ``problems`` lists its unsafe entries; ``ignored`` counts empty folders and files of operating systems. `names`
    excludes links, special files and entries that lead outside. It includes files that cannot be read for another
    reason (encrypted, too large); `read` raises their problem.
    """

    def __init__(self, path: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self.path = path
        self.limits = limits
        self.problems: list[Problem] = []
        self.ignored = 0
        self._folders: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._refused: dict[str, Problem] = {}

    def names(self) -> list[str]:
        """Return the relative paths of all files, with ``/``, sorted."""
        return sorted(self._sizes)

    def size(self, name: str) -> int:
        """Return the size that the directory states, in bytes. Raises PackageError if the file does not exist."""
        if name not in self._sizes:
            raise PackageError(entry_problem("file_missing", name, "is not in the package"))
        return self._sizes[name]

    def read(self, name: str, limit: int) -> bytes:
        """Return the bytes of a file. Raises PackageError if it is missing, damaged or longer than ``limit``."""
        data = bytearray()
        with self.stream(name, limit) as stream:
            while chunk := stream.read(CHUNK):
                data += chunk
        return bytes(data)

    @contextmanager
    def stream(self, name: str, limit: int, *, archives: bool = False) -> Iterator[BinaryIO]:
        """Open a file; opening and reading raise PackageError as `read` does, whatever size the directory states.

        With ``archives``, an archive inside the package can be read, too.
        """
        self.size(name)
        refused = self._refused.get(name)
        if refused is not None and not (archives and refused.code == "nested_archive"):
            raise PackageError(refused)
        try:
            opened = self._open(name)
        except ZIP_FAILURES as error:
            raise _damaged(name, error) from error
        with opened, io.BufferedReader(_Member(opened, name, limit), CHUNK) as stream:
            yield stream

    def close(self) -> None:
        pass

    def _may_be_trace(self, name: str) -> bool:
        # A network trace may be gzipped, or a zip in the same folder as the result.json of its trajectory.
        folder, slash, _ = name.rpartition("/")
        is_beside = f"{folder}{slash}result.json" in self._sizes
        return name.lower().endswith(".har.gz") or (name.lower().endswith(".zip") and is_beside)

    def _open(self, name: str) -> IO[bytes]:
        raise KeyError(name)

    def _add(self, name: str, size: int) -> None:
        if name in self._sizes:
            self._refuse("duplicate_name", name, "occurs twice in the package")
        self._sizes[name] = size
        if size > self.limits.member_bytes:
            self._refuse("file_too_large", name, f"is larger than {self.limits.member_bytes:,} bytes")

    def _refuse(self, code: str, name: str, says: str) -> None:
        """Add a problem, which `read` then raises for this file."""
        problem = entry_problem(code, name, says)
        self.problems.append(problem)
        self._refused.setdefault(name, problem)

    def _give_up(self, code: str, message: str) -> None:
        self._sizes.clear()
        self._refused.clear()
        self.problems = [Problem(code, f"{printable(self.path.name)}: {message}.")]

    def _too_many(self) -> None:
        self._give_up("too_many_entries", f"has more than {self.limits.entries:,} entries")

    def _check_whole(self) -> None:
        for name in self.names():
            if is_archive(name) and not self._may_be_trace(name):
                self._refuse("nested_archive", name, "is an archive inside the package; unpack it")
        total = sum(self._sizes.values())
        if total > self.limits.total_bytes:
            limit = self.limits.total_bytes
            self._give_up("package_too_large", f"unpacks to {total:,} bytes; the limit is {limit:,}")
        self.problems += collisions(self._sizes)
        used = {folder for name in self._sizes for folder in folders_of(name)}
        self.ignored += len(self._folders - used)
        self._folders.clear()


class FolderPackage(Package):
    def __init__(self, path: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(path, limits)
        waiting, seen = [""], 0
        while waiting:
            parent = waiting.pop()
            for name, entry in self._scan(parent):
                seen += 1
                if seen > limits.entries:
                    self._too_many()
                    return
                try:
                    if self._take(name, entry):
                        waiting.append(name)
                except OSError as error:
                    says = f"cannot be opened: {error.strerror}"
                    self.problems.append(entry_problem("file_unreadable", name, says))
        self._check_whole()

    def _scan(self, parent: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        try:
            with os.scandir(self.path / parent) as entries:
                for entry in entries:
                    yield (f"{parent}/{entry.name}" if parent else entry.name), entry
        except OSError as error:
            says = f"cannot be listed: {error.strerror}"
            self.problems.append(entry_problem("folder_unreadable", parent or ".", says))

    def _take(self, name: str, entry: os.DirEntry[str]) -> bool:
        """Add an entry; return True for a folder whose entries must be added too."""
        problem = path_problem(name)
        if is_noise(name):
            self.ignored += 1
        elif problem is not None:
            self.problems.append(problem)
        elif entry.is_symlink():
            self.problems.append(entry_problem("symlink", name, LINKED))
        elif entry.is_dir(follow_symlinks=False):
            self._folders.add(name)
            return True
        elif entry.is_file(follow_symlinks=False):
            self._add(name, entry.stat(follow_symlinks=False).st_size)
        else:
            self.problems.append(entry_problem("special_file", name, "is not a regular file"))
        return False

    def _open(self, name: str) -> IO[bytes]:
        # The folder may change after it was listed: a link or a pipe created since then must not be opened.
        descriptor = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        stream = os.fdopen(descriptor, "rb")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            stream.close()
            raise OSError("not a regular file")
        return stream


class ZipPackage(Package):
    """The members of a zip, read without extracting them."""

    def __init__(self, path: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(path, limits)
        self._file: _BoundedFile | None = None
        self._members: dict[str, zipfile.ZipInfo] = {}
        try:
            self._file = _BoundedFile(io.FileIO(path), limits.directory_bytes)
            self._zip = zipfile.ZipFile(self._file)
        except ZIP_FAILURES as error:
            self._give_up("zip_unreadable", f"is not a readable zip file ({printable(str(error))})")
            return
        if len(self._zip.filelist) > limits.entries:
            self._too_many()
            return
        for member in self._zip.filelist:
            self._take(member)
        self._check_overlaps()
        self._check_whole()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _take(self, member: zipfile.ZipInfo) -> None:
        name = member.orig_filename
        kind = stat.S_IFMT(member.external_attr >> 16)
        problem = path_problem(name.removesuffix("/"))
        if problem is not None:
            self.problems.append(problem)
        elif is_noise(name):
            self.ignored += 1
        elif kind == stat.S_IFLNK:
            self.problems.append(entry_problem("symlink", name, LINKED))
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            self.problems.append(entry_problem("special_file", name, "is not a regular file"))
        elif name.endswith("/"):
            self._folders.add(name.removesuffix("/"))
        else:
            self._add(name, member.file_size)
            self._members[name] = member
            self._check_member(name, member)

    def _check_member(self, name: str, member: zipfile.ZipInfo) -> None:
        if member.flag_bits & 0x1:
            self._refuse("encrypted", name, "is encrypted; create the zip without a password")
        if member.compress_type not in READABLE_COMPRESSION:
            self._refuse(
                "compression_unsupported", name, "is neither stored nor deflated; use one of these zip methods"
            )
        # zipfile returns at most file_size bytes, so the stated ratio is an upper bound of the real one.
        if member.file_size > max(self.limits.ratio_from, self.limits.ratio * member.compress_size):
            self._refuse("compression_ratio", name, f"unpacks to over {self.limits.ratio} times its size")

    def _check_overlaps(self) -> None:
        """Reject members that share bytes with the next one or with the directory: a known form of zip bombs."""
        ordered = sorted(self._zip.filelist, key=lambda member: member.header_offset)
        ends = [member.header_offset for member in ordered[1:]] + [self._zip.start_dir]
        for member, end in zip(ordered, ends, strict=False):
            used = zipfile.sizeFileHeader + member.compress_size  # type: ignore[attr-defined]
            if member.header_offset < 0 or member.header_offset + used > end:
                self._refuse("overlapping", member.orig_filename, "overlaps another entry of the zip")

    def _open(self, name: str) -> IO[bytes]:
        return self._zip.open(self._members[name])


class _BoundedFile(io.BufferedReader):
    """A file that rejects single reads over ``limit`` bytes: zipfile reads a whole directory of any stated size."""

    def __init__(self, raw: io.FileIO, limit: int) -> None:
        super().__init__(raw)
        self._limit = limit

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self._limit:
            raise OSError(f"its directory is larger than {self._limit:,} bytes")
        return super().read(size)


class _Member(io.RawIOBase):
    """A file of a package; errors while it is read are raised as PackageError."""

    def __init__(self, stream: IO[bytes], name: str, limit: int) -> None:
        self._stream = stream
        self._name = name
        self._limit = self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        try:
            data = self._stream.read(len(view))
        except ZIP_FAILURES as error:
            raise _damaged(self._name, error) from error
        self._left -= len(data)
        if self._left < 0:
            says = f"is larger than {self._limit:,} bytes"
            raise PackageError(entry_problem("file_too_large", self._name, says))
        view[: len(data)] = data
        return len(data)


def _damaged(name: str, error: Exception) -> PackageError:
    reason = printable(str(error).replace("\n", " ")) or type(error).__name__
    return PackageError(entry_problem("file_damaged", name, f"cannot be read: {reason}"))


@contextmanager
def open_package(path: Path, limits: Limits = DEFAULT_LIMITS) -> Iterator[Package]:
    """Open a folder or a zip. Raises no errors: ``package.problems`` lists them."""
    package = FolderPackage(path, limits) if path.is_dir() else ZipPackage(path, limits)
    try:
        yield package
    finally:
        package.close()


# --- names of entries, the same rules for folders and zips ------------------------------------------------------------


def entry_problem(code: str, name: str, says: str) -> Problem:
    """Return a problem of the entry ``name``; ``where`` is its printable path."""
    return Problem(code, f"{printable(name)} {says}.", printable(name, LONGEST_WHERE))


def is_noise(name: str) -> bool:
    """Return whether operating systems or git create such a file in folders."""
    return any(part in NOISE_NAMES or part.startswith(NOISE_PREFIXES) for part in name.split("/"))


def is_archive(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in ARCHIVE_SUFFIXES


def path_problem(name: str) -> Problem | None:
    """Return the problem of a path; None for a plain path inside the package."""
    parts = name.split("/")
    if "\\" in name or DRIVE.match(name) or any(part in ("", ".", "..") for part in parts):
        return entry_problem("path_outside", name, "is not a plain path inside the package (use /, and no ..)")
    if UNSHOWABLE.search(name):
        return entry_problem("name_unprintable", name, "has control characters in its name")
    if len(name) > LONGEST_NAME or any(len(part.encode()) > LONGEST_PART for part in parts):
        return entry_problem("name_too_long", name, "has a longer name than file systems allow")
    return None


def collisions(names: Iterable[str]) -> list[Problem]:
    """Return a problem for each name that differs only in case, and for each that is a file and a folder."""
    files = set(names)
    folders = {folder for name in files for folder in folders_of(name)}
    spellings: dict[str, set[str]] = {}
    for entry in files | folders:
        spellings.setdefault(unicodedata.normalize("NFC", entry.casefold()), set()).add(entry)
    problems = []
    for same in spellings.values():
        # Files in two such folders collide too, but the problem of the folders is enough.
        if len({entry.rpartition("/")[2] for entry in same}) > 1:
            pair = " and ".join(printable(entry) for entry in sorted(same))
            problems += [
                Problem("case_collision", f"{pair} differ only in case.", printable(entry, LONGEST_WHERE))
                for entry in same
            ]
    problems += [entry_problem("duplicate_name", name, "is a file and a folder at once") for name in files & folders]
    return sorted(problems, key=lambda problem: problem.where)


def folders_of(name: str) -> Iterator[str]:
    """Yield the folders of ``name``, the innermost first."""
    while name := name.rpartition("/")[0]:
        yield name
