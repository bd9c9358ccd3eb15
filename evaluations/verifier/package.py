"""Safe reading of a package, which is a zip or the folder that was unpacked from one.

Nothing is written to the disk, and files are read in pieces. A zip is not trusted: it is refused unless every byte has
exactly one meaning. The standard library accepts zips that other programs read differently (overlapping entries,
duplicate names, wrong sizes, a second name in an extra field, which `unzip` then uses). Here the central directory, an
entry's own header and its data descriptor must agree, and unpacked bytes are counted while they are read. Only the
methods "stored" and "deflate" are supported, as in every bundle, and only extra fields that cannot name a file.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from evaluations.verifier.values import UNSHOWABLE, Refused, escape

MIB = 1 << 20
# Bytes of a file, by its folder or name. Trajectories are read line by line; only summaries stay in memory.
LARGEST = {"attachments": 512 * MIB, "screenshots": 64 * MIB, "trajectories.jsonl": 512 * MIB}
LARGEST_LINES = 128 * MIB  # of any other document of many lines
LARGEST_VALUE = 64 * MIB  # of any other document
LARGEST_DOCUMENTS = 768 * MIB  # of all of them together
LARGEST_PACKAGE = 1 << 40


@dataclass(frozen=True)
class Package:
    """The files of a package: their sizes in bytes by name, with / between folders.

    ``stream`` yields the bytes of a file in pieces, and raises Refused if they are not those that were declared.
    """

    sizes: dict[str, int]
    stream: Callable[[str], Iterator[bytes]]
    is_folder: bool = False

    def names(self) -> list[str]:
        return sorted(self.sizes)

    def read(self, name: str) -> bytes:
        return b"".join(self.stream(name))

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        for piece in self.stream(name):
            digest.update(piece)
        return digest.hexdigest()


@contextmanager
def open_package(path: str) -> Iterator[Package]:
    """Open the package at ``path``; raise Refused if it is not a package or not safe to read."""
    try:
        if os.path.isdir(path):  # noqa: PTH112 - plain functions, as everywhere in the single file
            files: dict[str, int] = {}
            for name, size in _walk_folder(path, ""):
                check_name(name)
                files[name] = size
                if len(files) > MOST_ENTRIES:
                    raise Refused(f"The folder has more than {MOST_ENTRIES:,} files, which is the limit.")
            yield _check_sizes(Package(files, lambda name: _read_pieces(path, name, files[name]), is_folder=True))
        elif os.path.isfile(path):  # noqa: PTH113
            with open(path, "rb") as file:  # noqa: PTH123
                entries = read_entries(file, os.fstat(file.fileno()).st_size)
                sizes = {name: entry.size for name, entry in entries.items()}
                yield _check_sizes(Package(sizes, lambda name: unpack(file, entries[name])))
        else:
            raise Refused(f"{escape(path, 200)} is neither a file nor a folder; name the bundle.")
    except OSError as error:
        raise Refused(f"{escape(path, 200)} cannot be read: {escape(error.strerror or str(error))}.") from error


def _check_sizes(package: Package) -> Package:
    check_collisions(package.names())
    documents = 0
    for name in package.names():
        size = package.sizes[name]
        default = LARGEST_LINES if name.endswith(".jsonl") else LARGEST_VALUE
        most = LARGEST.get(name.partition("/")[0], default)
        if size > most:
            raise Refused(f"{escape(name, 200)} has {size:,} bytes; the limit is {most:,}.")
        documents += 0 if name.startswith(("screenshots/", "attachments/")) else size
    if documents > LARGEST_DOCUMENTS:
        raise Refused(f"The documents have {documents:,} bytes in total; the limit is {LARGEST_DOCUMENTS:,}.")
    total = sum(package.sizes.values())
    if total > LARGEST_PACKAGE:
        raise Refused(f"The package unpacks to {total:,} bytes; the limit is {LARGEST_PACKAGE:,}.")
    return package


def _walk_folder(root: str, inside: str, depth: int = 0) -> Iterator[tuple[str, int]]:
    if depth > DEEPEST_FOLDER:
        raise Refused(f"{escape(inside, 200)} is nested too deeply; a bundle has no such folder.")
    with os.scandir(os.path.join(root, inside)) as entries:  # noqa: PTH118
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk_folder(root, name, depth + 1)
            elif entry.is_file(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False).st_size
            else:
                raise Refused(f"{escape(name, 200)} is not a regular file; replace a link with its file.")


def _read_pieces(root: str, name: str, size: int) -> Iterator[bytes]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(os.path.join(root, *name.split("/")), flags)  # noqa: PTH118
    with os.fdopen(handle, "rb") as file:
        read = 0
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused(f"{escape(name, 200)} was replaced; do not change the folder during the check.")
        while piece := file.read(AT_ONCE):
            read += len(piece)
            if read > size:
                break
            yield piece
    if read != size:
        raise Refused(f"{escape(name, 200)} changed during the check; do not change the folder during the check.")


# --- a zip -----------------------------------------------------------------------------------------------------------

END = struct.Struct("<4s4H2LH")  # end of the central directory
END64_AT = struct.Struct("<4sLQL")  # where its zip64 form is
END64 = struct.Struct("<4sQ2H2L4Q")
AT64 = b"PK\x06\x07"
CENTRAL = struct.Struct("<4s6H3L5H2L")
LOCAL = struct.Struct("<4s5H3L2H")
FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF  # "see the zip64 field"
ENCRYPTED, DESCRIBED_AFTER, STRONG, UTF8, MASKED = 0x1, 0x8, 0x40, 0x800, 0x2000
STORED, DEFLATED = 0, 8
KNOWN_FLAGS = DESCRIBED_AFTER | UTF8 | 0x6  # 0x6 is the level of deflate
DESCRIPTOR = b"PK\x07\x08"  # optional start of the data descriptor, which follows an entry of unknown size
LONGEST_DESCRIPTOR = 24
ZIP64 = 1
# Extra fields without a file name or content, with their maximum bytes: sizes beyond 4 GB, times of Windows and Unix,
# owners, and the mark of a jar.
HARMLESS = {ZIP64: 28, 0x000A: 32, 0x5455: 13, 0x5855: 12, 0x7855: 4, 0x7875: 19, 0xCAFE: 0}
AT_ONCE = 1 << 16

MOST_ENTRIES = 200_000
LARGEST_DIRECTORY = 128 << 20  # bytes
LARGEST_RATIO = 400  # unpacked bytes per packed byte: text reaches 50, a blank page 300
SMALL_ANYWAY = 4 << 20  # bytes: a smaller file is not a zip bomb
LONGEST_PATH = 512  # characters
DEEPEST_FOLDER = 8
DRIVE_LETTER = re.compile(r"[A-Za-z]:")
AGAIN = "unpack the zip and create it again"


@dataclass(frozen=True)
class ZipEntry:
    """An entry of the central directory; sizes in bytes, ``offset`` is that of its own header."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def _refuse(name: str, says: str) -> Refused:
    return Refused(f"{escape(name, 200) or 'A file without a name'} {says}.")


