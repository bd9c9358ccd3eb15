"""Convert folders of SeeAct: ``all_predictions.json``, ``result.json`` and ``screenshots/screen_<n>.png``.

``result.json`` has ``task`` (a text, or the list of tasks of a run), ``website`` and ``action_history``: a text for
each prediction that was executed, and one for each change of the task. A prediction has ``action_generation`` (the
thought), ``action_grounding``, ``action``, ``value`` and ``element`` with ``center_point`` in CSS pixels of the
viewport. Screenshot ``n`` is the page before prediction ``n``, from 1. There is no answer and no URL. ``config.toml``
may have the key of an API and is never read.

Source: OSU-NLP-Group/SeeAct 0701b4f ``seeact_package/seeact/agent.py``.
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
    peek,
)
from annotation.formats.archive import Package
from annotation.formats.documents import FormatError
from annotation.formats.log_parts import as_pair, count_unused, group_files, number_pictures

NAME = "all_predictions.json"
BEGINS = re.compile(r'\s*\[\s*\{\s*"action_generation"\s*:')
PICTURE = re.compile(r"screen_([0-9]{1,6})\.png")
CHANGED, FAILED = "Changed task from ", "Failed to perform "
VERBS = {"CLICK": "CLICK", "TYPE": "TYPE", "HOVER": "HOVER", "SELECT": "SELECT"}


def find_predictions(package: Package) -> list[str]:
    return [
        name for name in package.names() if name.rpartition("/")[2] == NAME and BEGINS.match(peek(package, name, 4_096))
    ]


def read(package: Package) -> Iterator[Log | LogProblem]:
    homes = {name.rpartition("/")[0]: name for name in find_predictions(package)}
    files = group_files(package.names(), homes)
    for home, name in homes.items():
        try:
            yield _read_run(package, home, name, files[home])
        except FormatError as error:
            yield LogProblem(home or name, tuple(error.problems))


def _read_run(package: Package, home: str, name: str, names: list[str]) -> Log:
    log = Log(name=home or name, task_id=home.rpartition("/")[2] or None)
    result = f"{home}/result.json" if home else "result.json"
    history = _read_result(as_object(load(package, result)), log) if result in names else None
    predictions = [as_object(each) for each in as_list(load(package, name))]
    inside = f"{home}/screenshots" if home else "screenshots"
    pictures = number_pictures((each for each in names if each.rpartition("/")[0] == inside), PICTURE)
    if history is not None and len(history) > len(predictions):
        log.lost["actions of the history without a prediction"] += len(history) - len(predictions)
    executed = predictions if history is None else predictions[: len(history)]
    log.lost["actions that were named but not run"] += len(predictions) - len(executed)
    for number, prediction in enumerate(executed, 1):
        text = history[number - 1] if history is not None else None
        log.steps.append(_build_step(prediction, text, pictures.get(number), log))
    log.last = pictures.get(len(executed) + 1)
    shown = set(range(1, len(executed) + 2))
    log.lost["screenshots of no action"] += len(pictures.keys() - shown)
    count_unused(names, {name, result, *pictures.values()}, log.lost)
    return log


def _read_result(document: dict[str, Any], log: Log) -> list[str]:
    """Set the text of the task; return what was executed."""
    tasks = [text for text in map(as_text, as_list(document.get("task"))) if text]
    log.task = as_text(document.get("task")) or (tasks[-1] if tasks else None)
    log.lost["tasks that a later one replaced"] += max(len(tasks) - 1, 0)
    log.lost["addresses of websites"] += bool(as_text(document.get("website")))
    history = [text for text in as_list(document.get("action_history")) if isinstance(text, str)]
    return [text for text in history if not text.startswith(CHANGED)]


def _build_step(prediction: dict[str, Any], text: str | None, picture: str | None, log: Log) -> LoggedStep:
    name, value = as_text(prediction.get("action")) or "NONE", as_text(prediction.get("value"))
    element = as_object(prediction.get("element"))
    point, verb = as_pair(element.get("center_point")), VERBS.get(name, "")
    log.lost["answers to the second question (action_grounding)"] += bool(as_text(prediction.get("action_grounding")))
    described = f"[{element.get('tag_with_role')}] {element.get('description')} -> " if element else ""
    return LoggedStep(
        call=text or f"{described}{name}{f': {value}' if value and value != 'None' else ''}",
        verb=verb,
        thought=as_text(prediction.get("action_generation")),
        failed=True if text and text.startswith(FAILED) else None,
        point=point if verb else None,
        css_pixels=True,
        picture=picture,
    )


FORMAT = log_format(
    "seeact",
    title="SeeAct",
    files="a zip or folder with all_predictions.json and screenshots/",
    recognise=lambda package: bool(find_predictions(package)),
    read=read,
)
