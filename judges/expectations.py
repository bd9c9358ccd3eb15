"""Versioned network checks and rubrics that maintainers write for tasks; judges compare trajectories with them.

Therefore reviewers of an open submission of the benchmark may not see or change them.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from annotation import workflow
from annotation.formats import scratch
from annotation.formats.archive import MIB, Limits, Package, PackageError, open_package
from annotation.formats.documents import UNSTORABLE, FormatError, decode_text, kind_of, parse_json
from annotation.formats.printable import file_name, printable
from annotation.formats.tasks import nearest
from annotation.formats.yaml_text import LONGEST, did_you_mean, parse_yaml
from annotation.models import Benchmark, Task
from annotation.records import ImportReport, Problem
from annotation.workflow import Conflict, Incomplete
from judges import access
from judges.models import Expectation
from judges.scorers.network_trace import checks, task_files
from judges.scorers.rubric import written

LONGEST_WHY = 500  # characters, as in the database column
LONGEST_KEY_POINT = 200  # characters of a key point in a message
CLOSE_ENOUGH = 0.5  # similarity: a text with one of five words wrong still means the same key point
LARGEST_FILE = 32 * MIB  # bytes that a page or the API reads during a request
PACKAGES = Limits(entries=20_000, total_bytes=256 * MIB, member_bytes=4 * MIB)
ENDINGS = (".yaml", ".yml", ".json")
MOST_TASKS = 20_000
MOST_HINTS = 100  # looking for the nearest task id takes some milliseconds
ENTRY_KEYS = ("task_id", "rubric")
REQUIREMENTS = "rubrics"  # the key of weighted requirements in the list of Odysseys

Kind = Expectation.Kind
_PARSERS: dict[Kind, Callable[[str], Any]] = {Kind.NETWORK_CHECKS: checks.parse, Kind.RUBRIC: written.parse}


# --- Texts and their problems ----------------------------------------------------------------------------------------


def parse_text(kind: str, text: str) -> Any:
    """Return `checks.Checks` or `written.Rubric`; raise FormatError with every problem (``where``: its line)."""
    return _PARSERS[Kind(kind)](text)


def find_problems(kind: str, text: str) -> list[Problem]:
    try:
        parse_text(kind, text)
    except FormatError as refused:
        return sorted(refused.problems, key=find_line)
    return []


def find_line(problem: Problem) -> int:
    """Return the line that a problem names, from 1; 0 if it concerns the whole text."""
    word, _, number = problem.where.partition(" ")
    return int(number) if word == "line" and number.isdecimal() and len(number) < 9 else 0


def strip_line(problem: Problem) -> str:
    """Return the message without the line and the name of the text, for views that already show the line."""
    name, found, says = problem.message.partition(f", line {find_line(problem):,}: ")
    return says if found and " " not in name else problem.message


# --- Key points that texts name --------------------------------------------------------------------------------------


def list_accepted(task: Task) -> list[str]:
    """Return the accepted key points of a task, in the order in which checks and claims count them from 1."""
    points = task.key_points.filter(accepted_at__isnull=False, retired_at__isnull=True)
    return list(points.values_list("text", flat=True))


def find_unknown(kind: str, found: Any, known: Sequence[str]) -> list[str]:
    """Return a message, with the nearest match, for each key point in ``found`` (`parse_text`) that the task lacks."""
    parts = found.claims() if Kind(kind) is Kind.RUBRIC else found.checks
    named = dict.fromkeys(one.key_point for one in parts if one.key_point != "")
    return [message for point in named if (message := _describe_unknown_point(point, known))]


def _describe_unknown_point(point: str | int, known: Sequence[str]) -> str:
    if isinstance(point, int):
        count = f"it has {len(known)}" if known else "it has none"
        return "" if 1 <= point <= len(known) else f"The task has no key point {point}: {count}."
    if point in known:
        return ""
    near = difflib.get_close_matches(point, known, n=1, cutoff=CLOSE_ENOUGH)
    hint = f" Did you mean: {printable(near[0], LONGEST_KEY_POINT)}?" if near else ""
    return f"The task does not have the key point “{printable(point, LONGEST_KEY_POINT)}”.{hint}"


def start_from_key_points(task: Task, kind: str = Kind.RUBRIC) -> str:
    """Return an initial text: one claim, or one check in a comment, for each key point of the task.

    A rubric of a task without key points has one claim.
    """
    points = list_accepted(task)
    if Kind(kind) is Kind.RUBRIC:
        return written.write_from_key_points(task.text, points)
    return checks.write_from_key_points(points)


# --- Versions --------------------------------------------------------------------------------------------------------


def write(
    person: Any, task: Task, kind: str, text: str, why: str = "", *, after: int | None = None, dry_run: bool = False
) -> Expectation:
    """Save ``text`` as the newest version of a task's expectations and return it; an empty text withdraws them.

    An unchanged text creates no new version. ``after`` is the version that the writer edited (0 for none). Raises
    Conflict if there is a newer one, also if two people write at the same moment. Raises Incomplete with every problem
    (``where``: its line), PermissionDenied, Http404. ``person`` is None for the command line. With ``dry_run``, the
    version is built but not saved.
    """
    _require_right(person, task.benchmark)
    kind, text = Kind(kind), _normalize(text)
    problems = _check_reason(why) + (find_problems(kind, text) if text else [])
    if problems:
        raise Incomplete(problems)
    before = find_newest(task, kind)
    if after is not None and after != (before.version if before else 0):
        raise Conflict(_describe_conflict(kind))
    if before is not None and before.text == text:
        return before
    if before is None and not text:
        raise Conflict(f"This task has no {kind.label} to withdraw.")
    made = Expectation(
        task=task,
        kind=kind,
        version=before.version + 1 if before else 1,
        text=text,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        why=why.strip(),
        written_by=person,
    )
    if not dry_run:
        try:
            with transaction.atomic():
                made.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict(_describe_conflict(kind)) from error
    return made


def withdraw(person: Any, task: Task, kind: str, why: str = "", *, after: int | None = None) -> Expectation:
    return write(person, task, kind, "", why, after=after)


def find_newest(task: Task, kind: str) -> Expectation | None:
    """Return the newest version, including a withdrawal; None if nothing was ever written."""
    return select_history(task, kind).first()


def find_current(task: Task, kind: str) -> Expectation | None:
    """Return the version in force; None if there is none or it was withdrawn."""
    found = find_newest(task, kind)
    return found if found is not None and found.text else None


def select_history(task: Task, kind: str) -> QuerySet[Expectation]:
    found = Expectation.objects.filter(task=task, kind=Kind(kind)).select_related("written_by")
    return found.order_by("-version")


def _require_right(person: Any, benchmark: Benchmark) -> None:
    if person is not None:
        access.find_benchmark(person, benchmark.slug)


def _describe_conflict(kind: Kind) -> str:
    return f"Another person has saved a newer version of the {kind.label}. Open it first."


def _normalize(text: str) -> str:
    """Return the text with LF line ends (forms send CRLF, and files may), or "" if it is blank."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines.rstrip() + "\n" if lines.strip() else ""


