"""Labelled cases in a line each, and their agreement."""

from __future__ import annotations

from typing import Any

from annotation.models.states import State
from annotation.records import Verdict
from evaluations.agreement import Agreement, agreement
from evaluations.cases import BlindLabel, Case, Rules
from evaluations.statistics import Measure

SAID = ((1, 1, 1), (0, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1), (0, 0, 0), (0, 1, 2), (1, 1, 1))


def case(*verdicts: int, **fields: Any) -> Case:
    """A reviewed case with these labels by A1, A2, ...; ``fields`` replace what is usual."""
    labels = tuple(BlindLabel(f"A{number}", Verdict(verdict)) for number, verdict in enumerate(verdicts, 1))
    usual: dict[str, Any] = {"agent": "X", "task_id": "t", "level": "easy", "website": "w", "labels": labels}
    usual |= {"final": None, "expected": 3, "trajectory": 1, "submission": 1, "state": State.DISPUTE}
    return Case(**(usual | fields))


def elsewhere(*verdicts: int, **fields: Any) -> Case:
    """The same with labels made elsewhere."""
    return case(*verdicts, **({"trajectory": None, "submission": None, "state": None, "expected": 2} | fields))


def of(*given: Case, rules: Rules = Rules.DEFAULT) -> Agreement:
    return agreement(given, "made by hand", rules)


def undefined(measure: Measure) -> str:
    assert measure.value is None
    return measure.undefined


def tasks(agents: int, **fields: Any) -> list[Case]:
    """24 tasks, on each of which all agents got the same labels."""
    return [
        case(*SAID[n % 8], agent=f"X{agent}", task_id=f"t{n}", **fields) for agent in range(agents) for n in range(24)
    ]


def checked(missed: bool, draw: int = 1, submission: int = 1) -> Case:
    said = Verdict.FAILURE if missed else Verdict.SUCCESS
    return case(
        1, 1, 1, drawn=True, draw=draw, submission=submission, state=State.ADJUDICATED, adjudicated=said,
        adjudicated_blind=said, final=said,
    )  # fmt: skip


def unchecked(times: int, draw: int = 1, submission: int = 1) -> list[Case]:
    fields: dict[str, Any] = {"drawn": False, "draw": draw, "submission": submission, "final": Verdict.SUCCESS}
    return [case(1, 1, 1, state=State.UNANIMOUS, **fields)] * times
