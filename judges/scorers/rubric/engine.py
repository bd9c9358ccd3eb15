"""Settings of an evaluation that a script never states: prompt texts, limits, and which errors end it.

Scripts make their evaluator themselves. Whoever runs one opens an `Engine` around it (`open_engine`), which every
evaluator made inside takes its texts from and is known to. Without one the defaults hold.
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
    """Something that broke while judging: the answer is not to blame, and counted as if it were.

    ``kind``: ``page`` (not stored, so nothing could be checked against it), ``call`` (of the model, or anything else
    inside a check), ``extraction``, or ``tool``. ``where`` is the id of a node or the name of an extraction.
    """

    kind: FaultKind
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def describe_unread(data: bytes) -> tuple[str, list[bytes]]:
    """Return a text in place of a PDF: reading one takes a process of its own."""
    return "(This PDF was not read.)", []


@dataclass(slots=True)
class Engine:
    """``texts`` are prompt texts (None: those of `PROMPTS`). ``lets_through`` are errors that end the evaluation
    instead of counting as not supported, such as a spent budget. ``threads``: pictures are prepared beside the event
    loop; a process of its own needs none. ``read_pdf`` gives text and JPEGs of a PDF. ``maps`` answers for the maps
    tool of scripts. ``evaluators`` (`evaluator.Evaluator`) are those made inside, ``faults`` those of no evaluator."""

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
    """Open an `Engine` with these settings for what runs inside, tasks that are started there included."""
    engine = Engine(**settings)
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)


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
