"""The client of the rubric engine, on top of the model client of all judges."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from judges.llm import Asker, GivenImage, Part, Prompt, Reply, SentImage
from judges.llm.maps import LONGEST_ADDRESS, MODES
from judges.scorers.rubric.engine import STAGES
from judges.scorers.rubric.questions import build_schema

OTHER = "script"  # the stage of a prompt that is not ours: a script wrote it
RESULT = re.compile(r"^[\s*_#`>-]*result[\s*_`]*[:=][\s*_`\"']*(true|false)[\s*_`\"'.]*$", re.IGNORECASE | re.MULTILINE)
MOST_IMAGES = 120  # of one prompt
MOST_CHARACTERS = 2_000_000  # of the texts of one prompt
LARGEST_IMAGE = 16 * 1024 * 1024  # bytes


class Unusable(Exception):
    """A reply that says neither yes nor no, or has the wrong form: a refusal, an empty reply, garbage."""


class BadRequest(Exception):
    """A script sent a request that no model accepts; the message is for the author of the script."""


class AskerClient:
    """The client of the engine, created for one evaluation.

    Equal prompts are votes: the first one is sent unchanged, each further one as another vote. So each gets its own
    reply from the model as well as from the cache, and the same reply if an evaluation is repeated.
    """

    def __init__(self, asker: Asker, texts: Mapping[str, str], most: int = 5_000) -> None:
        self.asker = asker
        self.most = most
        self.calls = 0
        self._rules = {texts[f"{stage}.system"]: stage for stage in STAGES if f"{stage}.system" in texts}
        self._asked: Counter[str] = Counter()

    async def async_response(
        self, *, messages: Sequence[Mapping[str, Any]], response_format: type[BaseModel] | None = None, **others: Any
    ) -> Any:
        """Return an instance of ``response_format``, or the text of the reply without one.

        ``others`` (model, temperature) are ignored: the judge decides them, not a script. Raises Unusable,
        BadRequest, and the errors of `Asker.ask`.
        """
        schema = None if response_format is None else build_schema(response_format)
        found = await self.ask(messages, schema)
        try:
            return found if response_format is None else response_format.model_validate(found)
        except ValidationError as error:
            raise Unusable(f"The reply has the wrong form: {error.errors()[0]['msg']}") from None

    async def ask(self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> Any:
        self.calls += 1
        if self.calls > self.most:
            raise BadRequest(f"One answer needed more than {self.most:,} model calls.")
        stage, prompt = self._build_staged(await asyncio.to_thread(build_prompt, messages))
        key = _hash(prompt, schema)
        vote = self._asked[key]
        self._asked[key] += 1
        reply = await self.asker.ask(prompt, stage=stage, schema=schema, vote=vote)
        if why := reply.unusable():
            raise Unusable(why)
        if schema is None:
            return reply.text
        found = read_data(reply, schema)
        if found is None:
            raise Unusable(f"The reply could not be read. {reply.problem}".strip())
        return found

    def _build_staged(self, prompt: Prompt) -> tuple[str, Prompt]:
        """Return the stage of a prompt, and the prompt with our rules as its system text: the engine puts all into
        one message, as the published one does."""
        first = prompt.messages[0][0] if prompt.messages and prompt.messages[0] else ""
        if prompt.system or not isinstance(first, str):
            return self._rules.get(prompt.system, OTHER), prompt
        for rules, stage in self._rules.items():
            if first.startswith(rules):
                message = (first.removeprefix(rules).strip(), *prompt.messages[0][1:])
                return stage, Prompt(rules, (message, *prompt.messages[1:]))
        return OTHER, prompt


async def find_route(asker: Asker, asked: Any) -> int | str:
    """Return metres or seconds for a call of the maps tool: what, from, to, mode; raise BadRequest, or CallFailed."""
    if not isinstance(asked, list) or len(asked) != 4 or not all(isinstance(one, str) for one in asked):
        raise BadRequest("The maps tool takes two addresses and a mode, all texts.")
    what, origin, destination, mode = asked
    if not origin.strip() or not destination.strip() or max(len(origin), len(destination)) > LONGEST_ADDRESS:
        raise BadRequest(f"An address of the maps tool must have 1 to {LONGEST_ADDRESS:,} characters.")
    if mode not in MODES or what not in ("distance", "travel_time"):
        raise BadRequest(f"The mode of the maps tool must be one of {', '.join(MODES)}.")
    route = await asker.find_route(origin, destination, mode)
    return route if isinstance(route, str) else route.distance if what == "distance" else route.travel_time


def read_data(reply: Reply, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object of a reply. In text, a last line "Result: true" is read if the schema has such a result."""
    if reply.data is not None:
        return reply.data
    stated = list(RESULT.finditer(reply.text))
    if "result" not in schema.get("properties", {}) or not stated or reply.text[stated[-1].end() :].strip():
        return None
    reasoning = reply.text[: stated[-1].start()].strip()
    return {"reasoning": reasoning, "result": stated[-1][1].lower() == "true"}


def build_prompt(messages: Sequence[Mapping[str, Any]]) -> Prompt:
    """Return a prompt from chat completion messages, with images as data URLs or references; raise BadRequest."""
    if not isinstance(messages, list | tuple) or not messages:
        raise BadRequest("The model must be called with a list of messages.")
    system: list[str] = []
    users: list[tuple[Part, ...]] = []
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("system", "developer", "user"):
            raise BadRequest("A message must have the role system or user.")
        parts = _read_parts(message.get("content"))
        if role == "user":
            users.append(parts)
        elif all(isinstance(part, str) for part in parts):
            system += map(str, parts)
        else:
            raise BadRequest("A system message may not have images.")
    sizes = [len(part) if isinstance(part, str) else 0 for parts in users for part in parts]
    if sum(sizes) + sum(map(len, system)) > MOST_CHARACTERS or sizes.count(0) > MOST_IMAGES:
        raise BadRequest(f"A prompt may have at most {MOST_CHARACTERS:,} characters and {MOST_IMAGES} images.")
    return Prompt("\n\n".join(system), tuple(users))


def _read_parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (content,)
    if not isinstance(content, list):
        raise BadRequest("The content of a message must be text or a list of parts.")
    return tuple(_read_part(part) for part in content)


def _read_part(part: Any) -> Part:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    if kind == "image" and isinstance(part.get("image"), SentImage):  # of our own evaluations, by reference
        return part["image"]
    address = part.get("image_url") if kind == "image_url" else None
    url = address.get("url") if isinstance(address, Mapping) else None
    if not isinstance(url, str):
        raise BadRequest("A part must be text, or an image_url with a url.")
    return SentImage(_read_image(url))


def _read_image(url: str) -> GivenImage:
    head, comma, encoded = url.partition(",")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
        raise BadRequest("An image must be a data URL in base64; nothing is fetched for a script.")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest("An image is not valid base64.") from None
    if len(data) > LARGEST_IMAGE:
        raise BadRequest(f"An image may have at most {LARGEST_IMAGE:,} bytes.")
    return GivenImage(hashlib.sha256(data).hexdigest(), data)


def _hash(prompt: Prompt, schema: Mapping[str, Any] | None) -> str:
    parts = [[part if isinstance(part, str) else part.image.digest for part in parts] for parts in prompt.messages]
    written = json.dumps([prompt.system, parts, schema], sort_keys=True)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
