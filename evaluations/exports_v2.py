"""Trajectories as Online-Mind2Web v2 folders, also from v1 input.

A v1 submission lacks some data that v2 requires. Missing data is marked, never invented, and steps keep their numbers:

- A missing thought is null.
- A step without a screenshot makes its trajectory unconvertible; so does a v1 step before the last without an action.
- The address in a NAVIGATE text is the step's ``url`` since the import; the text itself is unchanged.
- A last observation without an action becomes the TASK_COMPLETE step with the final answer.
- Without such an observation, a last action that only ends the run (``Finish``, or ``stop [...]``,
  ``send_msg_to_user("...")`` and the like, with the final answer) acts on no page. It is the completion, and is
  written as TASK_COMPLETE with a warning that quotes it. Any other last action would need a later observation, which
  does not exist, so the trajectory is unconvertible.

A redacted image is exported in its redacted form, as PNG.

The reader of the format checks every result before it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db.models import Prefetch, QuerySet

from annotation import redactions, screenshots, store_checks
from annotation.formats.actions import is_completion
from annotation.formats.external.online_mind2web_v2 import FORMAT as V2
from annotation.formats.external.online_mind2web_v2 import read_v2
from annotation.formats.printable import printable
from annotation.formats.trajectory_folder import RESULT, SCREENSHOTS, Findings, TrajectoryFolder
from annotation.models import Screenshot, Step, Submission, Trajectory
from annotation.records import Problem

EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
LAST_WORDS = re.compile(
    r"\s*(?:stop|finish(?:ed)?|done|answer|final_answer|terminate|respond|send_msg_to_user|report_infeasible)\b",
    re.IGNORECASE,
)
THE_END = re.compile(r"\s*(?:stop|finish(?:ed)?|done|terminate)\s*(?:\(\s*\)|\[\s*\])?[.!\s]*", re.IGNORECASE)
AT_ONCE = 20  # trajectories in memory with their steps
MOST_LISTED = 50  # problems of a kind on a page; the API lists all
MOST_SURVEYED = 1000  # trajectories that are read for a page: 0.4 s
PARTIAL = "partial.json"

Conversion = tuple[dict[str, Any], list[Problem], list[Problem]]


def survey(submission: Submission) -> tuple[list[Problem], list[Problem]]:
    """Return the reasons why trajectories cannot be written as v2, and the warnings about the others."""
    problems, warnings = [], []
    for found, doubtful in _survey_each(submission):
        problems += found
        warnings += doubtful
    return problems, warnings


@dataclass(slots=True)
class Listed:
    """The number of problems, and the first `MOST_LISTED` of them."""

    count: int = 0
    first: list[Problem] = field(default_factory=list)

    def add(self, problems: Sequence[Problem]) -> None:
        self.count += len(problems)
        self.first += problems[: MOST_LISTED - len(self.first)]

    @property
    def more(self) -> int:
        return self.count - len(self.first)


def summarise(submission: Submission) -> tuple[Listed, Listed]:
    """Return the result of `survey` for a page, of the first `MOST_SURVEYED` trajectories.

    A trajectory of the first version can have a warning for each step.
    """
    problems, warnings = Listed(), Listed()
    for found, doubtful in islice(_survey_each(submission), MOST_SURVEYED):
        problems.add(found)
        warnings.add(doubtful)
    return problems, warnings


def _survey_each(submission: Submission) -> Iterator[tuple[list[Problem], list[Problem]]]:
    for trajectory in _trajectories(submission).iterator(chunk_size=AT_ONCE):
        _, problems, warnings = convert(trajectory)
        yield problems, [] if problems else warnings


def convert(trajectory: Trajectory, covered: Collection[str] = ()) -> Conversion:
    """Return the result.json of a trajectory, the reasons why it is unconvertible, and warnings; see the module.

    ``covered`` are the digests of redacted images, which become PNG.
    """
    steps = list(trajectory.steps.all())
    task_id = trajectory.task.external_id
    if not steps:
        says = f"{task_id}: it is an answer without steps; an Online-Mind2Web trajectory needs steps."
        return {}, [Problem("no_steps", says, task_id)], []
    problems = [_problem("screenshot_missing", task_id, s, "has no screenshot") for s in steps if not s.screenshot]
    warnings: list[Problem] = []
    actions = [step.action for step in steps]
    if trajectory.source_format != V2.name:
        actions[-1] = _last_action(trajectory, steps[-1], problems, warnings)
        problems += [
            _problem("action_missing", task_id, step, "has no action") for step in steps[:-1] if not step.action.strip()
        ]
        warnings += _gaps(task_id, steps)
    length = trajectory.reference_length
    length = trajectory.task.reference_length if length is None else length
    if length is None:
        says = f"{task_id}: neither the trajectory nor the task states the reference length."
        problems.append(Problem("reference_length_missing", says, task_id))
    names = screenshot_names(steps, covered)
    document = {
        "schema_version": V2.name,
        "task": trajectory.task_text,
        "task_id": task_id,
        "agent_final_answer": trajectory.final_answer,
        "reference_length": length,
        "action_history": [_step(step, action, name) for step, action, name in zip(steps, actions, names, strict=True)],
    }
    return document, problems or _check(task_id, document, names), warnings


def screenshot_names(steps: Sequence[Step], covered: Collection[str] = ()) -> list[str]:
    """Return ``0000.png`` ...: the step's number, padded for sorting, with the extension of the actual image format."""
    return [f"{step.index:04d}.{_extension(step.screenshot, covered)}" for step in steps]


