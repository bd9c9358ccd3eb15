"""Read calls of computer use, and build the steps of a log from them.

The arguments of a call are either ``action`` with ``coordinate`` (Anthropic, Inspect) or ``type`` with ``x`` and ``y``
(OpenAI, cua); ``actions`` is a list of such objects. Points are in pixels of the picture that the model saw. The
picture that a call returns shows the page *after* it. Sources: anthropics/anthropic-quickstarts 44c2b5c,
``computer-use-demo``; openai/openai-cua-sample-app eb2d58b, ``agent/agent.py``; inspect_ai 0.3.285,
``tool/_tools/_computer``; trycua/cua 28baf48, ``callbacks/trajectory_saver.py``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from annotation.formats.agent_logs import (
    DATA_URI,
    Log,
    LoggedStep,
    as_object,
    as_text,
    decode_picture,
    find_picture,
    format_call,
    is_number,
    size_of,
)
from annotation.formats.archive import LONGEST_NAME, Package

COMPUTER_TOOLS = frozenset({"computer", "computer_use"})
VERBS = {
    "left_click": "CLICK", "middle_click": "CLICK", "triple_click": "CLICK", "click": "CLICK",
    "double_click": "DOUBLE_CLICK", "right_click": "RIGHT_CLICK", "mouse_move": "HOVER", "move": "HOVER",
    "type": "TYPE",
}  # fmt: skip
BUTTONS = {"right": "RIGHT_CLICK", "back": "", "forward": ""}  # of a click of OpenAI; those of history point at nothing
LOOKING = frozenset({"screenshot", "zoom", "cursor_position"})
ENDING = frozenset({"terminate"})  # its arguments are the agent's own judgement
NAME = re.compile(r"\w[\w.-]{0,99}")
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
OMITTED = "[omitted]"  # cua writes this instead of a picture


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a call. ``verb`` is empty for actions that point at nothing; a drag has two points, so none."""

    name: str
    call: str
    verb: str = ""
    point: tuple[float, float] | None = None
    has_unclear_point: bool = False


@dataclass(slots=True, kw_only=True)
class Result:
    """The result of a call: the page after it. ``error`` is a message; ``failed`` is None if the log does not say."""

    picture: bytes | str | None = None
    url: str | None = None
    error: str | None = None
    failed: bool | None = None


def read_actions(tool: str, arguments: object) -> list[Action]:
    """Return the actions of a call, in their order. An action without a name has the name ""."""
    if tool not in COMPUTER_TOOLS:
        return [Action(tool, format_call(_quote(tool), arguments))]
    given = as_object(arguments)
    listed = given.get("actions")
    return [_read_action(as_object(each)) for each in (listed if isinstance(listed, list) else [given])]


def _read_action(given: dict[str, Any]) -> Action:
    key = "action" if isinstance(given.get("action"), str) else "type"
    name = as_text(given.get(key)) or ""
    button = as_text(given.get("button")) if name == "click" else None
    verb = BUTTONS.get(button or "", VERBS.get(name, ""))
    x, y = _find_pair(given)
    is_stated = x is not None or y is not None
    point = (x, y) if is_number(x) and is_number(y) else None
    call = format_call(_quote(name), {other: value for other, value in given.items() if other != key})
    return Action(name, call, verb, point, has_unclear_point=bool(verb and is_stated and point is None))


def _find_pair(given: dict[str, Any]) -> tuple[Any, Any]:
    stated = given.get("coordinate")
    if stated is None:
        return given.get("x"), given.get("y")
    return (stated[0], stated[1]) if isinstance(stated, list) and len(stated) == 2 else (stated, None)


def _quote(name: str) -> str:
    """Return a name, quoted if it could be read as anything else, such as a point before the action."""
    return name if NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def find_image(
    package: Package, value: object, beside: str, lost: Counter[str], *, is_base64: bool = False
) -> bytes | str | None:
    """Return the picture of a data URI, or the file in the upload that a path names; else None, counted in ``lost``.

    ``is_base64`` is for formats that have base64 without a data URI.
    """
    text = as_text(value)
    if text is None or text == OMITTED:
        lost["pictures that the log leaves out"] += 1
        return None
    found: bytes | str | None = None
    if is_base64 or DATA_URI.match(text):
        what, found = "pictures that cannot be read", decode_picture(text)
    elif ADDRESS.match(text):
        what = "pictures at addresses, which are not fetched"
    else:
        what = "pictures that are not in the upload"
        found = find_picture(package, text, beside) if len(text) <= LONGEST_NAME else None
    lost[what] += int(found is None)
    return found