def _check_reason(why: str) -> list[Problem]:
    if len(why.strip()) > LONGEST_WHY or UNSTORABLE.search(why):
        says = f"Enter a reason of at most {LONGEST_WHY} characters, without control characters."
        return [Problem("why_invalid", says, "why")]
    return []


# --- Files with the expectations of many tasks -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The entry of a file for one task: ``text`` is the expectation, ``where`` is its file or line."""

    task_id: str
    text: str
    where: str


def import_file(
    person: Any, benchmark: Benchmark, kind: str, data: bytes, name: str, *, dry_run: bool = False
) -> ImportReport:
    """Import expectations for the newest version of each task; ``name`` sets the format and appears in messages.

    All or nothing: ``rejected`` has every problem of every task. A text that a task already has is accepted with a
    warning and changes nothing. Rights are those of `write`.
    """
    return _import(person, benchmark, kind, partial(_read_file, kind, data, name), name, dry_run)


def import_path(person: Any, benchmark: Benchmark, kind: str, path: Path, *, dry_run: bool = False) -> ImportReport:
    """Import as `import_file` does, from a folder or zip with one file per task."""
    return _import(person, benchmark, kind, partial(_read_package, path, path.name), path.name, dry_run)


def _import(
    person: Any, benchmark: Benchmark, kind: str, read: Callable[[], list[FileEntry]], name: str, dry_run: bool
) -> ImportReport:
    _require_right(person, benchmark)
    report = ImportReport()
    try:
        entries = read()
    except FormatError as refused:
        report.reject("", *refused.problems)
        return report
    if not entries:
        report.reject("", Problem("file_empty", f"{printable(name)}: has no entries.", printable(name)))
        return report
    with transaction.atomic():
        workflow.lock_benchmark(benchmark.pk)
        tasks = {task.external_id: task for task in benchmark.tasks.select_related("benchmark").order_by("version")}
        for entry in entries:
            _write_entry(person, tasks, kind, entry, report, f"imported from {printable(name, 200)}")
        if report.rejected or dry_run:
            transaction.set_rollback(True)
    if report.rejected:
        report.accepted = []
    return report


