"""How much may happen at once: pages and model calls each have a limit of their own."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType
from typing import Any

PAGES = 5
CALLS = 30

Limit = AbstractAsyncContextManager[Any]


class DualSemaphore:
    """``webpage`` limits pages and ``llm`` model calls; used directly it is the one of pages.

    Either may be a number or a semaphore.
    """

    def __init__(self, webpage: int | asyncio.Semaphore = PAGES, llm: int | asyncio.Semaphore = CALLS) -> None:
        self.webpage = asyncio.Semaphore(webpage) if isinstance(webpage, int) else webpage
        self.llm = asyncio.Semaphore(llm) if isinstance(llm, int) else llm

    async def acquire(self) -> bool:
        return await self.webpage.acquire()

    def release(self) -> None:
        self.webpage.release()

    def locked(self) -> bool:
        return self.webpage.locked()

    async def __aenter__(self) -> DualSemaphore:
        await self.webpage.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.webpage.release()


def find_limits(given: Any) -> tuple[Limit, Limit]:
    """The limits of pages and of model calls in what a script was given; a plain semaphore is both, None neither.

    A page is never held while a model call waits, so that a plain semaphore of one place blocks nothing.
    """
    if given is None:
        return nullcontext(), nullcontext()
    return getattr(given, "webpage", given), getattr(given, "llm", given)
