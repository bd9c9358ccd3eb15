"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

MOST_PLACES = 20  # that are named; the sentence has the number of all of them


class Result(Enum):
    """``note`` is something to know: it proves nothing wrong, or could not be checked here."""

    PASS = "pass"  # noqa: S105 - a result, not a password
    FAIL = "fail"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check; ``name`` is stable and for machines, ``places`` are task ids, files, event numbers."""

    name: str
    title: str
    result: Result
    says: str
    places: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "result": self.result.value,
            "says": self.says,
            "places": list(self.places),
        }


def passed(name: str, title: str, says: str) -> Finding:
    return Finding(name, title, Result.PASS, says)


def noted(name: str, title: str, says: str, places: list[str] | None = None) -> Finding:
    return Finding(name, title, Result.NOTE, says, _some(places or []))


def failed(name: str, title: str, says: str, places: list[str] | None = None) -> Finding:
    return Finding(name, title, Result.FAIL, says, _some(places or []))


def _some(places: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(places))[:MOST_PLACES]
