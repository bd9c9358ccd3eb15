"""Convert the cleaned trajectories of AgentRewardBench: one JSON file for each task and agent.

Layout: ``cleaned/<benchmark>/<agent>/<experiment>/<task_id>.json`` and
``screenshots/<benchmark>/<agent>/<task_id>/screenshot_step_<n>.png``, in a zip or folder. Keys used: ``goal`` and
``steps``: ``action`` (calls of BrowserGym), ``reasoning``, ``url``, ``screenshot_path``, ``last_action_error`` (of the
action before) and ``bounding_boxes``. The last step has no action and shows the end. Pictures and boxes are of the page
before the action, in the same pixels. Source: McGill-NLP/agent-reward-bench ea58fb5, ``trajectories.py``.
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
    find_picture,
    load,
    log_format,
    peek,
)
from annotation.formats.archive import Package
from annotation.formats.browsergym_calls import find_answer, find_point, find_verb
from annotation.formats.documents import FormatError

BEGINS = re.compile(r'\s*\{(?=.*"benchmark"\s*:)(?=.*"goal"\s*:|.*"agent"\s*:)', re.DOTALL)


def find_trajectories(package: Package) -> list[str]:
    return [
        name
        for name in package.names()
        if name.lower().endswith(".json") and _is_trajectory(peek(package, name, 4_096))
    ]


def _is_trajectory(head: str) -> bool:
    return BEGINS.match(head) is not None and '"judgment"' not in head


def read(package: Package) -> Iterator[Log | LogProblem]:
    for name in find_trajectories(package):
        try:
            yield _read_trajectory(package, name, as_object(load(package, name)))
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))


def _read_trajectory(package: Package, name: str, document: dict[str, Any]) -> Log:
    log = Log(name=name, task=as_text(document.get("goal")))
    turns = [as_object(turn) for turn in as_list(document.get("steps"))]
    for turn, following in zip(turns, [*turns[1:], {}], strict=True):
        picture = find_picture(package, as_text(turn.get("screenshot_path")) or "", name)
        action = as_text(turn.get("action"))
        if action is None:
            log.last, log.last_url = picture, as_text(turn.get("url"))
            continue
        error = as_text(following.get("last_action_error"))
        log.answer = find_answer(action) or log.answer
        log.steps.append(
            LoggedStep(
                call=f"{action}: {error}" if error else action,
                verb=find_verb(action),
                thought=as_text(turn.get("reasoning")),
                url=as_text(turn.get("url")),
                failed=True if error else None,
                point=find_point(action, as_object(turn.get("bounding_boxes"))),
                picture=picture,
            )
        )
        log.lost["page structures (axtree)"] += int(bool(turn.get("axtree") or turn.get("axtree_obj")))
    return log


FORMAT = log_format(
    "agent-reward-bench",
    title="AgentRewardBench",
    files="a zip or folder with cleaned/ and screenshots/",
    recognise=lambda package: bool(find_trajectories(package)),
    read=read,
)
