"""What an evaluation stands on that a script never says: the prompt texts, and which errors end it.

Scripts make their evaluator themselves. Whoever runs one opens an `Engine` around it (`open_engine`), which every
evaluator made inside takes its texts from and is known to. Without one the defaults hold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from judges.prompts import load_builtin

PROMPTS = "rubric/1"
STAGES = ("verify_answer", "verify_page", "verify_steps", "extract_answer", "extract_page")

FaultKind = Literal["page", "call", "extraction", "tool"]
ReadPdf = Callable[[bytes], tuple[str, list[bytes]]]
# (distance or travel_time, from, to, mode) -> metres or seconds, or a text that says why there is none.
Maps = Callable[[str, str, str, str], Awaitable[int | str]]


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


class Evaluation(Protocol):
    """What whoever opened an engine may ask an evaluator that was made inside (`evaluator.Evaluator`)."""

    @property
    def initialized(self) -> bool: ...
    @property
    def infrastructure_errors(self) -> list[Fault]: ...
    @property
    def missing_pages(self) -> list[str]: ...
    def details(self) -> dict[str, Any]: ...
    def score_bounds(self, *, missing_pages: bool = False) -> tuple[float, float]: ...


def describe_unread(data: bytes) -> tuple[str, list[bytes]]:
    """What is shown of a PDF that nobody reads: reading one takes a process of its own."""
    return "(This PDF was not read.)", []


@dataclass(slots=True)
class Engine:
    """``texts`` are prompt texts (None: those of `PROMPTS`). ``lets_through`` are errors that end the evaluation
    instead of counting as not supported, such as a spent budget. ``threads``: pictures are prepared beside the event
    loop; a process of its own needs none. ``read_pdf`` gives text and JPEGs of a PDF. ``maps`` answers for the maps
    tool of scripts. ``evaluators`` are those made inside, ``faults`` those of no evaluator."""

    texts: Mapping[str, str] | None = None
    lets_through: tuple[type[Exception], ...] = ()
    threads: bool = False
    read_pdf: ReadPdf = describe_unread
    maps: Maps | None = None
    evaluators: list[Evaluation] = field(default_factory=list)
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
