"""The three forms of a network trace: JSON, the same gzipped, and the zip that Playwright records a trace into."""

from __future__ import annotations

import io
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, cast

from annotation.formats import scratch
from annotation.formats.har.limits import CHUNK, LARGEST, MIB, RATIO, RATIO_FROM
from annotation.formats.har.playwright import PlaywrightTrace
from annotation.formats.har.streaming import HarStream, failed

GZIP = b"\x1f\x8b"
ZIP = b"PK"


class Entries(Protocol):
    """The entries of a trace, one by one; ``head`` has the version, creator and browser read so far."""

    head: dict[str, Any]

    def __iter__(self) -> Iterator[Any]: ...


@contextmanager
def open_entries(source: BinaryIO, name: str) -> Iterator[Entries]:
    """The entries of a trace in any of the three forms, which its first bytes tell; ``name`` is for messages.

    ``source`` need not be seekable; it is read as it is needed, and never more than `LARGEST` of it. Iterating
    raises FormatError for everything that is not right, and what ``source.read`` raises.
    """
    first = source.read(len(GZIP))
    stream = Bounded(source, name, first)
    if first == GZIP:
        yield HarStream(cast(BinaryIO, Gunzipped(stream, name)), name)
    elif first == ZIP:
        with scratch.folder("trace") as folder:
            path = folder / "trace.zip"
            with path.open("wb") as file:
                shutil.copyfileobj(stream, file, MIB)
            with PlaywrightTrace.opened(path, name) as trace:
                yield trace
    else:
        yield HarStream(cast(BinaryIO, stream), name)


class Bounded(io.RawIOBase):
    """``first`` and the rest of a stream. Raises FormatError after `LARGEST` bytes."""

    def __init__(self, source: BinaryIO, name: str, first: bytes = b"") -> None:
        self._source = source
        self._name = name
        self._first = first
        self._left = LARGEST

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        wanted = CHUNK if size < 0 else size
        data, self._first = self._first, b""
        data += self._source.read(max(wanted - len(data), 0))
        self._left -= len(data)
        if self._left < 0:
            raise failed("har_too_large", self._name, f"is larger than {LARGEST:,} bytes")
        return data


class Gunzipped(io.RawIOBase):
    """The content of a gzip stream, at most a chunk at a time. Raises FormatError for damage and for a bomb."""

    def __init__(self, source: Bounded, name: str) -> None:
        self._source = source
        self._name = name
        self._inflate = zlib.decompressobj(wbits=31)
        self._waiting = b""
        self._more_inside = False  # zlib may hold back output for which the last call had no room
        self._packed = self._unpacked = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes, and b"" only at the end."""
        while True:
            if self._inflate.eof and not self._next_member():
                return b""
            if not self._waiting and not self._more_inside:
                self._waiting = self._source.read(CHUNK)
                self._packed += len(self._waiting)
                if not self._waiting:
                    raise failed("gzip_invalid", self._name, "ends in the middle of its gzip data; copy it whole")
            if data := self._inflated(CHUNK if size <= 0 else size):
                return data

    def _inflated(self, size: int) -> bytes:
        try:
            data = self._inflate.decompress(self._waiting, size)
        except zlib.error as error:
            raise failed("gzip_invalid", self._name, f"is not readable gzip data ({error}); pack it again") from error
        self._waiting = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
        self._more_inside = len(data) == size
        self._unpacked += len(data)
        if self._unpacked > LARGEST:
            raise failed("har_too_large", self._name, f"unpacks to more than {LARGEST:,} bytes")
        if self._unpacked > max(RATIO_FROM, RATIO * self._packed):
            raise failed("compression_ratio", self._name, f"unpacks to over {RATIO} times its size; store it as .har")
        return data

    def _next_member(self) -> bool:
        """A gzip file may have several members; zeros after the last are padding."""
        self._waiting = self._waiting.lstrip(b"\0")
        while not self._waiting:
            chunk = self._source.read(CHUNK)
            if not chunk:
                return False
            self._packed += len(chunk)
            self._waiting = chunk.lstrip(b"\0")
        self._inflate = zlib.decompressobj(wbits=31)
        return True