def read_entries(file: IO[bytes], size: int) -> dict[str, ZipEntry]:
    count, directory_size, directory_at = _read_end(file, size)
    if count > MOST_ENTRIES or directory_size > LARGEST_DIRECTORY:
        raise Refused(f"The zip has {count:,} entries; the limit is {MOST_ENTRIES:,}.")
    file.seek(directory_at)
    directory = file.read(directory_size)
    entries: dict[str, ZipEntry] = {}
    at = 0
    for _ in range(count):
        entry, mode, at = _read_central(directory, at)
        if entry.name in entries:
            raise _refuse(entry.name, "occurs twice in the zip; create it again with only one")
        _check_entry(entry, mode)
        entries[entry.name] = entry
    if at != len(directory):
        raise Refused("The zip's directory holds more than its entries; the file is damaged or was crafted.")
    _check_overlaps(file, list(entries.values()), directory_at)
    files = {name: entry for name, entry in entries.items() if not name.endswith("/")}
    _check_folders(file, [entry for name, entry in entries.items() if name not in files], files)
    return files


def unpack(file: IO[bytes], entry: ZipEntry) -> Iterator[bytes]:
    """Yield the content of an entry in pieces; raise Refused as soon as it differs from the directory."""
    file.seek(entry.offset + _local_size(file, entry))
    size, crc = 0, 0
    for piece in _inflate(file, entry) if entry.method == DEFLATED else _read_packed(file, entry):
        size += len(piece)
        if size > entry.size:
            raise _refuse(entry.name, f"holds more than the {entry.size:,} bytes that the zip declares")
        crc = zlib.crc32(piece, crc)
        yield piece
    if size != entry.size:
        raise _refuse(entry.name, f"holds {size:,} bytes; the zip declares {entry.size:,}")
    if crc != entry.crc:
        raise _refuse(entry.name, "is damaged: its checksum (CRC) is wrong; download the file again")


