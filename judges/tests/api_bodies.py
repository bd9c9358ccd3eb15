"""Replies of the APIs beside chat completions, with the fields that the providers document."""

from __future__ import annotations

import json
from typing import Any

from judges.llm import Endpoint, Generation
from judges.tests.builders import KEY, Fake
from judges.tests.clients import Desk

NATIVE = ("responses", "anthropic", "gemini")
MODELS = {"responses": "gpt-4.1", "anthropic": "claude-opus-4-8", "gemini": "gemini-1.5-pro"}
# Each is a prompt of 1,200 tokens, 200 of them from the cache, and an answer of 60 tokens, 10 of them thoughts.
USAGE: dict[str, Any] = {
    "responses": {
        "input_tokens": 1200,
        "input_tokens_details": {"cached_tokens": 200},
        "output_tokens": 60,
        "output_tokens_details": {"reasoning_tokens": 10},
        "total_tokens": 1260,
    },
    "anthropic": {"input_tokens": 1000, "cache_read_input_tokens": 200, "output_tokens": 60},
    "gemini": {
        "promptTokenCount": 1200,
        "cachedContentTokenCount": 200,
        "candidatesTokenCount": 50,
        "thoughtsTokenCount": 10,
        "totalTokenCount": 1260,
    },
}


def native(fake: Fake, api: Any, *, model: str = "", **generation: Any) -> Desk:
    """A client of the fake endpoint that speaks this API."""
    url = f"http://127.0.0.1:{fake.port}/v1beta" if api == "gemini" else fake.url
    settings = Generation(api=api, **generation)
    return Desk(fake, settings, model=model or MODELS[api], endpoint=Endpoint("fake", url, KEY))


def body(api: str, text: str = "", **further: Any) -> dict[str, Any]:
    """The body of a reply with a text, if there is one; ``further`` are other fields."""
    if api == "responses":
        return respond(message(text), **further)
    if api == "anthropic":
        return speak(*([{"type": "text", "text": text}] if text else []), **further)
    return generate(*([{"text": text}] if text else []), **further)


def call(api: str, arguments: Any, name: str = "answer") -> dict[str, Any]:
    """The body of a reply that calls a function."""
    if api == "responses":
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
        return respond(item | {"name": name, "arguments": json.dumps(arguments)})
    if api == "anthropic":
        return speak({"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}, stop_reason="tool_use")
    return generate({"functionCall": {"name": name, "args": arguments}})


def respond(*items: dict[str, Any], **further: Any) -> dict[str, Any]:
    made = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-4.1-2025-04-14",
        "output": list(items),
        "usage": USAGE["responses"],
    }
    return made | further


def message(*texts: str, **further: Any) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts} | further


def speak(*blocks: dict[str, Any], **further: Any) -> dict[str, Any]:
    made = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8-20260601",
        "content": list(blocks),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE["anthropic"],
    }
    return made | further


def generate(*parts: dict[str, Any], finish: str = "STOP", **further: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    made = {"candidates": [candidate], "usageMetadata": USAGE["gemini"], "modelVersion": "gemini-1.5-pro-002"}
    return made | further
