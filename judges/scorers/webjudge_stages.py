"""What the two modes of WebJudge have in common: what passes from one stage to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from annotation.records import Verdict
from judges.llm import ImageRef, Prompt, Reply
from judges.scorer import KeyPointEvidence, Subject

Schema = Mapping[str, Any]


class StageUnusable(Exception):
    """No verdict can come of this reply; the message says why, in words for people."""

    def __init__(self, reason: str, response: str) -> None:
        super().__init__(reason)
        self.response = response


@dataclass(frozen=True, slots=True)
class Points:
    """The requirements of the task: each by itself, and ``plain`` as one text for upstream's templates."""

    texts: tuple[str, ...]
    plain: str

    @classmethod
    def numbered(cls, texts: Sequence[str]) -> Points:
        return cls(tuple(texts), "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1)))


@dataclass(frozen=True, slots=True)
class PictureReply:
    """What was said of the picture of a step; ``same_as`` is the earlier step with the same picture."""

    step: int
    image: ImageRef
    relevance: int | None
    reason: str
    response: str
    same_as: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict with its reasons; ``notes`` are facts about the reading of the reply.

    ``status_not_stated`` as in `scorer.Score`.
    """

    verdict: Verdict
    explanation: str
    key_points: tuple[KeyPointEvidence, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)
    status_not_stated: bool = False


class Mode(Protocol):
    """How prompts are built and replies are read; ``shows_once``: equal pictures are shown once for the verdict."""

    schemas: Mapping[str, Schema | None]
    shows_once: bool

    def key_points_prompt(self, subject: Subject) -> Prompt: ...

    def points(self, reply: Reply) -> Points:
        """Raises Unusable."""
        ...

    def screenshot_prompt(self, subject: Subject, points: Points, image: ImageRef) -> Prompt: ...

    def relevance(self, reply: Reply) -> tuple[int | None, str]: ...

    def relevant(self, looks: Sequence[PictureReply]) -> list[PictureReply]:
        """Those that reach the threshold, in the order in which they are shown; the cap comes later."""
        ...

    def verdict_prompt(self, subject: Subject, points: Points, relevant: Sequence[PictureReply]) -> Prompt:
        """``relevant`` is what `relevant` chose, the cap not yet applied."""
        ...

    def decision(self, reply: Reply, subject: Subject, points: Points) -> Decision:
        """Raises Unusable."""
        ...
