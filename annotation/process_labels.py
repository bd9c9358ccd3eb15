"""Process labels of a trajectory: what people say of each step. No Django.

The labels of steps are `RIGHT` and the codes of `protocol.PROCESS_LABELS`. People mark only steps that are not right,
so each function takes marks: {step: code}, as `read_marks` returns them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotation.protocol import PROCESS_LABELS

RIGHT = "right"
CATEGORIES = (RIGHT, *(term.code for term in PROCESS_LABELS))
Marks = Mapping[int, str]


def read_marks(stored: Iterable[Mapping[str, Any]]) -> Marks:
    """Return the marks of a decision from its column ``process``."""
    return {each["step"]: each["mark"] for each in stored}


def label_steps(marks: Marks, steps: int) -> list[str]:
    """Return the label of each step from 0."""
    return [marks.get(step, RIGHT) for step in range(steps)]


def find_majority(said: Sequence[Marks], steps: int) -> list[str | None]:
    """Return for each step the label that more than half of the people give it; None if no label has that many.

    A mark of an unknown kind, which an audited bundle can have, is nobody's final label.
    """
    found: list[str | None] = [] if said else [None] * steps
    for each in zip(*(label_steps(marks, steps) for marks in said), strict=True):
        label, times = Counter(each).most_common(1)[0]
        found.append(label if 2 * times > len(each) and label in CATEGORIES else None)
    return found


def decide_steps(said: Sequence[Marks], adjudicated: Marks | None, steps: int) -> list[str | None]:
    """Return the final label of each step: that of the last adjudication, or without one that of the majority."""
    if adjudicated is None:
        return find_majority(said, steps)
    return [label if label in CATEGORIES else None for label in label_steps(adjudicated, steps)]
