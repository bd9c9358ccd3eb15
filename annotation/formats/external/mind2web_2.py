"""Convert answers of Mind2Web-2: Markdown files by task, and the pages they cite.

``[<agent>/]<task_id>/answer_<n>.md`` are the answers. ``cache/[<agent>/]<task_id>/index.json`` and the files that it
names are the pages. Answer number n of every task goes into package n, so each number becomes an attempt.

An index is ``{"https://shop.example/laptops": "web", "https://shop.example/sheet.pdf": "pdf"}``. Files are named by
the MD5 of the address without fragment, percent-decoded, without the last slash: ``<md5>.txt`` and ``.jpg`` (text and
image of a page) or ``<md5>.pdf``. A page without its file is left out with a warning. A task is rejected if an answer
is empty, has more than a million characters or is not UTF-8, or if the index is broken.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from annotation.formats import cached_pages
from annotation.formats.archive import LONGEST_WHERE, Package, entry_problem
from annotation.formats.documents import FormatError, decode_text
from annotation.formats.printable import listing, printable
from annotation.formats.registry import Format, Progress
from annotation.formats.tasks import LONGEST_TEXT, task_id_problem
from annotation.formats.trajectory_folder import RESULT
from annotation.formats.webverdict import write_result
from annotation.records import PACKAGE, ImportReport, Problem

ANSWER = re.compile(r"(?:(?P<above>.+)/)?(?P<task>[^/]+)/answer_(?P<number>[^/]*)\.md")
NUMBER = re.compile(r"0*[1-9][0-9]{0,2}")
CACHE = "cache"
ANSWER_LIMIT = 4 * LONGEST_TEXT  # bytes; UTF-8 has at most four for a character


@dataclass(slots=True)
class AnsweredTask:
    """A task with the files and texts of its answers by number; ``pages`` is the folder of its cached pages, or "".

    ``index`` (address to kind) and ``page_files`` (names without folder) have only pages whose files exist.
    """

    task_id: str
    folder: str
    files: dict[int, str] = field(default_factory=dict)
    pages: str = ""
    problems: list[Problem] = field(default_factory=list)
    index: dict[str, str] = field(default_factory=dict)
    page_files: set[str] = field(default_factory=set)
    texts: dict[int, str] = field(default_factory=dict)


def has_answers(package: Package) -> bool:
    """Return whether the package has answers and no trajectories."""
    names = package.names()
    return any(map(ANSWER.fullmatch, names)) and not any(name.rpartition("/")[2] == RESULT for name in names)


def convert(package: Package, folder: Path, report: ImportReport, progress: Progress, agent: str = "") -> list[Path]:
    """Write a package for each answer number; see `Format` for the arguments.

    If there are several agents, only the folder called ``agent`` is converted; without it, all are rejected.
    """
    above = _choose_agent(package, report, agent)
    if above is None:
        return []
    tasks = _find_tasks(package, above)
    _warn_of_unread_files(package, above, tasks, report)
    _assign_problems(package.problems, tasks, report)
    for done, task in enumerate(tasks):
        progress(done, len(tasks))
        _read_answers(package, task, report)
        if task.problems:
            report.reject(task.task_id, *dict.fromkeys(task.problems))
    valid = [task for task in tasks if not task.problems]
    _warn_of_missing_answers(valid, report)
    return _write_packages(package, valid, folder, progress)


FORMAT = Format(
    name="mind2web-2",
    title="answers for Mind2Web-2",
    files="zipped folders TASK_ID with answer_1.md, and pages in cache/",
    recognise=has_answers,
    convert=convert,
    is_answer=True,
)


def _choose_agent(package: Package, report: ImportReport, agent: str) -> str | None:
    """Return the folder above the tasks of the only agent, or of ``agent``; None, with a problem, if it is unclear."""
    found = (ANSWER.fullmatch(name) for name in package.names())
    agents = sorted({match["above"] or "" for match in found if match})
    if len(agents) == 1:
        return agents[0]
    asked = [above for above in agents if agent and above.rpartition("/")[2] == agent]
    if len(asked) == 1:
        return asked[0]
    says = (
        f"The package has answers of several agents: {listing([above or 'one without a folder' for above in agents])}. "
        "Import one agent at a time: enter the name of its folder as the agent's name."
    )
    report.reject(PACKAGE, Problem("several_agents", says, "agent"))
    return None


def _find_tasks(package: Package, above: str) -> list[AnsweredTask]:
    tasks: dict[str, AnsweredTask] = {}
    for name in package.names():
        match = ANSWER.fullmatch(name)
        if match is None or (match["above"] or "") != above:
            continue
        task = tasks.setdefault(match["task"], AnsweredTask(match["task"], name.rpartition("/")[0]))
        _add_answer(task, name, match["number"])
    indexes = {name for name in package.names() if name.endswith("/index.json")}
    for task in tasks.values():
        task.pages = _find_pages(task, above, indexes)
        says = task_id_problem(task.task_id)
        if says:
            task.problems.append(entry_problem("task_id_invalid", task.folder, f"is not a valid task: {says}"))
    return sorted(tasks.values(), key=lambda task: task.task_id)


def _add_answer(task: AnsweredTask, name: str, number: str) -> None:
    if not NUMBER.fullmatch(number):
        says = "needs a number from 1 to 999 in its name: answer_1.md, answer_2.md and so on"
        task.problems.append(entry_problem("answer_number", name, says))
    elif int(number) in task.files:
        says = f"has the same number as {printable(task.files[int(number)])}"
        task.problems.append(entry_problem("answer_twice", name, says))
    else:
        task.files[int(number)] = name


def _find_pages(task: AnsweredTask, above: str, indexes: Iterable[str]) -> str:
    """Return the folder of the task's pages, of the agent or else of all agents; "" if there is no such folder."""
    agent = above.rpartition("/")[2]
    ends = (f"/{CACHE}/{agent}/{task.task_id}/index.json", f"/{CACHE}/{task.task_id}/index.json")
    found = (name for end in ends for name in sorted(indexes) if f"/{name}".endswith(end))
    return next(found, "").rpartition("/")[0]


