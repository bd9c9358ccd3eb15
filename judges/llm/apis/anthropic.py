"""Anthropic's Messages API: POST /v1/messages.

Structured answers are the input of a tool that the model is told to call. With thinking, a tool call cannot be forced:
the model chooses, and an answer in another form is repaired as usual. Models before Claude 4.6 get a thinking budget in
tokens; later ones accept only an effort. Format and rules: the provider's documentation of Messages, extended and
adaptive thinking, and prompt caching, as of 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from judges.llm import Usage
from judges.llm.apis.base import (
    JPEG,
    THINKING_SHARES,
    Api,
    ChatRequest,
    ReplyBody,
    UnreadableReply,
    add_counts,
    dicts,
    join_text,
    load,
    merge,
    name_digests,
    read_count,
    read_error,
    read_name,
    split,
    split_parts,
    unwrap,
    write_arguments,
)

VERSION = "2023-06-01"
LEAST_BUDGET = 1024  # tokens
# Models up to Claude 4.5, such as claude-3-7-sonnet-latest and claude-sonnet-4-20250514.
WITH_BUDGET = re.compile(r"claude-(?:[123][-.]|(?:opus|sonnet|haiku)-4(?:[-.@](?:[0-5]|20\d{6}))?(?!\d|[-.]\d(?!\d)))")
EFFORTS = {"minimal": "low"}  # the others have the same names
MARK = {"cache_control": {"type": "ephemeral"}}


def translate(request: Mapping[str, Any]) -> dict[str, Any]:
    asked = split(request)
    built = asked.pick(model="model", temperature="temperature", top_p="top_p") | {"max_tokens": asked.length}
    built |= _build_thinking(asked)
    if asked.output:
        tool = {"name": asked.tool, "description": asked.description, "input_schema": asked.schema}
        built |= {"tools": [tool], "tool_choice": {"type": "tool", "name": asked.tool}}
    marked = bool(asked.settings.get("prompt_cache"))
    if asked.system:
        built["system"] = [{"type": "text", "text": asked.system} | MARK] if marked else asked.system
    built = merge(built, asked.further)
    if unwrap(built, "thinking").get("type", "disabled") != "disabled":
        built.pop("temperature", None)
        if asked.output:
            built["tool_choice"] = {"type": "auto"}
    if asked.output and "tool_choice" not in asked.settings:  # refused earlier
        built["tool_choice"] = {"type": "auto"}
    messages = [{"role": one["role"], "content": _translate_content(one["content"])} for one in asked.messages]
    if marked:
        _mark_shared_text(messages[0]["content"])
    return built | {"messages": messages}


def _build_thinking(asked: ChatRequest) -> dict[str, Any]:
    effort = asked.settings.get("reasoning_effort", "none")
    if effort == "none":
        return {}
    if WITH_BUDGET.search(asked.settings["model"]):
        budget = max(LEAST_BUDGET, int(asked.length * THINKING_SHARES[effort]))
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": EFFORTS.get(effort, effort)}}


def _translate_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [_translate_part(part) for part in split_parts(content)]


def _translate_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    # The bytes are always JPEG, and this API refuses images whose type is stated wrongly.
    return {"type": "image", "source": {"type": "base64", "media_type": JPEG} | name_digests(part)}


def _mark_shared_text(content: Any) -> None:
    """Mark the text before the first image, which other calls of the stage share."""
    if isinstance(content, str):
        return
    images = [place for place, part in enumerate(content) if part["type"] == "image"]
    if images and images[0]:
        content[images[0] - 1] |= MARK


def fill_image(image: Mapping[str, str], data: str) -> dict[str, str]:
    return {"type": "base64", "media_type": image["media_type"], "data": data}


def parse(raw: str) -> ReplyBody:
    whole = load(raw)
    if (filtered := read_error(raw, whole)) is not None:
        return filtered
    if not isinstance(whole.get("content"), list):
        raise UnreadableReply("The reply has no content.")
    blocks, finish = dicts(whole["content"]), join_text(whole.get("stop_reason"))[:40]
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    # What the model says before a call is a comment: the answer is the input of the tool.
    text = "" if calls else join_text([block for block in blocks if block.get("type") == "text"])
    thoughts = any(block.get("type") in ("thinking", "redacted_thinking") for block in blocks)
    usage = _read_usage(whole.get("usage"))
    return ReplyBody(
        raw=raw,
        text=text,
        tool=(read_name(calls[0].get("name"), 80) or "?") if calls else "",
        arguments=write_arguments(calls[0].get("input")) if calls else "",
        refusal=_read_refusal(whole) if finish == "refusal" else "",
        finish=finish,
        model=read_name(whole.get("model"), 200),
        usage=usage,
        thought=bool(thoughts or usage.reasoning or (finish == "max_tokens" and not (text or calls))),
    )


def _read_refusal(whole: Mapping[str, Any]) -> str:
    said = join_text(unwrap(whole, "stop_details").get("explanation")).strip()
    return said[:1000] or "the model stopped with a refusal"


def _read_usage(given: Any) -> Usage:
    """Return token counts: ``input_tokens`` excludes what was read from the cache and written to it."""
    found = given if isinstance(given, dict) else {}
    new, read, written = (
        read_count(found.get(name))
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return Usage(
        prompt=None if new is None else add_counts(new, read, written),
        cached=read,
        completion=read_count(found.get("output_tokens")),
        reasoning=read_count(unwrap(found, "output_tokens_details").get("thinking_tokens")),
        written=written,
    )


def build_path(request: Mapping[str, Any], address: str) -> str:
    """Return the path; the address may end with /v1, as that of other APIs does."""
    return "/messages" if address.rstrip("/").endswith("/v1") else "/v1/messages"


API = Api(
    name="anthropic",
    messages="messages",
    names={
        "temperature": "temperature",
        "tool_choice": "tool_choice",
        "tools": "tools",
        "input_schema": "tools",
        "cache_control": "prompt_cache",
    },
    build_path=build_path,
    translate=translate,
    fill_image=fill_image,
    parse=parse,
    build_headers=lambda key: {"x-api-key": key, "anthropic-version": VERSION},
    lacks=frozenset({"seed", "logprobs"}),
    length="max_tokens",
    reserved=frozenset({"system"}),
)