def _write_entry(
    person: Any, tasks: dict[str, Task], kind: str, entry: FileEntry, report: ImportReport, why: str
) -> None:
    task = tasks.get(entry.task_id)
    if task is None:
        report.reject(entry.task_id, _describe_unknown_task(entry, tasks, len(report.rejected)))
        return
    if not entry.text.strip():
        says = f"{entry.where}: has nothing for {printable(entry.task_id)}. Withdraw a version on its page."
        report.reject(entry.task_id, Problem("expectation_empty", says, entry.where))
        return
    before = task.expectations.filter(kind=kind).count()
    try:
        made = write(person, task, kind, entry.text, why)
    except Incomplete as refused:
        placed = (Problem(p.code, f"{entry.where}: {p.message}", f"{entry.where}: {p.where}") for p in refused.problems)
        report.reject(entry.task_id, *placed)
        return
    except Conflict as refused:
        report.reject(entry.task_id, Problem("conflict", f"{entry.where}: {refused}", entry.where))
        return
    report.accepted.append(entry.task_id)
    if made.version == before:
        says = f"{printable(entry.task_id)} already has this text; version {made.version} stays."
        report.warn(entry.task_id, Problem("expectation_known", says, entry.where))


def _describe_unknown_task(entry: FileEntry, tasks: dict[str, Task], refused: int) -> Problem:
    near = nearest(entry.task_id, tasks) if refused < MOST_HINTS else None
    hint = f"the nearest known id is {near}" if near else "import the benchmark's tasks first"
    says = f"{entry.where}: {printable(entry.task_id)} is not a task of the benchmark; {hint}."
    return Problem("task_unknown", says, entry.where)


def _read_file(kind: str, data: bytes, name: str) -> list[FileEntry]:
    """Return the entries of one file or zip; raise FormatError with every problem of the file as a whole."""
    if name.lower().endswith(".zip"):
        with scratch.folder("expectations") as folder:
            copy = folder / file_name(name, ".zip")
            copy.write_bytes(data)
            return _read_package(copy, name)
    if Kind(kind) is Kind.NETWORK_CHECKS:
        return [FileEntry(task_id, text, printable(name)) for task_id, text in task_files.read_task_file(data, name)]
    return _refuse_repeated(list(_read_rubrics(data, name)), name)


def _read_package(path: Path, name: str) -> list[FileEntry]:
    """Return one entry for each ``<task_id>.yaml`` (or .yml, .json) at any depth of a folder or zip."""
    with open_package(path, PACKAGES) as package:
        if package.problems:
            raise FormatError(*package.problems[:50])
        names = [each for each in package.names() if each.lower().endswith(ENDINGS)]
        if not names:
            says = f"{printable(name)}: no file is named after a task, such as <task_id>.yaml."
            raise FormatError(Problem("file_empty", says, printable(name)))
        return _refuse_repeated([_read_member(package, each) for each in names], name)


