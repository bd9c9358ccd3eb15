"""Answers of Mind2Web-2: Markdown files by task, and the pages they cite, in; packages of our own out.

``[<agent>/]<task_id>/answer_<n>.md`` are the answers, ``cache/[<agent>/]<task_id>/index.json`` and the files that it
names the pages. Answer number n of every task goes into package n, so that each becomes an attempt of its own.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from annotation.formats import cached_pages
from annotation.formats.archive import Package, PackageError, open_package
from annotation.formats.documents import FormatError, decode_text
from annotation.formats.entry_names import LONGEST_WHERE, entry_problem
from annotation.formats.printable import listing, printable
from annotation.formats.tasks import LONGEST_TEXT, task_id_problem
from annotation.formats.trajectory_folder import RESULT
from annotation.formats.webverdict import SCHEMA_VERSION
from annotation.records import ImportReport, Problem, SourceFormat

ANSWER = re.compile(r"(?:(?P<above>.+)/)?(?P<task>[^/]+)/answer_(?P<number>[^/]*)\.md")
NUMBER = re.compile(r"0*[1-9][0-9]{0,2}")
CACHE = "cache"
ANSWER_LIMIT = 4 * LONGEST_TEXT  # bytes; as many as that many characters can take
PACKAGE = ""  # the task id under which a report lists what concerns the package as a whole

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Answered:
    """A task with its answers: number -> file, and the folder of its cached pages ("" when there is none).

    ``index`` and ``page_files`` are the pages that are there: addresses with their kind, names without folder.
    """

    task_id: str
    folder: str
    files: dict[int, str] = field(default_factory=dict)
    pages: str = ""
    problems: list[Problem] = field(default_factory=list)
    index: dict[str, str] = field(default_factory=dict)
    page_files: set[str] = field(default_factory=set)
    texts: dict[int, str] = field(default_factory=dict)


def are_answers(path: Path) -> bool:
    """Whether the folder or zip holds answers and no trajectories. False for everything that cannot be opened."""
    with open_package(path) as package:
        names = package.names()
    return any(ANSWER.fullmatch(name) for name in names) and not any(
        name.rpartition("/")[2] == RESULT for name in names
    )


def convert(path: Path, folder: Path, report: ImportReport, progress: Progress, agent: str = "") -> list[Path]:
    """Write a package into ``folder`` for every answer number; what is wrong goes into ``report``.

    Where there are several agents the one whose folder is called ``agent`` is taken; else all of it is refused.
    Raises OSError when the disk is full.
    """
    with open_package(path) as package:
        above = _chosen(package, report, agent)
        if above is None:
            return []
        tasks = _find(package, above)
        _warn_of_the_rest(package, above, tasks, report)
        _share_out(package.problems, tasks, report)
        for done, task in enumerate(tasks):
            progress(done, len(tasks))
            _check(package, task, report)
            if task.problems:
                report.reject(task.task_id, *dict.fromkeys(task.problems))
        good = [task for task in tasks if not task.problems]
        _warn_of_holes(good, report)
        return _write(package, good, folder, progress)


def _chosen(package: Package, report: ImportReport, agent: str) -> str | None:
    """The folder above the tasks: that of the one agent, or of the one that is asked for."""
    found = (ANSWER.fullmatch(name) for name in package.names())
    agents = sorted({match["above"] or "" for match in found if match})
    if len(agents) == 1:
        return agents[0]
    asked = [above for above in agents if agent and above.rpartition("/")[2] == agent]
    if len(asked) == 1:
        return asked[0]
    says = (
        f"There are answers of several agents: {listing([above or 'one without a folder' for above in agents])}. "
        "Import one at a time: give the agent the name of its folder, and that one is taken."
    )
    report.reject(PACKAGE, Problem("several_agents", says, "agent"))
    return None


def _find(package: Package, above: str) -> list[Answered]:
    names = package.names()
    tasks: dict[str, Answered] = {}
    for name in names:
        match = ANSWER.fullmatch(name)
        if match is None or (match["above"] or "") != above:
            continue
        task = tasks.setdefault(match["task"], Answered(match["task"], name.rpartition("/")[0]))
        _take(task, name, match["number"])
    indexes = {name for name in names if name.endswith("/index.json")}
    for task in tasks.values():
        task.pages = _pages_of(task, above, indexes)
        says = task_id_problem(task.task_id)
        if says:
            task.problems.append(entry_problem("task_id_invalid", task.folder, f"is no task: {says}"))
    return sorted(tasks.values(), key=lambda task: task.task_id)


def _take(task: Answered, name: str, number: str) -> None:
    if not NUMBER.fullmatch(number):
        says = "has no number from 1 to 999 in its name: answer_1.md, answer_2.md and so on"
        task.problems.append(entry_problem("answer_number", name, says))
    elif int(number) in task.files:
        says = f"has the same number as {printable(task.files[int(number)])}"
        task.problems.append(entry_problem("answer_twice", name, says))
    else:
        task.files[int(number)] = name


def _pages_of(task: Answered, above: str, indexes: Iterable[str]) -> str:
    """The folder of the task's pages: that of the agent, or the one that agents share; the longer path first."""
    agent = above.rpartition("/")[2]
    ends = (f"{CACHE}/{agent}/{task.task_id}/index.json", f"{CACHE}/{task.task_id}/index.json")
    for end in ends:
        for name in sorted(indexes):
            if name == end or name.endswith(f"/{end}"):
                return name.rpartition("/")[0]
    return ""


