"""Ask an endpoint a few short questions, to see what it supports before a judge depends on it."""

from __future__ import annotations

import asyncio
import hashlib
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from PIL import Image

from judges.llm import Endpoint, Generation, GivenImage, Part, Patience, Prompt, Reply, SentImage
from judges.llm.apis.base import ReplyBody
from judges.llm.batch import NO_BATCHES, BatchApi, BatchFailed
from judges.llm.replies import build_reply
from judges.llm.transport import FailedAttempt, Transport, read_rate_limits
from judges.llm.wire import LENGTHS, Encoded, Form, build_request

MOST_ADAPTATIONS = 6  # one for each parameter that an endpoint may refuse
COLOUR, RED = "red", (208, 16, 16)
SYSTEM = "You test a connection. Answer as briefly as you can."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
NUMBER = 7
Output = Literal["schema", "tool", "text"]
NOT_IN_API = "not part of this API"
FORM_FIELDS = {"response_format", "tools", "tool_choice"}


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that judges need or can use; ``supported`` is None if the endpoint does not tell."""

    name: str
    supported: bool | None
    detail: str = ""


@dataclass(slots=True)
class _Probe:
    transport: Transport
    known: Form  # what the endpoint refuses

    async def ask(
        self,
        *parts: Part,
        output: Output = "text",
        schema: Mapping[str, Any] | None = None,
        pictures: Mapping[str, bytes] | None = None,
        logprobs: bool = False,
    ) -> tuple[Reply | FailedAttempt, Form, ReplyBody | None]:
        """Ask once, and again without each parameter that the endpoint refuses."""
        form = self.known = self.known.with_output(output, logprobs=logprobs)
        found = dict(pictures or {})
        sent = {digest: hashlib.sha256(data).hexdigest() for digest, data in found.items()}
        failed: FailedAttempt | None = None
        for _ in range(MOST_ADAPTATIONS):
            request = build_request(form, Prompt(SYSTEM, (parts,)), sent, schema)
            content = Encoded(request, {sent[digest]: data for digest, data in found.items()}, form.api.name)
            answer = await self.transport.post(content, lambda: None)
            if isinstance(answer, ReplyBody):
                return build_reply(answer, schema, form.output), form, answer
            failed, before = answer, form.settings(schema)
            form.learn(request, answer.param, answer.message)
            if not answer.refused or form.settings(schema) == before:
                break
        return failed or FailedAttempt("No question was asked.", again=False), form, None


async def probe(
    endpoint: Endpoint, model: str, patience: Patience, generation: Generation | None = None
) -> list[Capability]:
    """Return what the endpoint supports for this model; only the first one if it does not answer.

    Asks five questions, and again once for each parameter that it refuses. Raises NotConfigured.
    """
    transport = BatchApi(endpoint, patience)
    generation = generation or Generation()
    try:
        found = await _probe_all(_Probe(transport, Form(model, generation)), transport)
        has_batches = found[0].supported and generation.api == "chat"  # those of other APIs are not used
        return [*found, await _probe_batches(transport)] if has_batches else found
    finally:
        await transport.close()


async def check(endpoint: Endpoint, model: str, generation: Generation, patience: Patience) -> list[Capability]:
    """Return how the model answers one short question with the settings of a judge; first whether it answers.

    The question is asked again once for each parameter that the endpoint refuses, as in a run. All of it takes at most
    ``patience.timeout`` seconds. Raises NotConfigured.
    """
    transport = Transport(endpoint, patience)
    try:
        async with asyncio.timeout(patience.timeout):
            return await _check(_Probe(transport, Form(model, generation)), generation)
    except TimeoutError:
        return [Capability("answers", False, f"It did not answer within {patience.timeout:g} seconds.")]
    finally:
        await transport.close()


async def _check(asks: _Probe, generation: Generation) -> list[Capability]:
    asked = asks.known.settings(SCHEMA)
    began = time.monotonic()
    question = f"Give the number {NUMBER}."
    reply, form, _ = await asks.ask(question, output=generation.output, schema=SCHEMA, logprobs=generation.logprobs)
    if isinstance(reply, FailedAttempt):
        return [Capability("answers", False, reply.message)]
    if wrong := reply.unusable():
        return [Capability("answers", False, wrong)]
    took = f"in {time.monotonic() - began:.1f} s, as {reply.model or 'a model without a name'}"
    refused = sorted(asked.keys() - form.settings(SCHEMA).keys() - FORM_FIELDS)
    return [
        Capability("answers", True, took),
        *([] if generation.output == "text" else [_describe_output(reply, form)]),
        *(Capability(name, False, _describe_refusal(name, form)) for name in refused),
    ]


def _describe_output(reply: Reply, form: Form, name: str = "structured answer") -> Capability:
    if form.output == "text":
        return Capability(name, False, "refused; judges then ask for a text and look for JSON in it")
    if reply.data != {"number": NUMBER}:
        wrong = f"asked for the number {NUMBER}, the model answered {reply.text.strip()[:80]!r}"
        return Capability(name, False, reply.unusable() or reply.problem or wrong)
    return Capability(name, True)


def _describe_refusal(name: str, form: Form) -> str:
    return f"refused; sent as {form.length}" if name in LENGTHS else "refused; judges do not send it"


async def _probe_all(asks: _Probe, transport: Transport) -> list[Capability]:
    began = time.monotonic()
    reply, form, _ = await asks.ask("Answer with the one word ready.")
    if isinstance(reply, FailedAttempt):
        return [Capability("answers", False, reply.message)]
    if wrong := reply.unusable():
        return [Capability("answers", False, wrong)]
    limits, usage = _describe_limits(transport.headers), reply.usage
    counted = usage.prompt is not None and usage.completion is not None
    tokens = f"{usage.prompt} of the question, {usage.completion} of the answer" if counted else "not stated"
    cached = "not stated" if usage.cached is None else f"stated ({usage.cached} here)"
    return [
        Capability(
            "answers", True, f"in {time.monotonic() - began:.1f} s, as {reply.model or 'a model without a name'}"
        ),
        Capability("counts tokens", counted, tokens),
        Capability("counts cached tokens", usage.cached is not None, cached),
        await _probe_image(asks),
        await _probe_output(asks, "schema", "JSON schema"),
        await _probe_output(asks, "tool", "tool call"),
        await _probe_probabilities(asks),
        *_describe_parameters(form),
        limits,
    ]


async def _probe_batches(api: BatchApi) -> Capability:
    try:
        await api.check()
    except BatchFailed as failed:
        return Capability("batches", False if failed.status in NO_BATCHES else None, str(failed))
    return Capability("batches", True)


async def _probe_image(asks: _Probe) -> Capability:
    stream = io.BytesIO()
    Image.new("RGB", (64, 64), RED).save(stream, "JPEG")
    data = stream.getvalue()
    image = GivenImage(hashlib.sha256(data).hexdigest(), data)
    question = "Which colour has this image? Answer with one English word."
    reply, _, _ = await asks.ask(question, SentImage(image), pictures={image.digest: data})
    if isinstance(reply, FailedAttempt):
        return Capability("images", False, reply.message)
    seen = COLOUR in reply.text.lower()
    tokens = "" if reply.usage.prompt is None else f" ({reply.usage.prompt} tokens with the question)"
    said = reply.unusable() or f"a {COLOUR} image is called {reply.text.strip()[:60]!r}"
    return Capability("images", seen, f"{said}{tokens}")


async def _probe_output(asks: _Probe, output: Output, name: str) -> Capability:
    reply, form, _ = await asks.ask(f"Give the number {NUMBER}.", output=output, schema=SCHEMA)
    if isinstance(reply, FailedAttempt):
        return Capability(name, False, reply.message)
    return _describe_output(reply, form, name)


async def _probe_probabilities(asks: _Probe) -> Capability:
    if "logprobs" in asks.known.api.lacks:
        return Capability("log probabilities", False, NOT_IN_API)
    reply, form, body = await asks.ask("Answer with the one word ready.", logprobs=True)
    if isinstance(reply, FailedAttempt) or body is None:
        return Capability("log probabilities", False, reply.message if isinstance(reply, FailedAttempt) else "")
    if wrong := reply.unusable():
        return Capability("log probabilities", None, wrong)
    if "logprobs" not in form.settings(None):
        return Capability("log probabilities", False, "refused")
    given = body.tokens is not None
    return Capability("log probabilities", given, "" if given else "the parameter is ignored")


def _describe_parameters(form: Form) -> list[Capability]:
    length = Capability("length limit", True, f"as {form.api.length or form.length}")
    settings = form.settings(None)
    told = {
        "temperature": "not sent to reasoning models" if form.reasoning else "refused",
        "seed": NOT_IN_API if "seed" in form.api.lacks else "refused: repeated calls may differ",
    }
    return [length, *(Capability(name, name in settings, "" if name in settings else told[name]) for name in told)]


def _describe_limits(headers: Mapping[str, str]) -> Capability:
    found = sorted(read_rate_limits(headers, "limit").items())
    told = ", ".join(f"{kind or 'requests'} {value[:40]}" for kind, value in found)
    return Capability("states its limits", bool(found), told or "no x-ratelimit-limit headers")
