"""Settings of an evaluation that a script never states: prompt texts, limits, and which errors end it.

Scripts create their evaluator themselves. The caller opens an `Engine` around a script (`open_engine`): every evaluator
created inside takes its texts from it and is registered in it. Without one the defaults apply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from judges.prompts import load_builtin

PROMPTS = "rubric/1"
PAGES, CALLS = 5, 30  # at once
STAGES = ("verify_answer", "verify_page", "verify_steps", "extract_answer", "extract_page")

FaultKind = Literal["page", "call", "extraction", "tool"]
ReadPdf = Callable[[bytes], tuple[str, list[bytes]]]
# (distance or travel_time, from, to, mode) -> metres or seconds, or a text that says why there is none.
Maps = Callable[[str, str, str, str], Awaitable[int | str]]
Limit = AbstractAsyncContextManager[Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error while judging: the answer did not cause it, but the claim counts as not supported.

    ``kind``: ``page`` (not stored, so nothing could be checked against it), ``call`` (of the model, or another error
    inside a check), ``extraction``, or ``tool``. ``where`` is the id of a node or the name of an extraction.
    """

    kind: FaultKind
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def describe_unread(data: bytes) -> tuple[str, list[bytes]]:
    """Return a text in place of a PDF: reading one needs a separate process."""
    return "(This PDF was not read.)", []


@dataclass(slots=True)
class Engine:
    """``texts`` are prompt texts (None: those of `PROMPTS`). ``lets_through`` are errors that end the evaluation
    instead of counting as not supported, such as a spent budget. ``threads``: images are prepared in threads, not
    in the event loop; a separate process needs none. ``read_pdf`` returns text and JPEGs of a PDF. ``maps`` answers
    the maps tool. ``evaluators`` (`evaluator.Evaluator`) were created inside, ``faults`` belong to no evaluator."""

    texts: Mapping[str, str] | None = None
    lets_through: tuple[type[Exception], ...] = ()
    threads: bool = False
    read_pdf: ReadPdf = describe_unread
    maps: Maps | None = None
    evaluators: list[Any] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def text(self, name: str) -> str:
        texts = load_builtin(PROMPTS).texts if self.texts is None else self.texts
        if not texts.get(name, "").strip():
            raise LookupError(f"The prompt texts have no {name}; they have {', '.join(sorted(texts)) or 'none'}.")
        return texts[name]


_current: ContextVar[Engine | None] = ContextVar("rubric_engine", default=None)


def current() -> Engine:
    return _current.get() or Engine()


@contextmanager
def open_engine(**settings: Any) -> Iterator[Engine]:
    """Open an `Engine` with these settings for the code inside, including the tasks that it starts."""
    engine = Engine(**settings)
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)


class DualSemaphore:
    """``webpage`` limits pages and ``llm`` model calls; used directly it limits pages.

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
    """Return the limits of pages and of model calls that a script was given; a plain semaphore is both, None neither.

    No page slot is occupied while a model call waits, so a plain semaphore with one slot does not deadlock.
    """
    if given is None:
        return nullcontext(), nullcontext()
    return getattr(given, "webpage", given), getattr(given, "llm", given)
