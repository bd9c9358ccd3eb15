"""Convert histories of browser-use, versions 0.1 to 0.13: the JSON file that ``agent.save_history()`` writes.

Layout: a file, or a zip or folder with several, and their ``screenshots/``. ``{"history": [turn]}``; a turn has
``model_output`` (``action``, a list of objects with one key, and the thoughts), ``result`` (one for each executed
action), ``state`` (``url``, ``screenshot`` in base64 or ``screenshot_path``, ``interacted_element``) and ``metadata``.
The oldest files have one object for ``action`` and ``result``. There is no task id; the text of the task is in
``state_message``, which exists since 0.9. Files with a general name are named after their folder.

Pictures are of the page before the turn. Points are in CSS pixels of the viewport after the element was scrolled into
view. So they count only if the page was at its top before the turn, and the element's box, in CSS pixels of the page,
is where the point is. Source: PyPI browser-use 0.1.40, 0.5.7, 0.7.8, 0.9.6 and 0.13.14, ``agent/views.py``,
``agent/prompts.py``, ``tools/service.py``; repository browser-use/browser-use 85ddbfe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from annotation.formats.agent_logs import (
    Log,
    LoggedStep,
    LogProblem,
    as_list,
    as_object,
    as_text,
    decode_picture,
    find_picture,
    find_task_id,
    format_call,
    is_number,
    load,
    log_format,
    peek,
    size_of,
)
from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.documents import FormatError, kind_of
from annotation.formats.printable import printable
from annotation.records import Problem

TURN_KEYS = "model_output|result|state|metadata|state_message"
HISTORY = re.compile(rf'\ufeff?\s*\{{\s*"history"\s*:\s*\[\s*\{{\s*"(?:{TURN_KEYS})"\s*:')
REQUEST = re.compile(r"<user_request>\s*(.*?)\s*</user_request>", re.DOTALL)
PAGE_INFO = re.compile(r"<page_info>\s*([0-9]+\.[0-9]) pages above")
GENERAL_NAMES = frozenset({"agenthistory", "agenthistorylist", "agent_history", "history"})
SUFFIXES = frozenset({"", ".json", ".txt", ".log"})  # the name is the user's choice
VERBS = {
    "click": "CLICK", "click_element": "CLICK", "click_element_by_index": "CLICK",
    "input": "TYPE", "input_text": "TYPE",
}  # fmt: skip
LABELS = ("aria-label", "placeholder", "title", "alt", "name", "id")
MOVED = 2.0  # CSS pixels between the centre of an element and the point, which is rounded
LARGEST = 100_000  # CSS pixels
PLACEHOLDER = (4, 4)  # size of the picture of a new tab
JUDGEMENTS = "judgements of the agent about itself, which annotators must not see"
LOST = {
    "metadata": "times and token counts of turns",
    "state_message": "messages to the model (state_message)",
    "evaluation_previous_goal": JUDGEMENTS,
    "valuation_previous_goal": JUDGEMENTS,
    "judgement": JUDGEMENTS,
    "success": JUDGEMENTS,
    "plan_update": "plans",
    "current_plan_item": "plans",
    "title": "page titles",
    "tabs": "lists of tabs",
    "extracted_content": "texts that actions returned",
    "long_term_memory": "texts that actions returned",
    "include_in_memory": "flags of the agent's memory",
    "include_extracted_content_only_once": "flags of the agent's memory",
    "attachments": "names of files that the agent attached",
    "images": "images that actions returned",
}


def find_histories(package: Package) -> list[str]:
    names = package.names()
    likely = (name for name in names if len(names) == 1 or PurePosixPath(name).suffix.lower() in SUFFIXES)
    return [name for name in likely if HISTORY.match(peek(package, name, 1_000))]


def read(package: Package) -> Iterator[Log | LogProblem]:
    for name in find_histories(package):
        try:
            yield _History(package, name).read(as_object(load(package, name)))
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))


class _History:
    """The reader of one file; what it does not carry is counted in ``log.lost``."""

    def __init__(self, package: Package, name: str) -> None:
        self.package = package
        self.log = Log(name=name, task_id=find_task_id(name, GENERAL_NAMES))
        self.lost = self.log.lost

    def read(self, document: dict[str, Any]) -> Log:
        self.lost["values under unknown keys"] += len(document) - 1
        for number, turn in enumerate(as_list(document.get("history"))):
            if not isinstance(turn, dict):
                where = printable(f"{self.log.name}: history[{number}]", LONGEST_WHERE)
                raise FormatError(Problem("wrong_type", f"{where} must be an object, not {kind_of(turn)}.", where))
            self._read_turn(turn)
        return self.log

    def _read_turn(self, turn: dict[str, Any]) -> None:
        output, state = self._object(turn.get("model_output")), self._object(turn.get("state"))
        actions, results = self._items(output.get("action")), self._items(turn.get("result"))
        message = as_text(turn.get("state_message")) or ""
        self._count_lost(turn, "model_output", "state", "result")
        self._count_lost(state, "url", "screenshot", "screenshot_path", "interacted_element")
        if output:
            self.log.version = self.log.version or _find_version(turn, output, state)
        if self.log.task is None and (request := REQUEST.search(message)):
            self.log.task = as_text(request[1])
        thought, picture = self._read_thought(output), self._find_picture(state)
        url, elements = as_text(state.get("url")), self._items(state.get("interacted_element"))
        executed = min(len(actions), len(results))
        for number in range(executed):
            element = elements[number] if number < len(elements) else {}
            step = _Step(self, number, actions[number], results[number], element, message, picture)
            self.log.steps.append(step.build(thought if number == 0 else None, url))
        self._count_results(results, executed)
        self.lost["actions named but not run"] += len(actions) - executed
        self.lost["thoughts of turns without an action"] += int(thought is not None and not executed)
        self.lost["screenshots of turns without an action"] += int(picture is not None and not executed)
        self.log.derived["steps from turns with several actions"] += max(executed - 1, 0)

    def _count_results(self, results: list[dict[str, Any]], executed: int) -> None:
        for result in results:
            is_done = result.get("is_done") is True
            if is_done:
                self.log.answer = as_text(result.get("extracted_content"))
            answer = ("extracted_content",) if is_done else ()
            self._count_lost(result, "is_done", "error", "metadata", *answer)
        for result in results[executed:]:
            error = as_text(result.get("error"))
            self.lost["errors of turns without an action" if error else "results without an action"] += 1

    def _read_thought(self, output: dict[str, Any]) -> str | None:
        """Return the thinking, else memory and next goal; since 0.3 these are not in ``current_state``."""
        brain = self._object(output.get("current_state")) or output
        self._count_lost(output, "action", "current_state", "thinking", "memory", "next_goal")
        if brain is not output:
            self._count_lost(brain, "thinking", "memory", "next_goal")
        texts = [text for key in ("memory", "next_goal") if (text := as_text(brain.get(key)))]
        if thinking := as_text(brain.get("thinking")):
            self.lost["memories and goals beside a thinking"] += len(texts)
            return thinking
        return "\n".join(texts) or None

    def _find_picture(self, state: dict[str, Any]) -> bytes | str | None:
        encoded, path = as_text(state.get("screenshot")), as_text(state.get("screenshot_path"))
        picture: bytes | str | None = None
        if encoded:
            picture = decode_picture(encoded)
            self.lost["pictures that cannot be read"] += int(picture is None)
        elif path:
            picture = find_picture(self.package, path, self.log.name)
            self.lost["pictures that are not in the upload, or not under a unique name"] += int(picture is None)
        if size_of(self.package, picture) == PLACEHOLDER:
            self.lost["placeholders for pictures of new tabs"] += 1
            return None
        return picture

    def _object(self, value: object) -> dict[str, Any]:
        if value is not None and not isinstance(value, dict):
            self.lost["values of a wrong type"] += 1
        return as_object(value)

    def _items(self, value: object) -> list[dict[str, Any]]:
        """Return the objects of a list, or of the one object that the oldest files have instead."""
        items = [value] if isinstance(value, dict) else value
        if items is not None and not isinstance(items, list):
            self.lost["values of a wrong type"] += 1
        return [self._object(item) for item in as_list(items)]

    def _count_lost(self, given: dict[str, Any], *carried: str) -> None:
        for key, value in given.items():
            is_empty = value in (None, "", [], {}) or (value is False and key != "success")
            if key not in carried and not is_empty:
                self.lost[LOST.get(key, "values under unknown keys")] += 1


class _Step:
    """An executed action with its result and the element that it was at."""

    def __init__(
        self,
        history: _History,
        number: int,
        action: dict[str, Any],
        result: dict[str, Any],
        element: dict[str, Any],
        message: str,
        picture: bytes | str | None,
    ) -> None:
        self.history, self.number, self.result, self.element = history, number, result, element
        self.message, self.picture = message, picture
        named = [(key, value) for key, value in action.items() if value is not None]
        self.name: str = named[0][0] if named else "unnamed"
        self.arguments: Any = named[0][1] if named else None
        history.lost["further names of an action"] += max(len(named) - 1, 0)
        if self.name == "done" and isinstance(self.arguments, dict) and "success" in self.arguments:
            history.lost[JUDGEMENTS] += 1
            self.arguments = {key: value for key, value in self.arguments.items() if key != "success"}

    def build(self, thought: str | None, url: str | None) -> LoggedStep:
        error, at = as_text(self.result.get("error")), self._find_place()
        self.history.lost["details of elements (path, attributes, box)"] += int(bool(self.element))
        call = format_call(self.name, self.arguments) + _describe(self.element)
        call += f" at ({at[0]:g}, {at[1]:g})" if at else ""
        return LoggedStep(
            call=f"{call}: {error}" if error else call,
            verb=VERBS.get(self.name, ""),
            thought=thought,
            url=url,
            failed=True if error else None,
            point=self._find_point(at) if at and self.picture is not None else None,
            css_pixels=True,
            picture=self.picture,
        )

    def _find_place(self) -> tuple[float, float] | None:
        """Return where the action was, in CSS pixels of the viewport at that moment."""
        metadata = as_object(self.result.get("metadata"))
        for kind in ("click", "input"):
            x, y = metadata.get(f"{kind}_x"), metadata.get(f"{kind}_y")
            if is_number(x) and is_number(y) and max(abs(x), abs(y)) <= LARGEST:
                return x, y
        self.history.lost["other metadata of results"] += int(bool(metadata))
        return None

    def _find_point(self, at: tuple[float, float]) -> tuple[float, float] | None:
        size = size_of(self.history.package, self.picture)
        if size and not (0 <= at[0] <= size[0] and 0 <= at[1] <= size[1]):
            self.history.lost["points outside of their picture"] += 1
        elif not self._is_unmoved(at):
            self.history.lost["points, because the page may have been scrolled after its picture"] += 1
        else:
            return at
        return None

    def _is_unmoved(self, at: tuple[float, float]) -> bool:
        """Return whether the place is the same on the picture: nothing was scrolled before, or by the action."""
        if "coordinate_x" in as_object(self.arguments):
            return self.number == 0  # at a point nothing is scrolled, but an action before it may have scrolled
        above = PAGE_INFO.search(self.message)
        if above and above[1] != "0.0":
            return False  # the height of the viewport is unknown
        bounds = as_object(self.element.get("bounds"))
        box = [bounds.get(side) for side in ("x", "y", "width", "height")]
        x, y, width, height = (side if is_number(side) else float("nan") for side in box)
        is_unmoved = abs(x + width / 2 - at[0]) <= MOVED and abs(y + height / 2 - at[1]) <= MOVED
        if is_unmoved and not above:
            self.history.log.derived["points checked by the box of the element, without a scroll position"] += 1
        return is_unmoved


def _describe(element: dict[str, Any]) -> str:
    """Return `` on button "Details"``; "" without an element."""
    tag = as_text(element.get("node_name")) or as_text(element.get("tag_name"))
    attributes = as_object(element.get("attributes"))
    labels = (as_text(value) for value in (element.get("ax_name"), *map(attributes.get, LABELS)))
    label = next((f' "{text}"' for text in labels if text), "")
    return f" on {tag.lower()}{label}" if tag else ""


def _find_version(turn: dict[str, Any], output: dict[str, Any], state: dict[str, Any]) -> str:
    if isinstance(output.get("action"), dict):
        return "0.1"
    if "current_state" in output:
        return "0.1 to 0.2"
    if "screenshot_path" not in state:
        return "0.3 to 0.5.7"
    return "0.9 or newer" if "state_message" in turn else "0.5.8 to 0.8"


FORMAT = log_format(
    "browser-use",
    title="browser-use",
    files="a history (JSON), or a zip or folder with histories and screenshots/",
    recognise=lambda package: bool(find_histories(package)),
    read=read,
)
