"""Version 2 of the Online-Mind2Web format: a list of step objects, each with its screenshot, and no other keys.

Layout: as version 1. Keys of result.json: ``schema_version`` (online-mind2web-v2), ``task_id``, ``task``,
``agent_final_answer`` (a text or null), ``reference_length`` (a whole number), ``action_history``: a list of objects
with ``step`` (its position, from 0), ``screenshot`` (a name in ``trajectory/``), ``action``, ``thought`` (or null),
and optionally ``url`` and ``action_status`` (SUCCESS, FAILED or null). The last action starts with TASK_COMPLETE.
Other keys are rejected.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from annotation.formats.actions import (
    completion_answer,
    grammar,
    is_completion,
    parse_click,
    status_suffix,
    without_status,
)
from annotation.formats.documents import kind_of
from annotation.formats.printable import listing, printable
from annotation.formats.registry import Format
from annotation.formats.trajectory_folder import (
    LAYOUT,
    Findings,
    check_keys,
    natural_key,
    read_attachments,
    read_list,
    read_reference_length,
    read_step,
    read_task,
    read_text,
    warn_of_unused_screenshots,
)
from annotation.records import ActionStatus, StepRecord, TrajectoryRecord

FORMAT = Format(name="online-mind2web-v2", title="Online-Mind2Web v2", files=LAYOUT)
KEYS = frozenset({"schema_version", "task", "task_id", "agent_final_answer", "reference_length", "action_history"})
STEP_KEYS = frozenset({"step", "screenshot", "action", "thought", "url", "action_status"})
STATUSES = frozenset(status.value for status in ActionStatus)


def read_v2(document: dict[str, object], findings: Findings) -> TrajectoryRecord:
    """Return the trajectory in ``document``; it is not usable if ``findings`` has problems afterwards."""
    _check_schema_version(findings, document)
    check_keys(findings, "", document, KEYS)
    task_id, text = read_task(findings, document)
    reference_length = read_reference_length(findings, document)
    if document.get("agent_final_answer", "") is None:
        findings.warn("answer_missing", "agent_final_answer", "is null: the agent gave no answer")
    answer = read_text(findings, document, "agent_final_answer", nullable=True)
    entries = read_list(findings, document, "action_history")
    if document.get("action_history") == []:
        findings.problem("no_steps", "action_history", "has no steps")
    available = set(findings.folder.screenshots())
    steps = [_read_step(findings, index, entry, available) for index, entry in enumerate(entries)]
    _check_order(findings, steps)
    _check_grammar(findings, steps)
    if steps and isinstance(entries[-1], dict) and isinstance(entries[-1].get("action"), str):
        _check_completion(findings, steps[-1], answer)
    _warn_of_early_completion(findings, steps)
    warn_of_unused_screenshots(findings, steps, available)
    return TrajectoryRecord(
        folder=findings.folder.path,
        task_id=task_id,
        task_text=text,
        final_answer=answer,
        source_format=FORMAT.name,
        steps=tuple(steps),
        reference_length=reference_length,
        attachments=read_attachments(findings, []),
    )


def _check_schema_version(findings: Findings, document: dict[str, object]) -> None:
    if "schema_version" not in document:
        says = f"is missing; steps are objects, so it should be {FORMAT.name}"
        findings.problem("schema_version_missing", "schema_version", says)
    elif document["schema_version"] != FORMAT.name:
        given = document["schema_version"]
        shown = printable(given) if isinstance(given, str) else kind_of(given)
        findings.problem("schema_version_unknown", "schema_version", f"is {shown}, not {FORMAT.name}")


def _read_step(findings: Findings, index: int, entry: object, available: set[str]) -> StepRecord:
    place = f"action_history[{index}]"
    step = read_step(findings, place, index, entry, STEP_KEYS, available, needs_screenshot=True)
    if not isinstance(entry, dict):
        return step
    _check_number(findings, place, index, entry)
    status = _read_status(findings, f"{place}.action_status", entry.get("action_status"), step.action)
    return replace(step, status=status, click=parse_click(step.action))


def _check_number(findings: Findings, place: str, index: int, entry: dict[str, object]) -> None:
    number = entry.get("step")
    if "step" not in entry:
        findings.problem("field_missing", f"{place}.step", "is missing")
    elif type(number) is not int:
        findings.problem("wrong_type", f"{place}.step", f"must be a whole number, not {kind_of(number)}")
    elif number != index:
        shown = printable(str(number), 30)
        findings.problem("step_number", f"{place}.step", f"is {shown} but its position is {index}")


def _read_status(findings: Findings, place: str, value: object, action: str) -> ActionStatus | None:
    suffix = status_suffix(action)
    if value is None:
        return suffix
    if not isinstance(value, str) or value not in STATUSES:
        findings.problem("action_status_unknown", place, "must be SUCCESS, FAILED or null")
        return None
    if suffix is not None and suffix != value:
        findings.problem("action_status_differs", place, f"says {value} but the action ends with {suffix}")
    return ActionStatus(value)


def _check_order(findings: Findings, steps: list[StepRecord]) -> None:
    for before, step in pairwise(step for step in steps if step.screenshot):
        if natural_key(step.screenshot or "") < natural_key(before.screenshot or ""):
            says = f"{printable(step.screenshot or '')} sorts before the one of step {before.index}"
            findings.problem("screenshot_order", f"action_history[{step.index}].screenshot", says)


def _check_grammar(findings: Findings, steps: list[StepRecord]) -> None:
    first: dict[str, int] = {}
    for step in steps:
        found = grammar(step.action)
        if found is not None:
            first.setdefault(found, step.index)
    if len(first) > 1:
        says = f"mixes two action grammars: step {first['verbose']} is verbose, step {first['compact']} is compact"
        findings.problem("grammar_mixed", "action_history", says)


def _warn_of_early_completion(findings: Findings, steps: list[StepRecord]) -> None:
    early = [str(step.index) for step in steps[:-1] if is_completion(step.action)]
    if early:
        says = f"TASK_COMPLETE occurs before the last step: {listing(early)}"
        findings.warn("completion_early", f"action_history[{early[0]}].action", says)


def _check_completion(findings: Findings, last: StepRecord, answer: str | None) -> None:
    if not is_completion(last.action):
        says = "the last action must start with TASK_COMPLETE"
        findings.problem("not_complete", f"action_history[{last.index}].action", says)
        return
    given = completion_answer(last.action)
    if answer is None or given is None:
        return
    # A status suffix belongs to the action, but an answer may end with the same letters.
    if answer.split() not in (given.split(), without_status(given).split()):
        findings.problem("answer_differs", "agent_final_answer", "is not the answer after TASK_COMPLETE -> ANSWER:")
