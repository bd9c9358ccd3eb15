"""Results of checks: findings, the violations that they report, and text of a bundle as it can be shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from evaluations.verifier.rules import CLAIMS

MOST_PLACES = 20  # of a failure that are named; the sentence has the number of all of them
MOST_NOTED = 10_000  # places of a note: as a rule all of them, and never more than claims.json takes
TOLD = 3  # violations that are told in full; the others are counted, and named by their places
ITEM = "- "  # before each thing in a text that tells of several kinds; no text of a bundle begins a line
LONGEST_NAME = 80


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


def passed(name: str, title: str, says: str) -> Finding:
    return Finding(name, title, Result.PASS, says)


def noted(name: str, title: str, says: str, places: Iterable[str] = ()) -> Finding:
    return Finding(name, title, Result.NOTE, says, tuple(dict.fromkeys(places))[:MOST_NOTED])


def failed(name: str, title: str, says: str, places: Iterable[str] = ()) -> Finding:
    return Finding(name, title, Result.FAIL, says, tuple(dict.fromkeys(places))[:MOST_PLACES])


@dataclass(frozen=True)
class Violation:
    """One thing that contradicts a claim: a sentence, and the task, person or event (``#7``) where it is."""

    says: str
    place: str


def conclude(claim: str, good: str, violations: Iterable[Violation], bad: str = "") -> Finding:
    """The finding of a claim; ``bad`` sums up the violations. Of very many only the first are kept in memory."""
    number = 0
    first: list[str] = []
    places: dict[str, None] = {}
    for each in violations:
        number += 1
        if len(first) < TOLD:
            first.append(each.says)
        if len(places) < MOST_PLACES:
            places.setdefault(each.place)
    if not number:
        return passed(claim, CLAIMS[claim], good)
    says = " ".join(first) if number <= TOLD else f"{number} things are wrong. The first: {' '.join(first)}"
    return failed(claim, CLAIMS[claim], f"{bad} {says}".strip(), places)


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


# --- text of a bundle ------------------------------------------------------------------------------------------------

# What could hide or move text on a terminal: controls, line separators, turned reading direction, half surrogates,
# tags. Fixed ranges, since what a Python calls printable changes with its Unicode.
UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\uffff"
    r"\U000e0000-\U000e0fff]"
)
# Fillers, blanks and an empty note head, which no category tells from what can be seen.
BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U0001d159"
ONCE_A_MARK = "\u06de"  # a star that Unicode 3.2 took for a mark on another character
# Never shown, and unknown to Unicode 3.2 or otherwise there; the last two are kept for what is not shown.
NEVER_SEEN = (
    *((0xAD, 0xAD), (0x61C, 0x61C), (0x180F, 0x180F), (0x2064, 0x206F), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3)),
    *((0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF)),
)


class Refused(Exception):
    """The package cannot be read safely; the message names the file, what is wrong, and how to fix it."""


def escape(text: str, longest: int = 0) -> str:
    """``text`` in printable ASCII: everything else becomes its escape. Cut to ``longest`` characters, 0 for all."""
    cut = text if not longest or len(text) <= longest else text[: longest - 3] + "..."
    return "".join(
        character if " " <= character <= "~" and character != "\\" else character.encode("unicode_escape").decode()
        for character in cut
    )


def show(value: object) -> str:
    """A value of a bundle as it can stand in a sentence: one short line, the same one in every Python."""
    text = value if isinstance(value, str) else ascii(value)
    shown = UNSHOWABLE.sub("?", text[:LONGEST_NAME])
    return shown if len(text) <= LONGEST_NAME else f"{shown}..."


def quote(place: str, reason: str) -> Violation:
    """A place with what somebody wrote about it."""
    return Violation(f"{show(place)} (“{show(reason)}”)", place)


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it has no letter, number, punctuation or symbol that can be seen.

    It is asked of Unicode 3.2, which every Python has beside its own version, so that all of them find the same. What
    has come since counts as seen: the form takes what its own Unicode knows to be seen, and asks for the same else.
    """
    return not any(map(_is_seen, text))


def _is_seen(character: str) -> bool:
    category, code = unicodedata.ucd_3_2_0.category(character), ord(character)
    if character in BLANK_LETTERS or any(first <= code <= last for first, last in NEVER_SEEN):
        return False
    if category == "Cn":
        return code & 0xFFFE != 0xFFFE and not 0xFDD0 <= code <= 0xFDEF  # which are no characters
    return category[0] in "LNPS" or character == ONCE_A_MARK


def event_place(event: dict[str, Any]) -> str:
    return f"#{show(event['sequence'])}"


def get_text(values: dict[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value if isinstance(value, str) else None


def get_integer(values: dict[str, Any], key: str) -> int | None:
    value = values.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Negative where they are the other way round; None where one is no time."""
    start, end = _parse_time(earlier), _parse_time(later)
    return (end - start).total_seconds() if start and end else None


def same_time(one: str | None, other: str | None, tolerance: float) -> bool:
    seconds = seconds_between(one, other)
    return seconds is not None and abs(seconds) <= tolerance


def _parse_time(text: str | None) -> datetime | None:
    try:
        time = datetime.fromisoformat(text or "")
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo is not None else None
