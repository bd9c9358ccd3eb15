"""Parser of reply bodies, which are not trusted, into `Reply`. Does not use the network."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from judges.llm import Reply, Usage
from judges.llm.wire import TOOL, strip_unstorable

LARGEST = 2**31 - 1  # largest value of a column of the trace
MOST_OBJECTS = 50  # JSON objects that are searched for in one text
THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
FILTERED = ("content_filter", "content_policy_violation")
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class UnreadableReply(Exception):
    """A body that is not a chat completion; the message says what it is instead."""


@dataclass(frozen=True, slots=True)
class ReplyBody:
    """A chat completion: ``raw`` is its body as it was sent, and the other fields are parsed from it.

    ``tool`` is the name of the function that the model called, and ``arguments`` the text of its arguments.
    ``thought`` is True if the reply shows thoughts, or reached its length limit without any text.
    """

    raw: str
    text: str = ""
    tool: str = ""
    arguments: str = ""
    refusal: str = ""
    finish: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    thought: bool = False

    @property
    def cut(self) -> bool:
        return self.finish in ("length", "max_tokens")


def parse(raw: str) -> ReplyBody:
    try:
        whole = json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableReply(f"The reply is not JSON; it begins with {raw[:80]!r}.") from None
    if not isinstance(whole, dict):
        raise UnreadableReply(f"The reply is JSON, but not an object; it begins with {raw[:80]!r}.")
    error = whole.get("error")
    if filtered := _read_filter(error):
        return ReplyBody(raw, refusal=filtered, finish="content_filter")
    if error:
        raise UnreadableReply(f"The reply is an error: {strip_unstorable(str(error))[:300]}")
    choices = whole.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(message := choice.get("message"), dict):
        raise UnreadableReply("The reply has no choices.")
    return _body(raw, whole, str(choice.get("finish_reason") or ""), message)


def _read_filter(error: Any) -> str:
    """Return why a filter stopped the prompt, or "". Some endpoints report this as an error; a retry cannot help."""
    if not isinstance(error, dict) or error.get("code") not in FILTERED:
        return ""
    return strip_unstorable(str(error.get("message") or "the endpoint filtered the prompt"))[:1000]


def _body(raw: str, whole: dict[str, Any], finish: str, message: dict[str, Any]) -> ReplyBody:
    tool, arguments = _read_tool_call(message.get("tool_calls"))
    refusal = _join_text(message.get("refusal")).strip()
    if finish == "content_filter":
        refusal = refusal or "the endpoint filtered the reply"
    text, usage = _join_text(message.get("content")), _read_usage(whole.get("usage"))
    thoughts = message.get("reasoning_content") or message.get("reasoning") or usage.reasoning
    silent = finish in ("length", "max_tokens") and not (text or arguments)
    return ReplyBody(
        raw=raw,
        text=text,
        tool=tool,
        arguments=arguments,
        refusal=refusal,
        finish=strip_unstorable(finish)[:40],
        model=strip_unstorable(_join_text(whole.get("model")))[:200],
        usage=usage,
        thought=bool(thoughts or silent or text.lstrip().startswith("<think>")),
    )


def _join_text(content: Any) -> str:
    """Return a text, or the joined texts of a list of parts, as some endpoints send them."""
    if isinstance(content, list):
        return "".join(_join_text(part.get("text")) for part in content if isinstance(part, dict))
    return strip_unstorable(content) if isinstance(content, str) else ""


def _read_tool_call(calls: Any) -> tuple[str, str]:
    call = calls[0] if isinstance(calls, list) and calls else None
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "", ""
    arguments = function.get("arguments")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return strip_unstorable(str(function.get("name") or "?"))[:80], strip_unstorable(written)


def _read_usage(given: Any) -> Usage:
    """Return token counts, None if implausible: an endpoint may omit them or count wrongly."""
    found = given if isinstance(given, dict) else {}
    return Usage(
        prompt=_read_count(found.get("prompt_tokens")),
        cached=_read_count(_unwrap(found, "prompt_tokens_details").get("cached_tokens")),
        completion=_read_count(found.get("completion_tokens")),
        reasoning=_read_count(_unwrap(found, "completion_tokens_details").get("reasoning_tokens")),
    )


def _unwrap(found: dict[str, Any], name: str) -> dict[str, Any]:
    inner = found.get(name)
    return inner if isinstance(inner, dict) else {}


def _read_count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def build_reply(body: ReplyBody, schema: Mapping[str, Any] | None, output: str) -> Reply:
    """Return the reply of a body. With ``schema``, ``data`` or ``problem`` is set unless the reply is refused or cut.

    In the output mode ``text``, JSON was not requested: it is used if present, and its absence is a problem only if
    the reply begins with JSON. With ``schema``, thoughts at the beginning are removed: they may contain draft answers.
    """
    # A call of a function that was not offered says nothing about the trajectory.
    content = body.text if schema is None else THOUGHTS.sub("", body.text)
    text = content or (body.arguments if body.tool in ("", TOOL) else "")
    reply = Reply(text, None, body.refusal, body.cut, "", body.model, body.usage)
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


def add_counts(first: int | None, second: int | None) -> int | None:
    return None if first is None and second is None else (first or 0) + (second or 0)
