"""OpenAI's Responses API: POST /responses.

Format: the types of the package openai, `openai.types.responses`. Replies are not stored at the endpoint (``store`` is
false), unless the judge's further fields say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.llm import Usage
from judges.llm.apis.base import (
    Api,
    ChatRequest,
    ReplyBody,
    UnreadableReply,
    dicts,
    join_text,
    load,
    merge,
    name_digests,
    read_count,
    read_error,
    read_name,
    read_tokens,
    split,
    split_parts,
    unwrap,
    write_arguments,
)


def translate(request: Mapping[str, Any]) -> dict[str, Any]:
    asked = split(request)
    built = asked.pick(model="model", temperature="temperature", top_p="top_p") | {"store": False}
    built |= {"max_output_tokens": asked.length}
    if "reasoning_effort" in asked.settings:
        built["reasoning"] = {"effort": asked.settings["reasoning_effort"]}
    if "logprobs" in asked.settings:
        built["include"] = ["message.output_text.logprobs"]
    built |= _build_output(asked)
    built |= {"instructions": asked.system} if asked.system else {}
    return merge(built, asked.further) | {"input": [_translate_message(one) for one in asked.messages]}


def _build_output(asked: ChatRequest) -> dict[str, Any]:
    if asked.output == "schema":
        return {"text": {"format": {"type": "json_schema", "name": asked.tool, "strict": True, "schema": asked.schema}}}
    if asked.output == "tool":
        tool = {"type": "function", "name": asked.tool, "description": asked.description, "strict": True}
        choice = {"type": "function", "name": asked.tool}
        return {"tools": [tool | {"parameters": asked.schema}], "tool_choice": choice}
    return {}


def _translate_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, str):
        content = [_translate_part(part) for part in split_parts(content)]
    return {"role": message["role"], "content": content}


def _translate_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    image = part["image_url"]
    described = name_digests(part) | {"media_type": image["media_type"]}
    return {"type": "input_image", "detail": image["detail"] or "auto", "image_url": described}


def fill_image(image: Mapping[str, str], data: str) -> str:
    return f"data:{image['media_type']};base64,{data}"


def parse(raw: str) -> ReplyBody:
    whole = load(raw)
    if (filtered := read_error(raw, whole)) is not None:
        return filtered
    if not isinstance(whole.get("output"), list):
        raise UnreadableReply("The reply has no output.")
    status, items = join_text(whole.get("status")), dicts(whole["output"])
    if status in ("failed", "cancelled", "queued", "in_progress"):
        raise UnreadableReply(f"The reply is not complete; its status is {status}.")
    reason = join_text(unwrap(whole, "incomplete_details").get("reason"))
    if status == "incomplete" and reason != "content_filter":
        reason = "max_output_tokens"  # the only other reason that is documented; some endpoints state none
    parts = [part for item in _select_answers(items) for part in dicts(item.get("content"))]
    texts = [part for part in parts if part.get("type") == "output_text"]
    refusal = "".join(join_text(part.get("refusal")) for part in parts if part.get("type") == "refusal").strip()
    calls = [item for item in items if item.get("type") == "function_call"]
    usage, text = _read_usage(whole.get("usage")), join_text(texts)
    reasons = any(item.get("type") == "reasoning" for item in items) or usage.reasoning
    return ReplyBody(
        raw=raw,
        text=text,
        tool=(read_name(calls[0].get("name"), 80) or "?") if calls else "",
        arguments=write_arguments(calls[0].get("arguments")) if calls else "",
        refusal=refusal or ("the endpoint filtered the reply" if reason == "content_filter" else ""),
        finish=(reason or status)[:40],
        model=read_name(whole.get("model"), 200),
        usage=usage,
        thought=bool(reasons or (reason == "max_output_tokens" and not (text or calls))),
        tokens=_read_tokens(texts),
    )


def _select_answers(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages without comments that a model writes before its answer."""
    return [item for item in items if item.get("type") == "message" and item.get("phase") != "commentary"]


def _read_tokens(texts: list[dict[str, Any]]) -> tuple[tuple[str, float], ...] | None:
    lists = [found for part in texts if (found := read_tokens(part.get("logprobs")))]
    return tuple(pair for found in lists for pair in found) if lists else None


def _read_usage(given: Any) -> Usage:
    found = given if isinstance(given, dict) else {}
    details = unwrap(found, "input_tokens_details")
    return Usage(
        prompt=read_count(found.get("input_tokens")),
        cached=read_count(details.get("cached_tokens")),
        completion=read_count(found.get("output_tokens")),
        reasoning=read_count(unwrap(found, "output_tokens_details").get("reasoning_tokens")),
        written=read_count(details.get("cache_write_tokens")),
    )


API = Api(
    name="responses",
    messages="input",
    names={
        "temperature": "temperature",
        "reasoning.effort": "reasoning_effort",
        "text.format": "response_format",
        "json_schema": "response_format",
        "tools": "tools",
        "tool_choice": "tools",
        "include": "logprobs",
        "logprobs": "logprobs",
    },
    build_path=lambda _, __: "/responses",
    translate=translate,
    fill_image=fill_image,
    parse=parse,
    lacks=frozenset({"seed", "prompt_cache"}),
    length="max_output_tokens",
    reserved=frozenset({"input", "instructions", "max_output_tokens", "background", "previous_response_id"}),
)
