"""Read actions of BrowserGym, which are calls in Python such as ``click('a12')``. They are parsed, never run.

Source: ServiceNow/BrowserGym 9e779f0, ``core/action/functions.py``.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

from annotation.formats.agent_logs import as_list, as_object, is_number

VERBS = {
    "click": "CLICK", "dblclick": "DOUBLE_CLICK", "fill": "TYPE", "press": "TYPE", "hover": "HOVER",
    "select_option": "SELECT", "check": "CLICK", "uncheck": "CLICK", "focus": "CLICK", "clear": "TYPE",
    "mouse_click": "CLICK", "mouse_dblclick": "DOUBLE_CLICK", "mouse_move": "HOVER",
}  # fmt: skip
LONGEST = 100_000  # characters
MOST_CALLS = 100  # each is searched for in the whole text


def _parse(action: str) -> list[tuple[str, ast.Call]]:
    """Return the names and nodes of the calls; empty if ``action`` is anything else."""
    if len(action) > LONGEST:
        return []
    try:
        with warnings.catch_warnings():  # of escapes such as \d in typed texts
            warnings.simplefilter("ignore")
            tree = ast.parse(action.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return []
        found.append((call.func.id, call))
    return found


def split_calls(action: str) -> list[str]:
    """Return each call of ``action`` as it is written; empty if there are over `MOST_CALLS`, or anything else."""
    text, calls = action.strip(), _parse(action)
    return [ast.get_source_segment(text, call) or "" for _, call in calls] if len(calls) <= MOST_CALLS else []


def parse_calls(action: str) -> list[tuple[str, list[Any]]]:
    """Return names and arguments of the calls; empty if ``action`` is anything else."""
    found = []
    for name, call in _parse(action):
        try:
            arguments = [ast.literal_eval(each) for each in [*call.args, *(word.value for word in call.keywords)]]
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return []
        found.append((name, arguments))
    return found


def find_verb(action: str) -> str:
    """Return the verb of the only call of ``action``; "" if it points at nothing, or there are several."""
    calls = parse_calls(action)
    return VERBS.get(calls[0][0], "") if len(calls) == 1 else ""


def find_point(action: str, boxes: dict[str, Any]) -> tuple[float, float] | None:
    """Return the point of the only call: its coordinates, else the centre of its element's box.

    ``boxes`` are the ``extra_element_properties`` by element: ``bbox`` is x, y, width and height in pixels.
    """
    calls = parse_calls(action)
    if len(calls) != 1 or not calls[0][1]:
        return None
    name, arguments = calls[0]
    if name.startswith("mouse_"):
        point = arguments[:2]
        return (point[0], point[1]) if len(point) == 2 and all(map(is_number, point)) else None
    if name not in VERBS:
        return None
    box = as_list(as_object(boxes.get(str(arguments[0]))).get("bbox"))
    if len(box) != 4 or not all(map(is_number, box)):
        return None
    try:
        return box[0] + box[2] / 2, box[1] + box[3] / 2
    except OverflowError:  # a whole number of hundreds of digits
        return None


def find_answer(action: str) -> str | None:
    """Return the text that ``action`` sends to the user, or None."""
    sent = [arguments[0] for name, arguments in parse_calls(action) if name == "send_msg_to_user" and arguments]
    return sent[-1] if sent and isinstance(sent[-1], str) else None