def check_name(name: str) -> None:
    """Raise Refused unless ``name`` is a plain relative path with / that means the same on every system."""
    parts = name.split("/")
    if "\\" in name or name.startswith("/") or DRIVE_LETTER.match(name) or any(p in ("", ".", "..") for p in parts):
        raise _refuse(name, "is not a plain path inside the package; use /, and no ..")
    if UNSHOWABLE.search(name):
        raise _refuse(name, "has characters in its name that cannot be displayed; remove them")
    if not name.isascii():  # programs differ on which non-ASCII names are equal
        raise _refuse(name, "has non-ASCII letters in its name; rename it")
    if len(parts) > DEEPEST_FOLDER + 1:
        raise _refuse(name, "is nested too deeply; a bundle has no such folder")
    if len(name) > LONGEST_PATH:
        raise _refuse(name, f"has a name of more than {LONGEST_PATH} characters; shorten it")


def check_collisions(names: list[str]) -> None:
    """Raise Refused for names (ASCII) that differ only by case, and for a name that is both a file and a folder."""
    spelt: dict[str, str] = {}
    for name in names:
        other = spelt.setdefault(name.lower(), name)
        if other != name:
            raise _refuse(name, f"and {escape(other, 200)} differ only by case; keep one of them")
    for name in names:
        folder = name.rpartition("/")[0]
        while folder:
            if folder.lower() in spelt:
                raise _refuse(folder, "is a file and a folder at once; keep one of them")
            folder = folder.rpartition("/")[0]


def _read_end(file: IO[bytes], size: int) -> tuple[int, int, int]:
    """Return number of entries, size and offset of the central directory, which must be followed by its end record."""
    if size < END.size:
        raise Refused("It is not a zip file, or it was cut off; download it again.")
    file.seek(size - END.size)
    magic, disk, disk_of, here, count, length, at, comment = END.unpack(file.read(END.size))
    if magic != b"PK\x05\x06" or comment:
        raise Refused("It is not a zip file, it was cut off, or data follows its end; download it again.")
    end = size - END.size
    file.seek(max(0, end - END64_AT.size))
    # Some programs always follow zip64 records, others only if these values are full.
    if file.read(len(AT64)) == AT64 or FULL16 in (here, count) or FULL32 in (length, at):
        count64, length64, at64, end = _read_end64(file, end)
        short = ((here, FULL16, count64), (count, FULL16, count64), (length, FULL32, length64), (at, FULL32, at64))
        if any(stated not in (full, value) for stated, full, value in short):
            raise Refused("The zip has two different directory records (zip64); create it again.")
        here, count, length, at = count64, count64, length64, at64
    if disk or disk_of or here != count:
        raise Refused("The zip is a part of several; use one whole file.")
    if at + length != end or count * CENTRAL.size > length:
        raise Refused("The zip's directory is not at its stated place; the file is damaged.")
    return count, length, at


def _read_end64(file: IO[bytes], end: int) -> tuple[int, int, int, int]:
    start = end - END64_AT.size - END64.size
    if start < 0:
        raise Refused("The zip lacks its zip64 records; it was cut off or crafted.")
    file.seek(start)
    magic, length, _, _, disk, disk_of, here, count, size, at = END64.unpack(file.read(END64.size))
    magic_at, disk_at, at64, disks = END64_AT.unpack(file.read(END64_AT.size))
    sound = magic == b"PK\x06\x06" and magic_at == AT64 and length == END64.size - 12
    if not sound or at64 != start or disk or disk_of or disk_at or disks not in (0, 1) or here != count:
        raise Refused("The zip's zip64 records are invalid; it was cut off or crafted.")
    return count, size, at, start


