"""Parse JSON strictly: a whole document, or a list element by element with one element in memory."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import BinaryIO

from annotation.formats.printable import printable
from annotation.records import Problem

MOST_VALUES = 1_000_000  # lists, objects and their items; Python needs up to 200 MB for this many
STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
MOST_PROBLEMS = 50
ZIP = b"PK\x03\x04"  # the first bytes of a zip
CHUNK = 2**20  # bytes
LARGEST_ELEMENT = 16 * 2**20  # characters
LONGEST_TOKEN = 12  # characters of the longest indivisible token: -Infinity or an escape
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

TYPE_NAMES = {
    dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number",
    float: "a number", type(None): "null",
}  # fmt: skip

_Path = tuple["_Path | None", str]


class FormatError(Exception):
    """A file does not have the form that its format requires."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = list(problems)


def kind_of(value: object) -> str:
    """Return the JSON type of ``value`` in words, for messages."""
    return TYPE_NAMES.get(type(value), type(value).__name__)


def decode_text(data: bytes, name: str, expected: str = "a text file") -> str:
    """Return ``data`` without its byte order mark. Raises FormatError unless it is UTF-8 without NUL characters."""
    _check_beginning(data, name, expected)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{name}: is not UTF-8 (byte {error.start:,}, line {line:,}); save it as UTF-8."
        raise FormatError(Problem("not_utf8", message, name)) from error
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise FormatError(Problem("nul_character", f"{name}: has a NUL character in line {line:,}.", name))
    return text


def _check_beginning(data: bytes, name: str, expected: str) -> None:
    if data.startswith(ZIP):
        raise FormatError(Problem("not_utf8", f"{name}: is a zip; {expected} is expected.", name))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(data) > 1 and 0 in data[:2]):
        raise FormatError(Problem("not_utf8", f"{name}: is UTF-16; save it as UTF-8.", name))


def parse_json(data: bytes, name: str) -> object:
    """Parse the JSON document in ``data``; ``name`` is the file for messages.

    Raises FormatError for everything that JSON or a database does not allow: encodings other than UTF-8, syntax errors,
    duplicate keys, NaN and infinities, oversized integers, deep nesting, NUL characters and lone surrogates.
    """
    if _count_values(data) > MOST_VALUES:
        raise FormatError(Problem("json_too_large", f"{name}: has over {MOST_VALUES:,} values.", name))
    repeated: list[str] = []
    document = _load(decode_text(data, name), name, object_maker(repeated))
    problems = [_duplicate_key(name, key) for key in repeated[:MOST_PROBLEMS]]
    problems += _find_unstorable(document, name)
    if problems:
        raise FormatError(*problems)
    return document


def object_maker(repeated: list[str]) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    """Return a hook that builds the objects of a document and adds repeated keys to ``repeated``."""

    def make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) < len(pairs):
            repeated.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return made

    return make_object


def _duplicate_key(name: str, key: str) -> Problem:
    return Problem("duplicate_key", f"{name}: an object has the key {printable(key)} twice. Remove one of them.", name)


def _count_values(data: bytes) -> int:
    """Return an upper bound of the number of values in the JSON document ``data``."""
    # Texts contain many commas. Removing the texts takes time, so it is done only if the count could matter.
    return count if (count := _count_marks(data)) <= MOST_VALUES else _count_marks(STRING.sub(b"", data))


def _count_marks(data: bytes) -> int:
    return sum(data.count(mark) for mark in (b",", b"[", b"{"))


def _load(text: str, name: str, make_object: Callable[[list[tuple[str, object]]], object]) -> object:
    try:
        return json.loads(text, object_pairs_hook=make_object)
    except json.JSONDecodeError as error:
        message = f"{name}: is not valid JSON, line {error.lineno:,} column {error.colno:,}: {error.msg}."
    except RecursionError:
        message = f"{name}: is not usable JSON: it is nested too deeply."
    except ValueError:
        message = f"{name}: is not usable JSON: it has an integer of thousands of digits."
    raise FormatError(Problem("json_invalid", message, name))


