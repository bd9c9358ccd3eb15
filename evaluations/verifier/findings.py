"""Results of checks: findings, the violations that they report, and their texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from evaluations.verifier.rules import CLAIMS, OTHER_CHECKS

TITLES = CLAIMS | OTHER_CHECKS
MOST_PLACES = 20  # of a failure that are listed; the sentence states the total
MOST_NOTED = 10_000  # places of a note: usually all of them, and never more than claims.json accepts
TOLD = 3  # violations that are reported in full; the others are counted, and listed by place
ITEM = "- "  # before each item in a text of several kinds; text of a bundle never begins a line

Violation = tuple[str, str]  # a sentence that contradicts a claim, and its task, person, file or event (``#7``)
Violations = Iterable[Violation]


class Result(Enum):
    """Result of a check. A ``note`` does not prove an error, or could not be checked here."""

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
        return asdict(self) | {"result": self.result.value, "places": list(self.places)}


def passed(name: str, says: str) -> Finding:
    return Finding(name, TITLES[name], Result.PASS, says)


def noted(name: str, says: str, places: Iterable[str] = ()) -> Finding:
    return Finding(name, TITLES[name], Result.NOTE, says, tuple(dict.fromkeys(places))[:MOST_NOTED])


def failed(name: str, says: str, places: Iterable[str] = ()) -> Finding:
    return Finding(name, TITLES[name], Result.FAIL, says, tuple(dict.fromkeys(places))[:MOST_PLACES])


def conclude(claim: str, good: str, violations: Violations, bad: str = "") -> Finding:
    """Return the finding of a claim; ``bad`` sums up the violations. Only the first of many stay in memory."""
    number = 0
    first: list[str] = []
    places: dict[str, None] = {}
    for says, place in violations:
        number += 1
        if len(first) < TOLD:
            first.append(says)
        if len(places) < MOST_PLACES:
            places.setdefault(place)
    if not number:
        return passed(claim, good)
    told = " ".join(first) if number <= TOLD else f"{number} problems. The first: {' '.join(first)}"
    return failed(claim, f"{bad} {told}".strip(), places)


Kinds = list[tuple[str, list[str]]]  # the name of a kind, and its items


def format_kinds(sentence: str, kinds: Kinds) -> str:
    """Return a sentence, then a line for each kind with a line for each of its items, so that no kind is hidden."""
    lines = [sentence]
    for kind, told_of in kinds:
        lines += [f"{kind}:", *(f"{ITEM}{each}" for each in told_of)]
    return "\n".join(lines)


def parse_kinds(says: str) -> tuple[str, Kinds]:
    """Return the sentence and the kinds of a text of `format_kinds`; any other text is a sentence without kinds."""
    sentence, *lines = says.split("\n")
    kinds: Kinds = []
    for line in lines:
        if line.startswith(ITEM) and kinds:
            kinds[-1][1].append(line.removeprefix(ITEM))
        else:
            kinds.append((line.removesuffix(":"), []))
    return sentence, kinds


def plural(number: int, one: str, more: str = "") -> str:
    """Return a number with its noun: "1 draw", "2 draws"; ``more`` is the plural if it is not ``one`` with an s."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def all_of(number: int, one: str, more: str) -> str:
    """Return a subject for all of a kind, with its verb: "The only head is", "All 2 heads are"."""
    return f"The only {one}" if number == 1 else f"All {number:,} {more}"
