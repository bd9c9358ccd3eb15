"""Optimisers of criteria: each proposes a text from disagreements on training tasks. No database, no Django."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from judges.llm import Prompt, Reply
from judges.prompts import fill, load_builtin
from judges.scorers import framing, reading

PROMPTS = "alignment/1"
LONGEST_REASON = 1_000  # characters of one reason
SCHEMA = reading.build_object_schema(reason=reading.TEXT, criteria=reading.TEXT)

Ask = Callable[[Prompt, Mapping[str, Any]], Awaitable[Reply]]


class NoText(Exception):
    """The optimiser proposed no usable text; the message says why."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A training case: the verdicts (a word), the judge's reason, those of people, and the step that decides."""

    task: str
    judge: str
    judge_reason: str
    people: str
    people_reasons: tuple[str, ...]
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """A text that the development split rejected, and why; the reason has figures of that split only."""

    criteria: str
    reason: str


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that an optimiser gets."""

    criteria: str
    disagreements: tuple[Disagreement, ...]
    tried: tuple[Tried, ...] = ()


class Optimiser(Protocol):
    async def propose(self, material: Material, ask: Ask) -> str:
        """Return a new text for the criteria; raise NoText if there is none."""
        ...


class Rewriting:
    """Ask the model once, with disagreements as a marked record, for the complete new criteria."""

    async def propose(self, material: Material, ask: Ask) -> str:
        reply = await ask(build_prompt(material), SCHEMA)
        if problem := reply.unusable():
            raise NoText(problem)
        found = (reply.data or {}).get("criteria")
        if not isinstance(found, str) or not found.strip():
            raise NoText(f"The reply has no criteria. {reply.problem}".strip())
        return found.strip()


def build_prompt(material: Material) -> Prompt:
    texts = load_builtin(PROMPTS).texts
    record = framing.format_record(_build_lines(material))
    user = fill(texts["rewrite.user"], criteria=material.criteria, record=record)
    return Prompt(texts["rewrite.system"], ((user,),))


def _build_lines(material: Material) -> Iterator[str]:
    for number, case in enumerate(material.disagreements, 1):
        name = f"case {number}"
        yield framing.format_field(f"{name} task", case.task, framing.TASK)
        yield framing.format_field(f"{name} verdict of the judge", case.judge, framing.POINT)
        yield framing.format_field(f"{name} reason of the judge", case.judge_reason, LONGEST_REASON)
        yield framing.format_field(f"{name} verdict of people", case.people, framing.POINT)
        for reason in case.people_reasons:
            yield framing.format_field(f"{name} reason of a person", reason, LONGEST_REASON)
        if case.step is not None:
            yield f"{name} step that decides: {case.step}"
    for number, one in enumerate(material.tried, 1):
        yield framing.format_field(f"rejected text {number}", one.criteria, framing.TASK)
        yield framing.format_field(f"rejected text {number} because", one.reason, framing.POINT)


PLAIN = "plain"
OPTIMISERS: dict[str, Optimiser] = {PLAIN: Rewriting()}
