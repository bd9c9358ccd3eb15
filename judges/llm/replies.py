"""Parser of reply bodies, which are not trusted, into `Reply`. Does not use the network."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any

from judges.llm import Reply, Usage
from judges.llm.apis import APIS
from judges.llm.apis.base import ReplyBody, add_counts, strip_unstorable
from judges.llm.wire import TOOL

MOST_OBJECTS = 50  # JSON objects that are searched for in one text
THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def parse(raw: str, api: str = "chat") -> ReplyBody:
    """Parse a reply of an API; raise UnreadableReply if it is none."""
    return APIS[api].parse(raw)


def build_reply(body: ReplyBody, schema: Mapping[str, Any] | None, output: str) -> Reply:
    """Return the reply of a body. With ``schema``, ``data`` or ``problem`` is set unless the reply is refused or cut.

    In the output mode ``text``, JSON was not requested: it is used if present, and its absence is a problem only if
    the reply begins with JSON. With ``schema``, thoughts at the beginning are removed: they may contain draft answers.
    """
    # A call of a function that was not offered says nothing about the trajectory.
    content = body.text if schema is None else THOUGHTS.sub("", body.text)
    text = content or (body.arguments if body.tool in ("", TOOL) else "")
    reply = Reply(text, None, body.refusal, body.cut, "", body.model, body.usage, body.tokens)
    if schema is None or reply.refusal or reply.cut:
        return reply
    data, problem = _find_data(body, content, schema)
    if problem and output == "text" and not content.lstrip().startswith(("{", "```json")):
        problem = ""
    return replace(reply, data=data, problem=problem)


def _find_data(body: ReplyBody, content: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    if body.tool and body.tool != TOOL:
        return None, f"The reply calls the function {body.tool}; only {TOOL} exists."
    found = list(_find_objects(body.arguments if body.tool else content))
    fitting = [one for one in found if not find_problem(one, schema)]
    if not found:
        return None, "It holds no complete JSON object."
    if not fitting:
        return None, find_problem(found[0], schema)
    if any(one != fitting[0] for one in fitting):
        return None, "It holds several JSON objects that differ."
    return fitting[0], ""


def _find_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text: the whole text, or parts in code fences or between other words."""
    decoder, place = json.JSONDecoder(parse_constant=_refuse_constant), 0
    for _ in range(MOST_OBJECTS):
        place = text.find("{", place)
        if place < 0:
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
        else:
            yield _clean_values(value)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")


def _clean_values(value: Any) -> Any:
    """Return the value without characters that databases reject: JSON escapes can produce them."""
    if isinstance(value, str):
        return strip_unstorable(value)
    if isinstance(value, list):
        return [_clean_values(one) for one in value]
    if isinstance(value, dict):
        return {strip_unstorable(name): _clean_values(one) for name, one in value.items()}
    return value


def find_problem(value: Any, schema: Mapping[str, Any], where: str = "The answer") -> str:
    """Return why ``value`` does not fit the schema, or "".

    Knows the part of JSON Schema that judges use: type, properties, required, items, minItems, maxItems, enum,
    minimum, maximum.
    """
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{where} must be of type {' or '.join(kinds)}."
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {', '.join(map(str, schema['enum']))}."
    if isinstance(value, dict):
        return _check_object(value, schema, where)
    if isinstance(value, list):
        return _check_array(value, schema, where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        return "" if low <= value <= high else f"{where} must be between {low} and {high}."
    return ""


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, TYPES.get(kind, ()))


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> str:
    for name in schema.get("required", []):
        if name not in value:
            return f"{where} lacks {name}."
    for name, one in schema.get("properties", {}).items():
        if name in value and (problem := find_problem(value[name], one, f"{where}: {name}")):
            return problem
    return ""


def _check_array(value: list[Any], schema: Mapping[str, Any], where: str) -> str:
    low, high = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not low <= len(value) <= high:
        return f"{where} must have between {low} and {high} entries."
    for number, one in enumerate(value, 1):
        if problem := find_problem(one, schema.get("items", {}), f"{where}, entry {number}"):
            return problem
    return ""


def merge_repair(first: Reply, second: Reply) -> Reply:
    """Return the second reply if it can be read, else the first; with the usage of both."""
    usage = Usage(*map(add_counts, astuple(first.usage), astuple(second.usage)))
    return replace(first if second.data is None else second, usage=usage)
