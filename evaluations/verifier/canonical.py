"""Canonical JSON, which hashes are made over; strict parsing; and checks against JSON Schemas."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from evaluations.verifier.findings import escape, plural

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


def parse_json(text: str) -> Any:
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


def try_digest(value: Any) -> str:
    """`digest`, and "" for what no hash can be made over, such as half of a character."""
    try:
        return digest(value)
    except ValueError:
        return ""


# --- JSON Schema -----------------------------------------------------------------------------------------------------
# The few words of draft 2020-12 that the shapes use. Stricter than the draft in one point: 1.0 is no integer, because
# it is spelt, and hashed, otherwise than 1.


Schema = dict[str, Any]
MOST_MISMATCHES = 5
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def mismatches(value: Any, schema: Schema, most: int = MOST_MISMATCHES) -> list[str]:
    """The first wrong places, such as ``facts.verdict is 7, not one of 0, 1, 2``; empty where the value fits."""
    return list(islice(_mismatches(value, schema, ""), most))


def _mismatches(value: Any, schema: Schema, where: str) -> Iterator[str]:
    wanted = schema.get("type")
    if wanted is not None and not _has_type(value, [wanted] if isinstance(wanted, str) else wanted):
        names = wanted if isinstance(wanted, str) else " or ".join(wanted)
        yield f"{where or 'it'} is {_value_shown(value)}, not of type {names}"
    elif "enum" in schema and not any(_same_value(value, each) for each in schema["enum"]):
        yield f"{where or 'it'} is {_value_shown(value)}, not one of {', '.join(map(_value_shown, schema['enum']))}"
    elif "const" in schema and not _same_value(value, schema["const"]):
        yield f"{where or 'it'} is {_value_shown(value)}, not {_value_shown(schema['const'])}"
    elif isinstance(value, dict):
        yield from _of_object(value, schema, where)
    elif isinstance(value, list):
        yield from _of_array(value, schema, where)
    elif isinstance(value, str):
        yield from _of_string(value, schema, where)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and not _in_bounds(value, schema):
        bounds = f"{schema.get('minimum', '...')} to {schema.get('maximum', '...')}"
        yield f"{where or 'it'} is {_value_shown(value)}, not within {bounds}"


def _of_object(value: dict[str, Any], schema: Schema, where: str) -> Iterator[str]:
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{_inside(where, name)} is missing"
    for name, inner in value.items():
        if name in properties:
            yield from _mismatches(inner, properties[name], _inside(where, name))
        elif rest is False:
            yield f"{_inside(where, name)} is no key of this format"
        elif isinstance(rest, dict):
            yield from _mismatches(inner, rest, _inside(where, name))


def _of_array(value: list[Any], schema: Schema, where: str) -> Iterator[str]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        yield f"{where or 'it'} has {plural(len(value), 'item')}, not {least} to {most}"
        return
    first = schema.get("prefixItems", [])
    for number, inner in enumerate(value):
        of_item = first[number] if number < len(first) else schema.get("items")
        if of_item:
            yield from _mismatches(inner, of_item, f"{where}[{number}]")


def _of_string(value: str, schema: Schema, where: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield f"{where or 'it'} is too short"
    elif len(value) > schema.get("maxLength", len(value)):
        yield f"{where or 'it'} has {plural(len(value), 'character')}, more than {schema['maxLength']:,}"
    # Whole, since Python's $ matches before a last line feed too, and JSON Schema's does not.
    elif "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield f"{where or 'it'} is {_value_shown(value)}, which does not look as it should: {schema['pattern']}"
    elif schema.get("format") == "date-time" and not _is_instant(value):
        yield f"{where or 'it'} is {_value_shown(value)}, which no calendar and no clock shows"


def _is_instant(value: str) -> bool:
    try:
        return datetime.fromisoformat(value) is not None
    except ValueError:
        return False


def _in_bounds(value: float, schema: Schema) -> bool:
    return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))


def _has_type(value: Any, names: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, JSON_TYPES[name]) for name in names)


def _same_value(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _inside(where: str, name: str) -> str:
    shown = escape(name, 60)
    return f"{where}.{shown}" if where else shown


def _value_shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f'"{escape(value, 60)}"' if isinstance(value, str) else str(value)
