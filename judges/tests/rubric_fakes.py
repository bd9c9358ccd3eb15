"""A deterministic model for rubrics: it reads claim, address and request out of the prompt, and answers by rule."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from PIL import Image
from pydantic import BaseModel

from judges.scorers.rubric import alias
from judges.scorers.rubric.evaluator import Evaluator
from judges.scorers.rubric.pages import CacheFileSys

A, B, C = "https://a.example/1", "https://b.example/2", "https://c.example/3"
CLAIM = re.compile(r"^Claim: (.*)$", re.MULTILINE)
ADDRESS = re.compile(r"^page address: (.*)$", re.MULTILINE)
INSTRUCTION = re.compile(r"^Additional instruction: (.*)$", re.MULTILINE)

Rule = Callable[[str, str, int], Any]


def quoted(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    if not found or found[1] == "None":
        return ""
    try:
        return str(json.loads(found[1]))
    except ValueError:  # it has quotation marks, and stands there word for word
        return found[1][1:-1]


@dataclass
class Call:
    """What the model was asked: the text of the prompt, its pictures, and how."""

    model: str
    text: str
    images: list[dict[str, Any]]
    form: type
    options: dict[str, Any]
    claim: str
    url: str
    instruction: str


@dataclass
class Model:
    """``rule`` takes claim, address and the number of the vote from 1, and gives True, False, or an error to raise.

    ``extracts`` maps the name of a template to what is extracted, or to an error. ``turns`` is how often a call gives
    way to others before it answers.
    """

    rule: Rule = lambda claim, url, vote: True
    extracts: dict[str, Any] = field(default_factory=dict)
    turns: Callable[[str], int] = lambda url: 0
    calls: list[Call] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    votes: Counter = field(default_factory=Counter)

    async def async_response(self, *, model, messages, response_format, **options):
        (message,) = messages
        assert message["role"] == "user"
        parts = message["content"]
        text = parts if isinstance(parts, str) else parts[0]["text"]
        images = [] if isinstance(parts, str) else parts[1:]
        claim, url = quoted(CLAIM, text), quoted(ADDRESS, text)
        instruction = quoted(INSTRUCTION, text)
        self.calls.append(Call(model, text, images, response_format, options, claim, url, instruction))
        try:
            for _ in range(self.turns(url)):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.ended.append(url)
            raise
        if "result" not in response_format.model_fields:
            return self._extracted(response_format)
        self.votes[claim, url] += 1
        said = self.rule(claim, url, self.votes[claim, url])
        if isinstance(said, Exception):
            raise said
        return response_format(reasoning=f"{claim} {url}: {said}", result=said)

    def _extracted(self, form):
        said = self.extracts.get(form.__name__, {})
        if isinstance(said, Exception):
            raise said
        return form.model_validate(said)


def picture(width: int = 8, height: int = 6, colour: Any = "green", mode: str = "RGB", kind: str = "PNG") -> bytes:
    written = io.BytesIO()
    Image.new(mode, (width, height), colour).save(written, kind)
    return written.getvalue()


class Person(BaseModel):
    name: str | None = None
    age: int = 0


def begun(client=None, strategy="parallel", **given) -> Evaluator:
    """An evaluator of one answer, with a model that supports everything."""
    evaluator = Evaluator()
    evaluator.initialize("task-1", "agent", "answer_1", client or Model(), strategy=strategy, **given)
    return evaluator


def verified(evaluator, *args, **given):
    return asyncio.run(evaluator.verify(*args, **given))


def stored(folder) -> CacheFileSys:
    """A folder with the pages A, B and C."""
    cache = CacheFileSys(folder)
    for url in (A, B, C):
        cache.put_web(url, f"This is {url}.", picture())
    return cache


@contextmanager
def install_temporarily() -> Iterator[dict[str, ModuleType]]:
    """The nine modules in place, and whatever went by their names back afterwards."""
    before = {name: module for name, module in sys.modules.items() if _is_own(name)}
    for name in before:
        del sys.modules[name]
    made = alias.build_modules()
    sys.modules.update(made)
    try:
        yield made
    finally:
        for name in [name for name in sys.modules if _is_own(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_own(name: str) -> bool:
    return name == alias.PACKAGE or name.startswith(f"{alias.PACKAGE}.")
