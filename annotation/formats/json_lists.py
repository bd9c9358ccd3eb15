"""Read a JSON list element by element, as strictly as `documents.parse_json`, with one element in memory."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import BinaryIO

from annotation.formats.documents import (
    MOST_PROBLEMS,
    MOST_VALUES,
    ZIP,
    FormatError,
    count_values,
    duplicate_key,
    kind_of,
    object_maker,
    value_problems,
)
from annotation.records import Problem

CHUNK = 2**20  # bytes
LARGEST_ELEMENT = 16 * 2**20  # characters
LONGEST_TOKEN = 12  # characters of the longest indivisible token: -Infinity or an escape
NOT_UTF8 = "is UTF-16; save it as UTF-8"


def read_list(source: BinaryIO, name: str) -> Iterator[tuple[object, list[Problem]]]:
    """Yield each element of the list in ``source`` with its problems; messages name the file ``name``.

    Raises FormatError for a document that is not a list, syntax errors, other encodings than UTF-8 and too large
    elements.
    """
    text = _Text(source, name)
    first = text.next_character()
    if first != "[":
        kind = "an object" if first == "{" else kind_of(text.read_element(0)[0])
        raise FormatError(Problem("not_a_list", f"{name}: must be a list of tasks, not {kind}.", name))
    text.position += 1
    index, mark = 0, text.next_character()
    while mark != "]":
        yield text.read_element(index)
        index, mark = index + 1, text.next_character()
        if mark not in ("]", ","):
            raise text.invalid("Expecting ',' delimiter", text.position)
        if mark == ",":
            text.position += 1
            text.next_character()
    text.position += 1
    if text.next_character():
        raise text.invalid("Extra data", text.position)


class _Text:
    """The decoded text of a file; ``rest`` is the part in memory, ``position`` is the reading position in it."""

    def __init__(self, source: BinaryIO, name: str) -> None:
        self.name = name
        self.rest = ""
        self.position = 0
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._is_ended = False
        self._bytes = 0
        self._lines = self._column = 0  # of the text before ``rest``
        self._repeated: list[str] = []
        self._json = json.JSONDecoder(object_pairs_hook=object_maker(self._repeated))

    def next_character(self) -> str:
        """Advance to the next character that is not white space and return it, or "" at the end."""
        while True:
            while self.position < len(self.rest):
                if self.rest[self.position] not in " \t\r\n":
                    return self.rest[self.position]
                self.position += 1
            if self._is_ended:
                return ""
            self._read_more()

    def read_element(self, index: int) -> tuple[object, list[Problem]]:
        """Return the value at ``position`` with its problems, and advance behind it."""
        while True:
            self._repeated.clear()
            try:
                value, end = self._json.raw_decode(self.rest, self.position)
            except json.JSONDecodeError as error:
                is_cut = error.pos > len(self.rest) - LONGEST_TOKEN or error.msg.startswith("Unterminated string")
                if self._is_ended or not is_cut:
                    raise self.invalid(error.msg, error.pos) from error
            except RecursionError as error:
                raise self._failed("json_invalid", "is not usable JSON, it is nested too deeply") from error
            except ValueError as error:
                says = "is not usable JSON, it has an integer of thousands of digits"
                raise self._failed("json_invalid", says) from error
            else:
                # The digits of a number may continue in the next chunk.
                if end < len(self.rest) or self._is_ended:
                    self.position = end
                    problems = [duplicate_key(self.name, key) for key in self._repeated[:MOST_PROBLEMS]]
                    return value, problems + value_problems(value, self.name, f"[{index}]")
            self._read_more()

    def invalid(self, says: str, position: int) -> FormatError:
        before = self.rest[:position]
        line = self._lines + before.count("\n") + 1
        column = position - before.rfind("\n") if "\n" in before else self._column + position + 1
        return self._failed("json_invalid", f"is not valid JSON, line {line:,} column {column:,}: {says}")

    def _read_more(self) -> None:
        self._forget()
        if len(self.rest) > LARGEST_ELEMENT:
            raise self._failed("json_too_large", f"has one element of over {LARGEST_ELEMENT:,} characters")
        if len(self.rest) > CHUNK and count_values(self.rest.encode()) > MOST_VALUES:
            raise self._failed("json_too_large", f"has one element of over {MOST_VALUES:,} values")
        chunk = self._source.read(CHUNK)
        if not self._bytes and chunk.startswith(ZIP):
            raise self._failed("not_utf8", "is a zip; a JSON list of tasks is expected")
        if not self._bytes and (chunk.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(chunk) > 1 and 0 in chunk[:2])):
            raise self._failed("not_utf8", NOT_UTF8)
        self._is_ended = not chunk
        waiting = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line = self._lines + self.rest.count("\n") + error.object.count(b"\n", 0, error.start) + 1
            place = f"byte {self._bytes - waiting + error.start:,}, line {line:,}"
            raise self._failed("not_utf8", f"is not UTF-8 ({place}); save it as UTF-8") from error
        self._bytes += len(chunk)
        if "\x00" in text:
            line = self._lines + self.rest.count("\n") + text.count("\n", 0, text.index("\x00")) + 1
            raise self._failed("nul_character", f"has a NUL character in line {line:,}")
        self.rest += text

    def _forget(self) -> None:
        """Drop the text before ``position`` and count its lines."""
        read, self.rest = self.rest[: self.position], self.rest[self.position :]
        self.position = 0
        self._lines += read.count("\n")
        self._column = len(read) - read.rfind("\n") - 1 if "\n" in read else self._column + len(read)

    def _failed(self, code: str, says: str) -> FormatError:
        return FormatError(Problem(code, f"{self.name}: {says}.", self.name))
