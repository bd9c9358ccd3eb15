"""Strict JSON: what a document must be before anybody looks at its fields."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

from annotation.formats.printable import printable
from annotation.records import Problem

MOST_VALUES = 1_000_000  # lists, objects and what is in them; Python keeps up to 200 MB for so many
STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
MOST_PROBLEMS = 50
ZIP = b"PK\x03\x04"  # the first bytes of a zip
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
    if data.startswith(ZIP):
        raise FormatError(Problem("not_utf8", f"{name}: is a zip; {expected} is expected.", name))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(data) > 1 and 0 in data[:2]):
        raise FormatError(Problem("not_utf8", f"{name}: is UTF-16; save it as UTF-8.", name))
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


def parse_json(data: bytes, name: str) -> object:
    """The JSON document in ``data``; ``name`` is the file for messages.

    Raises FormatError for everything that JSON or a database does not know: other encodings than UTF-8, syntax,
    duplicate keys, NaN and infinities, oversized integers, deep nesting, NUL characters and lone surrogates.
    """
    if count_values(data) > MOST_VALUES:
        raise FormatError(Problem("json_too_large", f"{name}: has over {MOST_VALUES:,} values.", name))
    repeated: list[str] = []
    document = _load(decode_text(data, name), name, object_maker(repeated))
    problems = [duplicate_key(name, key) for key in repeated[:MOST_PROBLEMS]]
    problems += value_problems(document, name)
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


def duplicate_key(name: str, key: str) -> Problem:
    return Problem("duplicate_key", f"{name}: one object has the key {printable(key)} twice. Remove one of them.", name)


def count_values(data: bytes) -> int:
    """Return an upper bound of the number of values in the JSON document ``data``."""
    # Texts contain many commas. Removing them takes time, so it is done only if the count could matter.
    return count if (count := _count_marks(data)) <= MOST_VALUES else _count_marks(STRING.sub(b"", data))


def _count_marks(data: bytes) -> int:
    return sum(data.count(mark) for mark in (b",", b"[", b"{"))


def _load(text: str, name: str, make_object: Callable[[list[tuple[str, object]]], object]) -> object:
    try:
        return json.loads(text, object_pairs_hook=make_object)
    except json.JSONDecodeError as error:
        message = f"{name}: is not valid JSON, line {error.lineno:,} column {error.colno:,}: {error.msg}."
    except RecursionError:
        message = f"{name}: is not usable JSON, it is nested too deeply."
    except ValueError:
        message = f"{name}: is not usable JSON, it has an integer of thousands of digits."
    raise FormatError(Problem("json_invalid", message, name))


def value_problems(document: object, name: str, place: str = "") -> list[Problem]:
    """Return a problem for each text and number of ``document``, which is at ``place``, that cannot be stored."""
    problems = []
    for path, value in _walk(document, (None, place)):
        if isinstance(value, str):
            code, says = "text_unstorable", "has a NUL character or half a surrogate pair, which cannot be stored"
        else:
            code, says = "number_not_finite", "is NaN or infinite, which is not JSON"
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
