"""Fixed rules that compare two actions (None if they cannot tell) and parse actions from replies."""

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
LONGEST_VALUE = 2_000  # characters that are stored of a value
LONGEST_LABEL = 200  # characters of a line in which its letter must occur: this bounds the backtracking before it

QUOTES = "\"'“”‘’«»`"
ALIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
NUMBER = re.compile(
    r"(?P<sign>[-+]?)(?P<money>[$€£]?)\s?(?P<digits>\d{1,30}|\d{1,3}(?:,\d{3}){1,9})(?P<rest>\.\d{1,30})?\s?(?P<share>%?)"
)

# Characters around a label and its value in text replies: **Answer:** [B], `Operation`: "TYPE".
MARKS = r"[ \t*_`#\"'“”‘’>-]*"


@dataclass(frozen=True, slots=True)
class Predicted:
    """The action in a reply: its operation and option, its value, the number of an element, a point in the screenshot.

    ``element`` is None without a number. ``point`` is x and y in thousandths of width and height, None without one.
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
    """Return ``text`` for comparison: compatible characters unified, case and spaces folded, outer quotes removed.

    Inner quotes remain: O'Brien is the same with either apostrophe.
    """
    same = " ".join(unicodedata.normalize("NFKC", text).translate(ALIKE).casefold().split())
    while len(same) > 1 and same[0] in QUOTES and same[-1] in QUOTES:
        same = same[1:-1].strip()
    return same


def is_same_value(right: str, said: str, options: Sequence[tuple[str, str]] = ()) -> bool | None:
    """Return whether two values mean the same; None if fixed rules cannot tell.

    ``options`` are texts and values of the list to select from: two values that name the same entry are the same, two
    that name different entries are not. Without such entries equal texts are the same; an empty text differs from
    another, as do two different numbers; anything else is undecided.
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
    """Return the positions of list entries with this text or, if no entry has it, with this value."""
    texts = frozenset(place for place, (text, _) in enumerate(options) if normalise(text) == value)
    return texts or frozenset(place for place, (_, hidden) in enumerate(options) if normalise(hidden) == value)


def _is_same_number(right: re.Match[str], said: re.Match[str]) -> bool | None:
    """Return whether two numbers are the same; None for "007" and "7", "5" and "5 %", "1.10" and "1.1".

    1,000 is 1000. Also None if they are equal in one notation and differ in another, such as 1.000 and 1,000.
    """
    if _parse_number(right) != _parse_number(said):
        return None if _read_amounts(right) & _read_amounts(said) else False
    alike = all(right[part] == said[part] for part in ("money", "share")) and _zeros(right) == _zeros(said)
    # 1.10 and 1.1 are the same amount of money, but different versions or sections.
    alike = alike and bool(right["money"] or (right["rest"] or "") == (said["rest"] or ""))
    return True if alike else None


def _read_amounts(found: re.Match[str]) -> frozenset[Decimal]:
    """Return all readings: three digits after a lone comma or point are thousands or decimals, by country."""
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
    """Return whether an entry with this text or value is among the ``shown`` positions of a list."""
    return bool(_find_entries(normalise(value), options) & frozenset(shown))


def score_option_selection(right: Operation, said: Predicted) -> int:
    """Return 1 if the type of the operation is right (option A click, B type, C select), else 0."""
    return int(right.op == said.operation)


def score_action(right: Operation, said: Predicted, options: Sequence[tuple[str, str]] = ()) -> int | None:
    """Return 1 if type and value are right, 0 if one is not, None if it depends on the meaning of the value.

    A click has no value. The value of SELECT is compared with text and value of the list's entries.
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
    """Return the action of a reply: from its structured answer, or from labelled lines of its text. Raise Unread.

    ``pointing`` requires a point in the screenshot instead of an element's number.
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
            raise Unread("The reply names no point of the screenshot.")
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
    """Return the operation of an "Operation:", "Action:" or "Answer:" line, given as a word or letter; "" without one.

    The result is also "" if lines contradict each other.
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
    """Return A, B or C at the start of the text after "Answer:", also bold or in brackets; "" if it is a word.

    "B", "**B**", "[B]", "(b).", "B) TYPE" and "Option B" are accepted; "Apply", "a button" and "A or B" are not: after
    a letter comes nothing, or a mark, or the name of its own operation.
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
    """Return 1 for Y and 0 for N, from a structured answer or a last line with only that letter; otherwise None."""
    if reply.unusable():
        return None
    if reply.data is not None:
        return {"Y": 1, "N": 0}.get(str(reply.data.get("choice")))
    last = reply.text.strip().rpartition("\n")[2]
    found = re.fullmatch(r"(?:(?:choice|answer)[ \t*]*:)?[\s*_`\[(\"']*([YN])[\s*_`\])\"'.]*", last.strip("* "), re.I)
    return {"Y": 1, "N": 0}[found[1].upper()] if found else None


def read_sameness(reply: Reply) -> int | None:
    """Return 1 if a reply says that two values are the same, 0 if it says no, None if it says neither."""
    if reply.unusable():
        return None
    if reply.data is not None:
        said = reply.data.get("same")
        return int(said) if isinstance(said, bool) else None
    said = normalise(_find_last_line(reply.text, "same").strip(" *_`[]().\t"))
    return {"yes": 1, "true": 1, "no": 0, "false": 0}.get(said)