def _find_unstorable(document: object, name: str, place: str = "") -> list[Problem]:
    """Return a problem for each text and number of ``document``, which is at ``place``, that cannot be stored."""
    problems = []
    for path, value in _walk(document, (None, place)):
        if isinstance(value, str):
            code, says = "text_unstorable", "has a NUL character or a lone surrogate, which cannot be stored"
        else:
            code, says = "number_not_finite", "is NaN or infinite, which JSON does not allow"
        shown = printable(_path_text(path))
        problems.append(Problem(code, f"{name}: {shown} {says}.", f"{name}: {shown}"))
        if len(problems) == MOST_PROBLEMS:
            break
    return problems


def _walk(document: object, place: _Path) -> Iterator[tuple[_Path | None, object]]:
    """Yield each text and number that cannot be stored, with its path. Not recursive: uploads may nest deeply."""
    waiting: list[tuple[_Path | None, object]] = [(place, document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                waiting.append(((path, f".{key}"), item))
                if UNSTORABLE.search(key):
                    yield (path, f".{key}"), key
        elif isinstance(value, list):
            waiting.extend(((path, f"[{index}]"), item) for index, item in enumerate(value))
        elif (isinstance(value, str) and UNSTORABLE.search(value)) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            yield path, value


def _path_text(path: _Path | None) -> str:
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(part)
    return "".join(reversed(parts)).removeprefix(".") or "the document"


# --- lists ------------------------------------------------------------------------------------------------------------


def read_list(source: BinaryIO, name: str) -> Iterator[tuple[object, list[Problem]]]:
    """Yield each element of the list in ``source`` with its problems, as strictly as `parse_json`.

    Raises FormatError for a document that is not a list, syntax errors, encodings other than UTF-8 and large elements.
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
    """The decoded text of a file; ``rest`` is the part in memory, and ``position`` the reading position in it."""

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
        """Return the value at ``position`` with its problems, and advance past it."""
        while True:
            self._repeated.clear()
            try:
                value, end = self._json.raw_decode(self.rest, self.position)
            except json.JSONDecodeError as error:
                is_cut = error.pos > len(self.rest) - LONGEST_TOKEN or error.msg.startswith("Unterminated string")
                if self._is_ended or not is_cut:
                    raise self.invalid(error.msg, error.pos) from error
            except RecursionError as error:
                raise self._failed("json_invalid", "is not usable JSON: it is nested too deeply") from error
            except ValueError as error:
                says = "is not usable JSON: it has an integer of thousands of digits"
                raise self._failed("json_invalid", says) from error
            else:
                # The digits of a number may continue in the next chunk.
                if end < len(self.rest) or self._is_ended:
                    self.position = end
                    problems = [_duplicate_key(self.name, key) for key in self._repeated[:MOST_PROBLEMS]]
                    return value, problems + _find_unstorable(value, self.name, f"[{index}]")
            self._read_more()

    def invalid(self, says: str, position: int) -> FormatError:
        before = self.rest[:position]
        line = self._lines + before.count("\n") + 1
        column = position - before.rfind("\n") if "\n" in before else self._column + position + 1
        return self._failed("json_invalid", f"is not valid JSON, line {line:,} column {column:,}: {says}")

    def _read_more(self) -> None:
        self._forget()
        if len(self.rest) > LARGEST_ELEMENT:
            raise self._failed("json_too_large", f"has an element of over {LARGEST_ELEMENT:,} characters")
        if len(self.rest) > CHUNK and _count_values(self.rest.encode()) > MOST_VALUES:
            raise self._failed("json_too_large", f"has an element of over {MOST_VALUES:,} values")
        chunk = self._source.read(CHUNK)
        if not self._bytes:
            _check_beginning(chunk, self.name, "a JSON list of tasks")
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
