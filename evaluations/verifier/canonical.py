"""One spelling for one value: the JSON that hashes are made over, and reading JSON without being fooled."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

MOST_DIGITS = 30  # of a number: more is no count, time or rate, and Python takes for ever over a million digits
DEEPEST = 60
MOST_VALUES_AT_ONCE = 2_000_000  # of one text: each takes a hundred bytes of memory once it is parsed


class Malformed(Exception):
    """A text that is no JSON as this format has it; the message says why, without the file's name."""


def canonical_json(value: Any) -> str:
    """Sorted keys, no spaces, no escapes beyond JSON's own: what the chain of events is hashed as."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of ``value``, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def as_text(value: Any) -> bytes:
    """A JSON document for people, the same bytes for the same value."""
    return "".join(_text_of_value(value)).encode()


def text_digest(value: Any) -> str:
    """SHA-256 of `as_text`, in hex, without all of it in memory."""
    hashed = hashlib.sha256()
    for piece in _text_of_value(value):
        hashed.update(piece.encode())
    return hashed.hexdigest()


def _text_of_value(value: Any) -> Iterator[str]:
    yield from json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2, sort_keys=True).iterencode(value)
    yield "\n"


def parsed(text: str) -> Any:
    """The value of a JSON text; Malformed for doubled keys, NaN, infinities, endless numbers, depths and lengths."""
    if values_in(text) > MOST_VALUES_AT_ONCE:
        raise Malformed(f"holds more than {MOST_VALUES_AT_ONCE:,} values")
    try:
        value = json.loads(
            text, object_pairs_hook=_once, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except (ValueError, RecursionError) as error:
        raise Malformed(
            "is nested too deeply" if isinstance(error, RecursionError) else f"is no JSON: {error}"
        ) from None
    if _depth(value) > DEEPEST:
        raise Malformed("is nested too deeply")
    return value


def values_in(text: Any) -> int:
    """An upper bound of the values in a JSON text or its bytes, without parsing it."""
    marks = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    return sum(text.count(mark) for mark in marks)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Malformed(f"has the key {key[:60]!a} twice in one object")
        found[key] = value
    return found


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise Malformed(f"has a number of {len(digits)} digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits) if len(digits) <= MOST_DIGITS else math.inf
    if not math.isfinite(number):
        raise Malformed("has a number that is too large or too long")
    return number


def _constant(name: str) -> None:
    raise Malformed(f"has {name}, which JSON does not know")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
    return depth
