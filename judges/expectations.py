"""Network checks and rubrics that maintainers write for tasks, in versions: judges compare trajectories with them.

Judges go by them, so nobody who reviews an open submission of the benchmark may see or change them.
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

LONGEST_WHY = 500  # characters, as the column has it
LONGEST_KEY_POINT = 200  # characters of a key point in a message
CLOSE_ENOUGH = 0.5  # whoever misses one word of five still means the same key point
LARGEST_FILE = 32 * MIB  # bytes that a page or the API reads while somebody waits
PACKAGES = Limits(entries=20_000, total_bytes=256 * MIB, member_bytes=4 * MIB)
ENDINGS = (".yaml", ".yml", ".json")
MOST_TASKS = 20_000
MOST_HINTS = 100  # looking for the nearest task id takes some milliseconds
ENTRY_KEYS = ("task_id", "rubric")

Kind = Expectation.Kind
_PARSERS: dict[Kind, Callable[[str], Any]] = {Kind.NETWORK_CHECKS: checks.parse, Kind.RUBRIC: written.parse}


# --- Texts and their problems ----------------------------------------------------------------------------------------


def parse_text(kind: str, text: str) -> Any:
    """`network_trace.checks.Checks` or `rubric.written.Rubric`; FormatError with every problem, ``where`` its line."""
    return _PARSERS[Kind(kind)](text)


def find_problems(kind: str, text: str) -> list[Problem]:
    try:
        parse_text(kind, text)
    except FormatError as refused:
        return sorted(refused.problems, key=find_line)
    return []


def find_line(problem: Problem) -> int:
    """The line that a problem names, from 1; 0 for what concerns the whole."""
    word, _, number = problem.where.partition(" ")
    return int(number) if word == "line" and number.isdecimal() and len(number) < 9 else 0


def strip_line(problem: Problem) -> str:
    """The message for a place that says the line already: without it, and without the name of the text."""
    name, found, says = problem.message.partition(f", line {find_line(problem):,}: ")
    return says if found and " " not in name else problem.message


# --- Key points that texts name --------------------------------------------------------------------------------------


def list_accepted(task: Task) -> list[str]:
    """The key points of a task, in the order in which checks and claims count them from 1."""
    points = task.key_points.filter(accepted_at__isnull=False, retired_at__isnull=True)
    return list(points.values_list("text", flat=True))


def find_unknown(kind: str, found: Any, known: Sequence[str]) -> list[str]:
    """A message for each key point that ``found`` (of `parse_text`) names and the task lacks, with the nearest."""
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
    return f"The task has no key point “{printable(point, LONGEST_KEY_POINT)}”.{hint}"


def start_from_key_points(task: Task, kind: str = Kind.RUBRIC) -> str:
    """A first text: one claim, or one check that is still a comment, for each key point of the task.

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
    """Make ``text`` the newest version of what is expected of a task; an empty text withdraws what there was.

    The text that is there already makes no new version. ``after`` is the version that the writer started from (0 for
    none): Conflict when there is a newer one by now, as when two people write at the same moment. Raises Incomplete
    with every problem (``where``: its line), PermissionDenied, Http404. ``person`` None is the command line. With
    ``dry_run`` the version is made as it would be, and not saved.
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
        raise Conflict(f"There is no {kind.label} of this task to withdraw.")
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
    """The newest version, one that withdraws included; None where nothing was ever written."""
    return select_history(task, kind).first()


def find_current(task: Task, kind: str) -> Expectation | None:
    """The version that holds; None where there is none, or it was withdrawn."""
    found = find_newest(task, kind)
    return found if found is not None and found.text else None


def select_history(task: Task, kind: str) -> QuerySet[Expectation]:
    found = Expectation.objects.filter(task=task, kind=Kind(kind)).select_related("written_by")
    return found.order_by("-version")


def _require_right(person: Any, benchmark: Benchmark) -> None:
    if person is not None:
        access.find_benchmark(person, benchmark.slug)


def _describe_conflict(kind: Kind) -> str:
    return f"Somebody else has saved a newer version of the {kind.label}. Open it first."


def _normalize(text: str) -> str:
    """Line ends as they are stored, and blanks alone as nothing: a form sends CRLF, a file may."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines.rstrip() + "\n" if lines.strip() else ""


