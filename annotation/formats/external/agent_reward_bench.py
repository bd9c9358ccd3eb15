"""Convert the cleaned trajectories of AgentRewardBench: one JSON file for each task and agent.

Layout: ``cleaned/<benchmark>/<agent>/<experiment>/<task_id>.json`` and
``screenshots/<benchmark>/<agent>/<task_id>/screenshot_step_<n>.png``, in a zip or folder. A file begins with the keys
``benchmark`` and ``agent``. Used: ``goal`` and of ``steps`` ``action`` (calls of BrowserGym), ``reasoning``, ``url``,
``screenshot_path``, ``last_action_error`` (of the action before), ``bounding_boxes`` (else
``extra_element_properties``, the same boxes) and ``chat_messages``, only for a thought that ``reasoning`` lacks. The
last step has no action and shows the end. Pictures and boxes are of the page before the action, in the same pixels.

The page structures make files of 3 to 180 MB, so they are not parsed. ``judgments/`` is ignored.
Source: McGill-NLP/agent-reward-bench ea58fb5, ``trajectories.py``, ``scripts/run_judge.py`` (66d795f).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from annotation.formats.agent_logs import (
    LARGEST_LOG,
    Log,
    LoggedStep,
    LogProblem,
    as_files,
    as_list,
    as_object,
    as_text,
    choose_agent,
    convert_logs,
    find_picture,
    is_inside,
    log_format,
    one_line,
    peek,
    size_of,
)
from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.browsergym_calls import find_answer, find_point, find_verb, split_calls
from annotation.formats.cut_json import cut_values
from annotation.formats.documents import FormatError, parse_json
from annotation.formats.printable import counted, printable
from annotation.formats.registry import Progress
from annotation.records import PACKAGE, ImportReport, Problem

NAME = "agent-reward-bench"
TEXT = r'"((?:[^"\\]|\\.)*+)"'
BEGINS = re.compile(rf'\s*\{{\s*"benchmark"\s*:\s*{TEXT}\s*,\s*"agent"\s*:\s*{TEXT}\s*,')
JUDGMENT = re.compile(rf'\s*\{{\s*"benchmark"\s*:\s*{TEXT}\s*,\s*"goal"\s*:.*"(?:judge|trajectory_info)"', re.DOTALL)
VERSION = re.compile(r"^browsergym-core==(\S{1,40})$", re.MULTILINE)
NOTHING = (b"", b"null", b"[]", b"{}", b'""')

STRUCTURES = frozenset({"axtree", "axtree_obj", "axtree_pruned", "dom", "dom_txt", "html", "pruned_html"})
BOXES = ("bounding_boxes", "extra_element_properties")
MESSAGES = "chat_messages"
CUT = STRUCTURES | {*BOXES, MESSAGES}
SETTINGS = ("model", "model_args", "flags", "seed", "experiment", "package_version", "valid")
LOST_OF_STEPS = {
    "stats": "statistics of steps",
    "open_pages_urls": "lists of open tabs",
    "focused_element": "names of focused elements",
}


def find_trajectories(package: Package) -> dict[str, str]:
    """Return the agent of each trajectory by the name of its file."""
    heads = ((name, BEGINS.match(peek(package, name, 4_096))) for name in _json_files(package))
    return {name: head[2] for name, head in heads if head}


def _json_files(package: Package) -> Iterator[str]:
    return (name for name in package.names() if name.lower().endswith(".json"))


def convert(package: Package, folder: Path, report: ImportReport, progress: Progress, agent: str) -> list[Path]:
    """Write a package for each attempt; see `Format` for the arguments. Of several agents, ``agent`` is converted."""
    files = as_files(package)
    found = find_trajectories(files)
    chosen = choose_agent(found.values(), agent, report)
    if chosen is None:
        return []
    _warn_of_ignored(files, Counter(found.values()), chosen, report)
    names = [name for name, of in found.items() if of == chosen]
    return convert_logs(NAME, partial(_read_all, names), files, folder, report, progress)


def _warn_of_ignored(package: Package, agents: Counter[str], chosen: str, report: ImportReport) -> None:
    others = sum(agents.values()) - agents[chosen]
    judgments = sum(1 for name in _json_files(package) if JUDGMENT.match(peek(package, name)))
    if others:
        says = f"Ignored: {counted(others, 'trajectory', 'trajectories')} of other agents."
        report.warn(PACKAGE, Problem("other_agents", says))
    if judgments:
        says = f"Ignored: {counted(judgments, 'judgment')}, which annotators must not see."
        report.warn(PACKAGE, Problem("leftover_file", says))


def _read_all(names: list[str], package: Package) -> Iterator[Log | LogProblem]:
    for name in names:
        try:
            # With several logs, a picture must be in the folder of the task.
            yield _Reader(package, name, least=1 if len(names) == 1 else 2).read()
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))


class _Reader:
    def __init__(self, package: Package, name: str, least: int) -> None:
        self.package, self.name, self.least = package, name, least
        self.shown = printable(name, LONGEST_WHERE)
        data, self.parts = cut_values(package.read(name, LARGEST_LOG), CUT)
        self.document = as_object(parse_json(data, self.shown))
        version = VERSION.search(as_text(self.document.get("package_version")) or "")
        self.log = Log(
            name=name,
            task=as_text(self.document.get("goal")),
            version=f"browsergym-core {version[1]}" if version else "",
        )

    def read(self) -> Log:
        turns = [as_object(turn) for turn in as_list(self.document.get("steps"))]
        for turn, following in zip_longest(turns, turns[1:]):
            self._count_lost(turn)
            if as_text(turn.get("action")) is not None:
                self.log.steps += self._read_steps(turn, following or {})
            elif following is None:
                self.log.last, self.log.last_url = self._find_picture(turn), as_text(turn.get("url"))
            else:
                self.log.lost["pages without an action"] += 1
            if as_text(turn.get("action")) is None and as_text(turn.get("reasoning")):
                self.log.lost["thoughts of turns without an action"] += 1
        self.log.lost["scores and outcomes, which annotators must not see"] += int("summary_info" in self.document)
        self.log.lost["settings of the run"] += sum(1 for key in SETTINGS if self.document.get(key) is not None)
        return self.log

    def _read_steps(self, turn: dict[str, Any], following: dict[str, Any]) -> list[LoggedStep]:
        """Return a step for each call of the action; only one if an error hides which of them were executed."""
        action, error = str(turn["action"]), following.get("last_action_error")
        failed = bool(error) if isinstance(error, str) else None
        calls = split_calls(action)
        if len(calls) > 1 and failed:
            self.log.lost["turns with several actions and an error, shown as one step"] += 1
        elif len(calls) > 1:
            self.log.derived["steps from turns with several actions"] += len(calls)
            # The page may have changed since the picture.
            self.log.lost["points of later actions of a turn"] += sum(1 for call in calls[1:] if find_verb(call))
        shown = ["; ".join(calls) or action] if failed else calls or [action]
        self.log.answer = find_answer(action) or self.log.answer
        picture, url, thought = self._find_picture(turn), as_text(turn.get("url")), self._find_thought(turn)
        first = LoggedStep(
            call=f"{shown[0]}: {one_line(str(error))}" if failed else shown[0],
            verb=find_verb(shown[0]),
            thought=thought,
            url=url,
            failed=failed,
            point=self._find_point(shown[0], turn, picture),
            picture=picture,
        )
        return [first, *(replace(first, call=call, verb="", thought=None, point=None) for call in shown[1:])]

    def _find_point(self, call: str, turn: dict[str, Any], picture: str | None) -> tuple[float, float] | None:
        if not find_verb(call):
            return None
        by_box = not call.lstrip().startswith("mouse_")
        boxes = next((found for key in BOXES if (found := as_object(self._part(turn, key)))), {}) if by_box else {}
        point, size = find_point(call, boxes), size_of(self.package, picture)
        if point is None or size is None:
            what = "points of elements without a box" if point is None else "points of steps without a screenshot"
            self.log.lost[what] += 1
            return None
        if not is_inside(point, size):
            self.log.lost["points outside of their screenshot"] += 1
            return None
        self.log.derived["points from the boxes of elements"] += int(by_box)
        return point

    def _find_thought(self, turn: dict[str, Any]) -> str | None:
        """Return the reasoning, else the last reply of the model in the messages."""
        if thought := as_text(turn.get("reasoning")):
            return thought
        messages = [as_object(each) for each in as_list(self._part(turn, MESSAGES))]
        replies = [each.get("content") for each in messages if each.get("role") == "assistant"]
        texts = [as_text(as_object(part).get("text")) for part in as_list(replies[-1])] if replies else []
        reply = as_text(replies[-1]) if replies else None
        thought = reply or as_text("\n".join(filter(None, texts)))
        self.log.derived["thoughts from the replies of the model"] += int(thought is not None)
        return thought

    def _find_picture(self, turn: dict[str, Any]) -> str | None:
        return find_picture(self.package, as_text(turn.get("screenshot_path")) or "", self.name, self.least)

    def _part(self, turn: dict[str, Any], key: str) -> Any:
        """Return a value of the turn that was cut out. Raises FormatError."""
        return parse_json(self._raw(turn, key) or b"null", f"{self.shown}: {key}")

    def _raw(self, turn: dict[str, Any], key: str) -> bytes:
        index = turn.get(key)
        # A key with escapes is not cut out: its value is its own.
        return self.parts[index] if isinstance(index, int) and 0 <= index < len(self.parts) else b""

    def _count_lost(self, turn: dict[str, Any]) -> None:
        present = {key for key in CUT if self._raw(turn, key) not in NOTHING}
        self.log.lost["page structures"] += int(bool(present & STRUCTURES))
        self.log.lost["lists of element boxes"] += int(bool(present.intersection(BOXES)))
        self.log.lost["conversations with the model"] += int(MESSAGES in present)
        for key, what in LOST_OF_STEPS.items():
            self.log.lost[what] += int(turn.get(key) not in (None, "", [], {}))


FORMAT = replace(
    log_format(
        NAME,
        title="AgentRewardBench",
        files="a zip or folder with cleaned/ and screenshots/",
        recognise=lambda package: bool(find_trajectories(package)),
        read=lambda package: _read_all(list(find_trajectories(package)), package),
    ),
    convert=convert,
)
