"""Alignment of the steps of two agents at one task, from the texts of their actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import hypot
from urllib.parse import parse_qsl, urlencode, urlsplit

from annotation.formats import actions

LONGEST_ACTION, LONGEST_URL = 500, 1000  # characters that are compared
NEAR = 12  # pixels between two points that count as one: about half of the smallest usual button
MOST_CELLS = 250_000  # pairs of steps that are compared, 0.2 s; 500 steps each

KINDS = {
    "type": "type type_at fill input enter_text",
    "double click": "double_click dblclick doubleclick",
    "right click": "right_click rightclick",
    "click": "click click_at left_click tap tap_at",
    "hover": "hover hover_at mouse_hover move_to",
    "scroll": "scroll scroll_at",
    "select": "select select_option",
    "key": "press press_key keypress key hotkey",
    "open": "navigate goto go_to open visit",
    "back": "go_back back",
    "forward": "go_forward forward",
    "reload": "refresh reload",
    "wait": "wait sleep",
    "finish": "task_complete finish finished done stop terminate answer exit complete",
}
_KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}
_WITHOUT_TARGET = {"finish", "back", "forward", "reload", "wait"}  # where only the kind and the page count
_POINTING = {"click", "double click", "right click", "hover", "type", "select"}
_POINT = re.compile(
    r"(?:coords?|coordinates?)?\s*[(\[]\s*(?:x\s*=\s*)?(\d{1,5})\s*,\s*(?:y\s*=\s*)?(\d{1,5})\s*[)\]]"
    r"|\bx\s*=\s*(\d{1,5})\s*,\s*y\s*=\s*(\d{1,5})\b"  # with more arguments
)
_QUOTED = re.compile(r"\"([^\"]{0,200})\"|'([^']{0,200})'")
_WORD = re.compile(r"[a-z_]+")
_SENTENCE = re.compile(r"[A-Za-z_]+\s+\w")


@dataclass(frozen=True, slots=True)
class Move:
    """What a step does, in one form for all grammars of actions.

    ``kind`` is one of `KINDS`, or the first word of an action with another verb. ``point`` is in pixels of the
    viewport, None if the action states none. ``target`` is the text that names the element; ``typed`` is the text that
    is entered, None unless the action quotes it. ``page`` is the normalised address, "" if it is not recorded.
    """

    kind: str
    point: tuple[float, float] | None
    target: str
    typed: str | None
    page: str

    @property
    def words(self) -> str:
        at = f"at {self.point[0]:.0f}, {self.point[1]:.0f}" if self.point else ""
        return " ".join(filter(None, (self.kind, self.target or at)))

    def matches(self, other: Move) -> bool:
        """Return whether both do the same on the same page.

        They have the same kind, the same page if both record it, and the same typed text if both quote it. The targets
        are the same if the points are at most `NEAR` apart; if only one has a point, or none, if the texts are equal.
        Texts that contain a chosen option, or typed text that is not quoted, must be equal as well.
        """
        if self.kind != other.kind or (self.page and other.page and self.page != other.page):
            return False
        if self.typed is not None and other.typed is not None and self.typed != other.typed:
            return False
        if self.kind in _WITHOUT_TARGET:
            return True
        if self.point is None or other.point is None:
            return self.target == other.target
        unquoted = self.kind == "type" and None in (self.typed, other.typed)
        if (unquoted or self.kind == "select") and self.target != other.target:
            return False
        return hypot(self.point[0] - other.point[0], self.point[1] - other.point[1]) <= NEAR


@dataclass(frozen=True, slots=True)
class Row:
    """Steps beside each other, None for an agent that has no step there; ``same`` if both do the same."""

    left: int | None
    right: int | None
    same: bool


@dataclass(frozen=True)
class Alignment:
    """All steps of both agents, in order, in as few ``rows`` as `align` finds."""

    rows: list[Row]

    @property
    def parting(self) -> Row | None:
        """Return the first row in which the agents do not do the same; None if they do the same to the end."""
        return next((row for row in self.rows if not row.same), None)

    def move(self, left: int, right: int, by: int) -> tuple[int, int] | None:
        """Return the steps one row after (``by`` 1) or before (-1) both of these steps; None at the end.

        If the two are in different rows, forwards is after the later one and backwards before the earlier one, so that
        agents that were moved alone are beside each other again. Without a step in that row, an agent stays at its
        previous one.
        """
        shown = [n for n in range(len(self.rows)) if self._reached[n] == (left, right)]
        at = shown or [self._find(left, 0), self._find(right, 1)]
        wanted = max(at) + 1 if by > 0 else min(at) - 1
        return self._reached[wanted] if 0 <= wanted < len(self.rows) else None

    def meet(self, row: Row) -> tuple[int, int]:
        return self._reached[self.rows.index(row)]

    def matched(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the same step of the other agent, by step of the left and of the right one."""
        pairs = [(row.left, row.right) for row in self.rows if row.same]
        return (
            {left: right for left, right in pairs if left is not None and right is not None},
            {right: left for left, right in pairs if left is not None and right is not None},
        )

    def _find(self, step: int, side: int) -> int:
        return next((n for n, row in enumerate(self.rows) if (row.left, row.right)[side] == step), 0)

    @cached_property
    def _reached(self) -> list[tuple[int, int]]:
        """Return the steps that both show at each row: their own or the previous ones, at first step 0."""
        found, left, right = [], 0, 0
        for row in self.rows:
            left, right = row.left or left, row.right or right
            found.append((left, right))
        return found