class StepBuilder:
    """Build the steps of a log from its turns: texts, calls with their results, and pictures, in their order.

    Several actions of one call, and calls without a picture within a turn, have the picture that the model saw at the
    begin of the turn. ``is_exact`` says for width and height of a picture whether points are in its pixels.
    """

    def __init__(self, package: Package, log: Log, is_exact: Callable[[tuple[int, int]], bool] | None = None) -> None:
        self.package, self.log, self.is_exact = package, log, is_exact
        self.page: bytes | str | None = None  # now
        self.seen: bytes | str | None = None  # by the model, before its turn
        self.url: str | None = None
        self._said: list[tuple[str, bool]] = []
        self._has_calls = False

    def begin_turn(self) -> None:
        self._drop_texts()
        self.seen, self._has_calls = self.page, False

    def say(self, text: str | None, *, is_reasoning: bool = False) -> None:
        """Add a text of the model. It is a thought of the next action of the turn, or else the answer."""
        if text is not None:
            self._said.append((text, is_reasoning))

    def see(self, picture: bytes | str | None) -> None:
        """Take a picture that came without a call as that of the page now."""
        self.page = picture if picture is not None else self.page

    def call(self, tool: str, arguments: object, result: Result | None) -> None:
        """Add the actions of a call. Without a result they are not steps."""
        actions, lost = read_actions(tool, arguments), self.log.lost
        self._has_calls = True
        if result is None:
            lost["actions without a result, which may not have run"] += len(actions)
            return
        running = [each for each in actions if each.name and each.name not in LOOKING | ENDING]
        lost["actions without a name"] += sum(1 for each in actions if not each.name)
        lost[f"actions that only look ({', '.join(sorted(LOOKING))})"] += sum(
            1 for each in actions if each.name in LOOKING
        )
        lost["actions that only end the run"] += sum(1 for each in actions if each.name in ENDING)
        if len(running) > 1 and (result.error or result.failed is not None):
            lost["outcomes of calls with several actions"] += 1
        for action in running:
            self._add(action, result if len(running) == 1 else Result())
        if result.picture is not None and actions and actions[-1].name != "zoom":
            self.page = result.picture
        self.url = result.url or self.url

    def _add(self, action: Action, result: Result) -> None:
        picture = self.page if self.page is not None else self.seen
        self.log.derived["pictures of steps that share the picture before their turn"] += int(
            self.page is None and picture is not None
        )
        self.log.steps.append(
            LoggedStep(
                call=f"{action.call}: {result.error}" if result.error else action.call,
                verb=action.verb,
                thought="\n\n".join(text for text, _ in self._said) or None,
                url=self.url,
                failed=True if result.error else result.failed,
                point=self._place(action, picture),
                picture=picture,
            )
        )
        self._said.clear()
        self.page = self.url = None  # the action may have changed it

    def _place(self, action: Action, picture: bytes | str | None) -> tuple[float, float] | None:
        lost = self.log.lost
        lost["points that are no pair of numbers"] += int(action.has_unclear_point)
        if action.point is None or not action.verb:
            return None
        size = size_of(self.package, picture)
        if size is None:
            lost["points without a picture"] += 1
        elif self.is_exact is not None and not self.is_exact(size):
            lost["points on pictures that the model sees in another size"] += 1
        elif not (0 <= action.point[0] < size[0] and 0 <= action.point[1] < size[1]):
            lost["points outside of their picture"] += 1
        else:
            return action.point
        return None

    def finish(self, answer: str | None = None) -> Log:
        """Return the log. Without ``answer`` the texts of a last turn without calls are the answer."""
        texts = "\n\n".join(text for text, is_reasoning in self._said if not is_reasoning)
        if not self._has_calls and texts and answer in (None, texts):
            answer = texts
            self._said = [each for each in self._said if each[1]]
        self._drop_texts()
        self.log.answer, self.log.last, self.log.last_url = answer, self.page, self.url
        return self.log

    def _drop_texts(self) -> None:
        self.log.lost["turns with texts but without an action"] += int(bool(self._said))
        self._said.clear()
