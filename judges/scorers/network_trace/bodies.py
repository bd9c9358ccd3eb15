"""Sent and received texts (forms, JSON, multipart), and lookup of single values in them by a path.

Paths are the part of JSONPath that checks use: ``$.a.b``, ``$['a b']``, ``$.items[0].name``,
``$.items[-1]``, ``$.items[*].name``, ``$..name``, and ``$.items[?(@.id == 7)].name``. If a text on the path is JSON
itself, the path continues inside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from annotation.formats.documents import UNSTORABLE
from annotation.formats.har import REDACTED

MOST_FIELDS = 10_000
LONGEST_HEAD = 4_096  # characters of the headers of a part
MOST_VALUES = 500_000  # of a JSON text
LONGEST_PATH = 500  # characters
MOST_FOUND = 1_000
DEEPEST = 100
ESCAPED = re.compile(r"\\u(?:0000|d[89a-f])", re.IGNORECASE)  # escapes of characters that may not be storable
BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})"?', re.IGNORECASE)
PART_NAME = re.compile(r'[; ]name="((?:[^"\\]|\\.){0,1000})"', re.IGNORECASE)
FILE_NAME = re.compile(r'[; ]filename="((?:[^"\\]|\\.){0,1000})"', re.IGNORECASE)


def is_redacted(value: Any) -> bool:
    return isinstance(value, str) and REDACTED in value


@dataclass(frozen=True, slots=True)
class Body:
    """A text with its stated media type. ``params`` are the fields of a form if the HAR listed them.

    ``truncated``: the text is incomplete, because it was longer than the limit (see `trace`), or missing, because it
    was not text. A value that is not found in it may have been there.
    """

    text: str = ""
    mime_type: str = ""
    params: tuple[tuple[str, str], ...] = ()
    truncated: bool = False

    @property
    def media_type(self) -> str:
        return self.mime_type.partition(";")[0].strip().lower()

    def json(self) -> Any:
        """Return the JSON value of the text; raise ValueError if it is not JSON, or was truncated."""
        if self.truncated:
            raise ValueError("only part of the text was stored")
        if sum(self.text.count(mark) for mark in ",[{") > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES:,} values")
        try:
            value = json.loads(self.text)
            return _make_storable(value) if ESCAPED.search(self.text) else value
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    def form(self) -> list[tuple[str, str]]:
        """Return name and value of each field of an urlencoded or multipart form, decoded, in their order; a file is
        its name. For any other media type return ``params``."""
        if self.media_type == "application/x-www-form-urlencoded":
            return self._parse_urlencoded() or list(self.params)
        if self.media_type == "multipart/form-data":
            return list(self.params) or list(self._parse_parts())
        return list(self.params)

    def fields(self) -> dict[str, Any]:
        """Return the sent values by name: the first of each field of a form, or a JSON object; otherwise {}."""
        if form := self.form():
            return dict(form[::-1])
        try:
            value = self.json()
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def _parse_urlencoded(self) -> list[tuple[str, str]]:
        try:
            pairs = parse_qsl(self.text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            return []
        return [(_make_storable(name), _make_storable(value)) for name, value in pairs]

    def _parse_parts(self) -> Iterator[tuple[str, str]]:
        boundary = BOUNDARY.search(self.mime_type)
        if not boundary:
            return
        for part in self.text.split(f"--{boundary[1]}")[1 : MOST_FIELDS + 1]:
            head, gap, value = part.replace("\r\n", "\n").partition("\n\n")
            named, file = PART_NAME.search(head[:LONGEST_HEAD]), FILE_NAME.search(head[:LONGEST_HEAD])
            if gap and named:
                yield _make_storable(named[1]), file[1] if file else value.removesuffix("\n")


def _make_storable(value: Any) -> Any:
    """Return a value whose texts a database accepts: decoding can create characters that the text did not have."""
    if isinstance(value, str):
        return UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_make_storable(item) for item in value]
    if isinstance(value, dict):
        return {_make_storable(key): _make_storable(item) for key, item in value.items()}
    return value


STEP = re.compile(
    r"""
    \.\.(?P<anywhere>[\w-]+)
    | \.(?P<name>[\w-]+)
    | (?P<all>\.\*|\[\*\])
    | \[(?P<index>-?\d{1,6})\]
    | \[(?P<quoted>'[^']*'|"[^"]*")\]
    | \[\?\(\s*@\.(?P<key>[\w-]+)\s*==\s*(?P<value>'[^']*'|"[^"]*"|[^\s)'"]+)\s*\)\]
    """,
    re.VERBOSE,
)


class PathError(ValueError):
    """An invalid path, or one that uses unsupported syntax."""


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    key: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Path:
    """``single`` paths find one value at most; the others may find any number of values."""

    steps: tuple[Step, ...]

    @property
    def chooses(self) -> bool:
        return any(step.kind == "where" for step in self.steps)

    @property
    def single(self) -> bool:
        return all(step.kind in {"name", "index"} for step in self.steps)

    def find(self, document: Any) -> list[Any]:
        found = [document]
        for step in self.steps:
            found = [inner for value in found for inner in _find_inside(value, step)][:MOST_FOUND]
        return found


def parse_path(text: str) -> Path:
    if not text.startswith("$") or len(text) > LONGEST_PATH:
        raise PathError(f"a path must begin with $ and have at most {LONGEST_PATH} characters")
    steps, position = [], 1
    while position < len(text):
        found = STEP.match(text, position)
        if not found:
            raise PathError(
                f"{text[position:][:40]} is not supported; known are .name ['name'] [0] [*] ..name [?(@.a == 1)]"
            )
        steps.append(_parse_step(found))
        position = found.end()
    return Path(tuple(steps))


def _parse_step(found: re.Match[str]) -> Step:
    kind = found.lastgroup or ""
    if kind == "quoted":
        return Step("name", found["quoted"][1:-1])
    if kind == "index":
        return Step("index", value=int(found["index"]))
    if kind == "value":
        return Step("where", found["key"], _parse_literal(found["value"]))
    return Step(kind, found[kind])


def _parse_literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _find_inside(value: Any, step: Step) -> Iterator[Any]:
    value = _unfold(value)
    if step.kind == "anywhere":
        yield from _find_anywhere(value, step.key)
    elif is_redacted(value):
        yield REDACTED  # its content is not known
    elif isinstance(value, dict):
        if step.kind == "name" and step.key in value:
            yield value[step.key]
        elif step.kind == "all":
            yield from value.values()
    elif isinstance(value, list):
        if step.kind == "index" and -len(value) <= step.value < len(value):
            yield value[step.value]
        elif step.kind == "all":
            yield from value
        elif step.kind == "where":
            yield from _filter(value, step)


def _filter(items: list[Any], step: Step) -> Iterator[Any]:
    """Yield the matching items; an item whose key the import blanked may match, and is blanked as a whole."""
    for one in items:
        if isinstance(one, dict) and is_redacted(one.get(step.key)):
            yield REDACTED
        elif isinstance(one, dict):
            had = one.get(step.key)
            if had == step.value and isinstance(had, bool) == isinstance(step.value, bool):
                yield one


def _unfold(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _find_anywhere(value: Any, key: str) -> Iterator[Any]:
    waiting = [(value, 0)]
    while waiting:
        node, depth = waiting.pop()
        inner = (
            list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
        )
        yield from (one for name, one in inner if name == key)
        if depth < DEEPEST:
            waiting.extend((one, depth + 1) for _, one in reversed(inner))