def _check_reason(why: str) -> list[Problem]:
    if len(why.strip()) > LONGEST_WHY or UNSTORABLE.search(why):
        says = f"Give a reason of at most {LONGEST_WHY} characters that can be stored."
        return [Problem("why_invalid", says, "why")]
    return []


# --- Files with the expectations of many tasks -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The entry of a file for one task: ``text`` is the expectation, ``where`` the file or the line that has it."""

    task_id: str
    text: str
    where: str


def import_file(
    person: Any, benchmark: Benchmark, kind: str, data: bytes, name: str, *, dry_run: bool = False
) -> ImportReport:
    """Load what ``data`` says of the newest version of each task; ``name`` tells the format and is named in messages.

    Everything or nothing: ``rejected`` has every problem of every task. A text that a task has already is accepted and
    changes nothing, which a warning says. Rights are those of `write`.
    """
    return _import(person, benchmark, kind, partial(_read_file, kind, data, name), name, dry_run)


def import_path(person: Any, benchmark: Benchmark, kind: str, path: Path, *, dry_run: bool = False) -> ImportReport:
    """As `import_file`, from a folder or zip with one file a task."""
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
        Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
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
        says = f"{printable(entry.task_id)} has this text already; version {made.version} stays."
        report.warn(entry.task_id, Problem("expectation_known", says, entry.where))


def _describe_unknown_task(entry: FileEntry, tasks: dict[str, Task], refused: int) -> Problem:
    near = nearest(entry.task_id, tasks) if refused < MOST_HINTS else None
    hint = f"the nearest known id is {near}" if near else "import the benchmark's tasks first"
    says = f"{entry.where}: {printable(entry.task_id)} is not a task of the benchmark; {hint}."
    return Problem("task_unknown", says, entry.where)


def _read_file(kind: str, data: bytes, name: str) -> list[FileEntry]:
    """The entries of one file or zip; FormatError names everything that is wrong with it as a whole."""
    if name.lower().endswith(".zip"):
        with scratch.folder("expectations") as folder:
            copy = folder / file_name(name, ".zip")
            copy.write_bytes(data)
            return _read_package(copy, name)
    if Kind(kind) is Kind.NETWORK_CHECKS:
        return [FileEntry(task_id, text, printable(name)) for task_id, text in task_files.read_task_file(data, name)]
    return _refuse_repeated(list(_read_rubrics(data, name)), name)


def _read_package(path: Path, name: str) -> list[FileEntry]:
    """One entry for each ``<task_id>.yaml`` (or .yml, .json) of a folder or zip, wherever in it it lies."""
    with open_package(path, PACKAGES) as package:
        if package.problems:
            raise FormatError(*package.problems[:50])
        names = [each for each in package.names() if each.lower().endswith(ENDINGS)]
        if not names:
            says = f"{printable(name)}: has no file that is named after a task, such as <task_id>.yaml."
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
    unknown = [key for key in given if key not in ENTRY_KEYS] if isinstance(given, dict) else []
    if not isinstance(given, dict) or unknown or not isinstance(given.get("task_id"), str):
        hint = did_you_mean(unknown[0], ENTRY_KEYS) if unknown else ""
        found = f"; `{printable(unknown[0], 60)}` is none of them{hint}" if unknown else ""
        says = f"{where}: an entry is an object with the keys task_id (a text) and rubric, and no others{found}."
        raise FormatError(Problem("entry_invalid", says, where))
    rubric = given.get("rubric")
    if not isinstance(rubric, str | dict | list) or not rubric:
        raise FormatError(Problem("entry_invalid", f"{where}: there is no rubric for {given['task_id']}.", where))
    return FileEntry(given["task_id"], rubric if isinstance(rubric, str) else task_files.written(rubric), where)


def _refuse_repeated(entries: list[FileEntry], name: str) -> list[FileEntry]:
    if len(entries) > MOST_TASKS:
        says = f"{printable(name)}: has {len(entries):,} tasks; at most {MOST_TASKS:,} are taken."
        raise FormatError(Problem("too_many_tasks", says, printable(name)))
    seen: dict[str, str] = {}
    problems = []
    for entry in entries:
        if entry.task_id in seen:
            says = f"{entry.where}: the task {printable(entry.task_id)} is in {seen[entry.task_id]} already."
            problems.append(Problem("task_twice", says, entry.where))
        seen.setdefault(entry.task_id, entry.where)
    if problems:
        raise FormatError(*problems[:50])
    return entries
