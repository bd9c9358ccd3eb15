"""Results of checks: findings, the violations that they report, and text of a bundle as it can be shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from evaluations.verifier.rules import CLAIMS, OTHER_CHECKS

TITLES = CLAIMS | OTHER_CHECKS
MOST_PLACES = 20  # of a failure that are named; the sentence has the number of all of them
MOST_NOTED = 10_000  # places of a note: as a rule all of them, and never more than claims.json takes
TOLD = 3  # violations that are told in full; the others are counted, and named by their places
ITEM = "- "  # before each thing in a text that tells of several kinds; no text of a bundle begins a line

Violation = tuple[str, str]  # a sentence that contradicts a claim, and the task, person, file or event (``#7``) where
Violations = Iterable[Violation]


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
        return asdict(self) | {"result": self.result.value, "places": list(self.places)}


def passed(name: str, says: str) -> Finding:
    return Finding(name, TITLES[name], Result.PASS, says)


def noted(name: str, says: str, places: Iterable[str] = ()) -> Finding:
    return Finding(name, TITLES[name], Result.NOTE, says, tuple(dict.fromkeys(places))[:MOST_NOTED])


def failed(name: str, says: str, places: Iterable[str] = ()) -> Finding:
    return Finding(name, TITLES[name], Result.FAIL, says, tuple(dict.fromkeys(places))[:MOST_PLACES])


def conclude(claim: str, good: str, violations: Violations, bad: str = "") -> Finding:
    """The finding of a claim; ``bad`` sums up the violations. Of very many only the first are kept in memory."""
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
    told = " ".join(first) if number <= TOLD else f"{number} things are wrong. The first: {' '.join(first)}"
    return failed(claim, f"{bad} {told}".strip(), places)


Kinds = list[tuple[str, list[str]]]  # what a kind is called, and what is told of it


def format_kinds(sentence: str, kinds: Kinds) -> str:
    """A sentence, then a line for each kind and one below it for each thing, so that no kind hides another one."""
    lines = [sentence]
    for kind, told_of in kinds:
        lines += [f"{kind}:", *(f"{ITEM}{each}" for each in told_of)]
    return "\n".join(lines)


def parse_kinds(says: str) -> tuple[str, Kinds]:
    """The sentence and the kinds of a text of `format_kinds`; any other text is a sentence without kinds."""
    sentence, *lines = says.split("\n")
    kinds: Kinds = []
    for line in lines:
        if line.startswith(ITEM) and kinds:
            kinds[-1][1].append(line.removeprefix(ITEM))
        else:
            kinds.append((line.removesuffix(":"), []))
    return sentence, kinds


def plural(number: int, one: str, more: str = "") -> str:
    """A number with its noun: "1 draw", "2 draws"; ``more`` where the plural is not ``one`` with an s."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def all_of(number: int, one: str, more: str) -> str:
    """Everything of a kind with its verb: "The only head is", "All 2 heads are"."""
    return f"The only {one}" if number == 1 else f"All {number:,} {more}"