def _warn_of_the_rest(package: Package, above: str, tasks: list[Answered], report: ImportReport) -> None:
    """Other agents' answers are left out knowingly; anything else that is not read is named."""
    homes = {task.folder for task in tasks} | {task.pages for task in tasks if task.pages}
    read = {name for task in tasks for name in task.files.values()}
    rest = [
        name
        for name in package.names()
        if name not in read
        and name.rpartition("/")[0] not in {task.pages for task in tasks if task.pages}
        and (name.rpartition("/")[0] in homes or not ANSWER.fullmatch(name))
        and not ANSWER.fullmatch(name)
    ]
    if rest:
        says = f"These files belong to no answer and were left out: {listing(rest)}."
        report.warn(PACKAGE, Problem("leftover_file", says, printable(rest[0], LONGEST_WHERE)))
    other = {match["above"] for name in package.names() if (match := ANSWER.fullmatch(name))} - {above or None}
    if other:
        says = f"Answers of other agents were left out: {listing(sorted(one or '' for one in other))}."
        report.warn(PACKAGE, Problem("other_agents", says))


def _share_out(problems: list[Problem], tasks: list[Answered], report: ImportReport) -> None:
    """The problems of the package's entries, to the task whose folder they lie in."""
    for problem in problems:
        inside = ".." not in problem.where.split("/")
        home = next((task for task in tasks if inside and _lies_in(problem.where, task)), None)
        if home is None:
            report.reject(PACKAGE, problem)
        else:
            home.problems.append(problem)


def _lies_in(where: str, task: Answered) -> bool:
    folders = [printable(one, LONGEST_WHERE) for one in (task.folder, task.pages) if one]
    return any(where == one or where.startswith(f"{one}/") for one in folders)


# --- one task: what it says, and its pages -----------------------------------------------------------------------


def _check(package: Package, task: Answered, report: ImportReport) -> None:
    for number, name in task.files.items():
        try:
            text = decode_text(package.read(name, ANSWER_LIMIT), printable(name, LONGEST_WHERE))
        except PackageError as error:
            task.problems.append(error.problem)
            continue
        except FormatError as error:
            task.problems += error.problems
            continue
        if not text.strip():
            task.problems.append(entry_problem("answer_empty", name, "is empty"))
        elif len(text) > LONGEST_TEXT:
            says = f"has {len(text):,} characters; the limit is {LONGEST_TEXT:,}"
            task.problems.append(entry_problem("text_too_long", name, says))
        else:
            task.texts[number] = text
    _check_pages(package, task, report)


def _check_pages(package: Package, task: Answered, report: ImportReport) -> None:
    if not task.pages:
        says = f"There is no {CACHE}/{task.task_id}/index.json: nobody will see the cited pages."
        report.warn(task.task_id, Problem("pages_missing", says, task.task_id))
        return
    name = f"{task.pages}/index.json"
    try:
        data = package.read(name, cached_pages.LIMITS[".json"])
        index = cached_pages.read_index(data, printable(name, LONGEST_WHERE))
    except PackageError as error:
        task.problems.append(error.problem)
        return
    except FormatError as error:
        task.problems += error.problems
        return
    above = f"{task.pages}/"
    there = {one.removeprefix(above) for one in package.names() if one.startswith(above)}
    for address, kind in index.items():
        files = cached_pages.files_of(address, kind, there)
        lost = [one for one in files if one not in there]
        if lost:
            says = f"{printable(address, 200)} was left out: {listing(lost)} is not there."
            report.warn(task.task_id, Problem("page_missing", says, printable(name, LONGEST_WHERE)))
        else:
            task.index[address] = kind
            task.page_files.update(files)


def _warn_of_holes(tasks: list[Answered], report: ImportReport) -> None:
    """Tasks that lack one of the numbers: their attempt has fewer trajectories than the others."""
    numbers = sorted({number for task in tasks for number in task.texts})
    for task in tasks:
        lacking = [str(number) for number in numbers if number not in task.texts]
        if lacking:
            says = f"{task.task_id} has no answer {listing(lacking)}, which other tasks have."
            report.warn(task.task_id, Problem("answers_uneven", says, printable(task.folder, LONGEST_WHERE)))


# --- packages of our own -----------------------------------------------------------------------------------------


def _write(package: Package, tasks: list[Answered], folder: Path, progress: Progress) -> list[Path]:
    attempts: dict[int, list[Answered]] = defaultdict(list)
    for task in tasks:
        for number in task.texts:
            attempts[number].append(task)
    kept: dict[str, Path] = {}
    made = []
    for number, answered in sorted(attempts.items()):
        target = folder / f"answer_{number}"
        for done, task in enumerate(answered):
            progress(done, len(answered))
            _write_trajectory(package, task, number, target / task.task_id, kept)
        made.append(target)
    return made


def _write_trajectory(package: Package, task: Answered, number: int, target: Path, kept: dict[str, Path]) -> None:
    target.mkdir(parents=True)
    document: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "source_format": SourceFormat.MIND2WEB_2,
        "task_id": task.task_id,
        "task": None,  # the answers do not say it; the benchmark does
        "final_answer": task.texts[number],
        "reference_length": None,
        "steps": [],
    }
    (target / RESULT).write_text(json.dumps(document), encoding="utf-8")
    if not task.index:
        return
    (target / cached_pages.FOLDER).mkdir()
    (target / cached_pages.INDEX).write_text(json.dumps(task.index), encoding="utf-8")
    for name in sorted(task.page_files):
        _put(package, f"{task.pages}/{name}", target / cached_pages.FOLDER / name, kept)


def _put(package: Package, name: str, target: Path, kept: dict[str, Path]) -> None:
    """One file of the cache; the answers of a task share it, so that it takes its room once."""
    if name in kept:
        os.link(kept[name], target)
        return
    target.write_bytes(package.read(name, cached_pages.LIMITS[target.suffix]))
    kept[name] = target
