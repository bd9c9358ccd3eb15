"""What a row says, in the form whose digest its event carries; anybody can compare the two later."""

from __future__ import annotations

from typing import Any

from annotation.models import Adjudication, Label, SpotCheckDraw
from annotation.models.events import instant


def _decision_facts(decision: Label | Adjudication) -> dict[str, Any]:
    return {
        "verdict": int(decision.verdict or 0),
        "reasoning": decision.reasoning,
        "failure_step": decision.failure_step,
        "failure_type": decision.failure_type,
        "cause": decision.cause,
        "exception_reason": decision.exception_reason,
        "revision": decision.revision,
        "revision_reason": decision.revision_reason,
        "findings": [[f.key_point.text, str(f.finding), f.step] for f in decision.findings.select_related("key_point")],
    }


def label_facts(label: Label) -> dict[str, Any]:
    """Everything a label says, in the form whose digest its event carries."""
    assignment = label.assignment
    return _decision_facts(label) | {
        "task_id": assignment.trajectory.task.external_id,
        "slot": assignment.slot,
        "at": instant(label.created_at),
    }


def adjudication_facts(adjudication: Adjudication) -> dict[str, Any]:
    """Everything an adjudication says, in the form whose digest its event carries."""
    return _decision_facts(adjudication) | {
        "task_id": adjudication.trajectory.task.external_id,
        "blind": adjudication.blind,
        "at": instant(adjudication.decided_at),
    }


def draw_facts(draw: SpotCheckDraw) -> dict[str, Any]:
    """Everything about a draw, in the form whose digest its event carries."""
    return {
        "number": draw.number,
        "seed": draw.seed,
        "rate": draw.rate,
        "population": draw.population,
        "drawn": draw.drawn,
    }