def _read_central(directory: bytes, at: int) -> tuple[ZipEntry, int, int]:
    """Return the entry at an offset of the directory, its Unix mode, and the offset of the next one."""
    if len(directory) - at < CENTRAL.size:
        raise Refused("The zip's directory is cut off; download the file again.")
    magic, _, _, flags, method, _, _, crc, *sizes, disk, _, mode, offset = CENTRAL.unpack_from(directory, at)
    packed, size, name_size, extra_size, comment_size = sizes
    start = at + CENTRAL.size
    end = start + name_size + extra_size + comment_size
    if magic != b"PK\x01\x02" or end > len(directory):
        raise Refused("The zip's directory is damaged; download the file again.")
    raw = directory[start : start + name_size]
    try:
        name = raw.decode("utf-8" if flags & UTF8 else "ascii")
    except UnicodeDecodeError:
        shown = escape(repr(raw[:200])[2:-1])
        raise Refused(f"{shown} is not a name in UTF-8; rename the file and create the zip again.") from None
    check_name(name.removesuffix("/"))
    if comment_size:
        raise _refuse(name, f"has a comment in the zip, which the manifest does not cover; {AGAIN}")
    extra = directory[start + name_size : start + name_size + extra_size]
    size, packed, offset = _replace_full(extra, name, [size, packed, offset])
    if disk:
        raise Refused("The zip is a part of several; use one whole file.")
    return ZipEntry(name, raw, flags, method, crc, packed, size, offset), mode >> 16, end


def _replace_full(extra: bytes, name: str, values: list[int]) -> list[int]:
    """Replace full values by those of the zip64 field, in its order; the field must not have more values."""
    field = _read_zip64_field(extra, name)
    result = []
    for value in values:
        if value == FULL32:
            if len(field) < 8:
                raise _refuse(name, f"lacks its size in the zip (zip64); {AGAIN}")
            value, field = int.from_bytes(field[:8], "little"), field[8:]  # noqa: PLW2901
        result.append(value)
    if field:
        raise _refuse(name, f"has two sizes or places in the zip (zip64); {AGAIN}")
    return result


def _read_zip64_field(extra: bytes, name: str) -> bytes:
    """Return the zip64 field of a header, if any; raise Refused for fields that other programs may read differently.

    An example is 0x7075: a second name, with which `unzip` would write one file in the place of another.
    """
    fields: dict[int, bytes] = {}
    while extra:
        kind, length = struct.unpack("<2H", extra[:4]) if len(extra) >= 4 else (0, FULL16)
        if kind in fields or 4 + length > len(extra):
            raise _refuse(name, f"has extra fields in the zip that are doubled or cut off; {AGAIN}")
        if length > HARMLESS.get(kind, -1):
            says = f"has the extra field 0x{kind:04x} in the zip, by which others may read another name or content"
            raise _refuse(name, f"{says}; {AGAIN}, with no more than names and times")
        fields[kind], extra = extra[4 : 4 + length], extra[4 + length :]
    return fields.get(ZIP64, b"")


def _check_folders(file: IO[bytes], folders: list[ZipEntry], files: Iterable[str]) -> None:
    """Raise Refused for folders without files or with content of their own."""
    idle = {entry.name for entry in folders}
    for name in files if folders else ():
        idle.difference_update(name[: at + 1] for at, letter in enumerate(name) if letter == "/")
    for entry in folders:
        if entry.size or entry.packed > 2:  # an empty deflate stream has two bytes
            raise _refuse(entry.name, "is a folder with content; create the zip again")
        if entry.name in idle:
            raise _refuse(entry.name, "is an empty folder; create the zip again without it")
        for _ in unpack(file, entry):
            pass


def _check_entry(entry: ZipEntry, mode: int) -> None:
    if entry.flags & (ENCRYPTED | STRONG | MASKED):
        raise _refuse(entry.name, "is encrypted; create the zip without a password")
    if entry.flags & ~KNOWN_FLAGS:
        raise _refuse(entry.name, f"is packed in an unknown way (flags 0x{entry.flags:04x}); {AGAIN}")
    if entry.method not in (STORED, DEFLATED):
        raise _refuse(entry.name, f"is packed by method {entry.method}; only stored and deflate are supported")
    if stat.S_IFMT(mode) not in (0, stat.S_IFDIR if entry.name.endswith("/") else stat.S_IFREG):
        raise _refuse(entry.name, "is a symbolic link or a special file; replace it with the file itself")
    if entry.method == STORED and entry.size != entry.packed:
        raise _refuse(entry.name, f"has two sizes in the zip; {AGAIN}")
    if entry.size > SMALL_ANYWAY and entry.size > LARGEST_RATIO * entry.packed:
        says = f"would unpack to {entry.size:,} bytes from {entry.packed:,}, as a zip bomb does"
        raise _refuse(entry.name, f"{says}; the limit is {LARGEST_RATIO} times as much")


