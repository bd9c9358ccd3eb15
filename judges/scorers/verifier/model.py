"""Criteria, grades and findings of the rubric verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judges.llm import ImageRef

MOST_CRITERIA = 20
MOST_POINTS = 10  # of one criterion, and of one penalty
POINTS_OF_A_KEY_POINT = 5  # people's key points have no weights; also the mean of the claims of a rubric
MOST_PENALTIES = 20
SHOTS_PER_CALL = 4
QUESTIONS = 3  # a question is repeated twice

# Categories of the first failure. Source: the list of Stagehand's verifier.
CATEGORIES = {
    "none": "nothing went wrong",
    "selection": "acted on the wrong element or chose the wrong item",
    "navigation": "went to the wrong page, or never reached the right one",
    "reasoning": "misunderstood the task or drew a wrong conclusion",
    "tool_use": "called an action in a wrong way, or repeated one that failed",
    "verification": "did not check a result, or claimed what the page does not show",
    "termination": "stopped too early, or continued after the end",
    "ambiguity": "the task can be read in several ways, and this caused the difference",
    "validity": "the task cannot be done as it is stated",
}


class Mismatch(Exception):
    """A reply that does not answer the question; the message says why. The question is repeated."""


class Unusable(Exception):
    """No usable reply; the message tells people why. ``response`` is the last reply."""

    def __init__(self, reason: str, response: str) -> None:
        super().__init__(reason)
        self.response = response


@dataclass(frozen=True, slots=True)
class Criterion:
    """``number`` counts from 1; without a ``condition`` it always applies.

    ``max_points`` is 1 to 10 if the model writes the criterion. Those of a rubric's claims are in proportion to their
    weights, with a mean of `POINTS_OF_A_KEY_POINT`: penalties are as heavy whatever the scale of the weights is.
    ``key_point`` is the text of the key point that such a claim settles, "" for none.
    """

    number: int
    text: str
    max_points: int | float
    description: str = ""
    condition: str = ""
    key_point: str = ""


def format_points(points: float) -> str:
    """Return points in three digits, as prompts state them: weights of a rubric give 60/7 and the like."""
    return f"{points:.3g}"


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of one pass; ``points`` is None if it could not be graded, for the given ``reason``."""

    points: float | None
    reason: str
    applies: bool = True


@dataclass(frozen=True, slots=True)
class Shot:
    """A distinct screenshot, with all the steps that show it."""

    image: ImageRef
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """The rating of a screenshot for each criterion, 0 to 10; None if it could not be read, for the reason ``note``."""

    shot: Shot
    ratings: tuple[int, ...] | None
    note: str
    response: str = ""


@dataclass(frozen=True, slots=True)
class Penalty:
    points: float
    step: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Blocker:
    """An obstacle outside the agent's control; ``number`` is that of the criterion that it blocked."""

    number: int
    step: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of the global pass. ``critical_point`` is the reason why one was violated, "" if none was.

    ``category`` is a key of `CATEGORIES`; ``first_step`` is None if nothing went wrong or no step was named.
    """

    outcome: bool
    reason: str
    penalties: tuple[Penalty, ...]
    blockers: tuple[Blocker, ...]
    critical_point: str
    critical_step: int | None
    category: str
    first_step: int | None
    first_reason: str
    is_ambiguous: bool
    is_invalid: bool
    validity_reason: str


@dataclass(frozen=True, slots=True)
class Passes:
    """Both grades of a criterion; ``images`` is None without screenshots. ``shown`` are the steps of its images."""

    criterion: Criterion
    actions: Grade
    images: Grade | None
    shown: tuple[int, ...] = ()

    @property
    def decisive(self) -> Grade:
        return self.actions if self.images is None else self.images

    @property
    def applies(self) -> bool:
        return not self.criterion.condition or self.decisive.applies


def batch_shots(shots: Sequence[Shot]) -> list[Sequence[Shot]]:
    return [shots[start : start + SHOTS_PER_CALL] for start in range(0, len(shots), SHOTS_PER_CALL)]
