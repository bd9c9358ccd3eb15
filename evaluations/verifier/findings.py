"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

MOST_PLACES = 20  # of a failure that are named; the sentence has the number of all of them
MOST_NOTED = 10_000  # places of a note: as a rule all of them, and never more than claims.json takes
ITEM = "- "  # before each thing in a text that tells of several kinds; nothing out of a bundle begins a line


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
    return Finding(name, title, Result.NOTE, says, tuple(dict.fromkeys(places or []))[:MOST_NOTED])


def failed(name: str, title: str, says: str, places: list[str] | None = None) -> Finding:
    return Finding(name, title, Result.FAIL, says, tuple(dict.fromkeys(places or []))[:MOST_PLACES])


Kinds = list[tuple[str, list[str]]]  # what a kind is called, and what is told of it


def told_by_kind(sentence: str, kinds: Kinds) -> str:
    """A sentence, then a line for each kind and one below it for each thing, so that no kind hides another one."""
    lines = [sentence]
    for kind, told_of in kinds:
        lines += [f"{kind}:", *(f"{ITEM}{each}" for each in told_of)]
    return "\n".join(lines)


def kinds_told(says: str) -> tuple[str, Kinds]:
    """The sentence and the kinds of a text of `told_by_kind`; any other text is a sentence without kinds."""
    sentence, *lines = says.split("\n")
    kinds: Kinds = []
    for line in lines:
        if line.startswith(ITEM) and kinds:
            kinds[-1][1].append(line.removeprefix(ITEM))
        else:
            kinds.append((line.removesuffix(":"), []))
    return sentence, kinds
