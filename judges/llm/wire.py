"""Builder of requests, their trace and the keys of calls. Does not use the network.

A request is built once as chat completion, with images by digest, and translated to the API of the judge. This form is
traced and hashed; `Encoded` inserts the images.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from judges.llm import Call, Endpoint, Generation, Part, Prompt, SentImage
from judges.llm.apis import APIS
from judges.llm.apis.base import strip_unstorable

LENGTHS = ("max_tokens", "max_completion_tokens")
OUTPUT_FIELDS = {"schema": ("response_format",), "tool": ("tools", "tool_choice"), "text": ()}
SHORT, LONG = 2_048, 16_384  # default length of a reply in tokens; the second is for reasoning models
TOKENS_PER_THOUGHT = 1_200  # estimate of the paid tokens that a reasoning model adds to a reply
PICTURE_TOKENS = 1_100  # approximate count of endpoints for a screenshot in high detail
TOOL = "answer"  # the name of the function, and of the schema
PROMPT_FIELDS = ("messages", "input", "contents", "system", "instructions", "systemInstruction")
TEXT_FIELDS = ("content", "text", "system", "instructions")

# Fields of a request that no judge may add to it: they have settings of their own, or change the form of the reply.
# An API may have more, see `Api.reserved`.
RESERVED = {
    *("model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "reasoning_effort"),
    *("response_format", "tools", "tool_choice", "functions", "stream", "stream_options", "models", "n"),
}

# Phrases in errors of endpoints about an unknown parameter, as opposed to other errors about a parameter.
UNKNOWN = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|not permitted|not allowed|unexpected|extra inputs"
    r"|invalid parameter|invalid schema|not available|not accept|may only be set|deprecated|not enabled|not be enabled",
    re.IGNORECASE,
)
VALUE = re.compile(r"unsupported value|supported values", re.IGNORECASE)

REPAIR = (
    "That answer could not be used: {problem} Give the same answer again as one JSON object that fits this JSON "
    "schema, with nothing before or after it:\n{schema}"
)


@dataclass(frozen=True, slots=True)
class Correction:
    """A reply that could not be read, and its problem; the model is shown both."""

    reply: str
    problem: str


class Form:
    """Request format of one client. It starts with the judge's settings and adapts to the endpoint's errors."""

    def __init__(self, model: str, generation: Generation) -> None:
        self.model, self.generation = model, generation
        self.api = APIS[generation.api]
        # Anthropic's answers fit a schema as the input of a tool.
        self.output = "tool" if (generation.api, generation.output) == ("anthropic", "schema") else generation.output
        newer = OPENAI.search(model) if generation.dialect == "auto" else generation.dialect == "reasoning"
        self.length = "max_completion_tokens" if newer else "max_tokens"
        self.reasoning = is_reasoning(model, generation)
        self._left_out = {*self.api.lacks, *(["temperature"] if newer else [])}
        self._refused: set[str] = set()

    def settings(self, schema: Mapping[str, Any] | None, vote: int = 0) -> dict[str, Any]:
        """Return all fields of a chat completion except its messages; another ``vote`` has another seed."""
        asked = self.generation
        given = {
            "model": self.model,
            self.length: asked.max_tokens or (LONG if self.reasoning else SHORT),
            "temperature": None if asked.temperature == -1 else asked.temperature,
            "top_p": None if asked.top_p == -1 else asked.top_p,
            "seed": None if asked.seed == -1 else asked.seed + vote,
            "reasoning_effort": asked.reasoning_effort or None,
            "logprobs": asked.logprobs or None,
            "prompt_cache": asked.prompt_cache or None,
        } | (_build_output(self.output, schema) if schema else {})
        given |= json.loads(asked.extra_body or "{}")
        return {name: value for name, value in given.items() if value is not None and name not in self._left_out}

    def learn(self, request: Mapping[str, Any], param: str, message: str) -> None:
        """Omit or rename a parameter that the endpoint refused (400 or 422); ignore other errors.

        If the judge sets a dialect, length limit and temperature do not change.
        """
        name = _find_refused_name(param, message, self.api.names)
        sent = request if self.api.name == "chat" else {*self.settings(None), *OUTPUT_FIELDS[self.output]}
        if name not in sent or name in self._refused:
            return
        if name in ("max_tokens", "max_completion_tokens", "temperature") and self.generation.dialect != "auto":
            return
        if name == "reasoning_effort" and VALUE.search(message):
            return  # the model supports other efforts; without the effort it would be another judge
        if name == "logprobs" and not self.generation.logprobs:
            return  # one of the further fields of the judge
        self._refused.add(name)
        if name in LENGTHS:
            self.length = next(other for other in LENGTHS if other != name)
            self.reasoning |= self.length == "max_completion_tokens" and self.generation.reasoning == "auto"
        elif name in ("response_format", "tools"):
            self.output = "text"
        else:
            self._left_out.add(name)

    def with_output(self, output: Literal["schema", "tool", "text"], *, logprobs: bool = False) -> Form:
        """Return a form for another output that has learned the same of the other parameters."""
        other = Form(self.model, replace(self.generation, output=output, logprobs=logprobs))
        other.length, other.reasoning = self.length, self.reasoning
        other._left_out, other._refused = set(self._left_out), self._refused - {"response_format", "tools"}
        return other

    def notice(self, thought: bool) -> None:
        """Treat the model as a reasoning model if a reply shows it and the judge does not state it."""
        self.reasoning |= thought and self.generation.reasoning == "auto"


def _find_refused_name(param: str, message: str, names: Mapping[str, str]) -> str:
    """Return the parameter that an endpoint does not know, "" if its error is about something else.

    ``names`` maps the parameters of an API to those of chat completions.
    """
    if not UNKNOWN.search(message) or "context length" in message:
        return ""
    known = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])")
    found = known.search(param) or known.search(message)
    return names[found[1]] if found else ""


def _build_output(output: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = _close_objects(schema)
    if output == "tool":
        function = {"name": TOOL, "description": "Give the answer.", "parameters": strict, "strict": True}
        choice = {"type": "function", "function": {"name": TOOL}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
    if output == "schema":
        named = {"name": TOOL, "strict": True, "schema": strict}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    return {}


def _close_objects(schema: Any) -> Any:
    """Return the schema with every object closed to further properties, as strict endpoints require."""
    if isinstance(schema, list | tuple):
        return [_close_objects(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {name: _close_objects(value) for name, value in schema.items()}
    return closed | {"additionalProperties": False} if closed.get("type") == "object" else closed


def build_request(
    form: Form,
    prompt: Prompt,
    sent: Mapping[str, str],
    schema: Mapping[str, Any] | None = None,
    correction: Correction | None = None,
    vote: int = 0,
) -> dict[str, Any]:
    """Return a request body with images by digest: ``sha256`` of the sent JPEG, ``screenshot`` of its original.

    ``sent`` maps the second digest to the first.
    """
    messages: list[dict[str, Any]] = (
        [{"role": "system", "content": strip_unstorable(prompt.system)}] if prompt.system else []
    )
    messages += [{"role": "user", "content": _build_content(parts, sent)} for parts in prompt.messages]
    if correction:
        wanted = REPAIR.format(problem=correction.problem, schema=json.dumps(schema))
        messages += [
            {"role": "assistant", "content": strip_unstorable(correction.reply) or "(nothing)"},
            {"role": "user", "content": strip_unstorable(wanted)},
        ]
    return form.api.translate(form.settings(schema, vote) | {"messages": messages})


def _build_content(parts: tuple[Part, ...], sent: Mapping[str, str]) -> str | list[dict[str, Any]]:
    if len(parts) == 1 and isinstance(parts[0], str):
        return strip_unstorable(parts[0])
    return [
        {"type": "text", "text": strip_unstorable(part)} if isinstance(part, str) else _describe_picture(part, sent)
        for part in parts
    ]


def _describe_picture(part: SentImage, sent: Mapping[str, str]) -> dict[str, Any]:
    digests = {"sha256": sent[part.image.digest], "screenshot": part.image.digest}
    return {"type": "image_url", "image_url": digests | {"media_type": part.media_type, "detail": part.detail}}


def build_call(
    endpoint: Endpoint, request: Mapping[str, Any], stage: str, step: int | None, vote: int = 0, api: str = "chat"
) -> Call:
    """Return the call with its key: SHA-256 of endpoint and request as canonical JSON, and of a vote after the first.

    Two endpoints may serve different models under one name. Without a seed the requests of all votes are equal, so only
    their keys separate the replies. Requests of two APIs may be equal too: all but chat completions are in the key.
    """
    former = {"request": request, "vote": vote} if vote else request
    if api != "chat":
        return Call(_hash({"endpoint": endpoint.identity, "api": api, "call": former}), stage, step, request)
    key = _hash({"endpoint": endpoint.identity, "call": former})
    return Call(key, stage, step, request, former_key=_hash(former))


def _hash(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class Encoded:
    """The request body, sent in pieces; ``pictures`` maps SHA-256 to JPEG, and is emptied.

    Images are inserted between pieces of the finished JSON: escaping megabytes that need no escaping would cost more
    than everything else. Each image is in base64 only while it is sent, and freed afterwards. Settings come before
    the messages. ``length`` is the size of the whole body in bytes.
    """

    def __init__(self, request: Mapping[str, Any], pictures: dict[str, bytes], api: str = "chat") -> None:
        self.api, self.request = APIS[api], request
        mark = secrets.token_hex(16)  # no text can contain it by chance or on purpose
        messages = self._fill_images(request[self.api.messages], mark)
        body = {name: value for name, value in request.items() if name not in self.api.omitted}
        text = json.dumps(body | {self.api.messages: messages}, ensure_ascii=False, separators=(",", ":"))
        self._first, *rest = text.encode().split(mark.encode())
        self._rest = [(piece[:64].decode(), piece[64:]) for piece in rest]
        self._pictures = pictures
        sizes = [compute_sent_size(pictures[digest]) + len(piece) for digest, piece in self._rest]
        self.length = len(self._first) + sum(sizes)

    def _fill_images(self, value: Any, mark: str) -> Any:
        if isinstance(value, list):
            return [self._fill_images(one, mark) for one in value]
        if not isinstance(value, Mapping):
            return value
        if "sha256" in value:  # messages have texts and images alone
            return self.api.fill_image(value, f"{mark}{value['sha256']}")
        return {name: self._fill_images(one, mark) for name, one in value.items()}

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._first
        uses = Counter(digest for digest, _ in self._rest)
        for digest, piece in self._rest:
            uses[digest] -= 1
            data = self._pictures[digest] if uses[digest] else self._pictures.pop(digest)
            yield base64.b64encode(data) + piece


def compute_sent_size(data: bytes) -> int:
    return (len(data) + 2) // 3 * 4


def estimate_tokens(request: Mapping[str, Any]) -> int:
    """Estimate the tokens of a request of any API: one for four characters, and `PICTURE_TOKENS` for an image."""
    characters, pictures = _measure({name: request[name] for name in PROMPT_FIELDS if name in request})
    return characters // 4 + pictures * PICTURE_TOKENS


def _measure(value: Any, name: str = "") -> tuple[int, int]:
    """Return the characters of the texts and the number of images."""
    if isinstance(value, str):
        return (len(value) if name in TEXT_FIELDS else 0), 0
    if isinstance(value, Mapping):
        if "sha256" in value:
            return 0, 1
        found = [_measure(one, key) for key, one in value.items()]
    else:
        found = [_measure(one) for one in value] if isinstance(value, list) else []
    return sum(characters for characters, _ in found), sum(pictures for _, pictures in found)


# --- reasoning models -------------------------------------------------------------------------------------------------


# OpenAI models that need max_completion_tokens and accept no temperature.
OPENAI = re.compile(r"(?:^|/)(?:o\d+(?:-|$)|gpt-[5-9](?![\w.-]*chat))", re.IGNORECASE)
# Names of models that reason by default, at the beginning or after a separator.
FAMILIES = (
    r"gemini-(?:2\.[5-9]|[3-9]|(?:flash|pro)-latest)",
    r"deepseek[._-]?r\d",
    r"deepseek[\w.-]*(?:reasoner|speciale)",
    r"(?:qwq|qvq)",
    r"qwen-?3(?![\w.-]*(?:instruct|coder|max|next))",
    r"gpt-oss",
    r"grok-(?:3-mini|[4-9])",
    r"glm-(?:4\.[5-9]|[5-9])",
    r"minimax-m\d",
    r"magistral",
    r"seed-oss",
)
BY_FAMILY = re.compile(rf"(?:^|[/:._@-])(?:{'|'.join(FAMILIES)})", re.IGNORECASE)
BY_WORD = re.compile(r"(?<![a-z])(?:thinking|think|reasoning|reasoner)(?![a-z])", re.IGNORECASE)
NOT = re.compile(r"(?<![a-z])(?:non?|without)[-_ ]?(?:thinking|think|reasoning)(?![a-z])", re.IGNORECASE)


def is_reasoning_model(model: str) -> bool:
    """Return True if a model of this name reasons by default. For unknown names the replies decide."""
    if NOT.search(model):
        return False
    return any(pattern.search(model) for pattern in (OPENAI, BY_FAMILY, BY_WORD))


def is_reasoning(model: str, generation: Generation) -> bool:
    """Return True if a judge's model reasons: as the judge states, or by the dialect and the model's name."""
    if generation.reasoning != "auto":
        return generation.reasoning == "yes"
    if generation.api == "anthropic" and generation.reasoning_effort not in ("", "none"):
        return True  # these models reason only if asked to
    return generation.dialect == "reasoning" or is_reasoning_model(model)
