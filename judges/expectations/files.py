"""Files of expectations for many tasks: a folder or zip with one file a task, or one file with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from annotation.formats import scratch
from annotation.formats.archive import MIB, Limits, Package, PackageError, open_package
from annotation.formats.documents import FormatError, decode_text, kind_of, parse_json
from annotation.formats.printable import printable
from annotation.formats.yaml_text import LONGEST, did_you_mean, parse_yaml
from annotation.records import Problem
from judges.expectations.kinds import Kind
from judges.scorers.network_trace import task_files

LARGEST_FILE = 32 * MIB  # bytes that a page or the API reads while somebody waits
PACKAGES = Limits(entries=20_000, total_bytes=256 * MIB, member_bytes=4 * MIB)
ENDINGS = (".yaml", ".yml", ".json")
LONGEST_NAME = 60  # characters of a file name: of four bytes each at most, and a folder takes names of 255
MOST_TASKS = 20_000


@dataclass(frozen=True, slots=True)
class FileEntry:
    """What a file says of one task: ``text`` is the expectation, ``where`` the file or the line that has it."""

    task_id: str
    text: str
    where: str


def read(kind: str, data: bytes, name: str) -> list[FileEntry]:
    """The entries of one file or zip; FormatError names everything that is wrong with it as a whole."""
    if name.lower().endswith(".zip"):
        with scratch.folder("expectations") as folder:
            kept = folder / f"{printable(printable(Path(name).stem), LONGEST_NAME)}.zip"  # messages say it
            kept.write_bytes(data)
            return read_package(kept, name)
    if Kind(kind) is Kind.NETWORK_CHECKS:
        return _read_checks(data, name)
    return _refuse_repeated(list(_read_rubrics(data, name)), name)


def read_package(path: Path, name: str) -> list[FileEntry]:
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


def _read_checks(data: bytes, name: str) -> list[FileEntry]:
    return [FileEntry(task_id, text, printable(name)) for task_id, text in task_files.read_task_file(data, name)]


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
    known = ("task_id", "rubric")
    unknown = [key for key in given if key not in known] if isinstance(given, dict) else []
    if not isinstance(given, dict) or unknown or not isinstance(given.get("task_id"), str):
        found = f"; `{printable(unknown[0], 60)}` is none of them{did_you_mean(unknown[0], known)}" if unknown else ""
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
