"""Requirements of a complete label. No Django."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from annotation.label_fields import ADJUDICATION_FIELDS, LABEL_FIELDS, LabelContent, check_length
from annotation.protocol import NOT_COMPARABLE, PATH_CODES, is_blank
from annotation.records import AttemptContent, Finding, Problem, Verdict

PROCESS_NOT_ASKED = "This submission does not ask for process labels. Remove the marks from the steps."


@dataclass(frozen=True, slots=True)
class Asked:
    """Requirements of a complete decision about one trajectory.

    ``key_points`` are the ids of the task's key points. ``steps`` is the number of steps of the trajectory; with 0, as
    for an answer, no step is required or valid. ``attempt``: version 2 of the protocol, in which annotators do the
    task themselves first. ``criterion``: an adjudication, which names the deciding criterion. ``reason``: a revision,
    which needs a reason. ``process``: marks on steps are valid; none is required, because unmarked steps are right.
    """

    key_points: tuple[int, ...] = ()
    steps: int = 0
    attempt: bool = False
    process: bool = False
    criterion: bool = False
    reason: bool = False


def missing(content: LabelContent, asked: Asked) -> list[Problem]:
    """Return what ``content`` still lacks to be complete, in the order of the form; empty if it is complete.

    Each problem's ``where`` is the name of the form field that fixes it.
    """
    problems = _missing_attempt(content) if asked.attempt else []
    problems += _missing_findings(content, asked.key_points, asked.steps)
    declared = (ADJUDICATION_FIELDS if asked.criterion else LABEL_FIELDS).values()
    of_fields = [
        problem for each in declared if each.applies(content) for problem in each.problems(content, asked.steps)
    ]
    if content.process and not asked.process:
        of_fields.append(Problem("process_not_asked", PROCESS_NOT_ASKED, "process"))
    return problems + sorted(of_fields, key=lambda problem: problem.where == "reasoning")  # last on the form


def _missing_attempt(content: LabelContent) -> list[Problem]:
    attempt, problems = content.attempt or AttemptContent(), []
    could_do_it = content.verdict is not Verdict.NOT_EXECUTABLE and attempt.path != NOT_COMPARABLE
    if is_blank(attempt.notes):
        problems.append(Problem("attempt_notes_missing", "Describe how you did the task.", "attempt_notes"))
    if attempt.steps is None and could_do_it:
        problems.append(Problem("attempt_steps_missing", "Enter how many steps you needed yourself.", "attempt_steps"))
    if attempt.path not in PATH_CODES:
        problems.append(Problem("attempt_path_missing", "Compare the agent's path with yours.", "attempt_path"))
    return problems + list(check_length(attempt.notes, "attempt_notes"))


def _missing_findings(content: LabelContent, key_points: Collection[int], steps: int) -> list[Problem]:
    given = {finding.key_point: finding for finding in content.findings}
    problems = []
    for number, key_point in enumerate(key_points, start=1):
        finding, field = given.get(key_point), f"finding_{key_point}"
        if finding is None and content.verdict is Verdict.NOT_EXECUTABLE:
            continue  # nobody could do the task, so no step can prove anything
        if finding is None or finding.finding is None:
            problems.append(Problem("finding_missing", f"Key point {number}: choose met, unmet or unclear.", field))
        elif finding.finding is not Finding.UNCLEAR and finding.step is None and steps:
            problems.append(
                Problem("finding_step_missing", f"Key point {number}: enter the step that proves it.", field)
            )
        elif finding.step is not None and not 0 <= finding.step < steps:
            problems.append(
                Problem("finding_step_unknown", f"Key point {number}: step {finding.step} does not exist.", field)
            )
    return problems
