"""Read the entries of a network trace one by one. Its form is JSON, gzipped JSON or the zip of Playwright.

Memory contains one entry and one chunk of the file. Sizes are in bytes unless stated otherwise.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

import ijson

from annotation.formats import scratch
from annotation.formats.archive import Limits, PackageError, ZipPackage
from annotation.formats.documents import FormatError, kind_of
from annotation.formats.har.bodies import LONGEST_TEXT, is_text, media_type, reject_constant
from annotation.formats.printable import printable
from annotation.formats.trajectory_folder import natural_key
from annotation.records import Problem

MIB = 2**20
CHUNK = 64 * 1024
LARGEST_CHUNK = MIB  # of one long text
LARGEST = 256 * MIB  # of the JSON, or of the zip, unpacked
LONGEST_STRING = 32 * MIB  # of one value in the JSON
LARGEST_ENTRY = 48 * MIB  # characters of all texts in one entry
DEEPEST = 64  # levels below an entry
MOST_VALUES = 200_000  # of one entry; Python needs 40 MB for this many
MOST_ENTRIES = 200_000
# A HAR repeats itself and compresses well; below the second number any ratio is harmless.
RATIO, RATIO_FROM = 200, 16 * MIB

GZIP, ZIP, BOM = b"\x1f\x8b", b"PK", b"\xef\xbb\xbf"
STARTS: dict[str, type] = {"start_map": dict, "start_array": list}
ENDS = frozenset({"end_map", "end_array"})
HEAD_KEYS = frozenset({"version", "creator", "browser"})
# Large and never stored, so they are skipped.
UNUSED = frozenset({"_webSocketMessages", "_eventSourceMessages", "_initiator"})

NETWORK = ".network"
LONGEST_LINE = 16 * MIB
BODY_NAME = re.compile(r"[\w.-]{1,200}", re.ASCII)
HOW = "record it with context.tracing.start(snapshots=True), or export the HAR itself"
# These only concern files that are not read, or are reported again when one is read.
HARMLESS = frozenset({"nested_archive", "compression_ratio", "file_too_large"})

Event = tuple[str, Any]  # of ijson


class Entries(Protocol):
    """The entries of a trace, one by one; ``head`` has the version, creator and browser read so far."""

    head: dict[str, Any]

    def __iter__(self) -> Iterator[Any]: ...


def failed(code: str, name: str, says: str) -> FormatError:
    return FormatError(Problem(code, f"{printable(name)}: {says}.", printable(name, 300)))


@contextmanager
def open_entries(source: BinaryIO, name: str) -> Iterator[Entries]:
    """Open a trace; its first bytes show its form. ``name`` is for messages.

    ``source`` need not be seekable; more than `LARGEST` bytes are an error. Iterating raises FormatError for every
    problem, and the errors of ``source.read``.
    """
    first = source.read(len(GZIP))
    stream = _Bounded(source, name, first)
    if first == GZIP:
        yield HarStream(_Unpacked(stream, name), name)
    elif first == ZIP:
        with scratch.folder("trace") as folder:
            path = folder / "trace.zip"
            with path.open("wb") as file:
                shutil.copyfileobj(cast(BinaryIO, stream), file, MIB)
            with _open_playwright(path, name) as trace:
                yield trace
    else:
        yield HarStream(stream, name)


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class _Bounded:
    """``first`` and the rest of a stream. Raises FormatError after `LARGEST` bytes."""

    def __init__(self, source: BinaryIO, name: str, first: bytes) -> None:
        self.count = 0
        self._source = source
        self._name = name
        self._first = first

    def read(self, size: int = CHUNK, /) -> bytes:
        data, self._first = self._first, b""
        data += self._source.read(max(size - len(data), 0))
        self.count += len(data)
        if self.count > LARGEST:
            raise failed("har_too_large", self._name, f"is larger than {LARGEST:,} bytes")
        return data


class _Unpacked:
    """The content of a gzip stream. Raises FormatError for damaged data and for decompression bombs."""

    def __init__(self, source: _Bounded, name: str) -> None:
        self._source = source
        self._name = name
        self._stream = gzip.GzipFile(fileobj=cast(Any, source))
        self._count = 0

    def read(self, size: int = CHUNK, /) -> bytes:
        try:
            data = self._stream.read(size)
        except EOFError as error:
            raise failed(
                "gzip_invalid", self._name, "ends in the middle of its gzip data; copy the whole file"
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise failed(
                "gzip_invalid", self._name, f"is not readable gzip data ({error}); compress it again"
            ) from error
        self._count += len(data)
        if self._count > LARGEST:
            raise failed("har_too_large", self._name, f"unpacks to more than {LARGEST:,} bytes")
        if self._count > max(RATIO_FROM, RATIO * self._source.count):
            raise failed("compression_ratio", self._name, f"unpacks to over {RATIO} times its size; store it as .har")
        return data


# --- JSON -----------------------------------------------------------------------------------------------------------


class HarStream:
    """The entries of the HAR in ``source``, unchanged; see `Entries` for ``head``.

    Iterating raises FormatError if the document is not a HAR or exceeds the limits.
    """

    def __init__(self, source: _Readable, name: str, backend: Any = ijson) -> None:
        self.head: dict[str, Any] = {}
        self._source = source
        self._name = name
        self._backend = backend
        self._count = 0
        self._has_entries = False

    def __iter__(self) -> Iterator[Any]:
        events = self._parse()
        self._expect("start_map", "it", *next(events))
        for key in _keys(events):
            event, value = next(events)
            if key == "log":
                self._expect("start_map", "log", event, value)
                yield from self._read_log(events)
            else:
                _skip(event, events)
        for _ in events:  # raises for data after the document
            pass
        if not self._has_entries:
            raise failed(
                "har_invalid", self._name, "is not a HAR file: it has no list log.entries; export it as HAR 1.2"
            )

    def _read_log(self, events: Iterator[Event]) -> Iterator[Any]:
        for key in _keys(events):
            event, value = next(events)
            if key == "entries":
                self._expect("start_array", "log.entries", event, value)
                if self._has_entries:
                    raise failed("har_invalid", self._name, "has log.entries twice; keep one of them")
                self._has_entries = True
                yield from self._read_entries(events)
            elif key in HEAD_KEYS:
                self.head[key] = _Builder(f"{printable(self._name)}: log.{key}", events).build(event, value)
            else:
                _skip(event, events)

    def _read_entries(self, events: Iterator[Event]) -> Iterator[Any]:
        for event, value in _items(events):
            if self._count >= MOST_ENTRIES:
                raise failed("har_too_large", self._name, f"has more than {MOST_ENTRIES:,} entries")
            where = f"{printable(self._name)}: log.entries[{self._count}]"
            entry = _Builder(where, events).build(event, value)
            self._count += 1
            yield entry

    def _expect(self, wanted: str, called: str, event: str, value: Any) -> None:
        if event != wanted:
            kind = kind_of(STARTS[event]() if event in STARTS else value)
            says = f"is not a HAR file: {called} must be {kind_of(STARTS[wanted]())}, not {kind}"
            raise failed("har_invalid", self._name, says)

    def _parse(self) -> Iterator[Event]:
        events: Any = ijson.sendable_list()
        parser = self._backend.basic_parse_coro(events, use_float=True)
        chunk = self._read_beginning()
        silent, blank = 0, True  # bytes since the last event; only white space so far
        try:
            while chunk:
                blank = blank and chunk.isspace()
                yield from self._feed(parser, chunk, events)
                # A parser without events collects one value. An endless text must not fill the memory.
                silent = 0 if events else silent + len(chunk)
                if silent > LONGEST_STRING:
                    raise failed("har_too_large", self._name, f"has one value of more than {LONGEST_STRING:,} bytes")
                # The parser reads a text again with each of its chunks, so long texts get larger chunks.
                chunk = self._source.read(min(max(CHUNK, silent), LARGEST_CHUNK))
            if blank:
                raise failed("har_invalid", self._name, "is empty; record it again")
            yield from self._feed(parser, b"", events)
        finally:
            # Otherwise the parser would report missing data when it is garbage-collected.
            with suppress(ijson.JSONError):
                parser.close()

    def _read_beginning(self) -> bytes:
        data = self._source.read(CHUNK)
        if data.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in data[:2]:
            raise failed("not_utf8", self._name, "is UTF-16; save it as UTF-8")
        return data.removeprefix(BOM)

    def _feed(self, parser: Any, chunk: bytes, events: Any) -> Iterator[Event]:
        """Yield the events of a chunk, including those before an error, which locate it. b"" ends the document."""
        failure: Exception | None = None
        del events[:]
        try:
            if chunk:
                parser.send(chunk)
            else:
                parser.close()
        except (ijson.JSONError, ValueError, OverflowError, StopIteration, RecursionError) as error:
            failure = error
        yield from events
        if failure is not None:
            # Only the first words: parsers quote the text, which may be a secret.
            says = printable(str(failure).partition("\n")[0].partition("'")[0].strip(), 80)
            place = f"after entry {self._count:,}" if self._count else "before its first entry is complete"
            if not chunk or "premature" in says:
                says = "it ends too early; copy the whole file, or record it again"
            raise failed("json_invalid", self._name, f"is not valid JSON, {place}: {says}") from failure


def _keys(events: Iterator[Event]) -> Iterator[str]:
    """Yield the keys of an object; the caller consumes the events of each value."""
    return (value for _, value in takewhile(lambda event: event[0] != "end_map", events))


def _items(events: Iterator[Event]) -> Iterator[Event]:
    """Yield the first event of each item of a list; the caller consumes the others."""
    return takewhile(lambda event: event[0] != "end_array", events)


def _skip(event: str, events: Iterator[Event]) -> None:
    depth = int(event in STARTS)
    while depth:
        event, _ = next(events)
        depth += (event in STARTS) - (event in ENDS)


class _Builder:
    """Builder of one value from events, with limits of values, levels and characters."""

    def __init__(self, where: str, events: Iterator[Event]) -> None:
        self._where = where
        self._events = events
        self._values = self._characters = 0

    def build(self, event: str, value: Any, depth: int = 0) -> Any:
        self._count(value, depth)
        if event == "start_array":
            return [self.build(*each, depth + 1) for each in _items(self._events)]
        if event != "start_map":
            return value
        built = {}
        for key in _keys(self._events):
            self._characters += len(key)
            event, value = next(self._events)
            if depth == 0 and key in UNUSED:
                _skip(event, self._events)
            else:
                built[key] = self.build(event, value, depth + 1)
        return built

    def _count(self, value: Any, depth: int) -> None:
        self._values += 1
        if isinstance(value, str):
            self._characters += len(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise self._refused("number_not_finite", "has a number that is not finite, which JSON does not allow")
        if self._values > MOST_VALUES or depth > DEEPEST or self._characters > LARGEST_ENTRY:
            limits = f"{MOST_VALUES:,} values, {DEEPEST} levels or {LARGEST_ENTRY:,} characters"
            raise self._refused("har_too_large", f"has more than {limits}")

    def _refused(self, code: str, says: str) -> FormatError:
        return FormatError(Problem(code, f"{self._where}: {says}.", self._where))


# --- Playwright -----------------------------------------------------------------------------------------------------


@contextmanager
def _open_playwright(path: Path, name: str) -> Iterator[Entries]:
    """Open the zip at ``path``. Raises FormatError if it is damaged, hostile or not a trace."""
    package = ZipPackage(path, Limits(total_bytes=32 * LARGEST))
    try:
        for problem in package.problems:
            if problem.code not in HARMLESS:
                message = f"{printable(name)}: {problem.message} Record the trace again."
                raise FormatError(Problem(problem.code, message, printable(name, 300)))
        with path.with_suffix(".lines").open("w+b") as lines:
            yield _PlaywrightTrace(package, lines, name)
    finally:
        package.close()


class _PlaywrightTrace:
    """The entries in ``*.network``, one JSON line each, with the bodies in ``resources/<sha1>``; ``head`` is empty.

    Playwright writes a line when its response is complete, so the entries are sorted by their start. Meanwhile the
    lines are in a temporary file; memory contains the start and position of each.
    """

    def __init__(self, package: ZipPackage, lines: IO[bytes], name: str) -> None:
        self.head: dict[str, Any] = {}
        self._package = package
        self._lines = lines
        self._name = name

    def __iter__(self) -> Iterator[Any]:
        networks = sorted((name for name in self._package.names() if name.endswith(NETWORK)), key=natural_key)
        if not networks:
            raise failed(
                "trace_zip_invalid", self._name, f"is not a Playwright trace: it has no *{NETWORK} file; {HOW}"
            )
        starts: list[tuple[str, float, int]] = []  # of each entry, and the position of its line
        for network in networks:
            for number, line in enumerate(self._read_lines(network), start=1):
                entry = self._parse_line(line, f"{network}, line {number:,}")
                if entry is None:
                    continue
                if len(starts) >= MOST_ENTRIES:
                    raise failed("har_too_large", self._name, f"has more than {MOST_ENTRIES:,} entries")
                starts.append((*_find_start(entry), self._lines.tell()))
                self._lines.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        for _, _, position in sorted(starts):
            self._lines.seek(position)
            yield self._add_bodies(json.loads(self._lines.readline()))

    def _read_lines(self, network: str) -> Iterator[bytes]:
        try:
            with self._package.stream(network, LARGEST) as stream:
                while line := stream.readline(LONGEST_LINE + 1):
                    if len(line) > LONGEST_LINE:
                        says = f"{network} has a line of more than {LONGEST_LINE:,} bytes"
                        raise failed("har_too_large", self._name, says)
                    if line.strip():
                        yield line
        except PackageError as error:
            raise failed("trace_zip_invalid", self._name, error.problem.message.rstrip(".")) from error

    def _parse_line(self, line: bytes, where: str) -> dict[str, Any] | None:
        """Return the HAR entry on a line; None for lines of other types."""
        if sum(line.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
            raise failed("har_too_large", self._name, f"{where} has more than {MOST_VALUES:,} values")
        try:
            event = json.loads(line, parse_constant=reject_constant)
        except (ValueError, RecursionError) as error:
            says = f"{where} is not valid JSON; record the trace again, or copy the whole file"
            raise failed("json_invalid", self._name, says) from error
        if not isinstance(event, dict) or event.get("type") != "resource-snapshot":
            return None
        snapshot = event.get("snapshot")
        if not isinstance(snapshot, dict):
            says = f"{where}: snapshot must be an object, not {kind_of(snapshot)}"
            raise failed("har_invalid", self._name, says)
        return {key: value for key, value in snapshot.items() if key not in UNUSED}

    def _add_bodies(self, entry: dict[str, Any]) -> dict[str, Any]:
        for side, key in (("request", "postData"), ("response", "content")):
            message = entry.get(side)
            body = message.get(key) if isinstance(message, dict) else None
            if isinstance(body, dict) and not body.get("text") and isinstance(body.get("_sha1"), str):
                text = self._read_body(body["_sha1"], str(body.get("mimeType") or ""))
                if text is not None:
                    body["text"] = text
                    body.pop("encoding", None)
        return entry

    def _read_body(self, sha1: str, stated: str) -> str | None:
        """Return a body as text; None if it is not text, too long, or not in the zip."""
        if not BODY_NAME.fullmatch(sha1) or not is_text(media_type(stated)):
            return None
        try:
            data = self._package.read(f"resources/{sha1}", LONGEST_TEXT)
        except PackageError:
            return None
        return None if 0 in data[:1000] else data.decode("utf-8", "replace")


def _find_start(entry: dict[str, Any]) -> tuple[str, float]:
    """Return the start time, and the recorder's clock, which orders entries of the same millisecond."""
    started, clock = entry.get("startedDateTime"), entry.get("_monotonicTime")
    is_number = isinstance(clock, (int, float)) and not isinstance(clock, bool) and abs(clock) < 2**53
    return (started if isinstance(started, str) else ""), (float(clock) if is_number else 0.0)  # type: ignore[arg-type]
