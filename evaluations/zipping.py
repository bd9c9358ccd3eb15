"""A zip piece by piece: nothing of it is kept, and the same files give the same bytes, whenever and wherever."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can state


@dataclass(frozen=True, slots=True)
class Entry:
    """A file to be: ``size`` in bytes is needed of those over 2 GB only, which a zip states in another way."""

    name: str
    chunks: Iterable[bytes]
    compressed: bool = False
    size: int = 0


def zipped(entries: Iterable[Entry]) -> Iterator[bytes]:
    stream = _Stream()
    with zipfile.ZipFile(stream, "w") as package:
        for entry in entries:
            with package.open(_build_info(entry), "w") as member:
                for chunk in entry.chunks:
                    member.write(chunk)
                    yield stream.taken()
            yield stream.taken()
    yield stream.taken()


def _build_info(entry: Entry) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(entry.name, EPOCH)
    member.external_attr = 0o644 << 16
    member.create_system = 3  # the same on every system
    member.compress_type = zipfile.ZIP_DEFLATED if entry.compressed else zipfile.ZIP_STORED
    member.file_size = entry.size
    return member


class _Stream:
    """Where zipfile writes to: what it has written can be taken away at any time, so it cannot go back."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes, /) -> int:
        self._written += data
        return len(data)

    def close(self) -> None:
        """What was written can still be taken."""

    def flush(self) -> None:
        """Nothing is held back."""

    def taken(self) -> bytes:
        data = bytes(self._written)
        self._written.clear()
        return data
