"""Check the tasks: the claims `coverage` and `imported`, and the benchmark's own task list."""

from __future__ import annotations

from typing import Any

from evaluations.verifier.canonical import Malformed, parse_json, try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import (
    Finding,
    Violations,
    all_of,
    conclude,
    failed,
    format_kinds,
    noted,
    passed,
    plural,
)
from evaluations.verifier.replay import History
from evaluations.verifier.rules import strip_date
from evaluations.verifier.values import get_text, seconds_between, show

NO_LIST = "Tasks are compared with the submitter's catalogue; use --tasks to compare with the benchmark's own list."
TEXT_FIELDS = ("confirmed_task", "text")
CATALOGUE, SUBMISSION, REPORT = "catalogue.jsonl", "submission.json", "import-report.json"


def coverage_claim(bundle: Bundle, history: History) -> Finding:
    """Check that every task (by its id without a date) has a trajectory, and that the catalogue is the frozen one."""
    present = {strip_date(line["task_id"]) for line in bundle.trajectories}
    wanted = {strip_date(task["task_id"]): task["task_id"] for task in bundle.catalogue}
    lost = [task_id for base, task_id in wanted.items() if base not in present]
    violations = [(f"{show(task_id)} has no trajectory.", task_id) for task_id in lost]
    versions = {(task["task_id"], task["version"]) for task in bundle.catalogue}
    if len(versions) != len(bundle.catalogue):
        violations.append(("The catalogue has a version of a task twice.", CATALOGUE))
    for line in bundle.trajectories:
        if (line["task_id"], line["task_version"]) not in versions:
            says = f"{show(line['task_id'])} was judged by a version that does not exist."
            violations.append((says, line["task_id"]))
    if not bundle.catalogue:
        violations.append(("The catalogue has no tasks.", CATALOGUE))
    if history.catalogue_is_fixed:
        freeze = history.of("frozen")[-1]
        tasks = sorted(bundle.catalogue, key=lambda task: (task["task_id"], task["version"]))
        if get_text(freeze.payload, "catalogue") != try_digest(tasks):
            says = "The catalogue is not the one of the freeze."
            violations.append((says, freeze.event_place))
    of_all = plural(len(wanted), "task has", "tasks have")
    trajectories = plural(len(bundle.trajectories), "trajectory", "trajectories")
    good = f"{len(wanted) - len(lost)} of {of_all} a trajectory: {trajectories} for {plural(len(present), 'task')}."
    return conclude("coverage", good, violations, f"{len(lost)} of {of_all} no trajectory." if lost else "")


def imported_claim(bundle: Bundle, history: History) -> Finding:
    """Check that the first event records the digest of every trajectory in the bundle, and the import report."""
    moment = history.moments[0] if history.moments else None
    if moment is None or moment.kind != "imported":
        return conclude("imported", "", [("The first event is not the import.", "#0")])
    payload, submission = moment.payload, bundle.submission
    imported = payload.get("trajectories")
    violations = [*_check_trajectories(bundle, imported if isinstance(imported, dict) else {})]
    violations += [
        (f"submission.json has another {name} than the import.", SUBMISSION)
        for name in ("agent", "benchmark", "attempt")
        if payload.get(name) != submission[name]
    ]
    if submission["digest"] != try_digest(sorted([line["task_id"], line["digest"]] for line in bundle.trajectories)):
        violations.append(("The digest of the submission is not that of its trajectories.", SUBMISSION))
    violations += _check_report(bundle, history)
    if (seconds_between(submission["created_at"], moment.event["at"]) or 0) < 0:
        violations.append(("The submission was created after its import.", SUBMISSION))
    good = f"{plural(len(bundle.trajectories), 'trajectory', 'trajectories')} as imported."
    if bundle.import_report is None:
        good += " The import report itself is missing; only its digest is included."
    return conclude("imported", good, violations)


def _check_report(bundle: Bundle, history: History) -> Violations:
    """Check that the report is the one that the import recorded, and that it accepted these trajectories."""
    report, recorded = bundle.import_report, get_text(history.moments[0].payload, "report")
    if recorded is None:
        yield "The import does not have the digest of its report.", history.moments[0].event_place
    elif report is None and history.report_is_kept:
        yield "The import report is missing, though the import states that it was stored.", REPORT
    elif report is not None and try_digest(report) != recorded:
        yield "The import report is not the one of the import.", REPORT
    if report is None:
        return
    here, accepted = {line["task_id"] for line in bundle.trajectories}, set(report["accepted"])
    for task_id in sorted(here - accepted):
        yield f"The import report did not accept {show(task_id)}.", task_id
    # One import can create several submissions; a trajectory that one lacks may be in another.
    if any(warning["code"] == "several_submissions" for warning in report["warnings"]):
        return
    for task_id in sorted(accepted - here):
        yield f"The import report accepted {show(task_id)}, which is missing.", REPORT
    for task_id in sorted(here.intersection(each["task_id"] for each in report["rejected"])):
        yield f"The import report rejected {show(task_id)}, which is included.", task_id


