"""The rows that imported rows refer to, and the records that could not become rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from annotation.models import KeyPoint, Person, Submission, Trajectory

BATCH = 500
LARGEST = 10**9  # within the columns for whole numbers, also for one more; SQLite takes any, until their sum overflows


@dataclass(slots=True)
class Rejections:
    """Records that the database would refuse: a handmade bundle may say anything. ``reasons`` by place."""

    reasons: dict[str, str] = field(default_factory=dict)

    def accept(self, place: str, problem: str | None) -> bool:
        """Return whether there is no problem; the first problem of each place is noted."""
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
        """Why something about a trajectory by these people cannot be a row; None where all are known."""
        if task_id not in self.trajectories:
            return "it is about a task without a trajectory"
        missing = [name for name in pseudonyms if name not in self.people]
        return f"it is by {missing[0]}, who is not among the people" if missing else None


def find_largest(value: Any) -> int:
    """The largest whole number in a document, but for sizes in bytes; 0 without any."""
    if isinstance(value, dict):
        return max((find_largest(each) for name, each in value.items() if name != "size"), default=0)
    if isinstance(value, list):
        return max(map(find_largest, value), default=0)
    return value if isinstance(value, int) else 0


def parse_time(text: str | None) -> Any:
    """A time as the documents spell it; ValueError for another spelling, or one without a time zone."""
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return found
