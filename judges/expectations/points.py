"""Key points that checks and claims name, held against those that the task has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from annotation.formats.printable import printable
from annotation.models import Task
from judges.expectations.kinds import Kind

LONGEST = 200  # characters of a key point in a message
CLOSE_ENOUGH = 0.5  # whoever misses one word of five still means the same key point


def list_accepted(task: Task) -> list[str]:
    """The key points of a task, in the order in which checks and claims count them from 1."""
    points = task.key_points.filter(accepted_at__isnull=False, retired_at__isnull=True)
    return list(points.values_list("text", flat=True))


def find_unknown(kind: str, found: Any, known: Sequence[str]) -> list[str]:
    """The key points that ``found`` (of `kinds.parse_text`) names and the task lacks, each once, with the nearest."""
    named: Iterable[str | int]
    if Kind(kind) is Kind.RUBRIC:
        named = (claim.key_point for claim in found.claims())
    else:
        named = (check.key_point for check in found.checks)
    said = (_describe_unknown(point, known) for point in dict.fromkeys(named) if point != "")
    return [each for each in said if each]


def _describe_unknown(point: str | int, known: Sequence[str]) -> str:
    if isinstance(point, int):
        count = f"it has {len(known)}" if known else "it has none"
        return "" if 1 <= point <= len(known) else f"The task has no key point {point}: {count}."
    if point in known:
        return ""
    near = difflib.get_close_matches(point, known, n=1, cutoff=CLOSE_ENOUGH)
    hint = f" Did you mean: {printable(near[0], LONGEST)}?" if near else ""
    return f"The task has no key point “{printable(point, LONGEST)}”.{hint}"
