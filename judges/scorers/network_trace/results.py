"""What came of holding a trajectory against a check, with the reason in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from annotation.formats.printable import printable
from judges.scorers.network_trace.model import ANSWER, AnswerCheck, NetworkCheck
from judges.scorers.network_trace.trace import NetworkEvent

PASS, FAIL, ERROR = "pass", "fail", "error"
LONGEST_VALUE = 2_000  # characters of a value that is kept
LONGEST_SHOWN = 120  # characters of a value in a sentence
MOST_DIFFERENCES = 50
MOST_NAMED = 3  # differences that a sentence names


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a check beside that of an event; ``equal`` is None where it cannot be said, ``note`` says why.

    ``weight`` is how much a difference here counts when the nearest event is looked for.
    """

    field: str
    expected: Any
    actual: Any
    equal: bool | None
    note: str = ""
    weight: int = 1

    def as_json(self) -> dict[str, Any]:
        return {
            "field": printable(self.field, 300),
            "expected": limit_value(self.expected),
            "actual": limit_value(self.actual),
            "equal": self.equal is True,
            "note": printable(self.note, 500),
        }

    def __str__(self) -> str:
        if self.equal is None:
            return f"{self.field}: {self.note}"
        if self.expected is None:
            return f"{self.field} is {format_value(self.actual)}, {self.note or 'which is not expected'}"
        if self.actual is None:
            return f"{self.field} is not there, expected is {format_value(self.expected)}"
        return f"{self.field} is {format_value(self.actual)}, expected is {format_value(self.expected)}"


@dataclass(frozen=True, slots=True)
class Result:
    """``event`` is the matching one, or the nearest of a failure; ``candidates`` counts the events that the check is
    about."""

    check: NetworkCheck | AnswerCheck
    result: str
    message: str
    event: NetworkEvent | None = None
    candidates: int = 0
    differences: tuple[Difference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        event = self.event
        return {
            "name": self.check.name,
            "key_point": self.check.key_point,
            "evaluator": ANSWER if isinstance(self.check, AnswerCheck) else "network_event",
            "result": self.result,
            "message": printable(self.message, LONGEST_VALUE),
            "should_not_exist": isinstance(self.check, NetworkCheck) and self.check.should_not_exist,
            "event": event and {
                "index": event.index, "method": event.method, "url": printable(event.url, LONGEST_VALUE),
                "status": event.status, "event_type": str(event.event_type),
            },
            "candidates": self.candidates,
            "differences": [one.as_json() for one in self.differences[:MOST_DIFFERENCES]],
        }  # fmt: skip


def combine(differences: tuple[Difference, ...]) -> bool | None:
    """Whether all fields are equal; None where none differs and some cannot be told."""
    if any(one.equal is False for one in differences):
        return False
    return None if any(one.equal is None for one in differences) else True


def distance(differences: tuple[Difference, ...]) -> int:
    return sum(one.weight * 2 for one in differences if one.equal is False) + sum(
        one.weight for one in differences if one.equal is None
    )


def describe(differences: tuple[Difference, ...]) -> str:
    wrong = [one for one in differences if one.equal is False] or [one for one in differences if one.equal is None]
    more = f"; and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    return "; ".join(str(one) for one in wrong[:MOST_NAMED]) + more


def format_value(value: Any) -> str:
    return printable(value if isinstance(value, str) else _write_json(value), LONGEST_SHOWN) or "empty"


def limit_value(value: Any) -> Any:
    """A value of JSON that is not longer than is kept: as it is, or the beginning of its text."""
    text = value if isinstance(value, str) else _write_json(value)
    if len(text) <= LONGEST_VALUE:
        return value
    return text[: LONGEST_VALUE - 1] + "…"


def _write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
