"""A HAR as JSON, entry by entry: what is held is one entry and one chunk of the file."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

import ijson

from annotation.formats.documents import FormatError, kind_of
from annotation.formats.har.limits import (
    CHUNK,
    DEEPEST,
    LARGEST_CHUNK,
    LARGEST_ENTRY,
    LONGEST_STRING,
    MOST_ENTRIES,
    MOST_VALUES,
)
from annotation.formats.printable import printable
from annotation.records import Problem

BOM = b"\xef\xbb\xbf"
STARTS: dict[str, type] = {"start_map": dict, "start_array": list}
ENDS = frozenset({"end_map", "end_array"})
# What leads to the entries: the key on each level, and what must begin there.
WAY = (("", "start_map", "it"), ("log", "start_map", "log"), ("entries", "start_array", "log.entries"))
HEAD_KEYS = frozenset({"version", "creator", "browser"})
# Large, and kept by nobody: counted like the rest, and not built.
UNUSED = frozenset({"_webSocketMessages", "_eventSourceMessages", "_initiator"})


def failed(code: str, name: str, says: str) -> FormatError:
    return FormatError(Problem(code, f"{printable(name)}: {says}.", printable(name, 300)))


class HarStream:
    """The entries of the HAR in ``source``, as they were written; ``head`` has version, creator and browser, as far
    as they have been met. Iterating raises FormatError for what is no HAR, and for what exceeds the limits.
    """

    def __init__(self, source: BinaryIO, name: str, backend: Any = ijson) -> None:
        self.head: dict[str, Any] = {}
        self._source = source
        self._name = name
        self._backend = backend
        self._silent = 0  # bytes since the parser told something
        self._reading = _Reading(name, self.head)

    def __iter__(self) -> Iterator[Any]:
        events: Any = ijson.sendable_list()
        parser = self._backend.basic_parse_coro(events, use_float=True)
        try:
            yield from self._entries(parser, events)
        finally:
            # A parser that is left alone complains of what is missing when it is collected.
            with suppress(ijson.JSONError):
                parser.close()

    def _entries(self, parser: Any, events: Any) -> Iterator[Any]:
        for chunk in self._chunks():
            self._feed(parser, chunk, events)
            # A parser that tells nothing collects one value: an endless text must not fill the memory.
            self._silent = 0 if events else self._silent + len(chunk)
            if self._silent > LONGEST_STRING:
                raise failed("har_too_large", self._name, f"has one value of more than {LONGEST_STRING:,} bytes")
            yield from self._reading.take(events)
            del events[:]
        self._feed(parser, None, events)
        yield from self._reading.take(events)
        self._reading.finish()

    def _chunks(self) -> Iterator[bytes]:
        first = self._source.read(CHUNK)
        if first.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in first[:2]:
            raise failed("not_utf8", self._name, "is UTF-16; save it as UTF-8")
        chunk, blank = first.removeprefix(BOM), True
        while chunk:
            blank = blank and chunk.isspace()
            yield chunk
            # The parser reads a text from its beginning with every chunk of it: a long one comes in larger pieces.
            chunk = self._source.read(min(max(CHUNK, self._silent), LARGEST_CHUNK))
        if blank:
            raise failed("har_invalid", self._name, "is empty; record it again")

    def _feed(self, parser: Any, chunk: bytes | None, events: Any) -> None:
        try:
            if chunk is None:
                parser.close()
            else:
                parser.send(chunk)
        except (ijson.JSONError, ValueError, OverflowError, StopIteration, RecursionError) as error:
            # No more than its first words: parsers quote what they stumble over, which may be a secret.
            says = printable(str(error).partition("\n")[0].partition("'")[0].strip(), 80)
            deque(self._reading.take(events), maxlen=0)  # what was complete before the mistake tells where it is
            read = self._reading.count
            place = f"after entry {read:,}" if read else "before its first entry is complete"
            if chunk is None or "premature" in says:
                says = "it ends too early; copy it whole, or record it again"
            message = f"is not valid JSON, {place}: {says}"
            raise failed("json_invalid", self._name, message) from error


class _Reading:
    """Find the entries and the head among the events of a parser."""

    def __init__(self, name: str, head: dict[str, Any]) -> None:
        self.count = 0
        self._name = name
        self._head = head
        self._level = 0  # 1 in the root, 2 in the log, 3 among the entries
        self._key = ""
        self._value: _Built | _Skipped | None = None
        self._has_entries = False

    def take(self, events: list[tuple[str, Any]]) -> Iterator[Any]:
        """The entries that are complete with these events."""
        for event, value in events:
            if self._value is not None:
                complete = self._value.add(event, value)
            elif event == "map_key":
                self._key = value
                continue
            elif event in ENDS:
                self._level -= 1
                continue
            else:
                complete = self._begin(event, value)
            if complete and self._value is not None:
                done, self._value = self._value, None
                yield from self._done(done)

    def _done(self, done: _Built | _Skipped) -> Iterator[Any]:
        if self._level == len(WAY):
            self.count += 1
            yield done.built
        elif self._level == 2 and self._key in HEAD_KEYS:
            self._head[self._key] = done.built

    def finish(self) -> None:
        if not self._has_entries:
            raise failed("har_invalid", self._name, "is no HAR: it has no list log.entries; export it as HAR 1.2")

    def _begin(self, event: str, value: Any) -> bool:
        """A step towards the entries, or the beginning of a value; whether that is complete already."""
        if self._level < len(WAY) and (self._level == 0 or self._key == WAY[self._level][0]):
            self._descend(event, value)
            return False
        if self.count >= MOST_ENTRIES:
            raise failed("har_too_large", self._name, f"has more than {MOST_ENTRIES:,} entries")
        if self._level == len(WAY):
            self._value = _Built(f"{printable(self._name)}: log.entries[{self.count}]")
        elif self._level == 2 and self._key in HEAD_KEYS:
            self._value = _Built(f"{printable(self._name)}: log.{self._key}")
        else:
            self._value = _Skipped()
        return self._value.add(event, value)

    def _descend(self, event: str, value: Any) -> None:
        _, wanted, called = WAY[self._level]
        if event != wanted:
            kind = kind_of(STARTS[event]() if event in STARTS else value)
            article = kind_of(STARTS[wanted]())
            raise failed("har_invalid", self._name, f"is no HAR: {called} must be {article}, not {kind}")
        self._level += 1
        if self._level == len(WAY):
            if self._has_entries:
                raise failed("har_invalid", self._name, "has log.entries twice; keep one of them")
            self._has_entries = True


class _Skipped:
    """A value that is not stored."""

    built = None

    def __init__(self) -> None:
        self._depth = 0

    def add(self, event: str, value: Any) -> bool:
        """Takes an event; whether the value is complete."""
        self._depth += (event in STARTS) - (event in ENDS)
        return self._depth == 0 and event != "map_key"


class _Built:
    """A value built from events, with a limit of values, levels and characters."""

    def __init__(self, where: str) -> None:
        self.built: Any = None
        self._where = where
        self._stack: list[Any] = []
        self._key = ""
        self._values = self._characters = 0
        self._skipped: _Skipped | None = None

    def add(self, event: str, value: Any) -> bool:
        """Takes an event; whether the value is complete."""
        if self._skipped is not None:
            self._skipped = None if self._skipped.add(event, value) else self._skipped
            return False
        if event == "map_key":
            self._key = value
            self._characters += len(value)
            return False
        if event in ENDS:
            self._stack.pop()
            return not self._stack
        if len(self._stack) == 1 and self._key in UNUSED:
            skipped = _Skipped()
            self._skipped = None if skipped.add(event, value) else skipped
            return False
        return self._place(event, value)

    def _place(self, event: str, value: Any) -> bool:
        self._count(value)
        start = STARTS.get(event)
        made = start() if start else value
        if not self._stack:
            self.built = made
        elif type(self._stack[-1]) is dict:
            self._stack[-1][self._key] = made
        else:
            self._stack[-1].append(made)
        if start:
            self._stack.append(made)
        return not self._stack

    def _count(self, value: Any) -> None:
        self._values += 1
        if isinstance(value, str):
            self._characters += len(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise self._refused("number_not_finite", "has a number that is not finite, which is not JSON")
        if self._values > MOST_VALUES or len(self._stack) > DEEPEST or self._characters > LARGEST_ENTRY:
            limits = f"{MOST_VALUES:,} values, {DEEPEST} levels or {LARGEST_ENTRY:,} characters"
            raise self._refused("har_too_large", f"has more than {limits}")

    def _refused(self, code: str, says: str) -> FormatError:
        return FormatError(Problem(code, f"{self._where}: {says}.", self._where))