def _extension(screenshot: Screenshot | None, covered: Collection[str]) -> str:
    return EXTENSIONS[screenshot.media_type] if screenshot and screenshot.sha256 not in covered else "png"


def stored_digests(submission: Submission) -> set[str]:
    """Return the digests of the stored files in the package."""
    covered = redactions.map_redacted(submission)
    shown = Screenshot.objects.filter(steps__trajectory__submission=submission).distinct()
    return {covered.get(sha256, sha256) for sha256 in shown.values_list("sha256", flat=True).iterator()}


def members(submission: Submission, missing: Sequence[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the package with its path. A partial package leaves out trajectories that cannot be converted
    or have a damaged or lost screenshot."""
    unreadable = {problem.where for problem in missing if problem.code in store_checks.CODES}
    if missing:
        yield PARTIAL, _json({"partial": True, "missing": [problem.as_json() for problem in missing]})
    covered = redactions.map_redacted(submission)
    for trajectory in _trajectories(submission).iterator(chunk_size=AT_ONCE):
        document, problems, _ = convert(trajectory, covered)
        if problems or trajectory.task.external_id in unreadable:
            continue
        folder, steps = trajectory.task.external_id, list(trajectory.steps.all())
        yield f"{folder}/{RESULT}", _json(document)
        for step, name in zip(steps, screenshot_names(steps, covered), strict=True):
            if step.screenshot is not None:  # always true without problems
                sha256 = step.screenshot.sha256
                yield f"{folder}/{SCREENSHOTS}/{name}", screenshots.original(covered.get(sha256, sha256))


def _trajectories(submission: Submission) -> QuerySet[Trajectory]:
    rows = Trajectory.objects.filter(submission=submission).select_related("task")
    return rows.prefetch_related(Prefetch("steps", Step.objects.select_related("screenshot"))).order_by("position")


def _last_action(trajectory: Trajectory, last: Step, problems: list[Problem], warnings: list[Problem]) -> str:
    task_id, answer = trajectory.task.external_id, trajectory.final_answer
    if is_completion(last.action):
        return last.action
    if not last.action.strip():
        return _completion(answer)
    if THE_END.fullmatch(last.action) or _gives_answer(last.action, answer):
        quoted = printable(last.action, 200)
        warnings.append(_problem("answer_as_completion", task_id, last, f"is the end, now TASK_COMPLETE: {quoted}"))
        return _completion(answer)
    says = f"acts ({printable(last.action, 80)}), and no later observation exists at which to complete the task"
    problems.append(_problem("no_last_observation", task_id, last, says))
    return last.action


def _completion(answer: str | None) -> str:
    return "TASK_COMPLETE" if answer is None else f"TASK_COMPLETE -> ANSWER: {answer}".rstrip()


def _gives_answer(action: str, answer: str | None) -> bool:
    """Return whether ``action`` only gives the final answer, ignoring escapes in its text."""
    if not LAST_WORDS.match(action) or not (answer or "").strip():
        return False
    return _letters(answer or "") in _letters(action)


def _letters(text: str) -> str:
    return "".join(text.replace("\\n", " ").replace("\\t", " ").replace("\\", "").split())


def _gaps(task_id: str, steps: Sequence[Step]) -> list[Problem]:
    """Return warnings about data that v1 lacks, one for each step."""
    warnings = [
        _problem("thought_missing", task_id, step, "has no thought")
        for step in steps
        if step.thought is None and step.action.strip()
    ]
    for step in steps:
        if any(warning["code"] == "alignment_doubtful" for warning in step.warnings):
            says = "may have the screenshot of another step"
            warnings.append(_problem("alignment_doubtful", task_id, step, says))
    return warnings


def _step(step: Step, action: str, screenshot: str) -> dict[str, Any]:
    written: dict[str, Any] = {
        "step": step.index,
        "screenshot": screenshot,
        "action": action,
        "thought": step.thought,
    }
    if step.url:
        written["url"] = step.url
    if step.status:
        written["action_status"] = step.status
    return written


def _check(task_id: str, document: dict[str, Any], names: Sequence[str]) -> list[Problem]:
    """Check the document with the reader of the format."""
    files = (RESULT, *(f"{SCREENSHOTS}/{name}" for name in names))
    findings = Findings(TrajectoryFolder(task_id, task_id, files))
    read_v2(document, findings)
    return [Problem(p.code, f"{task_id}: {p.message}", p.where) for p in findings.finish()]


def _problem(code: str, task_id: str, step: Step, says: str) -> Problem:
    return Problem(code, f"{task_id}: step {step.index} {says}.", f"{task_id}/{RESULT}: action_history[{step.index}]")


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n"