def _check_overlaps(file: IO[bytes], entries: list[ZipEntry], end: int) -> None:
    """Raise Refused unless the entries fill the file from its first byte to the directory, without gaps."""
    in_order = sorted(entries, key=lambda one: one.offset)
    starts = [*(entry.offset for entry in in_order), end]
    if starts[0]:
        raise Refused(f"The zip begins with bytes that belong to no entry; {AGAIN}.")
    for entry, following in zip(in_order, starts[1:], strict=True):
        if entry.offset + LOCAL.size > end:
            raise _refuse(entry.name, "lies outside the zip; the file is damaged")
        over = entry.offset + _local_size(file, entry) + entry.packed
        if over > following:
            raise _refuse(entry.name, f"overlaps another entry of the zip, or its directory; {AGAIN}")
        if entry.flags & DESCRIBED_AFTER:
            file.seek(over)
            # Checksum, and sizes of four or eight bytes, with or without a signature.
            sizes = (entry.packed, entry.size)
            forms = [struct.pack("<L2Q", entry.crc, *sizes)]
            forms += [struct.pack("<3L", entry.crc, *sizes)] if max(sizes) <= FULL32 else []
            behind = file.read(min(following - over, LONGEST_DESCRIPTOR + 1))
            if behind not in (*forms, *(DESCRIPTOR + form for form in forms)):
                raise _refuse(
                    entry.name, f"is followed by something other than its checksum and sizes in the zip; {AGAIN}"
                )
        elif over != following:
            raise Refused(f"The zip has bytes after {escape(entry.name, 200)} that belong to no entry; {AGAIN}.")


def _local_size(file: IO[bytes], entry: ZipEntry) -> int:
    """Return the length of an entry's own header in bytes; raise Refused if it contradicts the directory."""
    file.seek(entry.offset)
    head = file.read(LOCAL.size)
    if len(head) != LOCAL.size:
        raise _refuse(entry.name, "is cut off; download the zip again")
    magic, _, flags, method, _, _, crc, packed, size, name_size, extra_size = LOCAL.unpack(head)
    raw, extra = file.read(name_size), file.read(extra_size)
    if magic != b"PK\x03\x04" or (raw, flags, method) != (entry.raw_name, entry.flags, entry.method):
        raise _refuse(entry.name, "has another name or type in its own header than in the zip's directory")
    size, packed = _replace_full(extra, entry.name, [size, packed])
    known = ((crc, entry.crc), (packed, entry.packed), (size, entry.size))
    if any(here != there and (here or not flags & DESCRIBED_AFTER) for here, there in known):
        raise _refuse(entry.name, "has other sizes in its own header than in the zip's directory")
    return LOCAL.size + name_size + extra_size


def _read_packed(file: IO[bytes], entry: ZipEntry) -> Iterator[bytes]:
    at, end = file.tell(), file.tell() + entry.packed
    while at < end:
        file.seek(at)  # the caller may have read another entry between two pieces
        piece = file.read(min(AT_ONCE, end - at))
        if not piece:
            raise _refuse(entry.name, "is cut off; download the zip again")
        at += len(piece)
        yield piece


def _inflate(file: IO[bytes], entry: ZipEntry) -> Iterator[bytes]:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for piece in _read_packed(file, entry):
            waiting = piece
            while waiting and not stream.eof:
                out = stream.decompress(waiting, AT_ONCE)
                waiting = stream.unconsumed_tail
                if out:
                    yield out
            if stream.unused_data or (stream.eof and waiting):
                raise _refuse(entry.name, "is followed by extra data; create the zip again")
        rest = stream.flush()
    except zlib.error:
        raise _refuse(entry.name, "is damaged: it does not unpack; download the file again") from None
    if rest:
        yield rest
    if not stream.eof:
        raise _refuse(entry.name, "is cut off; download the zip again")
