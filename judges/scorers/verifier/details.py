"""Details page of the rubric verifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from judges.scorers.detail_values import mapping, read_as
from judges.scorers.verifier.model import CATEGORIES, MOST_CRITERIA, MOST_PENALTIES


@dataclass(frozen=True, slots=True)
class ShownGrade:
    points: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A penalty, blocker, critical point or first failure."""

    step: int | None
    reason: str
    points: float | None
    category: Annotated[str, 40]


@dataclass(frozen=True, slots=True)
class ShownCriterion:
    number: int | None
    text: str
    description: str
    condition: str
    max_points: float | None
    earned: float | None
    state: Annotated[str, 40]
    steps: tuple[int, ...]
    from_actions: ShownGrade
    from_images: ShownGrade | None
    blocker: ShownFinding | None

    @property
    def tone(self) -> str:
        if self.state != "graded":
            return "warn" if self.state in ("not graded", "blocked") else ""
        return "ok" if self.earned == self.max_points else "bad"


@dataclass(frozen=True, slots=True)
class Validity:
    ambiguous: bool
    invalid: bool
    reason: str


@dataclass(frozen=True, slots=True)
class VerifierDetails:
    """``claimed`` are the criteria that earn more from the actions than from the screenshots."""

    outcome: bool | None
    reasons: tuple[str, ...]
    score: float | None
    earned: float | None
    possible: float | None
    penalty: float | None
    criteria: Annotated[list[ShownCriterion], MOST_CRITERIA]
    penalties: Annotated[list[ShownFinding], MOST_PENALTIES]
    critical_point: ShownFinding
    first_failure: ShownFinding
    validity: Validity
    claimed_but_not_visible: tuple[int, ...]

    @property
    def claimed(self) -> list[ShownCriterion]:
        return [one for one in self.criteria if one.number in self.claimed_but_not_visible]

    @property
    def ungraded(self) -> list[ShownCriterion]:
        return [one for one in self.criteria if one.state == "not graded"]

    @property
    def category(self) -> str:
        """Return the category of the first failure in words, "" for none."""
        name = self.first_failure.category
        return "" if name in ("", "none") else f"{name.replace('_', ' ')}: {CATEGORIES.get(name, 'unknown')}"


def read_details(details: Mapping[str, Any]) -> VerifierDetails:
    return read_as(VerifierDetails, mapping(details))
