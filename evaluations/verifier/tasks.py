"""The benchmark's own task list against the tasks of a bundle: the catalogue in a bundle is the submitter's word."""

from __future__ import annotations

from typing import Any

from evaluations.verifier.canonical import Malformed, parsed
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, failed, noted, passed, told_by_kind
from evaluations.verifier.rules import undated
from evaluations.verifier.wrongs import all_of, counted, named

TASKS_TITLE = "Every task of the given list has a trajectory"
NO_LIST = "Coverage is held against the catalogue that the submitter gives; --tasks compares with the benchmark's own."
TEXT_FIELDS = ("confirmed_task", "text")


def task_list(text: str) -> list[dict[str, Any]]:
    """The tasks of a benchmark's own list (JSON), each with its ``task_id`` as a text; Malformed where it is none."""
    tasks = parsed(text)
    found = [each for each in tasks if isinstance(each, dict)] if isinstance(tasks, list) else []
    ids = [each.get("task_id") for each in found]
    if not ids or len(ids) != len(tasks) or any(type(one) not in (str, int) for one in ids):
        raise Malformed("is no list of objects with a task_id")
    return [each | {"task_id": str(each["task_id"])} for each in found]


def tasks_finding(bundle: Bundle, tasks: list[Any] | None) -> Finding:
    """Whether the bundle has these tasks (values of `task_list`, or ids), with the same texts; a note without them."""
    if tasks is None:
        return noted("tasks", TASKS_TITLE, NO_LIST)
    given = [each if isinstance(each, dict) else {"task_id": each} for each in tasks]
    wanted = {undated(each["task_id"]): each for each in given}
    present: dict[str, list[Document]] = {}
    for line in bundle.trajectories:
        present.setdefault(undated(line["task_id"]), []).append(line)
    missing = [each["task_id"] for base, each in wanted.items() if base not in present]
    return _compared_tasks(bundle, wanted, present, missing)


def _compared_tasks(
    bundle: Bundle, wanted: dict[str, Any], present: dict[str, list[Document]], missing: list[str]
) -> Finding:
    catalogue = {(row["task_id"], row["version"]): row for row in bundle.catalogue}
    other, replaced, doubled = [], [], []
    for base, task in wanted.items():
        if base not in present:
            continue
        same = [line for line in present[base] if line["task_id"] == task["task_id"]]
        replaced += [line["task_id"] for line in present[base] if line not in same]
        doubled += [line["task_id"] for line in present[base][1:]]
        for line in same:
            row = catalogue.get((line["task_id"], line["task_version"]))
            if row is None or _is_another_task(task, row, line):
                other.append(line["task_id"])
    beyond = [line["task_id"] for base in sorted(set(present) - set(wanted)) for line in present[base]]
    if missing or other:
        return _failed_tasks(len(wanted), missing, other)
    says = f"{all_of(len(wanted), 'given task has', 'given tasks have')} a trajectory, with what the list says of them"
    kinds = {
        "replaced by dated tasks": replaced,
        "beside another one of the same task": doubled,
        "of no given task": beyond,
    }
    number = {kind: counted(len(ids), "trajectory is", "trajectories are") for kind, ids in kinds.items()}
    told = [(f"{number[kind]} {kind}", [*map(named, ids)]) for kind, ids in kinds.items() if ids]
    if told:
        return noted("tasks", TASKS_TITLE, told_by_kind(f"{says}.", told), replaced + doubled + beyond)
    return passed("tasks", TASKS_TITLE, f"{says}.")


def _failed_tasks(number: int, missing: list[str], other: list[str]) -> Finding:
    """Missing tasks and those unlike the list; where there are both, each kind has its own lines."""
    says = []
    if missing:
        verb = "has" if len(missing) == 1 else "have"
        says.append(f"{len(missing)} of {counted(number, 'given task')} {verb} no trajectory.")
    if other:
        has = counted(len(other), "task has", "tasks have")
        says.append(f"{has} another text, reference length or level than in the list.")
    sentence = " ".join(says)
    if missing and other:
        kinds = [
            (f"{counted(len(missing), 'task')} without a trajectory", [*map(named, missing)]),
            (f"{counted(len(other), 'task')} unlike the list", [*map(named, other)]),
        ]
        sentence = told_by_kind(sentence, kinds)
    return failed("tasks", TASKS_TITLE, sentence, missing + other)


def _is_another_task(task: dict[str, Any], row: Document, line: Document) -> bool:
    """Only by what the list has: ids alone are a list too."""
    text = next((task[name] for name in TEXT_FIELDS if isinstance(task.get(name), str)), None)
    length, level = task.get("reference_length"), task.get("level")
    return (
        (text is not None and any(" ".join(text.split()) != " ".join(said.split()) for said in _texts_of(row, line)))
        or (type(length) is int and (row["reference_length"], line["reference_length"]) != (length, length))
        or (isinstance(level, str) and level.strip().casefold() != row["level"].casefold())
    )


def _texts_of(row: Document, line: Document) -> tuple[str, str]:
    return row["text"], line["task_text"]
