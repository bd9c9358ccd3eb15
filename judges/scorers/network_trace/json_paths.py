"""A value inside of a JSON document by its path: the part of JSONPath that checks are written with.

``$.a.b``, ``$['a b']``, ``$.items[0].name``, ``$.items[-1]``, ``$.items[*].name``, ``$..name``, and
``$.items[?(@.id == 7)].name``.
With a text that is JSON itself on the way, it goes on inside of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from annotation.formats.har import REDACTED

LONGEST = 500  # characters of a path
MOST_FOUND = 1_000
DEEPEST = 100

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
    """A path that is none, or that uses what is not known here."""


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    key: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Path:
    """``single`` paths name one place at most; the others may find any number of values."""

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
    if not text.startswith("$") or len(text) > LONGEST:
        raise PathError(f"a path begins with $ and has at most {LONGEST} characters")
    steps, position = [], 1
    while position < len(text):
        found = STEP.match(text, position)
        if not found:
            raise PathError(
                f"{text[position:][:40]} is not understood; known are .name ['name'] [0] [*] ..name [?(@.a == 1)]"
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
    elif _is_blanked(value):
        yield REDACTED  # whatever was in it
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
    """The items that are asked for; one whose key was blanked on import may be meant, and is blanked as a whole."""
    for one in items:
        if isinstance(one, dict) and _is_blanked(one.get(step.key)):
            yield REDACTED
        elif isinstance(one, dict) and _is_equal(one.get(step.key), step.value):
            yield one


def _is_blanked(value: Any) -> bool:
    return isinstance(value, str) and REDACTED in value


def _is_equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


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
