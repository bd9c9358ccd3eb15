"""Build the score of the rubric verifier, with its details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from annotation.records import Finding, Verdict
from judges.scorer import KeyPointEvidence, Score, StepEvidence
from judges.scorers.verifier.arithmetic import Result, compute, find_claimed
from judges.scorers.verifier.model import Findings, Grade, Look, Passes, Shot

NAME = "rubric-verifier"  # of the details


def build_score(
    made: Score,
    looks: Sequence[Look],
    shown: Sequence[Shot],
    passes: Sequence[Passes] = (),
    findings: Findings | None = None,
) -> Score:
    """Return ``made`` with the results; without ``findings`` it stays unscored. ``shown``: images of the last call."""
    steps = {step for shot in shown for step in shot.steps}.union(*(one.shown for one in passes))
    made = replace(made, steps=tuple(sorted(_list_steps(looks, steps), key=lambda one: one.step)))
    if findings is None:
        return made
    result = compute(passes, findings)
    return replace(
        made,
        verdict=None if result.undecided else result.verdict,
        unscored=result.undecided,
        score=result.score,
        explanation=explain(result, findings),
        key_points=tuple(_judge_criterion(one, result, findings) for one in passes),
        details=describe(passes, findings, result, looks),
    )


def _list_steps(looks: Sequence[Look], shown: set[int]) -> Iterator[StepEvidence]:
    """Yield a step for each screenshot, without a relevance: there is one for each criterion, see the details."""
    for look in looks:
        first = look.shot.steps[0]
        for step in look.shot.steps:
            same = None if step == first else first
            yield StepEvidence(step, None, look.note, step in shown, "" if same is not None else look.response, same)


def _judge_criterion(one: Passes, result: Result, findings: Findings) -> KeyPointEvidence:
    """Return met for all points unless blocked, unclear if not graded, and no finding if it does not apply."""
    reason, number = one.decisive.reason, one.criterion.number
    text = one.criterion.key_point or one.criterion.text
    blocked = any(blocker.number == number for blocker in findings.blockers)
    if not one.applies:
        return KeyPointEvidence(text, None, (), reason)
    if number not in result.earned:
        return KeyPointEvidence(text, Finding.UNCLEAR, (), reason)
    met = result.earned[number] == one.criterion.max_points and not blocked
    return KeyPointEvidence(text, Finding.MET if met else Finding.UNMET, (), reason)


def explain(result: Result, findings: Findings) -> str:
    lines = [findings.reason, *result.reasons]
    if findings.outcome and result.reasons:
        lines.append("The model stated success; the rules above exclude it.")
    if result.score is not None:
        penalty = f" - {result.penalty:g} in penalties" if result.penalty else ""
        lines.append(
            f"Process score {result.score:.2f}: ({round(sum(result.earned.values()), 2):g} earned{penalty}) "
            f"of {round(result.possible, 2):g} points."
        )
    return "\n".join(line for line in lines if line)


def describe(passes: Sequence[Passes], findings: Findings, result: Result, looks: Sequence[Look]) -> dict[str, Any]:
    """Return the details: both results, every criterion with both passes, the findings, and the relevance matrix."""
    blocked = {one.number: one for one in findings.blockers}
    return {
        "kind": NAME,
        "outcome": None if result.undecided else result.verdict is Verdict.SUCCESS,
        "stated_outcome": findings.outcome,
        "reasons": [findings.reason, *result.reasons],
        "score": result.score,
        "earned": sum(result.earned.values()),
        "possible": result.possible,
        "penalty": result.penalty,
        "criteria": [_describe_criterion(one, result, blocked) for one in passes],
        "claimed_but_not_visible": [one.criterion.number for one in find_claimed(passes, set(blocked))],
        "not_graded": [
            one.criterion.number for one in passes if one.applies and one.criterion.number not in result.earned
        ],
        "penalties": [asdict(one) for one in findings.penalties],
        "critical_point": {"reason": findings.critical_point, "step": findings.critical_step},
        "first_failure": {
            "category": findings.category,
            "step": findings.first_step,
            "reason": findings.first_reason,
        },
        "validity": {
            "ambiguous": findings.is_ambiguous,
            "invalid": findings.is_invalid,
            "reason": findings.validity_reason,
        },
        "relevance": [
            {"steps": list(look.shot.steps), "ratings": None if look.ratings is None else list(look.ratings)}
            for look in looks
        ],
    }


def _describe_criterion(one: Passes, result: Result, blocked: dict[int, Any]) -> dict[str, Any]:
    criterion = one.criterion
    return {
        **{name: value for name, value in asdict(criterion).items() if name != "key_point" or value},
        "state": _name_state(one, result, blocked),
        "earned": result.earned.get(criterion.number),
        "from_actions": _describe_grade(one.actions),
        "from_images": None if one.images is None else _describe_grade(one.images),
        "steps": list(one.shown),
        "blocker": asdict(blocked[criterion.number]) if criterion.number in blocked else None,
    }


def _name_state(one: Passes, result: Result, blocked: dict[int, Any]) -> str:
    if not one.applies:
        return "does not apply"
    if one.criterion.number in blocked:
        return "blocked"
    return "graded" if one.criterion.number in result.earned else "not graded"


def _describe_grade(grade: Grade) -> dict[str, Any]:
    return {"points": grade.points, "reason": grade.reason}