def parse_move(action: str, url: str, point: tuple[float, float] | None = None) -> Move:
    """Return what a step does; ``point`` is its click in pixels of the viewport, if the import found one.

    Verbs of all known grammars are mapped to `KINDS`. An empty action is the end of the trajectory. The target is the
    rest of the text without the point, quotes, status and punctuation, in lower case.
    """
    text = actions.without_status(action[:LONGEST_ACTION]).strip().removeprefix("pyautogui.")
    page = normalise_url(url)
    if not text or actions.is_completion(text):
        return Move("finish", None, "", None, page)
    address = actions.destination(text)
    if address is not None:
        return Move("open", None, normalise_url(address), None, page)
    verb, rest = _split_verb(text)
    kind = _KIND_OF.get(verb, verb)
    if kind == "finish" and _SENTENCE.match(text):
        kind = verb  # "Complete the order"
    if kind in _POINTING:
        stated = _POINT.search(rest)
        point = point or (None if stated is None else (float(stated[1] or stated[3]), float(stated[2] or stated[4])))
        rest = re.sub(r"\b(?:at|on)\s*\Z", "", _POINT.sub(" ", rest))
    typed = _find_typed(rest) if kind == "type" else None
    return Move(kind, point, _simplify(rest), typed, page)


def _split_verb(text: str) -> tuple[str, str]:
    """Return the verb in lower case and the rest: of "target -> VERB -> rest", "VERB rest", "call(rest)" or a text."""
    parts = [part.strip() for part in text.split("->")]
    for at, part in enumerate(parts[:2]):
        word = _WORD.match(part.lower())
        if word and word[0] in _KIND_OF and (at or len(parts) == 1 or part.lower() == word[0]):
            before = [target for target in parts[:at] if target != "page"]  # of keys and scrolling: no element
            return word[0], " ".join([*before, part[len(word[0]) :], *parts[at + 1 :]])
    word = _WORD.match(text.lower())
    return (word[0], text[len(word[0]) :]) if word else ("", text)


def _find_typed(rest: str) -> str | None:
    """Return the quoted text of a typing action, or the text before " into "; None without either.

    Of the quoted arguments of a call it is the last one: the first names the element.
    """
    quoted = [one or other for one, other in _QUOTED.findall(rest)]
    if quoted:
        return _simplify(quoted[-1 if rest.startswith("(") else 0])
    return _simplify(rest.rsplit(" into ", 1)[0]) if " into " in rest else None


def _simplify(text: str) -> str:
    words = (word.strip(".").rstrip("-") for word in re.sub(r"[^\w%$€£.+-]+", " ", text.casefold()).split())
    return " ".join(word for word in words if word)


def normalise_url(url: str) -> str:
    """Return an address for comparison: without scheme, www., fragment, trailing slash and order of parameters."""
    text = url.strip()[:LONGEST_URL]
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").removeprefix("www.")
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
        query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    except ValueError:
        return text.casefold()
    return f"{host}{port}{parts.path.rstrip('/')}{'?' if query else ''}{query}"


def align(left: Sequence[Move], right: Sequence[Move]) -> Alignment:
    """Align the steps of two trajectories.

    Matching steps at the beginning and at the end are set beside each other, and between them a longest common
    subsequence by `Move.matches`. Steps between two of these that do not match are set beside each other in order, as
    ``same=False``; the rest of the longer side has no partner. So the first difference is the first step,
    counted from the beginning, in which kind, target or page differ, or at which one trajectory ends.

    Between the common beginning and end, at most `MOST_CELLS` pairs are compared. With more, all these steps count as
    different. Source: Hirschberg (1975), Communications of the ACM 18, 341-343, for the recurrence.
    """
    start, least = 0, min(len(left), len(right))
    while start < least and left[start].matches(right[start]):
        start += 1
    end = 0
    while end < least - start and left[-1 - end].matches(right[-1 - end]):
        end += 1
    anchors = [(n, n) for n in range(start)]
    middle = left[start : len(left) - end], right[start : len(right) - end]
    if len(middle[0]) * len(middle[1]) <= MOST_CELLS:
        anchors += [(start + one, start + other) for one, other in _common_subsequence(*middle)]
    anchors += [(len(left) - n, len(right) - n) for n in range(end, 0, -1)]
    rows: list[Row] = []
    done = (0, 0)
    for one, other in [*anchors, (len(left), len(right))]:
        rows += _beside(range(done[0], one), range(done[1], other))
        if one < len(left) and other < len(right):
            rows.append(Row(one, other, same=True))
        done = one + 1, other + 1
    return Alignment(rows)


def _beside(left: Sequence[int], right: Sequence[int]) -> list[Row]:
    return [
        Row(left[n] if n < len(left) else None, right[n] if n < len(right) else None, same=False)
        for n in range(max(len(left), len(right)))
    ]


def _common_subsequence(left: Sequence[Move], right: Sequence[Move]) -> list[tuple[int, int]]:
    """Return the pairs of a longest common subsequence; of several, the one with the earliest left steps."""
    longest = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]  # of left[i:] and right[j:]
    same = [[one.matches(other) for other in right] for one in left]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            longest[i][j] = 1 + longest[i + 1][j + 1] if same[i][j] else max(longest[i + 1][j], longest[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if same[i][j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
