"""Parse the text of an action: its click, status, address and grammar. The result is None if there is any doubt.

Two grammars exist in Online-Mind2Web submissions: verbose (``TARGET -> VERB -> description | STATUS`` or
``VERB target -> description | STATUS``) and compact calls (``click_at(x=1, y=2)``). Agents also write free text.
"""

from __future__ import annotations

import re
from typing import Literal

from annotation.records import ActionStatus, Click

Grammar = Literal["verbose", "compact"]

LARGEST_COORDINATE = 100_000
VERBS = "NAVIGATE|CLICK|DOUBLE_CLICK|RIGHT_CLICK|TYPE|SCROLL|HOVER|WAIT|PRESS_KEY|SELECT|GO_BACK|GO_FORWARD|REFRESH"
COMPACT_CALLS = frozenset(
    {"click_at", "type_at", "hover_at", "scroll", "scroll_at", "hover", "wait", "press_key", "select_option"}
    | {"navigate", "go_back", "go_forward"}
)
POINTING_CALLS = (
    r"(?:pyautogui\.)?(?:(?:left|right|middle|double|triple|mouse)_?)?click(?:_at|_coords|_coordinates)?|"
    r"(?:mouse_)?dblclick|doubleClick|rightClick|type_at|hover_at|hover|mouse_hover|tap|tap_at"
)
NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,12})?)(?:\s?px)?"
PAIR = rf"\s*{NUMBER}\s*,\s*{NUMBER}\s*"

# Possessive (*+) where a hostile text of a million spaces or quotes would otherwise take hours.
QUOTED = re.compile(r"'(?:[^'\\]|\\.?)*+(?:'|\Z)|\"(?:[^\"\\]|\\.?)*+(?:\"|\Z)", re.DOTALL)
POINTING_CALL = re.compile(
    rf"(?:{POINTING_CALLS})\((?P<arguments>[^()]*+(?:\([^()]*+\)[^()]*+)*+)\)(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
POSITIONAL = re.compile(rf"{PAIR}(?:,|$)")
KEYWORD_POINT = re.compile(rf"(?:^|,)\s*(?:coordinates?|position)\s*=\s*[(\[]{PAIR}[)\]]\s*(?:,|$)")
POINTING_TEXT = re.compile(
    rf"(?:(?:left|right|middle|double|triple|mouse)[ _-]?)?(?:click|tap|hover)(?:p?ed|p?ing|s)?"
    rf"\s*+(?:(?:on|at|over)\b)?\s*+(?:the\b)?\s*+(?:coords|coordinates?|position|point|pixels?)?\s*+"
    rf"[(\[]{PAIR}[)\]](?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
POINTING_OTHER = re.compile(
    rf"(?:type|select)\s++(?:(?:at|in|into)\s++)?(?:coords|coordinates?)\s*\({PAIR}\)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
POINTING_TARGET = re.compile(
    rf"coords\s*\({PAIR}\)\s*->\s*(?:(?:DOUBLE_|RIGHT_|MIDDLE_)?CLICK|TYPE|HOVER|SELECT)\b(?P<rest>.*)", re.DOTALL
)
SECOND_POINT = re.compile(
    rf"(?:[\s,>-]++|(?:and|then|to|until)\b)*(?:drag|(?:coords|coordinates?)?\s*[(\[]{PAIR}[)\]])", re.IGNORECASE
)
STATUS = re.compile(r"\|\s*(SUCCESS|FAILED)\s*\Z")
CALL = re.compile(r"(?P<name>[\w.]++)\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)\s*+(?:\|\s*+(?:SUCCESS|FAILED)\s*+)?")
VERBOSE = re.compile(rf"(?:.+?->\s*+(?:{VERBS})(?![A-Za-z0-9_(])|(?:{VERBS})\s.*?->).*", re.DOTALL)
COMPLETION = re.compile(r"\s*TASK_COMPLETE(?![A-Za-z0-9_])")
ANSWER = re.compile(r"\s*TASK_COMPLETE\s*->\s*ANSWER:(.*)", re.DOTALL)
NAVIGATION = re.compile(
    r"(?:\S+\s*->\s*NAVIGATE|(?:navigated?|navigating|go|open|visit)(?:[_ ]?(?:to|url))?)\b"
    r"(?:\s++page\b)?[\s:(>-]*+(?:url\s*[=:]\s*)?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
ADDRESS = re.compile(r"""(?P<quote>['"]?)(?P<url>https?://[^\s'"<>|]+)""", re.IGNORECASE)


def parse_click(action: str) -> Click | None:
    """Return the point that ``action`` clicked, typed or hovered at, in pixels; None if there is any doubt.

    Element numbers (``click('397')``), distances (``scroll(0, 500)``), drags and fractions of the page do not count.
    """
    text = action.strip()
    call = POINTING_CALL.match(QUOTED.sub('""', text))
    if call is not None:
        return None if SECOND_POINT.match(call["rest"]) else _call_point(call["arguments"])
    for pattern in (POINTING_TEXT, POINTING_OTHER, POINTING_TARGET):
        found = pattern.match(text)
        if found is not None:
            return None if SECOND_POINT.match(found["rest"]) else _click(found[1], found[2])
    return None


def parse_point_prefix(action: str) -> Click | None:
    """Return the point that ``action`` begins with, as in ``coords(312, 88) -> CLICK -> ...``."""
    found = POINTING_TARGET.match(action)
    return _click(found[1], found[2]) if found else None


def status_suffix(action: str) -> ActionStatus | None:
    """Return the status that ``action`` ends with, as in ``... | SUCCESS``."""
    found = STATUS.search(action[-64:])
    return ActionStatus(found[1]) if found else None


def without_status(action: str) -> str:
    return action if status_suffix(action) is None else action[: action.rindex("|")]


def grammar(action: str) -> Grammar | None:
    """Return the grammar of ``action``; None for other calls, free text, and TASK_COMPLETE."""
    text = action.strip()
    if is_completion(text):
        return None
    call = CALL.fullmatch(QUOTED.sub('""', text))
    if call is not None:
        return "compact" if call["name"] in COMPACT_CALLS else None
    return "verbose" if VERBOSE.match(text) else None


def is_completion(action: str) -> bool:
    return COMPLETION.match(action) is not None


def completion_answer(action: str) -> str | None:
    """Return the stripped text after ``TASK_COMPLETE -> ANSWER:``, or None."""
    found = ANSWER.match(action)
    return found[1].strip() if found else None


def destination(action: str) -> str | None:
    """Return the http(s) address of a NAVIGATE, navigate or goto action."""
    found = NAVIGATION.match(action.strip())
    address = ADDRESS.match(found["rest"]) if found else None
    if address is None:
        return None
    url = address["url"]
    if not address["quote"]:
        url = url.rstrip(".,;")
        while url.endswith(")") and url.count(")") > url.count("("):
            url = url[:-1]
    return url


def _call_point(arguments: str) -> Click | None:
    found = POSITIONAL.match(arguments) or KEYWORD_POINT.search(arguments)
    if found is not None:
        return _click(found[1], found[2])
    x, y = (re.findall(rf"(?:^|,)\s*{axis}\s*=\s*{NUMBER}\s*(?=,|$)", arguments) for axis in "xy")
    return _click(x[0], y[0]) if len(x) == len(y) == 1 else None


def _click(x: str, y: str) -> Click | None:
    point = Click(float(x), float(y))
    if max(point.x, point.y) > LARGEST_COORDINATE:
        return None
    # (0.31, 0.5) is a fraction of the page, not a pixel.
    return None if "." in x + y and max(point.x, point.y) <= 1 else point
