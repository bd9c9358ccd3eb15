"""Version 1 of the Online-Mind2Web format: actions, thoughts and screenshots are separate lists.

The format does not state which screenshot belongs to which action. Consecutive numbers that fit the actions are used
unchanged. Others are placed by number, never renumbered, and marked as doubtful from the first that does not fit.

Layout: ``<task_id>/result.json`` and screenshots in ``<task_id>/trajectory/``, with the number of their step, from 0 or
1, in the name. Keys of result.json: ``task_id``, ``task``, ``action_history`` (a list of texts), and optionally
``thoughts`` (a list of texts or null, one for each action), ``final_result_response`` (a text or null),
``input_image_paths`` (images in the folder). Other keys are left out with a warning.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath

from annotation.formats.actions import destination, parse_click, status_suffix
from annotation.formats.documents import kind_of
from annotation.formats.printable import counted, listing, printable
from annotation.formats.registry import Format
from annotation.formats.trajectory_folder import (
    LAYOUT,
    MOST_STEPS,
    SCREENSHOTS,
    Findings,
    check_step_count,
    check_text,
    is_image,
    natural_key,
    read_attachments,
    read_list,
    read_task,
    read_text,
)
from annotation.formats.yaml_text import did_you_mean
from annotation.records import Problem, StepRecord, TrajectoryRecord

FORMAT = Format(name="online-mind2web-v1", title="Online-Mind2Web v1", files=LAYOUT)
KEYS = frozenset({"task_id", "task", "action_history", "thoughts", "final_result_response", "input_image_paths"})
ANSWER = "final_result_response"
FIRST_NUMBER = re.compile(r"[0-9]+")
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Alignment:
    """The screenshot of each step (or None), and the first step from which this is doubtful."""

    screenshots: tuple[str | None, ...]
    doubtful_from: int | None = None
    missing: tuple[int, ...] = ()


def read_v1(document: dict[str, object], findings: Findings) -> TrajectoryRecord:
    """Return the trajectory in ``document``; it is not usable if ``findings`` has problems afterwards."""
    unknown = sorted(document.keys() - KEYS)
    if unknown:
        missing = KEYS - document.keys()
        shown = [f"{key}{did_you_mean(key[:100], missing)}" for key in unknown[:MOST_NAMED]]
        says = f"unknown keys were ignored: {listing([*shown, *unknown[MOST_NAMED:]])}"
        findings.warn("unknown_property", unknown[0], says)
    task_id, text = read_task(findings, document)
    answer = read_text(findings, document, ANSWER, nullable=True, optional=True)
    if document.get(ANSWER) is None:
        findings.warn("answer_missing", ANSWER, "is missing: the agent gave no answer")
    entries = read_list(findings, document, "action_history")
    actions = [check_text(findings, f"action_history[{index}]", entry) or "" for index, entry in enumerate(entries)]
    thoughts = _read_thoughts(findings, document, len(actions))
    numbered = _read_screenshots(findings)
    images = _read_input_images(findings, document)
    aligned = align(numbered, len(actions))
    _warn_of_alignment(findings, aligned, len(numbered), len(actions))
    if len(aligned.screenshots) > len(actions) + 1:
        check_step_count(findings, SCREENSHOTS, len(aligned.screenshots))
    return TrajectoryRecord(
        folder=findings.folder.path,
        task_id=task_id,
        task_text=text,
        final_answer=answer,
        source_format=FORMAT.name,
        steps=_steps(findings, actions, thoughts, aligned),
        attachments=read_attachments(findings, images),
    )


def align(numbered: list[tuple[int, str]], actions: int) -> Alignment:
    """Assign screenshots, sorted by number, to ``actions`` steps.

    The number is that of the step, from 0, or from 1 if the first screenshot is number 1. One screenshot after the
    last action is a last observation. Larger or repeated numbers cannot be step numbers: then the screenshots are
    placed in order. No screenshot is left out.
    """
    base = 1 if numbered and numbered[0][0] == 1 else 0
    places = [number - base for number, _ in numbered]
    first_misfit = next((index for index, place in enumerate(places) if place != index), len(places))
    if first_misfit == len(places) and len(places) in (actions, actions + 1):
        return Alignment(tuple(name for _, name in numbered))
    present = set(places)
    missing = tuple(
        base + place for place in range(min(max([*places, actions - 1]) + 1, MOST_STEPS)) if place not in present
    )
    if len(present) == len(places) and max(places, default=0) <= actions:
        by_place = dict(zip(places, (name for _, name in numbered), strict=True))
        total = max(actions, len(places) and places[-1] + 1)
        return Alignment(tuple(by_place.get(index) for index in range(total)), first_misfit, missing)
    names: list[str | None] = [name for _, name in numbered]
    names += [None] * (actions - len(names))
    return Alignment(tuple(names), 0 if len(places) > actions + 1 else first_misfit, missing)


def _read_thoughts(findings: Findings, document: dict[str, object], actions: int) -> list[str | None]:
    """Return one thought or None for each action; further thoughts are left out with a warning."""
    value = document.get("thoughts")
    if value is None:
        findings.warn("thoughts_missing", "thoughts", f"thoughts are missing for {counted(actions, 'action')}")
    elif not isinstance(value, list):
        findings.problem("wrong_type", "thoughts", f"must be a list, not {kind_of(value)}")
    if not isinstance(value, list):
        return [None] * actions
    thoughts = [
        None if thought is None else check_text(findings, f"thoughts[{index}]", thought)
        for index, thought in enumerate(value)
    ]
    if len(thoughts) != actions:
        says = f"{counted(len(thoughts), 'thought')} for {counted(actions, 'action')}"
        says += f", the last {len(thoughts) - actions} were ignored" if len(thoughts) > actions else ""
        findings.warn("thoughts_count", "thoughts", f"{says}; it is uncertain which thought belongs to which action")
    return [*thoughts[:actions], *[None] * (actions - len(thoughts))]


def _read_screenshots(findings: Findings) -> list[tuple[int, str]]:
    """Return the screenshots as (number, name), sorted."""
    names = findings.folder.screenshots()
    if not any(name.startswith(f"{SCREENSHOTS}/") for name in findings.folder.files):
        findings.problem("trajectory_missing", SCREENSHOTS, f"the folder {SCREENSHOTS}/ is missing")
    elif not names:
        findings.problem("no_screenshots", SCREENSHOTS, f"{SCREENSHOTS}/ has no screenshots")
    numbered = []
    for name in names:
        number = FIRST_NUMBER.search(name)
        if number is None:
            says = f"the screenshot {printable(name)} has no number in its name, so its step is unknown"
            findings.problem("screenshot_number", f"{SCREENSHOTS}/{name}", says)
        else:
            numbered.append((int(number[0]), name))
    if odd := [name for _, name in numbered if PurePosixPath(name).suffix != PurePosixPath(name).suffix.lower()]:
        findings.warn("extension_case", SCREENSHOTS, f"extensions should be in lower case: {listing(odd)}")
    times = Counter(number for number, _ in numbered)
    if twice := [name for number, name in numbered if times[number] > 1]:
        says = f"these screenshots have the same number; they are ordered by name: {listing(twice)}"
        findings.warn("screenshot_number_twice", SCREENSHOTS, says)
    return sorted(numbered, key=lambda pair: (pair[0], natural_key(pair[1])))


def _read_input_images(findings: Findings, document: dict[str, object]) -> list[str]:
    """Return the input images that exist in the folder, and warn about others."""
    value = document.get("input_image_paths")
    if value is None:
        return []
    if not isinstance(value, list):
        findings.problem("wrong_type", "input_image_paths", f"must be a list, not {kind_of(value)}")
        return []
    files = frozenset(findings.folder.files)
    found: list[str] = []
    odd: list[str] = []
    for path in value:
        inside = isinstance(path, str) and path in files and is_image(path)
        (found if inside else odd).append(path if isinstance(path, str) else kind_of(path))
    if odd:
        findings.warn("input_image_missing", "input_image_paths", f"not an image in this folder: {listing(odd)}")
    return list(dict.fromkeys(found))


def _warn_of_alignment(findings: Findings, aligned: Alignment, screenshots: int, actions: int) -> None:
    if aligned.doubtful_from is None or not screenshots:
        return
    numbers = [str(number) for number in aligned.missing[:MOST_NAMED]]
    more = " and more" if len(aligned.missing) > MOST_NAMED else ""
    says = f"{counted(screenshots, 'screenshot')} for {counted(actions, 'action')}"
    says += f", missing numbers: {', '.join(numbers)}{more}" if numbers else ""
    says += f"; from step {aligned.doubtful_from} on it is uncertain which screenshot belongs to which action"
    findings.warn("alignment_doubtful", SCREENSHOTS, says)


def _steps(
    findings: Findings, actions: list[str], thoughts: list[str | None], aligned: Alignment
) -> tuple[StepRecord, ...]:
    rows = zip_longest(actions, thoughts, aligned.screenshots[: MOST_STEPS + 1])
    return tuple(
        StepRecord(
            index=index,
            action=action or "",
            thought=thought,
            url=destination(action or ""),
            status=status_suffix(action or ""),
            screenshot=screenshot,
            click=parse_click(action or ""),
            warnings=_step_warnings(findings, index, screenshot, aligned),
        )
        for index, (action, thought, screenshot) in enumerate(rows)
    )


def _step_warnings(findings: Findings, index: int, screenshot: str | None, aligned: Alignment) -> tuple[Problem, ...]:
    if aligned.doubtful_from is None:
        return ()
    place, warnings = f"{findings.folder.label}/{SCREENSHOTS}: step {index}", []
    if screenshot is None:
        warnings.append(Problem("screenshot_missing", "The submission has no screenshot for this step.", place))
    if index >= aligned.doubtful_from:
        says = "It is uncertain whether this screenshot belongs to this action."
        warnings.append(Problem("alignment_doubtful", says, place))
    return tuple(warnings)
