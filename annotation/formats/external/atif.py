"""Convert trajectories in the Agent Trajectory Interchange Format (ATIF), versions 1.0 to 1.8, as Harbor writes them.

A file is a JSON document with ``schema_version``, ``agent`` and ``steps``. The task is the message of the first step
with the source user, the answer that of the last agent step if it has no tool calls. Each tool call is a step here.
Pictures are files that an ``observation`` names by path, so they were taken after the call. Steps with
``is_copied_context`` repeat others. A file that another one names in ``continued_trajectory_ref`` continues it.

ATIF has no place for URLs, points and outcomes of actions. `annotation.atif_export` writes them to ``extra``, below the
key `NAMESPACE`, and only this is read of ``extra``.

Source: harbor 0.25.0 on PyPI, ``harbor/models/trajectories``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from annotation.formats.agent_logs import (
    POINTING,
    Log,
    LoggedStep,
    LogProblem,
    as_list,
    as_object,
    as_text,
    find_picture,
    format_call,
    load,
    log_format,
    peek,
    shift_pictures,
    size_of,
)
from annotation.formats.archive import Package
from annotation.formats.documents import FormatError, kind_of
from annotation.formats.log_parts import as_pair, hide_judgement
from annotation.formats.printable import printable
from annotation.records import Problem

NAMESPACE = "webverdict"  # the key in ``extra`` for what ATIF has no place for
TEXT_CALL = "action"  # the tool of a step whose action is no call; its argument ``text`` is the action
PREFIX = "ATIF-v"
VERSIONS = tuple(f"{PREFIX}1.{minor}" for minor in range(9))
BEGINS = re.compile(r'\s*\{.*?"schema_version"\s*:\s*"ATIF-v', re.DOTALL)
LOOKS = frozenset({"screenshot", "take_screenshot", "browser_screenshot", "browser_take_screenshot"})
TRIAL = re.compile(r"(?P<task>.+)__[A-Za-z0-9]{4,16}")  # the folder of a run of Harbor, with agent/ inside
MOST_PARTS = 1_000  # files that continue each other


def find_trajectories(package: Package) -> list[str]:
    return [name for name in package.names() if name.lower().endswith(".json") and BEGINS.match(peek(package, name))]


def is_trajectory(package: Package) -> bool:
    # A file without a suffix is one that was uploaded alone.
    names = package.names()
    return bool(find_trajectories(package)) or (len(names) == 1 and bool(BEGINS.match(peek(package, names[0]))))


def read(package: Package) -> Iterator[Log | LogProblem]:
    names = find_trajectories(package) or package.names()
    documents: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            documents[name] = _load(package, name)
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))
    parts = {found for name, document in documents.items() for found in _find_named(package, name, document)}
    for name, document in documents.items():
        if name not in parts:
            yield _read_trajectory(package, name, document, documents)


def _load(package: Package, name: str) -> dict[str, Any]:
    document, shown = load(package, name), printable(name)
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        says = f"{shown}: must be an object with the list steps, not {kind_of(document)}."
        raise FormatError(Problem("wrong_type", says, f"{shown}: steps"))
    version = document.get("schema_version")
    if version not in VERSIONS:
        shown_version = printable(str(version), 40)
        says = f"{shown}: is of version {shown_version}. Convert it to one of {', '.join(VERSIONS)}."
        raise FormatError(Problem("version_unsupported", says, f"{shown}: schema_version"))
    return document


def _find_named(package: Package, name: str, document: dict[str, Any]) -> Iterator[str]:
    """Yield the files of continuations and subagents that a trajectory names."""
    paths = [document.get("continued_trajectory_ref")]
    for step in map(as_object, as_list(document.get("steps"))):
        for result in _results(step):
            paths += [as_object(each).get("trajectory_path") for each in as_list(result.get("subagent_trajectory_ref"))]
    for path in paths:
        found = find_picture(package, path, name) if isinstance(path, str) else None
        if found is not None and found != name:
            yield found


def _results(step: dict[str, Any]) -> list[dict[str, Any]]:
    return [as_object(each) for each in as_list(as_object(step.get("observation")).get("results"))]


def _read_trajectory(
    package: Package, name: str, document: dict[str, Any], documents: dict[str, dict[str, Any]]
) -> Log:
    log = Log(name=name, task_id=_find_task_id(name), version=str(document["schema_version"]))
    reader = _Reader(package, log, frozenset(package.names()))
    for part, content in _find_parts(package, name, document, documents, log):
        reader.name = part
        for step in as_list(content["steps"]):
            reader.add(as_object(step))
        _count_rest(content, log)
    reader.finish()
    last = as_object(as_object(document.get("extra")).get(NAMESPACE)).get("last_url")
    log.last_url = as_text(last)
    return log


def _find_task_id(name: str) -> str | None:
    """Return the task of a path: its folder, or that of Harbor's run (``<task>__<suffix>/agent/trajectory.json``)."""
    above = PurePosixPath(name).parts[:-1]
    if len(above) > 1 and above[-1] == "agent":
        matched = TRIAL.fullmatch(above[-2])
        return matched["task"] if matched else above[-2]
    return above[-1] if above else None


