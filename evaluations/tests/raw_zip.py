"""Zips put together byte by byte, so that they can say what no honest program would write."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Entry:
    """A file of a zip. ``local`` and ``central`` replace what its two headers say, ``after`` stands behind it."""

    name: bytes
    data: bytes = b"{}"
    method: int = 0
    flags: int = 0
    mode: int = 0
    extra: bytes = b""
    local_extra: bytes = b""
    comment: bytes = b""
    after: bytes = b""
    local: dict[str, Any] = field(default_factory=dict)
    central: dict[str, Any] = field(default_factory=dict)
    offset: int | None = None

    def packed(self) -> bytes:
        if self.method != 8:
            return self.data
        stream = zlib.compressobj(9, zlib.DEFLATED, -15)
        return stream.compress(self.data) + stream.flush()

    def says(self, header: dict[str, Any]) -> dict[str, Any]:
        usual = {"name": self.name, "flags": self.flags, "method": self.method, "crc": zlib.crc32(self.data)}
        return usual | {"packed": len(self.packed()), "size": len(self.data)} | header


def raw_zip(*entries: Entry, end: dict[str, Any] | None = None, behind: bytes = b"", comment: bytes = b"") -> bytes:
    """The bytes of a zip; ``end`` replaces count, length and offset of the directory, ``behind`` comes before it."""
    body, directory = b"", b""
    for entry in entries:
        offset = len(body) if entry.offset is None else entry.offset
        directory += _central(entry, offset)
        if entry.offset is None:
            body += _local(entry) + entry.packed() + entry.after
    body += behind
    said = {"count": len(entries), "length": len(directory), "at": len(body)} | (end or {})
    last = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, said["count"], said["count"], said["length"], said["at"], len(comment)
    )
    return body + directory + said.get("records", b"") + last + comment


def _local(entry: Entry) -> bytes:
    said = entry.says(entry.local)
    sizes = (said["crc"], said["packed"], said["size"])
    head = struct.pack(
        "<4s5H3L2H",
        b"PK\x03\x04",
        20,
        said["flags"],
        said["method"],
        0,
        33,
        *sizes,
        len(said["name"]),
        len(entry.local_extra),
    )
    return head + said["name"] + entry.local_extra


def _central(entry: Entry, offset: int) -> bytes:
    said = entry.says(entry.central)
    sizes = (said["crc"], said["packed"], said["size"], len(said["name"]), len(entry.extra))
    made_by = (3 << 8) | 20
    rest = (len(entry.comment), said.get("disk", 0), 0, entry.mode << 16, offset)
    head = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", made_by, 20, said["flags"], said["method"], 0, 33, *sizes, *rest)
    return head + said["name"] + entry.extra + entry.comment


def extra_field(kind: int, data: bytes) -> bytes:
    return struct.pack("<2H", kind, len(data)) + data
