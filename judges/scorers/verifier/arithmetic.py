"""Compute the process score and the verdict from grades and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from annotation.records import Verdict
from judges.scorers.verifier.model import Findings, Passes


@dataclass(frozen=True, slots=True)
class Result:
    """The two results. ``earned`` has the points by number of criterion, without those that do not count.

    ``score`` is 0 to 1, and None if no criterion counts, for the reason ``undecided``.
    """

    earned: dict[int, float]
    possible: int | float
    penalty: float
    score: float | None
    verdict: Verdict
    reasons: tuple[str, ...]
    undecided: str = ""


def compute(passes: Sequence[Passes], findings: Findings) -> Result:
    """Return the results; their rules:

    A criterion that does not apply, or is not graded, counts neither as earned nor as possible. A blocked criterion
    earns all its points, and rules out the verdict success. So does a violated critical point.
    score = (points earned - points of penalties) / points possible, cut to 0..1.
    """
    blocked = {one.number for one in findings.blockers}
    earned: dict[int, float] = {}
    for one in passes:
        if one.applies:
            points = one.criterion.max_points if one.criterion.number in blocked else one.decisive.points
            if points is not None:
                earned[one.criterion.number] = points
    possible = sum(one.criterion.max_points for one in passes if one.criterion.number in earned)
    penalty = sum(one.points for one in findings.penalties)
    score = min(1.0, max(0.0, (sum(earned.values()) - penalty) / possible)) if possible else None
    reasons = tuple(_list_obstacles(passes, findings, blocked))
    verdict = Verdict.SUCCESS if findings.outcome and not reasons else Verdict.FAILURE
    return Result(earned, possible, penalty, score, verdict, reasons, _explain_none(passes) if score is None else "")


def _list_obstacles(passes: Sequence[Passes], findings: Findings, blocked: set[int]) -> list[str]:
    """Return why the outcome cannot be a success, whatever the model says of it."""
    stopped = [one.criterion.number for one in passes if one.applies and one.criterion.number in blocked]
    reasons = [f"Criterion {number} was blocked, so it was not met." for number in stopped]
    return [*reasons, *(["A critical point was violated."] if findings.critical_point else [])]


def _explain_none(passes: Sequence[Passes]) -> str:
    ungraded = [one for one in passes if one.applies]
    if not ungraded:
        return "The condition of no criterion is met, so none applies."
    return f"No criterion could be graded. Criterion {ungraded[0].criterion.number}: {ungraded[0].decisive.reason}"


def find_claimed(passes: Sequence[Passes], blocked: set[int]) -> list[Passes]:
    """Return the criteria that earn more from the action log than from the screenshots."""
    return [one for one in passes if one.applies and one.criterion.number not in blocked and _is_claimed(one)]


def _is_claimed(one: Passes) -> bool:
    if one.images is None or one.images.points is None or one.actions.points is None:
        return False
    return one.actions.points > one.images.points
