"""Convert folders of the runner of OSWorld, which Odysseys uses too: ``traj.jsonl`` or ``steps.jsonl``, and pictures.

Layout: ``<...>/<domain>/<task id>/traj.jsonl`` with ``step_<n>_<time>.png`` and ``result.txt`` (the score). A line of
traj.jsonl: ``step_num``, ``action`` (code for pyautogui, WAIT, DONE, FAIL, or an object), ``response``,
``screenshot_file``, ``reward``, ``done``, ``info``. Of Odysseys, steps.jsonl has ``screenshot``, ``action`` with
``arguments``, and ``final``: a line without an action and with this mark has the answer. If both are there, steps.jsonl
counts. Pictures were taken after the action; several lines of one ``step_num`` are one turn. Code has pixels of the
screen, which is the picture. The text of a task is in its file (``examples/<domain>/<task id>.json``), if that is in
the upload, too; its evaluator is not read.

Source: copies of the runner of xlang-ai/OSWorld; ljang0/Odysseys 95307c7, ``run_full_trajectory_per_rubric.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from annotation.formats.agent_logs import (
    Log,
    LoggedStep,
    LogProblem,
    as_object,
    as_text,
    find_picture,
    format_call,
    load,
    load_lines,
    log_format,
    peek,
    shift_pictures,
    size_of,
)
from annotation.formats.archive import Package
from annotation.formats.documents import FormatError
from annotation.formats.log_parts import count_unused, group_files, hide_judgement

NAMES = ("steps.jsonl", "traj.jsonl")  # the first one counts
BEGINS = re.compile(r'\s*\{(?=[^\n]*"step_num"\s*:)(?=[^\n]*"(?:screenshot_file|screenshot)"\s*:)')
NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
CODE = re.compile(
    rf"(?:import \w+; )*pyautogui\.(?P<name>\w+)\((?:x ?= ?)?{NUMBER}, ?(?:y ?= ?)?{NUMBER}(?:,[^()]*)?\);?"
)  # on one line
VERBS = {
    "click": "CLICK", "leftClick": "CLICK", "doubleClick": "DOUBLE_CLICK", "tripleClick": "CLICK",
    "rightClick": "RIGHT_CLICK", "moveTo": "HOVER",
}  # fmt: skip


def find_logs(package: Package) -> dict[str, str]:
    """Return the log of each folder by the folder."""
    found: dict[str, str] = {}
    for name in package.names():
        home, _, last = name.rpartition("/")
        is_better = home not in found or last == NAMES[0]
        if last in NAMES and is_better and BEGINS.match(peek(package, name)):
            found[home] = name
    return found


def read(package: Package) -> Iterator[Log | LogProblem]:
    logs = find_logs(package)
    files = group_files(package.names(), logs)
    for home, name in logs.items():
        try:
            yield _read_log(package, home, name, files[home])
        except FormatError as error:
            yield LogProblem(home or name, tuple(error.problems))


def _read_log(package: Package, home: str, name: str, names: list[str]) -> Log:
    log, used, turn = Log(name=home or name, task_id=home.rpartition("/")[2] or None), {name}, object()
    used |= _read_task(package, log)
    first: str | None = None
    for row in map(as_object, load_lines(package, name)):
        path = as_text(row.get("screenshot_file")) or as_text(row.get("screenshot"))
        picture = find_picture(package, path, name) if path and "://" not in path else None
        used |= {picture} if picture else set()
        log.lost["screenshots that are not in the upload"] += path is not None and picture is None
        log.lost["rewards, which annotators must not see"] += row.get("reward") is not None
        log.lost["infos of the environment"] += bool(row.get("info"))
        log.lost["times of steps"] += bool(row.get("action_timestamp"))
        call = _read_call(row, log)
        if call is None:
            first = _look(row, picture, first, log)
            continue
        is_new, turn = row.get("step_num") != turn, row.get("step_num")
        log.steps.append(LoggedStep(call=call, thought=_read_thought(row, log) if is_new else None, picture=picture))
    shift_pictures(log, first)
    log.steps = [_point(package, step, log) for step in log.steps]
    count_unused(names, used, log.lost)
    return log


def _look(row: dict[str, Any], picture: str | None, first: str | None, log: Log) -> str | None:
    """Read a line without an action: a screenshot, or the end. Return the picture before the first action."""
    if row.get("final") is True:
        log.answer = as_text(row.get("response"))
        log.derived["answers, from the response of the line marked final"] += log.answer is not None
    else:
        log.lost["lines without an action"] += 1
    if not log.steps:
        return picture or first
    if picture:
        last = log.steps[-1]
        log.steps[-1] = LoggedStep(call=last.call, thought=last.thought, picture=picture)
    return first


def _read_thought(row: dict[str, Any], log: Log) -> str | None:
    response = row.get("response")
    log.lost["responses that are no texts"] += not (response is None or isinstance(response, str))
    return as_text(response)


def _read_call(row: dict[str, Any], log: Log) -> str | None:
    """Return the action as a call, or None if it only looks at the screen."""
    action, arguments = row.get("action"), as_object(row.get("arguments"))
    if isinstance(action, dict):
        command, given = as_text(action.get("command")), as_object(action.get("input"))
        if given.get("action") == "screenshot":
            return None
        if command:
            return _join_lines(command)
        named = (as_text(action.get(key)) for key in ("action_type", "action", "name"))
        verb = next((text for text in named if text), "action")
        rest = {key: value for key, value in action.items() if key not in ("action_type", "action", "name")}
        parameters = as_object(action.get("parameters")) or given or rest
        return format_call(verb, hide_judgement(verb, parameters, log.lost))
    name = as_text(action)
    if name is None or name.lower() == "screenshot":
        return None
    if not arguments:
        return _join_lines(name)
    return format_call(name, hide_judgement(name, {k: v for k, v in arguments.items() if k != "action"}, log.lost))


def _join_lines(code: str) -> str:
    return "; ".join(line.strip() for line in code.splitlines() if line.strip())


def _point(package: Package, step: LoggedStep, log: Log) -> LoggedStep:
    """Return the step with the point that its code has, if there is exactly one, and it is on the picture."""
    matched = CODE.fullmatch(step.call)
    verb = VERBS.get(matched["name"], "") if matched else ""
    if matched is None or not verb:
        is_pointing = "pyautogui" in step.call and any(f".{name}(" in step.call for name in VERBS)
        log.lost["points of code that has no or several"] += is_pointing
        return step
    x, y, size = float(matched[2]), float(matched[3]), size_of(package, step.picture)
    if size is None:
        log.lost["points of steps without a screenshot"] += 1
    elif x > size[0] or y > size[1]:
        log.lost["points outside of the screenshot"] += 1
    elif "." in matched[2] + matched[3] and max(x, y) <= 1:
        log.lost["points, because the space of their coordinates is unknown"] += 1
    else:
        return LoggedStep(call=step.call, verb=verb, thought=step.thought, point=(x, y), picture=step.picture)
    return step


def _read_task(package: Package, log: Log) -> set[str]:
    """Set the text of the task from its file; return the files read."""
    found = [name for name in package.names() if log.task_id and name.rpartition("/")[2] == f"{log.task_id}.json"]
    if len(found) != 1:
        log.lost["task files, because there are several"] += len(found)
        return set()
    document = as_object(load(package, found[0]))
    log.task = as_text(document.get("instruction"))
    log.lost["evaluators of tasks, which annotators must not see"] += bool(document.get("evaluator"))
    return set(found)


FORMAT = log_format(
    "osworld",
    title="OSWorld and Odysseys",
    files="a zip or folder with traj.jsonl or steps.jsonl",
    recognise=lambda package: bool(find_logs(package)),
    read=read,
)
