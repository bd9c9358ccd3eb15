"""Gemini's generateContent: POST /models/MODEL:generateContent.

Format: the REST reference of the Gemini API, version v1beta. Gemini 2 gets a thinking budget in
tokens; later versions accept only a level.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

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
    read_tokens,
    split,
    split_parts,
    unwrap,
    write_arguments,
)

WITH_BUDGET = re.compile(r"gemini-[12]\D", re.IGNORECASE)
LEVELS = {"none": "minimal", "xhigh": "high"}  # the others have the same names
# With any other reason (SAFETY, MALFORMED_FUNCTION_CALL, OTHER and many more), a reply is not complete.
USABLE = ("", "STOP", "FINISH_REASON_UNSPECIFIED", "MAX_TOKENS")


def translate(request: Mapping[str, Any]) -> dict[str, Any]:
    asked = split(request)
    config: dict[str, Any] = {"maxOutputTokens": asked.length}
    config |= asked.pick(temperature="temperature", top_p="topP", seed="seed", logprobs="responseLogprobs")
    config |= _build_thinking(asked)
    built: dict[str, Any] = {"model": asked.settings["model"]}
    if asked.output == "schema":
        config |= {"responseMimeType": "application/json", "responseJsonSchema": asked.schema}
    if asked.output == "tool":
        function = {"name": asked.tool, "description": asked.description, "parametersJsonSchema": asked.schema}
        choice = {"mode": "ANY", "allowedFunctionNames": [asked.tool]}
        built |= {"tools": [{"functionDeclarations": [function]}], "toolConfig": {"functionCallingConfig": choice}}
    built["generationConfig"] = config
    if asked.system:
        built["systemInstruction"] = {"parts": [{"text": asked.system}]}
    return merge(built, asked.further) | {"contents": [_translate_message(one) for one in asked.messages]}


def _build_thinking(asked: ChatRequest) -> dict[str, Any]:
    effort = asked.settings.get("reasoning_effort")
    if effort is None:
        return {}
    if WITH_BUDGET.search(asked.settings["model"]):
        return {"thinkingConfig": {"thinkingBudget": int(asked.length * THINKING_SHARES.get(effort, 0))}}
    return {"thinkingConfig": {"thinkingLevel": LEVELS.get(effort, effort)}}


def _translate_message(message: Mapping[str, Any]) -> dict[str, Any]:
    role = "model" if message["role"] == "assistant" else "user"
    return {"role": role, "parts": [_translate_part(part) for part in split_parts(message["content"])]}


def _translate_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"text": part["text"]}
    return {"inlineData": {"mimeType": JPEG} | name_digests(part)}  # the bytes are always JPEG


def fill_image(image: Mapping[str, str], data: str) -> dict[str, str]:
    return {"mimeType": image["mimeType"], "data": data}


def parse(raw: str) -> ReplyBody:
    whole = load(raw)
    if (filtered := read_error(raw, whole)) is not None:
        return filtered
    blocked = join_text(unwrap(whole, "promptFeedback").get("blockReason"))
    candidates = dicts(whole.get("candidates"))
    if not candidates and not blocked:
        raise UnreadableReply("The reply has no candidates.")
    candidate = candidates[0] if candidates else {}
    finish = join_text(candidate.get("finishReason"))[:40]
    parts = dicts(unwrap(candidate, "content").get("parts"))
    text = join_text([part for part in parts if part.get("thought") is not True])
    calls = [call for part in parts if (call := unwrap(part, "functionCall"))]
    usage = _read_usage(whole.get("usageMetadata"))
    thoughts = any(part.get("thought") is True for part in parts) or usage.reasoning
    return ReplyBody(
        raw=raw,
        text=text,
        tool=(read_name(calls[0].get("name"), 80) or "?") if calls else "",
        arguments=write_arguments(calls[0].get("args")) if calls else "",
        refusal=_describe_block(blocked, finish, candidate),
        finish=finish or blocked[:40],
        model=read_name(whole.get("modelVersion"), 200),
        usage=usage,
        thought=bool(thoughts or (finish == "MAX_TOKENS" and not (text or calls))),
        tokens=read_tokens(unwrap(candidate, "logprobsResult").get("chosenCandidates"), logarithm="logProbability"),
    )


def _describe_block(blocked: str, finish: str, candidate: Mapping[str, Any]) -> str:
    if blocked:
        return f"the endpoint blocked the prompt ({blocked[:40]})"
    if finish in USABLE:
        return ""
    said = join_text(candidate.get("finishMessage")).strip()[:900]
    return f"the endpoint blocked the reply ({finish}){f': {said}' if said else ''}"


def _read_usage(given: Any) -> Usage:
    """Return token counts: ``candidatesTokenCount`` excludes thoughts, and counts of 0 are omitted."""
    found = given if isinstance(given, dict) else {}
    prompt, thoughts = read_count(found.get("promptTokenCount")), read_count(found.get("thoughtsTokenCount"))
    answer = add_counts(read_count(found.get("candidatesTokenCount")), thoughts)
    return Usage(
        prompt=add_counts(prompt, read_count(found.get("toolUsePromptTokenCount"))),
        cached=read_count(found.get("cachedContentTokenCount")),
        completion=0 if answer is None and prompt is not None else answer,
        reasoning=thoughts,
    )


def build_path(request: Mapping[str, Any], address: str) -> str:
    return f"/models/{quote(str(request['model']).removeprefix('models/'), safe='')}:generateContent"


API = Api(
    name="gemini",
    messages="contents",
    names={
        "temperature": "temperature",
        "seed": "seed",
        **dict.fromkeys(("responseJsonSchema", "response_json_schema", "responseMimeType"), "response_format"),
        **dict.fromkeys(("response_mime_type", "response_schema", "JSON mode"), "response_format"),
        **dict.fromkeys(("tools", "toolConfig", "tool_config", "parametersJsonSchema", "Function calling"), "tools"),
        **dict.fromkeys(("parameters_json_schema", "function_declarations"), "tools"),
        **dict.fromkeys(("responseLogprobs", "response_logprobs", "Logprobs", "logprobs"), "logprobs"),
    },
    build_path=build_path,
    translate=translate,
    fill_image=fill_image,
    parse=parse,
    build_headers=lambda key: {"x-goog-api-key": key},
    lacks=frozenset({"prompt_cache"}),
    length="maxOutputTokens",
    reserved=frozenset({"contents", "systemInstruction", "toolConfig"}),
    omitted=frozenset({"model"}),  # it is part of the path
)
