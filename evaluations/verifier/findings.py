"""Results of checks: findings, the violations that they report, and text of a bundle as it can be shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from evaluations.verifier.rules import CLAIMS

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


# --- text that can be shown ------------------------------------------------------------------------------------------


# What could hide or move text on a terminal: controls, line separators, turned reading direction, half surrogates,
# tags. Fixed ranges, since what a Python calls printable changes with its Unicode.
UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\uffff"
    r"\U000e0000-\U000e0fff]"
)


class Refused(Exception):
    """The package is none that can be read safely; the message names the file, what is wrong, and how to mend it."""


def escaped(text: str, longest: int = 0) -> str:
    """``text`` in printable ASCII: everything else becomes its escape. Cut to ``longest`` characters, 0 for all."""
    cut = text if not longest or len(text) <= longest else text[: longest - 3] + "..."
    return "".join(
        character if " " <= character <= "~" and character != "\\" else character.encode("unicode_escape").decode()
        for character in cut
    )


# --- violations of a claim -------------------------------------------------------------------------------------------


TOLD = 3  # contradictions that are told in full; the others are counted, and named by their places
LONGEST_NAME = 80
# Fillers, blanks and an empty note head, which no category tells from what can be seen.
BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U0001d159"
ONCE_A_MARK = "\u06de"  # a star that Unicode 3.2 took for a mark on another character
# Never shown, and unknown to Unicode 3.2 or otherwise there; the last two are kept for what is not shown.
NEVER_SEEN = (
    *((0xAD, 0xAD), (0x61C, 0x61C), (0x180F, 0x180F), (0x2064, 0x206F), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3)),
    *((0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF)),
)


@dataclass(frozen=True)
class Wrong:
    """One thing that contradicts a claim: a sentence, and the task, person or event (``#7``) where it is."""

    says: str
    place: str


def outcome(claim: str, good: str, wrongs: Iterable[Wrong], bad: str = "") -> Finding:
    """The finding of a claim; ``bad`` is a sentence that sums up the wrongs, before they are told.

    Of very many wrongs only the first are kept.
    """
    number = 0
    first: list[str] = []
    places: dict[str, None] = {}
    for wrong in wrongs:
        number += 1
        if len(first) < TOLD:
            first.append(wrong.says)
        if len(places) < MOST_PLACES:
            places.setdefault(wrong.place)
    if not number:
        return passed(claim, CLAIMS[claim], good)
    says = " ".join(first) if number <= TOLD else f"{number} things are wrong. The first: {' '.join(first)}"
    return failed(claim, CLAIMS[claim], f"{bad} {says}".strip(), list(places))


def counted(number: int, one: str, more: str = "") -> str:
    """A number with its noun: "1 draw", "2 draws"; ``more`` where the plural is not ``one`` with an s."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def all_of(number: int, one: str, more: str) -> str:
    """Everything of a kind with its verb: "The only head is", "All 2 heads are"."""
    return f"The only {one}" if number == 1 else f"All {number:,} {more}"


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it has no letter, number, punctuation or symbol that can be seen.

    It is asked of Unicode 3.2, which every Python has beside its own version, so that all of them find the same. What
    has come since counts as seen: the form takes what its own Unicode knows to be seen, and asks for the same else.
    """
    return not any(_shows(each) for each in text)


def _shows(character: str) -> bool:
    category, code = unicodedata.ucd_3_2_0.category(character), ord(character)
    if character in BLANK_LETTERS or any(first <= code <= last for first, last in NEVER_SEEN):
        return False
    if category == "Cn":
        return code & 0xFFFE != 0xFFFE and not 0xFDD0 <= code <= 0xFDEF  # which are no characters
    return category[0] in "LNPS" or character == ONCE_A_MARK


def named(value: object) -> str:
    """A value out of a bundle as it can stand in a sentence: one short line, whatever it is, in every Python.

    What is printable depends on a Python's Unicode (as in `repr`), and these sentences are compared: fixed ranges
    are left out.
    """
    text = value if isinstance(value, str) else ascii(value)
    shown = UNSHOWABLE.sub("?", text[:LONGEST_NAME])
    return shown if len(text) <= LONGEST_NAME else f"{shown}..."


def quoted(place: str, reason: str) -> Wrong:
    """A place with what somebody wrote about it."""
    return Wrong(f"{named(place)} (“{named(reason)}”)", place)


def number_of(event: dict[str, Any]) -> str:
    """An event as a place."""
    return f"#{named(event['sequence'])}"


def text_in(values: dict[str, Any], key: str) -> str | None:
    """The text under a key; None where there is none, or something else."""
    value = values.get(key)
    return value if isinstance(value, str) else None


def whole_in(values: dict[str, Any], key: str) -> int | None:
    """The whole number under a key; None where there is none, or something else."""
    value = values.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def passed_between(earlier: str | None, later: str | None) -> float | None:
    """Seconds from one time to another, negative where they are the other way round; None where one is no time."""
    start, end = _moment(earlier), _moment(later)
    return (end - start).total_seconds() if start and end else None


def together(one: str | None, other: str | None, tolerance: float) -> bool:
    """Whether two times are the same but for the time that writing takes."""
    seconds = passed_between(one, other)
    return seconds is not None and abs(seconds) <= tolerance


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None
