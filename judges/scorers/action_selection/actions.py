"""Two actions compared, and actions read from replies: by fixed rules first, which also know when they cannot tell."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from annotation.formats.external.multimodal_mind2web import Operation
from judges.llm import Reply
from judges.scorers.reading import TEXT, build_object_schema

OPTIONS = {"A": "CLICK", "B": "TYPE", "C": "SELECT"}
LETTERS = {operation: letter for letter, operation in OPTIONS.items()}
LONGEST_VALUE = 2_000  # characters that are kept of a value
LONGEST_LABEL = 200  # characters of a line in which its letter must come: what stands before it is tried in many ways

QUOTES = "\"'“”‘’«»`"
ALIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
NUMBER = re.compile(
    r"(?P<sign>[-+]?)(?P<money>[$€£]?)\s?(?P<digits>\d{1,30}|\d{1,3}(?:,\d{3}){1,9})(?P<rest>\.\d{1,30})?\s?(?P<share>%?)"
)

# What may stand around a label and its value in replies that are text: **Answer:** [B], `Operation`: "TYPE".
MARKS = r"[ \t*_`#\"'“”‘’>-]*"


@dataclass(frozen=True, slots=True)
class Predicted:
    """The action in a reply: the option of its operation, its value, the number of an element, a point of a picture.

    ``element`` None: no number. ``point`` is x and y in thousandths of width and height, None without one.
    """

    operation: str
    value: str = ""
    element: int | None = None
    point: tuple[int, int] | None = None

    @property
    def option(self) -> str:
        return LETTERS[self.operation]


class Unread(ValueError):
    """A reply that states no action; the message says what is missing."""


# --- comparing --------------------------------------------------------------------------------------------------------


def normalise(text: str) -> str:
    """``text`` as it is compared: compatible characters alike, case and spaces ignored, without quotes around it.

    Quotes inside are kept: O'Brien stays what it is, whichever apostrophe it is written with.
    """
    same = " ".join(unicodedata.normalize("NFKC", text).translate(ALIKE).casefold().split())
    while len(same) > 1 and same[0] in QUOTES and same[-1] in QUOTES:
        same = same[1:-1].strip()
    return same


def is_same_value(right: str, said: str, options: Sequence[tuple[str, str]] = ()) -> bool | None:
    """Return whether two values mean the same; None where fixed rules cannot tell.

    ``options`` are texts and values of the list that is selected from: two that name the same entry are the same, two
    that name different ones are not. Without such an entry equal texts are the same; an empty one, and two different
    numbers, are not; anything else is undecided.
    """
    gold, given = normalise(right), normalise(said)
    if gold == given:
        return True
    if not gold or not given:
        return False
    entries = (_find_entries(gold, options), _find_entries(given, options))
    if all(entries):
        return bool(entries[0] & entries[1])
    first, second = NUMBER.fullmatch(gold), NUMBER.fullmatch(given)
    return _is_same_number(first, second) if first and second else None


def _find_entries(value: str, options: Sequence[tuple[str, str]]) -> frozenset[int]:
    """The entries of a list with this text or value; by text, where any has it."""
    texts = frozenset(place for place, (text, _) in enumerate(options) if normalise(text) == value)
    return texts or frozenset(place for place, (_, hidden) in enumerate(options) if normalise(hidden) == value)


def _is_same_number(right: re.Match[str], said: re.Match[str]) -> bool | None:
    """Different numbers are different; of equal ones "007" and "7", "5" and "5 %", "1.10" and "1.1" may be.

    1,000 is 1000. Where they are the same in one way of writing and differ in another, as 1.000 and 1,000, None.
    """
    if _parse_number(right) != _parse_number(said):
        return None if _read_amounts(right) & _read_amounts(said) else False
    alike = all(right[part] == said[part] for part in ("money", "share")) and _zeros(right) == _zeros(said)
    # 1.10 and 1.1 are one amount of money, and two versions or sections.
    alike = alike and bool(right["money"] or (right["rest"] or "") == (said["rest"] or ""))
    return True if alike else None


def _read_amounts(found: re.Match[str]) -> frozenset[Decimal]:
    """Return all readings: three digits after a lone comma or point are thousands in one country, parts in another."""
    lone = re.fullmatch(r"\d{1,3}[.,]\d{3}", f"{found['digits']}{found['rest'] or ''}")
    if not lone:
        return frozenset({_parse_number(found)})
    return frozenset(Decimal(found["sign"] + re.sub("[.,]", mark, lone[0])) for mark in ("", "."))


def _parse_number(found: re.Match[str]) -> Decimal:
    return Decimal(f"{found['sign']}{found['digits'].replace(',', '')}{found['rest'] or ''}")


def _zeros(found: re.Match[str]) -> int:
    digits = found["digits"]
    return len(digits) - len(digits.lstrip("0"))


def has_entry(value: str, options: Sequence[tuple[str, str]], shown: Collection[int]) -> bool:
    """Return whether an entry with this text or value is among the ``shown`` places of a list."""
    return bool(_find_entries(normalise(value), options) & frozenset(shown))


def score_option_selection(right: Operation, said: Predicted) -> int:
    """1 where the type of the operation is right (option A click, B type, C select), else 0."""
    return int(right.op == said.operation)


def score_action(right: Operation, said: Predicted, options: Sequence[tuple[str, str]] = ()) -> int | None:
    """1 where type and value are right, 0 where one is not, None where it depends on what the value means.

    A click has no value. That of SELECT is compared with text and value of the list's entries.
    """
    if right.op != said.operation:
        return 0
    if right.op == "CLICK":
        return 1
    same = is_same_value(right.value, said.value, options if right.op == "SELECT" else ())
    return None if same is None else int(same)


# --- reading ----------------------------------------------------------------------------------------------------------

OPERATION = {"type": "string", "enum": list(LETTERS)}
ELEMENT_SCHEMA = build_object_schema(reason=TEXT, element={"type": "integer"}, operation=OPERATION, value=TEXT)
THOUSANDTHS = {"type": "integer", "minimum": 0, "maximum": 1000}
POINT_SCHEMA = build_object_schema(reason=TEXT, x=THOUSANDTHS, y=THOUSANDTHS, operation=OPERATION, value=TEXT)
SAME_SCHEMA = build_object_schema(reason=TEXT, same={"type": "boolean"})
CHOICE_SCHEMA = build_object_schema(reason=TEXT, choice={"type": "string", "enum": ["Y", "N"]})


def read_prediction(reply: Reply, *, pointing: bool = False) -> Predicted:
    """The action of a reply: of its structured answer, or of labelled lines of its text. Raises Unread.

    ``pointing`` asks for a point of the picture in place of an element's number.
    """
    if reason := reply.unusable():
        raise Unread(reason)
    said = dict(reply.data) if reply.data is not None else _read_text(reply.text, pointing)
    operation = said.get("operation")
    if operation not in LETTERS:
        raise Unread("The reply names no operation (CLICK, TYPE or SELECT).")
    given = said.get("value")
    value = "" if operation == "CLICK" or given is None else str(given)[:LONGEST_VALUE]
    if pointing:
        point = (said.get("x"), said.get("y"))
        if not all(isinstance(one, int) and 0 <= one <= 1000 for one in point):
            raise Unread("The reply names no point of the picture.")
        return Predicted(operation, value, point=(int(point[0] or 0), int(point[1] or 0)))
    element = said.get("element")
    if not isinstance(element, int) or isinstance(element, bool):
        raise Unread("The reply names no element.")
    return Predicted(operation, value, element)


def _read_text(text: str, pointing: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"operation": find_operation(text), "value": find_value(text)}
    if pointing:
        return found | {name: _parse_integer(_find_last_line(text, name)) for name in ("x", "y")}
    return found | {"element": _parse_integer(_find_last_line(text, "element(?:[ \t]+number)?|target"))}


def find_operation(text: str) -> str:
    """The operation of an "Operation:", "Action:" or "Answer:" line, as a word or as its letter; "" without one.

    Lines that contradict each other name none.
    """
    words = {_parse_operation(said) for said in _find_lines(text, "operation|action(?:[ \t]+type)?")} - {""}
    letters = {OPTIONS[letter] for said in _find_lines(text, "answer|option|choice") if (letter := find_letter(said))}
    found = words | letters
    return found.pop() if len(found) == 1 else ""


def _parse_operation(said: str) -> str:
    word = re.match(r"[\W_]*([A-Za-z]+)", said)
    name = word[1].upper() if word else ""
    return name if name in LETTERS else OPTIONS.get(find_letter(said), "")


def find_letter(said: str) -> str:
    """A, B or C at the beginning of what follows "Answer:", also bold or in brackets; "" where it is a word.

    "B", "**B**", "[B]", "(b).", "B) TYPE" and "Option B" are taken; "Apply", "a button" and "A or B" are not: after a
    letter comes nothing, or a mark, or the name of its own operation.
    """
    found = re.match(
        rf"{MARKS}(?:[Oo](?:ption|PTION)[ \t]+)?[\[({{<]*{MARKS}(?P<letter>[ABCabc])(?![A-Za-z0-9'’])(?P<rest>.*)",
        said.strip()[:LONGEST_LABEL],
    )
    if not found:
        return ""
    letter, rest = found["letter"].upper(), found["rest"]
    word = re.match(r"[^A-Za-z]*([A-Za-z]*)", rest)
    following = word[1].upper() if word else ""
    marked = re.match(r"[ \t]*[\])}>*_`.:,;\"'”’-]", rest) is not None
    if not following or following.startswith(OPTIONS[letter]) or (marked and following != "OR"):
        return letter
    return ""


def find_value(text: str) -> str:
    """Return the text of a "Value:" line, without quotes around it; "" for none, N/A, and no such line."""
    said = _find_last_line(text, "value|text").strip().strip("*_` \t")
    while len(said) > 1 and said[0] in QUOTES and said[-1] in QUOTES:
        said = said[1:-1].strip()
    return "" if said.casefold() in ("none", "n/a", "null", "-", "empty") else said[:LONGEST_VALUE]


def _find_lines(text: str, names: str) -> list[str]:
    marks = r"[ \t*_`#>-]*"
    pattern = rf"(?:^|\n){marks}(?:{names}){marks}[:=](?P<said>[^\n]*)"
    return [found["said"] for found in re.finditer(pattern, text[:20_000], re.IGNORECASE)]


def _find_last_line(text: str, names: str) -> str:
    return next(reversed(_find_lines(text, names)), "")


def _parse_integer(said: str) -> int | None:
    found = re.match(r"[\s*_`\[(<#]*(\d{1,6})(?![\d.,]*\d)", said)
    return int(found[1]) if found else None


def read_choice(reply: Reply) -> int | None:
    """1 for Y and 0 for N: of a structured answer, or of a last line that is that letter alone; None otherwise."""
    if reply.unusable():
        return None
    if reply.data is not None:
        return {"Y": 1, "N": 0}.get(str(reply.data.get("choice")))
    last = reply.text.strip().rpartition("\n")[2]
    found = re.fullmatch(r"(?:(?:choice|answer)[ \t*]*:)?[\s*_`\[(\"']*([YN])[\s*_`\])\"'.]*", last.strip("* "), re.I)
    return {"Y": 1, "N": 0}[found[1].upper()] if found else None


def read_sameness(reply: Reply) -> int | None:
    """1 or 0: whether a reply takes two values for the same; None where it does not say."""
    if reply.unusable():
        return None
    if reply.data is not None:
        said = reply.data.get("same")
        return int(said) if isinstance(said, bool) else None
    said = normalise(_find_last_line(reply.text, "same").strip(" *_`[]().\t"))
    return {"yes": 1, "true": 1, "no": 0, "false": 0}.get(said)
