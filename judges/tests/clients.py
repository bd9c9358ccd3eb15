"""What tests of the model client stand on: a client of the fake endpoint, with everything it touches in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from judges.llm import Endpoint, Generation, Part, Patience, Prompt, Reply
from judges.llm.client import Client
from judges.tests.builders import Fake, FolderImages, MemoryCallLog, OpenGate

T = TypeVar("T")
SCHEMA = {
    "type": "object",
    "required": ["status", "score"],
    "properties": {
        "status": {"type": "string", "enum": ["success", "failure"]},
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
    },
}
FITS = '{"status": "success", "score": 4}'


def prompt(*parts: Part, system: str = "You judge.") -> Prompt:
    return Prompt(system, (parts or ("Did it succeed?",),))


@dataclass
class Desk:
    """A client and what it was given. ``ask`` asks one question of one item."""

    fake: Fake
    generation: Generation = field(default_factory=Generation)
    patience: Patience = field(default_factory=lambda: Patience(concurrency=4, timeout=10.0, attempts=3))
    model: str = "gpt-4o"
    call_log: Any = field(default_factory=MemoryCallLog)
    gate: Any = field(default_factory=OpenGate)
    images: Any = field(default_factory=FolderImages)
    endpoint: Endpoint | None = None
    now: float | None = None  # Unix time that stands still
    waits: bool = False  # whether pauses last; ``slept`` has them either way
    slept: list[float] = field(default_factory=list)
    client: Client = field(init=False)

    def run(self, work: Callable[[Desk], Awaitable[T]]) -> T:
        """Do ``work`` in an event loop of its own with a fresh client."""

        async def whole() -> T:
            endpoint = self.endpoint or self.fake.endpoint
            clock = time.time if self.now is None else lambda: float(self.now or 0)
            self.client = Client(
                endpoint, self.model, self.generation, self.patience, self.gate, self.images,
                clock=clock, sleep=self.sleep,
            )  # fmt: skip
            try:
                return await work(self)
            finally:
                await self.client.close()

        return asyncio.run(whole())

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(seconds if self.waits else 0)

    def ask(self, *parts: Part, **more: Any) -> Reply:
        """One question, from beginning to end."""
        return self.run(lambda desk: desk.asks(*parts, **more))

    async def asks(self, *parts: Part, order: int = 0, stage: str = "verdict", **more: Any) -> Reply:
        return await self.client.asker(self.call_log, order).ask(prompt(*parts), stage=stage, **more)
