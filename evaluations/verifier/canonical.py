"""Canonical JSON as input of hashes, strict parsing, and checks against JSON Schemas."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from evaluations.verifier.findings import plural
from evaluations.verifier.values import escape

MOST_DIGITS = 30  # of a number: no count, time or rate has more, and Python is very slow with a million digits
DEEPEST = 60
MOST_VALUES_AT_ONCE = 2_000_000  # of one text: a parsed value takes a hundred bytes of memory
INDENTED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2, sort_keys=True)


class Malformed(Exception):
    """Text that is not JSON of this format; the message continues a sentence that begins with the file name."""


def canonical_json(value: Any) -> str:
    """Return the JSON over which the chain of events is hashed: sorted keys, no spaces, only necessary escapes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def as_text(value: Any) -> bytes:
    return (INDENTED.encode(value) + "\n").encode()


def parse_json(text: str) -> Any:
    """Parse a JSON text; raise Malformed for duplicate keys, NaN, infinities, and too many digits, levels or values."""
    if count_values(text) > MOST_VALUES_AT_ONCE:
        raise Malformed(f"holds more than {MOST_VALUES_AT_ONCE:,} values")
    try:
        value = DECODER.decode(text)
    except RecursionError:
        raise Malformed("is nested too deeply") from None
    except ValueError as error:
        raise Malformed(f"is not JSON: {error}") from None
    if _depth(value) > DEEPEST:
        raise Malformed("is nested too deeply")
    return value


def count_values(text: Any) -> int:
    """Return an upper bound of the number of values in a JSON text or its bytes, without parsing it."""
    marks = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    return sum(text.count(mark) for mark in marks)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Malformed(f"has the key {key[:60]!a} twice in one object")
        found[key] = value
    return found


def _number(kind: type[int] | type[float], digits: str) -> int | float:
    number = kind(digits) if len(digits) <= MOST_DIGITS else math.inf
    if not math.isfinite(number):
        raise Malformed(f"has a number that is too large or too long: {len(digits)} digits")
    return number


def _constant(name: str) -> None:
    raise Malformed(f"has {name}, which JSON does not allow")


DECODER = json.JSONDecoder(
    object_pairs_hook=_once,
    parse_int=partial(_number, int),
    parse_float=partial(_number, float),
    parse_constant=_constant,
)


def _depth(value: Any) -> int:
    """Return the nesting depth of lists and objects, without recursion."""
    depth, level = -1, list[Any]([[value]])
    while level:
        depth += 1
        inside = [each.values() if isinstance(each, dict) else each for each in level]
        level = [inner for each in inside for inner in each if isinstance(inner, (dict, list))]
    return depth


def try_digest(value: Any) -> str:
    """Return `digest`, or "" if the value cannot be hashed, such as a lone surrogate."""
    try:
        return digest(value)
    except ValueError:
        return ""


Schema = dict[str, Any]
MOST_MISMATCHES = 5
JSON_TYPES: dict[type, set[str]] = {dict: {"object"}, list: {"array"}, str: {"string"}, bool: {"boolean"}}
JSON_TYPES |= {type(None): {"null"}, int: {"integer", "number"}, float: {"number"}}


def mismatches(value: Any, schema: Schema) -> list[str]:
    """Return the first mismatches, such as ``facts.verdict is 7, not one of 0, 1, 2``; empty if the value fits.

    It supports the keywords of draft 2020-12 that the shapes use, and is stricter in one point: 1.0 is not an integer,
    because its text and its hash differ from those of 1.
    """
    return list(islice(_mismatches(value, schema, ""), MOST_MISMATCHES))


def _mismatches(value: Any, schema: Schema, where: str) -> Iterator[str]:
    wanted = schema.get("type", ())
    types = {wanted} if isinstance(wanted, str) else {*wanted}
    if types and not types & JSON_TYPES[type(value)]:
        yield f"{_is(where, value)}, not of type {wanted if isinstance(wanted, str) else ' or '.join(wanted)}"
    elif "enum" in schema and not any(_is_same(value, each) for each in schema["enum"]):
        yield f"{_is(where, value)}, not one of {', '.join(map(show_json, schema['enum']))}"
    elif "const" in schema and not _is_same(value, schema["const"]):
        yield f"{_is(where, value)}, not {show_json(schema['const'])}"
    elif isinstance(value, dict):
        yield from _object_mismatches(value, schema, where)
    elif isinstance(value, list):
        yield from _array_mismatches(value, schema, where)
    elif isinstance(value, str):
        yield from _text_mismatches(value, schema, where)
    elif isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{_is(where, value)}, not within {schema.get('minimum', '...')} to {schema.get('maximum', '...')}"


def _object_mismatches(value: dict[str, Any], schema: Schema, where: str) -> Iterator[str]:
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    within = f"{where}." if where else ""
    yield from (f"{within}{escape(name, 60)} is missing" for name in schema.get("required", ()) if name not in value)
    for name, inner in value.items():
        place = f"{within}{escape(name, 60)}"
        if name in properties:
            yield from _mismatches(inner, properties[name], place)
        elif rest is False:
            yield f"{place} is not a key of this format"
        elif isinstance(rest, dict):
            yield from _mismatches(inner, rest, place)


def _array_mismatches(value: list[Any], schema: Schema, where: str) -> Iterator[str]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        yield f"{where or 'it'} has {plural(len(value), 'item')}, not {least} to {most}"
        return
    first = schema.get("prefixItems", [])
    for number, inner in enumerate(value):
        if of_item := first[number] if number < len(first) else schema.get("items"):
            yield from _mismatches(inner, of_item, f"{where}[{number}]")


def _text_mismatches(value: str, schema: Schema, where: str) -> Iterator[str]:
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{where or 'it'} has {plural(len(value), 'character')}, more than {schema['maxLength']:,}"
    # `fullmatch`, since Python's $ also matches before a final line feed, and JSON Schema's does not.
    elif "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield f"{_is(where, value)}, which does not match {schema['pattern']}"
    elif schema.get("format") == "date-time":
        try:
            datetime.fromisoformat(value)
        except ValueError:
            yield f"{_is(where, value)}, which is not a valid date and time"


def _is_same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _is(where: str, value: Any) -> str:
    return f"{where or 'it'} is {show_json(value)}"


def show_json(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return f'"{escape(value, 60)}"' if isinstance(value, str) else json.dumps(value)