def _warn_of_unread_files(package: Package, above: str, tasks: list[AnsweredTask], report: ImportReport) -> None:
    pages = {task.pages for task in tasks if task.pages}
    names = package.names()
    rest = [name for name in names if not ANSWER.fullmatch(name) and name.rpartition("/")[0] not in pages]
    if rest:
        says = f"These files belong to no answer and were ignored: {listing(rest)}."
        report.warn(PACKAGE, Problem("leftover_file", says, printable(rest[0], LONGEST_WHERE)))
    other = {match["above"] for name in names if (match := ANSWER.fullmatch(name))} - {above or None}
    if other:
        says = f"Answers of other agents were ignored: {listing(sorted(one or '' for one in other))}."
        report.warn(PACKAGE, Problem("other_agents", says))


def _assign_problems(problems: list[Problem], tasks: list[AnsweredTask], report: ImportReport) -> None:
    """Add the problems of the package's entries to the task whose folder they are in, or to the package."""
    homes = [(printable(path, LONGEST_WHERE), task) for task in tasks for path in (task.folder, task.pages) if path]
    for problem in problems:
        where = f"{problem.where}/"
        home = None if "/../" in f"/{where}" else next((t for path, t in homes if where.startswith(f"{path}/")), None)
        if home is None:
            report.reject(PACKAGE, problem)
        else:
            home.problems.append(problem)


# --- answers and pages of a task -----------------------------------------------------------------------


def _read_answers(package: Package, task: AnsweredTask, report: ImportReport) -> None:
    for number, name in task.files.items():
        try:
            text = decode_text(package.read(name, ANSWER_LIMIT), printable(name, LONGEST_WHERE))
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
    _read_index(package, task, report)


def _read_index(package: Package, task: AnsweredTask, report: ImportReport) -> None:
    if not task.pages:
        says = f"{CACHE}/{task.task_id}/index.json is missing, so the cited pages cannot be shown."
        report.warn(task.task_id, Problem("pages_missing", says, task.task_id))
        return
    name = f"{task.pages}/index.json"
    try:
        data = package.read(name, cached_pages.LIMITS[".json"])
        index = cached_pages.read_index(data, printable(name, LONGEST_WHERE))
    except FormatError as error:
        task.problems += error.problems
        return
    above = f"{task.pages}/"
    there = {one.removeprefix(above) for one in package.names() if one.startswith(above)}
    for address, kind in index.items():
        files = cached_pages.files_of(address, kind, there)
        lost = [one for one in files if one not in there]
        if lost:
            says = f"{printable(address, 200)} was ignored: {listing(lost)} is missing."
            report.warn(task.task_id, Problem("page_missing", says, printable(name, LONGEST_WHERE)))
        else:
            task.index[address] = kind
            task.page_files.update(files)


def _warn_of_missing_answers(tasks: list[AnsweredTask], report: ImportReport) -> None:
    # The attempt of a missing number has fewer trajectories than the others.
    numbers = sorted({number for task in tasks for number in task.texts})
    for task in tasks:
        lacking = [str(number) for number in numbers if number not in task.texts]
        if lacking:
            says = f"{task.task_id} has no answer {listing(lacking)}, which other tasks have."
            report.warn(task.task_id, Problem("answers_uneven", says, printable(task.folder, LONGEST_WHERE)))


# --- writing of packages -----------------------------------------------------------------------------------------


def _write_packages(package: Package, tasks: list[AnsweredTask], folder: Path, progress: Progress) -> list[Path]:
    attempts: dict[int, list[AnsweredTask]] = defaultdict(list)
    for task in tasks:
        for number in task.texts:
            attempts[number].append(task)
    written: dict[str, Path] = {}
    made = []
    for number, answered in sorted(attempts.items()):
        target = folder / f"answer_{number}"
        for done, task in enumerate(answered):
            progress(done, len(answered))
            _write_trajectory(package, task, number, target / task.task_id, written)
        made.append(target)
    return made


def _write_trajectory(
    package: Package, task: AnsweredTask, number: int, target: Path, written: dict[str, Path]
) -> None:
    # Answers do not state the text of their task; the benchmark does.
    write_result(target, source_format=FORMAT.name, task_id=task.task_id, task=None, final_answer=task.texts[number])
    if not task.index:
        return
    (target / cached_pages.FOLDER).mkdir()
    (target / cached_pages.INDEX).write_text(json.dumps(task.index), encoding="utf-8")
    for name in sorted(task.page_files):
        source, path = f"{task.pages}/{name}", target / cached_pages.FOLDER / name
        if source in written:  # all answers of a task share the file
            os.link(written[source], path)
        else:
            path.write_bytes(package.read(source, cached_pages.LIMITS[path.suffix]))
            written[source] = path
