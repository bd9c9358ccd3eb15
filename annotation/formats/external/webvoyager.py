"""Convert the results of WebVoyager: a folder for each task, with the messages and a screenshot for each reply.

Layout: ``task<website>--<n>/interact_messages.json`` (a list of ``role`` and ``content``, without the images) and
``screenshot<k>.png`` beside it: the page before reply k, from 1, with a number and a box painted on each element. Some
folders also have ``screenshot<k>_no_box.png``, without them, which is preferred. A reply is ``Thought: ...`` and
``Action: ...`` with one of ``Click [4]``, ``Type [4]; text``, ``Scroll [WINDOW]; down``, ``Wait``, ``GoBack``,
``Google`` and ``ANSWER; text``. Elements have no coordinates, and pages no address. No screenshot is taken after an
action that failed.
Source: MinorJerry/WebVoyager 0915445, ``run.py``, ``utils.py`` and ``results/examples``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from annotation.formats.agent_logs import (
    Log,
    LoggedStep,
    LogProblem,
    as_list,
    as_object,
    as_text,
    load,
    log_format,
    one_line,
    peek,
)
from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.documents import FormatError, kind_of
from annotation.formats.printable import printable
from annotation.records import Problem

MESSAGES = "interact_messages.json"
BEGINS = re.compile(r'\s*\[\s*\{\s*"role"\s*:')
PARTS = re.compile(r"Thought:|Action:|Observation:")
# In the order in which the agent tries them: an answer with "Click 3" in it is a click.
ACTIONS = (r"Click \[?\d", r"Type \[?\d+\]?[; ]+.", r"Scroll \[?(?:\d+|WINDOW)\]?[; ]+\[?(?:up|down)", r"^Wait",
           r"^GoBack", r"^Google")  # fmt: skip
ACTION = re.compile("|".join(ACTIONS))
ANSWER = re.compile(r"ANSWER[; ]+(.*)", re.DOTALL)
# The agent is told of a reply without an action, and of an action that raised an error (with its misspelling).
NOT_READ, NOT_RUN = "Format ERROR:", "The action you have chosen cannot be ex"
SCREENSHOT = re.compile(r"screenshot([1-9][0-9]{0,5})(_no_box)?\.png")
ELEMENTS = re.compile(r"^\[[0-9]+\]: ", re.MULTILINE)
OTHER_FILES = {".pdf": "PDF files", ".log": "logs of the runner", ".txt": "page structures", ".json": "page structures"}


def find_logs(package: Package) -> list[str]:
    return [
        name
        for name in package.names()
        if name.rpartition("/")[2] == MESSAGES and BEGINS.match(peek(package, name, 1_024))
    ]


def read(package: Package) -> Iterator[Log | LogProblem]:
    names = find_logs(package)
    homes = {name.rpartition("/")[0] for name in names}
    outside = sum(1 for name in package.names() if name.rpartition("/")[0] not in homes)
    for name in names:
        try:
            log = _read_log(package, name)
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))
            continue
        log.lost["files outside of the folders of tasks"], outside = outside, 0
        yield log


def _read_log(package: Package, name: str) -> Log:
    document = load(package, name)
    if not isinstance(document, list):
        where = printable(name, LONGEST_WHERE)
        raise FormatError(
            Problem("wrong_type", f"{where}: must be a list of messages, not {kind_of(document)}.", where)
        )
    home = name.rpartition("/")[0]
    folder = home.rpartition("/")[2]
    log = Log(name=home or name, task_id=folder.removeprefix("task") or None)
    pictures = _Pictures(package, home, log)
    messages = [as_object(each) for each in document]
    replies = [index for index, each in enumerate(messages) if each.get("role") == "assistant"]
    log.task = _find_task(messages)
    for number, index in enumerate(replies, 1):
        told = _text_of(messages[index + 1]) if index + 1 < len(messages) else ""
        _read_reply(log, _text_of(messages[index]), told, pictures.find(number))
    log.last = pictures.find(len(replies) + 1)
    log.lost["lists of elements"] += sum(
        1 for each in messages if each.get("role") == "user" and ELEMENTS.search(_text_of(each))
    )
    log.lost["prompts of the system"] += sum(1 for each in messages if each.get("role") == "system")
    pictures.count_lost()
    return log


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    texts = [as_text(as_object(part).get("text")) for part in as_list(content)]
    return as_text(content) or "\n".join(filter(None, texts))


def _find_task(messages: list[dict[str, Any]]) -> str | None:
    for message in messages:
        _, mark, rest = _text_of(message).partition("Now given a task:")
        if message.get("role") == "user" and mark:
            text, end, _ = rest.partition("Please interact with ")
            return as_text((text if end else rest.partition("Observation:")[0]).strip())
    return None


def _read_reply(log: Log, reply: str, told: str, picture: str | None) -> None:
    """Add the step of a reply; ``told`` is the next message."""
    parts = PARTS.split(reply)
    marks = PARTS.findall(reply)
    action = parts[2].strip() if len(parts) > 2 else ""
    answer = None if ACTION.search(action) else ANSWER.search(action)
    is_action = answer is not None or ACTION.search(action) is not None
    if "Thought:" not in marks or "Action:" not in marks or not is_action or told.startswith(NOT_READ):
        log.lost["replies without an action that the agent knows"] += 1
        log.lost["screenshots before replies without an action"] += picture is not None
        return
    log.lost["actions that were named but not run"] += marks[2:].count("Action:")
    if answer:
        text = answer[1].strip()
        log.answer = text[1:-1].strip() if text.startswith("[") and text.endswith("]") else text
    log.steps.append(
        LoggedStep(
            call=one_line(action),
            thought=as_text(parts[1].strip()),
            # An error that is not in the messages is possible, so nothing is known of the others.
            failed=True if told.startswith(NOT_RUN) else None,
            picture=picture,
        )
    )


class _Pictures:
    """The screenshots of a folder by number, those without boxes first."""

    def __init__(self, package: Package, home: str, log: Log) -> None:
        self.log, self.used = log, set[str]()
        prefix = f"{home}/" if home else ""
        self.names = [name for name in package.names() if name.rpartition("/")[0] == home]
        self.found: dict[tuple[int, bool], str] = {}
        for name in self.names:
            if matched := SCREENSHOT.fullmatch(name.removeprefix(prefix)):
                self.found[int(matched[1]), bool(matched[2])] = name

    def find(self, number: int) -> str | None:
        name = self.found.get((number, True)) or self.found.get((number, False))
        if name:
            self.used.add(name)
        return name

    def count_lost(self) -> None:
        lost, clean = self.log.lost, {number for number, is_clean in self.found if is_clean}
        for (number, is_clean), name in self.found.items():
            if name not in self.used and not is_clean and number in clean:
                lost["copies of screenshots with boxes painted on them"] += 1
            elif name not in self.used:
                lost["screenshots of no reply"] += 1
            elif not is_clean:
                lost["screenshots without the boxes that the agent painted on them"] += 1
        shots = set(self.found.values())
        for name in self.names:
            base = name.rpartition("/")[2]
            if name not in shots and base != MESSAGES:
                lost[OTHER_FILES.get(f".{base.rpartition('.')[2].lower()}", "other files")] += 1


FORMAT = log_format(
    "webvoyager",
    title="WebVoyager",
    files=f"folders with {MESSAGES} and screenshot1.png, screenshot2.png and so on",
    recognise=lambda package: bool(find_logs(package)),
    read=read,
)