def _check_trajectories(bundle: Bundle, imported: dict[str, object]) -> Violations:
    seen: set[str] = set()
    positions = [line["position"] for line in bundle.trajectories]
    if positions != sorted(set(positions)):
        yield "The trajectories are not in the order of the submission.", "trajectories.jsonl"
    for line in bundle.trajectories:
        task_id = line["task_id"]
        if task_id in seen:
            yield f"{show(task_id)} occurs twice.", task_id
        seen.add(task_id)
        if line["computed"] != line["digest"]:
            yield f"{show(task_id)} does not match its digest.", task_id
        if task_id not in imported:
            yield f"{show(task_id)} was not imported.", task_id
        elif imported[task_id] != line["digest"]:
            yield f"{show(task_id)} differs from its import.", task_id
    for task_id in (task_id for task_id in imported if task_id not in seen):
        yield f"{show(task_id)} was imported and is missing.", task_id


def parse_tasks(text: str) -> list[dict[str, Any]]:
    """Parse a benchmark's own task list (JSON); each ``task_id`` becomes a string. Raise Malformed if it is not one."""
    tasks = parse_json(text)
    objects = [each for each in tasks if isinstance(each, dict)] if isinstance(tasks, list) else []
    ids = [each.get("task_id") for each in objects]
    if not ids or len(ids) != len(tasks) or any(type(one) not in (str, int) for one in ids):
        raise Malformed("is not a list of objects with a task_id")
    return [each | {"task_id": str(each["task_id"])} for each in objects]


def tasks_finding(bundle: Bundle, tasks: list[Any] | None) -> Finding:
    """Compare the bundle with ``tasks`` (from `parse_tasks`, or ids) and their texts; return a note if they are None.

    The catalogue in a bundle is only the submitter's statement.
    """
    if tasks is None:
        return noted("tasks", NO_LIST)
    given = [each if isinstance(each, dict) else {"task_id": each} for each in tasks]
    wanted = {strip_date(each["task_id"]): each for each in given}
    present: dict[str, list[Document]] = {}
    for line in bundle.trajectories:
        present.setdefault(strip_date(line["task_id"]), []).append(line)
    catalogue = {(row["task_id"], row["version"]): row for row in bundle.catalogue}
    other, replaced, doubled = [], [], []
    for base, task in wanted.items():
        lines = present.get(base, [])
        doubled += [line["task_id"] for line in lines[1:]]
        for line in lines:
            row = catalogue.get((line["task_id"], line["task_version"]))
            if line["task_id"] != task["task_id"]:
                replaced.append(line["task_id"])
            elif row is None or _is_another_task(task, row, line):
                other.append(line["task_id"])
    missing = [task["task_id"] for base, task in wanted.items() if base not in present]
    if missing or other:
        return _fail_tasks(len(wanted), missing, other)
    beyond = [line["task_id"] for base in sorted(set(present) - set(wanted)) for line in present[base]]
    says = f"{all_of(len(wanted), 'given task has', 'given tasks have')} a trajectory that matches the list."
    kinds = [
        (f"{plural(len(ids), 'trajectory is', 'trajectories are')} {kind}", [*map(show, ids)])
        for kind, ids in (
            ("replaced by dated tasks", replaced),
            ("beside another one of the same task", doubled),
            ("of no given task", beyond),
        )
        if ids
    ]
    if kinds:
        return noted("tasks", format_kinds(says, kinds), replaced + doubled + beyond)
    return passed("tasks", says)


def _fail_tasks(number: int, missing: list[str], other: list[str]) -> Finding:
    have = "has" if len(missing) == 1 else "have"
    lacking = f"{len(missing)} of {plural(number, 'given task')} {have} no trajectory."
    unlike = f"{plural(len(other), 'task has', 'tasks have')} another text, reference length or level than the list."
    if not (missing and other):
        return failed("tasks", lacking if missing else unlike, missing + other)
    kinds = [
        (f"{plural(len(missing), 'task')} without a trajectory", [*map(show, missing)]),
        (f"{plural(len(other), 'task')} different from the list", [*map(show, other)]),
    ]
    return failed("tasks", format_kinds(f"{lacking} {unlike}", kinds), missing + other)


def _is_another_task(task: dict[str, Any], row: Document, line: Document) -> bool:
    """Return whether text, reference length or level differ; the list may lack any of them."""
    text = next((task[name] for name in TEXT_FIELDS if isinstance(task.get(name), str)), None)
    length, level = task.get("reference_length"), task.get("level")
    return (
        (text is not None and any(text.split() != stated.split() for stated in (row["text"], line["task_text"])))
        or (type(length) is int and (row["reference_length"], line["reference_length"]) != (length, length))
        or (isinstance(level, str) and level.strip().casefold() != row["level"].casefold())
    )
