"""A small scorer for tests of runs: a call for each picture, then one for the verdict, read from its last word."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from annotation.records import Verdict
from judges.llm import Asker, Prompt, SentImage
from judges.scorer import REGISTRY, Kind, Prompts, Score, Subject, register

WORDS = {"success": Verdict.SUCCESS, "failure": Verdict.FAILURE}


@dataclass(frozen=True)
class Parameters:
    mistake: str = field(default="", metadata={"help": "The task at which the scorer itself fails."})
    last: bool = field(default=False, metadata={"help": "Look at the screenshots after the verdict."})


@dataclass(frozen=True)
class Tiny:
    parameters: Parameters

    async def score(self, subject: Subject, model: Asker) -> Score:
        if subject.record.task_id == self.parameters.mistake:
            raise ZeroDivisionError("a scorer's own mistake")
        if not self.parameters.last:
            await _look(subject, model)
        reply = await model.ask(Prompt("Judge.", ((subject.record.task_text,),)), stage="verdict")
        if self.parameters.last:
            await _look(subject, model)
        if reason := reply.unusable():
            return Score(None, unscored=reason, response=reply.text)
        word = reply.text.split()[-1]
        if word not in WORDS:
            return Score(None, unscored="No verdict in the reply.", response=reply.text)
        return Score(WORDS[word], explanation=reply.text, response=reply.text, notes={"word": word})


async def _look(subject: Subject, model: Asker) -> None:
    async with asyncio.TaskGroup() as group:
        for step, picture in enumerate(subject.screenshots):
            if picture is not None:
                parts = (f"Step {step} of: {subject.record.task_text}", SentImage(picture))
                group.create_task(model.ask(Prompt("Look.", (parts,)), stage="look", step=step))


def _calls(parameters: Any, subject: Subject) -> list[tuple[str, int]]:
    return [("look", 1) for picture in subject.screenshots if picture] + [("verdict", 0)]


def _build(parameters: Any, prompts: Prompts) -> Tiny:
    return Tiny(parameters)


@contextmanager
def tiny_scorer() -> Iterator[Kind]:
    """The scorer ``tiny`` in the registry, for as long as the block lasts."""
    kind = register(Kind("tiny", 1, "Tiny", "For tests.", Parameters, "", _build, _calls))
    try:
        yield kind
    finally:
        del REGISTRY["tiny"]
