"""The rows that imported rows refer to, and the records that were rejected."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from annotation.models import KeyPoint, Person, Submission, Trajectory

BATCH = 500
LARGEST = 10**9  # fits integer columns, also plus 1; SQLite accepts more, until a sum overflows


@dataclass(slots=True)
class Rejections:
    """Records that the database would refuse: a forged bundle may contain anything. ``reasons`` by place."""

    reasons: dict[str, str] = field(default_factory=dict)

    def accept(self, place: str, problem: str | None) -> bool:
        """Return whether there is no problem; store the first problem of each place."""
        if problem is not None:
            self.reasons.setdefault(place, problem)
        return problem is None


@dataclass(slots=True)
class ImportContext:
    """The rows that others refer to: people by pseudonym, trajectories and steps by task id, key points by task."""

    submission: Submission
    rejections: Rejections
    people: dict[str, Person] = field(default_factory=dict)
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    steps: dict[str, set[int]] = field(default_factory=dict)
    key_points: dict[int, list[KeyPoint]] = field(default_factory=dict)

    def unknown(self, task_id: str, *pseudonyms: str) -> str | None:
        """Return why a record about this trajectory by these people is rejected; None if all are known."""
        if task_id not in self.trajectories:
            return "it is about a task without a trajectory"
        missing = [name for name in pseudonyms if name not in self.people]
        return f"it is by {missing[0]}, who is not in people.json" if missing else None


def find_largest(value: Any) -> int:
    """Return the largest integer in a document, ignoring sizes in bytes; 0 if there is none."""
    if isinstance(value, dict):
        return max((find_largest(each) for name, each in value.items() if name != "size"), default=0)
    if isinstance(value, list):
        return max(map(find_largest, value), default=0)
    return value if isinstance(value, int) else 0


def parse_time(text: str | None) -> Any:
    """Parse a time in the format of the documents; ValueError for another format, or without a time zone."""
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return found
