"""Reading, comparison and display of untrusted values of a bundle."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import Any

LONGEST_NAME = 80


# Characters that could hide or move text on a terminal: controls, line separators, changed reading direction, lone
# surrogates, tags. The ranges are fixed, since `str.isprintable` depends on the Unicode version of Python.
UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\uffff"
    r"\U000e0000-\U000e0fff]"
)
# Fillers, blanks and an empty note head, which have the Unicode categories of visible characters.
BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U0001d159"
ONCE_A_MARK = "\u06de"  # a star that Unicode 3.2 classifies as a mark on another character
# Never visible, but unknown to Unicode 3.2 or different there; the last two are reserved for invisible characters.
NEVER_SEEN = (
    *((0xAD, 0xAD), (0x61C, 0x61C), (0x180F, 0x180F), (0x2064, 0x206F), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3)),
    *((0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF)),
)


class Refused(Exception):
    """A package that cannot be read safely; the message states the file, the problem, and how to fix it."""


def escape(text: str, longest: int = 0) -> str:
    """Return ``text`` with all but printable ASCII escaped, after a cut to ``longest`` characters (0: no cut)."""
    cut = text if not longest or len(text) <= longest else text[: longest - 3] + "..."
    return "".join(
        character if " " <= character <= "~" and character != "\\" else character.encode("unicode_escape").decode()
        for character in cut
    )


def show(value: object) -> str:
    """Return a value of a bundle for use in a sentence: one short line, the same in every Python version."""
    text = value if isinstance(value, str) else ascii(value)
    shown = UNSHOWABLE.sub("?", text[:LONGEST_NAME])
    return shown if len(text) <= LONGEST_NAME else f"{shown}..."


def quote(place: str, reason: str) -> tuple[str, str]:
    return (f"{show(place)} (“{show(reason)}”)", place)


def is_blank(text: str) -> bool:
    """Return whether the text has no visible letter, number, punctuation or symbol.

    It uses Unicode 3.2, which every Python has in addition to its own version, so that the result is always the same.
    Newer characters count as visible: the form accepts those that its own Unicode version knows to be visible.
    """
    return not any(map(_is_seen, text))


def _is_seen(character: str) -> bool:
    category, code = unicodedata.ucd_3_2_0.category(character), ord(character)
    if character in BLANK_LETTERS or any(first <= code <= last for first, last in NEVER_SEEN):
        return False
    if category == "Cn":
        return code & 0xFFFE != 0xFFFE and not 0xFDD0 <= code <= 0xFDEF  # except noncharacters
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
    """Return the seconds, negative if ``later`` is earlier; None if one is not a time with a time zone."""
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
