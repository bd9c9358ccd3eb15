"""Convert folders of fara and webeval: ``web_surfer.log`` with ``screenshot<n>.png`` and ``<id>_final_answer.json``.

The log is JSON Lines. A line with ``action`` is an executed tool: ``arguments`` (``action``, ``coordinate`` ...,
``thoughts``) and ``url``. Older logs have texts ("Thought #1: ... Action #1: executing tool ...") instead. Screenshot
``n`` is the page before action ``n``, from 0; the last one shows the end. Coordinates are in the image that the model
saw: both sides rounded to multiples of 28, so 1428 x 896 of 1440 x 900. A published log agrees: (1074, 37) was clicked
at (1083.03, 37.17). That holds for the source FaraAgent only; Fara15Agent has another space and other files.

Newer folders have ``screenshot_<n>.png`` from 1, one for each action, and ``task_data.json`` with ``question`` and
``id``. webeval gives ``screenshot0.png`` the name ``screenshot_1.png``, so these are taken as pages before the actions,
too; but other programs write such names after the action, so they get no points.

Source: microsoft/fara 360e87f ``src/fara/fara_agent.py`` and ``_prompts.py``, 7634a63 ``webeval/trajectory.py`` and
webeval's adapter from trajectories to its rubric agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.formats.agent_logs import (
    Log,
    LoggedStep,
    LogProblem,
    as_object,
    as_text,
    format_call,
    load,
    load_lines,
    log_format,
    scale_point,
    size_of,
)
from annotation.formats.archive import Package
from annotation.formats.documents import FormatError, parse_json
from annotation.formats.log_parts import as_pair, count_unused, group_files, hide_judgement, number_pictures

LOG = "web_surfer.log"
PICTURE = re.compile(r"screenshot([0-9]{1,6})\.png")
RENAMED = re.compile(r"screenshot_([0-9]{1,6})\.png")
RENAMED_PICTURES = "screenshots named screenshot_<n>.png, taken as the pages before the actions"
TASK = "task_data.json"
ANSWER = re.compile(r"(?P<id>.*?)(?:_final)?_answer\.json")
NO_ANSWER = "<no_answer>"
MESSAGE = re.compile(
    r"\s*Thought #([0-9]{1,6}): (?P<thought>.*)\nAction #\1: executing tool '[^'\n]*' with arguments (?P<arguments>.*)",
    re.DOTALL,
)
SOURCES = frozenset({"FaraAgent", ""})  # "" for messages
VERBS = {
    "left_click": "CLICK", "click": "CLICK", "double_click": "DOUBLE_CLICK", "right_click": "RIGHT_CLICK",
    "mouse_move": "HOVER", "hover": "HOVER", "type": "TYPE", "input_text": "TYPE",
}  # fmt: skip
FACTOR = 28  # pixels; the model's image has sides of multiples of it
LEAST, MOST = 3_136, 12_845_056  # pixels of the model's image; outside, it is scaled further


@dataclass(frozen=True, slots=True)
class Executed:
    """An executed tool call; ``source`` is the agent that wrote it."""

    name: str
    arguments: dict[str, Any]
    source: str = ""
    url: str | None = None


def find_homes(package: Package) -> list[str]:
    return [name.rpartition("/")[0] for name in package.names() if name.rpartition("/")[2] == LOG]


def read(package: Package) -> Iterator[Log | LogProblem]:
    for home, names in group_files(package.names(), find_homes(package)).items():
        try:
            yield _read_folder(package, home, names)
        except FormatError as error:
            yield LogProblem(home or LOG, tuple(error.problems))


def _read_folder(package: Package, home: str, names: list[str]) -> Log:
    path = f"{home}/{LOG}" if home else LOG
    beside = [name for name in names if name.rpartition("/")[0] == home]
    log = Log(name=home or LOG, task_id=home.rpartition("/")[2] or None)
    actions = list(find_actions(load_lines(package, path), log))
    pictures = number_pictures(beside, PICTURE)
    renamed = {} if pictures else {n - 1: name for n, name in number_pictures(beside, RENAMED).items() if n}
    if renamed:
        log.derived[RENAMED_PICTURES] += len(renamed)
    numbered = pictures or renamed
    used = {path, *numbered.values(), *_read_answer(package, beside, log), *_read_task(package, beside, log)}
    ordered = [numbered.get(n) for n in range(max(numbered, default=-1) + 1)]
    add_steps(package, log, actions, ordered, has_points=not renamed)
    count_unused(names, used, log.lost)
    return log


def _read_answer(package: Package, beside: list[str], log: Log) -> list[str]:
    """Set answer and task id from the only answer file; return the files read."""
    found = [name for name in beside if ANSWER.fullmatch(name.rpartition("/")[2])]
    if len(found) > 1:
        log.lost["answer files, because there are several"] += len(found)
    if len(found) != 1:
        return found
    document = as_object(load(package, found[0]))
    read_answer(document.get("final_answer"), document.get("is_aborted"), log)
    matched = ANSWER.fullmatch(found[0].rpartition("/")[2])
    log.task_id = (matched["id"] if matched else "") or log.task_id
    states = (document.get(key) for key in ("env_state_json", "env_state_raw"))
    log.lost["final states of the environment"] += any(value and value != NO_ANSWER for value in states)
    log.lost["counts of tokens"] += bool(document.get("token_usage"))
    return found


def _read_task(package: Package, beside: list[str], log: Log) -> list[str]:
    """Set task text and id from the file of the task, which may also have a rubric; return the files read."""
    found = [name for name in beside if name.rpartition("/")[2] == TASK]
    for name in found:
        document = as_object(load(package, name))
        log.task = as_text(document.get("question"))
        log.task_id = as_text(document.get("id")) or log.task_id
        log.lost["rubrics, which annotators must not see"] += bool(document.get("precomputed_rubric"))
    return found


def read_answer(answer: object, is_aborted: object, log: Log) -> None:
    log.answer = None if answer == NO_ANSWER else as_text(answer)
    log.lost["marks that the run was aborted"] += is_aborted is True


def find_actions(lines: Iterable[Any], log: Log) -> Iterator[Executed]:
    """Yield the executed tools of a log, and count its other lines as lost."""
    events = [as_object(line) for line in lines]
    has_actions = any(as_text(event.get("action")) for event in events)
    for event in events:
        log.lost["times of log lines"] += "timestamp" in event
        message = MESSAGE.fullmatch(str(event.get("message") or ""))
        name, arguments = as_text(event.get("action")), as_object(event.get("arguments"))
        if name:
            source, url = str(event.get("source") or "unknown"), as_text(event.get("url"))
            yield Executed(as_text(arguments.get("action")) or name, arguments, source, url)
        elif message and has_actions:
            continue  # the line of the action itself has the same
        elif message:
            arguments = as_object(parse_json(message["arguments"].strip().encode(), f"{log.name}: {LOG}: arguments"))
            yield Executed(
                as_text(arguments.get("action")) or "unknown", {"thoughts": message["thought"].strip()} | arguments
            )
        elif str(event.get("message") or "").startswith("Observation#"):
            log.lost["descriptions of what an action did"] += 1
        else:
            log.lost["other lines of the log"] += 1


def add_steps(
    package: Package,
    log: Log,
    actions: Sequence[Executed],
    pictures: Sequence[str | bytes | None],
    *,
    has_points: bool = True,
) -> None:
    """Add a step for each action, with the picture of the same number; the next picture shows the end.

    Without ``has_points``, it is not certain that a picture shows the page of its action.
    """
    for number, action in enumerate(actions):
        picture = pictures[number] if number < len(pictures) else None
        given = {key: value for key, value in action.arguments.items() if key not in ("action", "thoughts")}
        verb = VERBS.get(action.name, "")
        is_pointed = bool(verb) and "coordinate" in given
        log.lost["points whose screenshot may follow the action"] += is_pointed and not has_points
        log.steps.append(
            LoggedStep(
                call=format_call(action.name, hide_judgement(action.name, given, log.lost)),
                verb=verb,
                thought=as_text(action.arguments.get("thoughts")),
                url=action.url,
                point=_find_point(package, action, picture, log) if is_pointed and has_points else None,
                picture=picture,
            )
        )
    log.last = pictures[len(actions)] if len(pictures) > len(actions) else None
    log.lost["screenshots after the one of the end"] += sum(1 for each in pictures[len(actions) + 1 :] if each)


def _find_point(
    package: Package, action: Executed, picture: str | bytes | None, log: Log
) -> tuple[float, float] | None:
    """Return the point of an action in pixels of its picture, or None and count why."""
    given = as_pair(action.arguments["coordinate"])
    size = size_of(package, picture)
    space = model_size(size) if size else None
    if given is None:
        log.lost["coordinates that are not two numbers"] += 1
    elif size is None:
        log.lost["points of steps without a screenshot"] += 1
    elif action.source not in SOURCES or space is None:
        log.lost["points, because the space of their coordinates is unknown"] += 1
    elif point := scale_point(given, space, size):
        log.derived["points, scaled from the image that the model saw"] += 1
        return point
    else:
        log.lost["points outside of the screenshot"] += 1
    return None


def model_size(size: tuple[int, int]) -> tuple[int, int] | None:
    """Return width and height of the image that the model saw of a screenshot; None if it was scaled further."""
    width, height = (max(FACTOR, round(side / FACTOR) * FACTOR) for side in size)
    return (width, height) if LEAST <= width * height <= MOST else None


FORMAT = log_format(
    "fara",
    title="fara and webeval",
    files=f"a zip or folder with {LOG}",
    recognise=lambda package: bool(find_homes(package)),
    read=read,
)