def _read_member(package: Package, name: str) -> FileEntry:
    try:
        text = decode_text(package.read(name, 4 * LONGEST), printable(name))
    except PackageError as refused:
        raise FormatError(refused.problem) from refused
    return FileEntry(PurePosixPath(name).stem, text, printable(name))


def _read_rubrics(data: bytes, name: str) -> Iterator[FileEntry]:
    text = decode_text(data, printable(name))
    if name.lower().endswith(".json") and len(text) > LONGEST:  # more than YAML may have
        entries = parse_json(data, printable(name))
        for number, each in enumerate(entries if isinstance(entries, list) else [entries]):
            yield _build_entry(each, f"{printable(name)}: [{number}]")
        return
    if name.lower().endswith((".jsonl", ".ndjson")):
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield _build_entry(parse_json(line.encode(), f"line {number}"), f"line {number}")
        return
    document = parse_yaml(text, printable(name))
    listed = document.value
    if not isinstance(listed, list):
        says = f"{printable(name)}: must be a list of entries with task_id and rubric, not {kind_of(listed)}."
        raise FormatError(Problem("not_a_list", says, "line 1"))
    for number, each in enumerate(listed):
        yield _build_entry(each, f"line {document.line((number,))}")


def _build_entry(given: Any, where: str) -> FileEntry:
    if isinstance(given, dict) and REQUIREMENTS in given and "rubric" not in given:
        return _build_entry_of_requirements(given, where)
    unknown = [key for key in given if key not in ENTRY_KEYS] if isinstance(given, dict) else []
    if not isinstance(given, dict) or unknown or not isinstance(given.get("task_id"), str):
        hint = did_you_mean(unknown[0], ENTRY_KEYS) if unknown else ""
        found = f"; `{printable(unknown[0], 60)}` is not one of them{hint}" if unknown else ""
        says = f"{where}: an entry must be an object with the keys task_id (text) and rubric, and no others{found}."
        raise FormatError(Problem("entry_invalid", says, where))
    rubric = given.get("rubric")
    if not isinstance(rubric, str | dict | list) or not rubric:
        raise FormatError(Problem("entry_invalid", f"{where}: {given['task_id']} has no rubric.", where))
    return FileEntry(given["task_id"], rubric if isinstance(rubric, str) else task_files.written(rubric), where)


def _build_entry_of_requirements(given: dict[str, Any], where: str) -> FileEntry:
    """Return the entry of a task in the list of Odysseys, which has further keys of the task."""
    task_id, requirements = given.get("task_id"), given[REQUIREMENTS]
    if not isinstance(task_id, str) or not isinstance(requirements, dict) or not requirements:
        says = (
            f"{where}: an entry with {REQUIREMENTS} needs a task_id (text); {REQUIREMENTS} must be an object that maps "
            "names such as R1 to requirements."
        )
        raise FormatError(Problem("entry_invalid", says, where))
    try:
        return FileEntry(task_id, written.write_from_requirements(requirements), where)
    except ValueError as wrong:
        raise FormatError(Problem("entry_invalid", f"{where}: {printable(task_id)}, {wrong}.", where)) from None


def _refuse_repeated(entries: list[FileEntry], name: str) -> list[FileEntry]:
    if len(entries) > MOST_TASKS:
        says = f"{printable(name)}: has {len(entries):,} tasks; the limit is {MOST_TASKS:,}."
        raise FormatError(Problem("too_many_tasks", says, printable(name)))
    seen: dict[str, str] = {}
    problems = []
    for entry in entries:
        if entry.task_id in seen:
            says = f"{entry.where}: the task {printable(entry.task_id)} already occurs in {seen[entry.task_id]}."
            problems.append(Problem("task_twice", says, entry.where))
        seen.setdefault(entry.task_id, entry.where)
    if problems:
        raise FormatError(*problems[:50])
    return entries