def _find_parts(
    package: Package, name: str, document: dict[str, Any], documents: dict[str, dict[str, Any]], log: Log
) -> list[tuple[str, dict[str, Any]]]:
    """Return the trajectory and those that continue it, with their names."""
    parts, seen = [(name, document)], {name}
    while (path := parts[-1][1].get("continued_trajectory_ref")) is not None and len(parts) < MOST_PARTS:
        following = find_picture(package, path, parts[-1][0]) if isinstance(path, str) else None
        if following is None or following in seen or following not in documents:
            log.lost["continuations that are not in the upload"] += 1
            break
        seen.add(following)
        parts.append((following, documents[following]))
    return parts


def _count_rest(document: dict[str, Any], log: Log) -> None:
    log.lost["names and versions of agents"] += bool(document.get("agent"))
    log.lost["notes"] += bool(as_text(document.get("notes")))
    log.lost["trajectories of subagents"] += len(as_list(document.get("subagent_trajectories")))
    log.lost["totals of costs and tokens"] += bool(document.get("final_metrics"))
    log.lost["further data of trajectories (extra)"] += bool(set(as_object(document.get("extra"))) - {NAMESPACE})


@dataclass(slots=True)
class _Reader:
    """Add the steps of a trajectory to ``log``. ``picture`` is the newest picture; ``first`` that before any call."""

    package: Package
    log: Log
    names: frozenset[str]
    name: str = ""
    first: str | None = None
    answer: str | None = None
    pending: list[str] = field(default_factory=list)  # messages of the agent without a call

    def add(self, step: dict[str, Any]) -> None:
        lost = self.log.lost
        if step.get("is_copied_context") is True:
            lost["steps that repeat earlier ones"] += 1
            return
        lost["times of steps"] += bool(step.get("timestamp"))
        lost["costs and tokens of steps"] += bool(step.get("metrics"))
        lost["further data of steps (extra)"] += bool(set(as_object(step.get("extra"))) - {NAMESPACE})
        if step.get("source") == "agent":
            self._add_agent_step(step)
        elif step.get("source") == "user" and self.log.task is None:
            self.log.task = as_text(self._read_text(step.get("message"), "pictures of tasks"))
            self._read_observation(step, None)
        else:
            kind = step.get("source") if step.get("source") in ("user", "system") else "unknown sources"
            lost[f"messages of {'the user after the task' if kind == 'user' else kind}"] += 1
            self._read_observation(step, None)

    def _add_agent_step(self, step: dict[str, Any]) -> None:
        message = self._read_text(step.get("message"), "pictures in messages")
        calls = [as_object(each) for each in as_list(step.get("tool_calls"))]
        if not calls:
            self._read_observation(step, None)
            self.log.lost["thoughts of turns without an action"] += bool(as_text(step.get("reasoning_content")))
            self.pending.append(message or "")
            return
        self._drop_pending()
        thoughts = [text for text in (as_text(step.get("reasoning_content")), as_text(message)) if text]
        known = {call.get("tool_call_id") for call in calls if isinstance(call.get("tool_call_id"), str)}
        by_call = self._read_observation(step, known)
        own = as_object(as_object(step.get("extra")).get(NAMESPACE))
        for number, call in enumerate(calls):
            picture = by_call.get(str(call.get("tool_call_id"))) or (by_call.get("") if call is calls[-1] else None)
            self._add_call(call, "\n\n".join(thoughts) if number == 0 else None, own, picture)

    def _drop_pending(self) -> None:
        self.log.lost["messages of the agent between actions"] += sum(1 for each in self.pending if each.strip())
        self.pending.clear()

    def _add_call(self, call: dict[str, Any], thought: str | None, own: dict[str, Any], picture: str | None) -> None:
        name, arguments = as_text(call.get("function_name")) or "unknown", as_object(call.get("arguments"))
        self.log.lost["further data of tool calls (extra)"] += bool(call.get("extra"))
        if name in LOOKS or (arguments.get("action") == "screenshot" and len(arguments) == 1):
            self.log.lost["calls that only took a screenshot"] += 1
            self.log.lost["thoughts of calls that only took a screenshot"] += bool(thought)
            self._set_newest(picture)
            return
        text = as_text(arguments.get("text")) if own and name == TEXT_CALL else None
        verb = as_text(own.get("verb"))
        self.log.steps.append(
            LoggedStep(
                call=text or format_call(name, hide_judgement(name, arguments, self.log.lost)),
                verb=verb if verb in POINTING else "",
                thought=thought or None,
                url=as_text(own.get("url")),
                failed={"SUCCESS": False, "FAILED": True}.get(str(own.get("status"))),
                point=as_pair(own.get("point")),
                picture=picture,
            )
        )
        has_point = any(key in arguments for key in ("coordinate", "coordinates", "x", "position"))
        if has_point and own.get("point") is None:
            self.log.lost["points, because ATIF does not state the space of their coordinates"] += 1

    def _set_newest(self, picture: str | None) -> None:
        """Let ``picture`` show the page after the last call, or before the first one."""
        if picture is None:
            return
        if not self.log.steps:
            self.log.lost["screenshots that a later one replaces"] += self.first is not None
            self.first = picture
            return
        last = self.log.steps[-1]
        self.log.lost["screenshots that a later one replaces"] += last.picture is not None
        self.log.steps[-1] = replace(last, picture=picture)

    def _read_observation(self, step: dict[str, Any], known: set[Any] | None) -> dict[str, str]:
        """Return the last picture of each call by its id, of others by "". Without calls (None) it is the newest."""
        found: dict[str, str] = {}
        for result in _results(step):
            source = result.get("source_call_id")
            key = source if isinstance(source, str) and known and source in known else ""
            for picture in self._read_pictures(result):
                self.log.lost["screenshots that a later one replaces"] += key in found
                found[key] = picture
            self.log.lost["subagents that are named"] += len(as_list(result.get("subagent_trajectory_ref")))
        if known is None and "" in found:
            self._set_newest(found.pop(""))
        return found

    def _read_pictures(self, result: dict[str, Any]) -> Iterator[str]:
        content = result.get("content")
        self.log.lost["texts of results"] += bool(as_text(content))
        for part in map(as_object, as_list(content)):
            path = as_object(part.get("source")).get("path")
            if part.get("type") == "text":
                self.log.lost["texts of results"] += bool(as_text(part.get("text")))
            elif part.get("type") != "image" or not isinstance(path, str):
                self.log.lost["parts of results that are no texts or images"] += 1
            elif (picture := self._find(path)) is None:
                self.log.lost["screenshots that are not in the upload"] += 1
            else:
                yield picture

    def _find(self, path: str) -> str | None:
        if "://" in path or path.startswith("data:"):
            return None
        above = self.name.rpartition("/")[0]
        beside = f"{above}/{path}" if above else path
        return beside if beside in self.names else find_picture(self.package, path, self.name)

    def _read_text(self, message: object, pictures: str) -> str | None:
        """Return the texts of a message; count its images as lost ``pictures``."""
        if isinstance(message, str):
            return message
        parts = [as_object(part) for part in as_list(message)]
        self.log.lost[pictures] += sum(1 for part in parts if part.get("type") == "image")
        self.log.lost["recordings in messages"] += sum(1 for part in parts if part.get("type") == "audio")
        texts = [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]
        return "\n".join(texts) if texts else None

    def finish(self) -> None:
        if self.pending:
            self.log.answer = as_text(self.pending.pop())
        self._drop_pending()
        shift_pictures(self.log, self.first)
        self.log.steps = [self._check_point(step) for step in self.log.steps]

    def _check_point(self, step: LoggedStep) -> LoggedStep:
        """Return the step, without its point if that is outside of its picture."""
        if step.point is None:
            return step
        size = size_of(self.package, step.picture)
        if size and 0 <= step.point[0] <= size[0] and 0 <= step.point[1] <= size[1]:
            return step
        self.log.lost["points outside of the screenshot" if size else "points of steps without a screenshot"] += 1
        return replace(step, point=None)


FORMAT = log_format(
    "atif",
    title="ATIF 1.0 to 1.8",
    files="a zip or folder with trajectory.json and its images",
    recognise=is_trajectory,
    read=read,
)
