"""Holding a JSON value against a JSON Schema, for the few words of draft 2020-12 that the shapes use.

Stricter than the draft in one point: 1.0 is no integer, because it is spelt, and hashed, otherwise than 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from evaluations.verifier.refusing import escaped
from evaluations.verifier.wrongs import counted

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
        yield f"{where or 'it'} has {counted(len(value), 'item')}, not {least} to {most}"
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
        yield f"{where or 'it'} has {counted(len(value), 'character')}, more than {schema['maxLength']:,}"
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
    shown = escaped(name, 60)
    return f"{where}.{shown}" if where else shown


def _value_shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f'"{escaped(value, 60)}"' if isinstance(value, str) else str(value)
