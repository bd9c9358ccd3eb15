"""Parts that several formats of logs share: files beside a log, and what annotators must not see of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from annotation.formats.agent_logs import is_number
from annotation.formats.archive import folders_of
from annotation.formats.task_map import TASK_MAP

SCORES = re.compile(r"score|eval|judg|verif|rubric|reward|result", re.IGNORECASE)  # in names of files
ENDING = frozenset({"terminate", "done", "finish", "finished", "stop", "close", "complete", "submit", "end"})
JUDGING = frozenset({"success", "status", "taskcomplete", "taskcompleted", "completed", "complete", "issuccess"})
HIDDEN = "judgements by the agent itself, which annotators must not see"
SCORE_FILES = "files of scores, which annotators must not see"
OTHER_FILES = "other files beside the log"


def group_files(names: Iterable[str], homes: Collection[str]) -> dict[str, list[str]]:
    """Return the files of each folder in ``homes``; a file belongs to the innermost one. "" is the whole upload."""
    found: dict[str, list[str]] = {home: [] for home in homes}
    for name in names:
        home = next((above for above in (*folders_of(name), "") if above in found), None)
        if home is not None:
            found[home].append(name)
    return found


def count_unused(names: Iterable[str], used: Collection[str], lost: Counter[str]) -> None:
    """Count the files of ``names`` that are not in ``used`` as lost."""
    for name in names:
        if name not in used and name != TASK_MAP:
            is_score = SCORES.search(name.rpartition("/")[2]) or "/scores/" in f"/{name}"
            lost[SCORE_FILES if is_score else OTHER_FILES] += 1


def hide_judgement(name: str, arguments: dict[str, Any], lost: Counter[str]) -> dict[str, Any]:
    """Return the arguments of an action without the agent's own judgement, if it is one that ends the run."""
    if name.lower() not in ENDING:
        return arguments
    hidden = {key for key in arguments if key.lower().replace("_", "") in JUDGING}
    lost[HIDDEN] += len(hidden)
    return {key: value for key, value in arguments.items() if key not in hidden}


def as_pair(value: object) -> tuple[float, float] | None:
    """Return a list of two numbers as a point, or None."""
    if isinstance(value, list) and len(value) == 2 and all(map(is_number, value)):
        return value[0], value[1]
    return None


def number_pictures(names: Iterable[str], pattern: re.Pattern[str]) -> dict[int, str]:
    """Return files by the number that the only group of ``pattern`` finds in their names."""
    matched = ((pattern.fullmatch(name.rpartition("/")[2]), name) for name in names)
    return {int(found[1]): name for found, name in matched if found}
