"""OpenAI's chat completions: POST /chat/completions, the form in which `wire` builds every request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.llm import Usage
from judges.llm.apis.base import (
    Api,
    ReplyBody,
    UnreadableReply,
    join_text,
    load,
    read_count,
    read_error,
    read_name,
    read_tokens,
    strip_unstorable,
    unwrap,
    write_arguments,
)

ADAPTABLE = (
    *("max_tokens", "max_completion_tokens", "temperature", "seed", "reasoning_effort", "response_format", "tools"),
    "logprobs",
)
ALIASES = {"json_schema": "response_format", "tool_choice": "tools", "functions": "tools"}


def fill_image(image: Mapping[str, str], data: str) -> dict[str, str]:
    url = {"url": f"data:{image['media_type']};base64,{data}"}
    return url | ({"detail": image["detail"]} if image["detail"] else {})


def parse(raw: str) -> ReplyBody:
    whole = load(raw)
    if (filtered := read_error(raw, whole)) is not None:
        return filtered
    choices = whole.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(message := choice.get("message"), dict):
        raise UnreadableReply("The reply has no choices.")
    return _read_choice(raw, whole, choice, message)


def _read_choice(raw: str, whole: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> ReplyBody:
    finish = str(choice.get("finish_reason") or "")
    tool, arguments = _read_tool_call(message.get("tool_calls"))
    refusal = join_text(message.get("refusal")).strip()
    if finish == "content_filter":
        refusal = refusal or "the endpoint filtered the reply"
    text, usage = join_text(message.get("content")), _read_usage(whole.get("usage"))
    thoughts = message.get("reasoning_content") or message.get("reasoning") or usage.reasoning
    silent = finish in ("length", "max_tokens") and not (text or arguments)
    return ReplyBody(
        raw=raw,
        text=text,
        tool=tool,
        arguments=arguments,
        refusal=refusal,
        finish=strip_unstorable(finish)[:40],
        model=read_name(whole.get("model"), 200),
        usage=usage,
        thought=bool(thoughts or silent or text.lstrip().startswith("<think>")),
        tokens=read_tokens(unwrap(choice, "logprobs").get("content")),
    )


def _read_tool_call(calls: Any) -> tuple[str, str]:
    call = calls[0] if isinstance(calls, list) and calls else None
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "", ""
    name = strip_unstorable(str(function.get("name") or "?"))[:80]
    return name, write_arguments(function.get("arguments"))


def _read_usage(given: Any) -> Usage:
    """Return token counts, None if implausible: an endpoint may omit them or count wrongly.

    Gemini's address for chat completions counts thoughts in the total only.
    """
    found = given if isinstance(given, dict) else {}
    prompt, completion, total = (read_count(found.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    if prompt is not None and completion is not None and total is not None:
        completion = max(completion, total - prompt)
    details = unwrap(found, "prompt_tokens_details")
    return Usage(
        prompt=prompt,
        cached=read_count(details.get("cached_tokens")),
        completion=completion,
        reasoning=read_count(unwrap(found, "completion_tokens_details").get("reasoning_tokens")),
        written=read_count(details.get("cache_write_tokens")),
    )


API = Api(
    name="chat",
    messages="messages",
    names={name: name for name in ADAPTABLE} | ALIASES,
    build_path=lambda _, __: "/chat/completions",
    translate=dict,
    fill_image=fill_image,
    parse=parse,
    lacks=frozenset({"prompt_cache"}),
)
