"""Read packages of trajectory folders: Online-Mind2Web, versions 1 and 2, and our own webverdict-1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from typing import NamedTuple

from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.documents import FormatError, kind_of, parse_json
from annotation.formats.external.online_mind2web_v1 import read_v1
from annotation.formats.external.online_mind2web_v2 import read_v2
from annotation.formats.printable import listing, printable
from annotation.formats.trajectory_folder import RESULT, SCREENSHOTS, Findings, TrajectoryFolder
from annotation.formats.webverdict import SCHEMA_VERSION, read_native
from annotation.records import PACKAGE, Problem, TrajectoryRecord

MANY_IGNORED = 1_000  # a zip from macOS has about one for every file, which is normal
RESULT_LIMIT = 16 * 2**20  # bytes; 20,000 steps of 800 characters

Layout = tuple[list[TrajectoryFolder], list[str]]


class ReadTrajectory(NamedTuple):
    """The content of a trajectory folder; ``task_id``, for the report, is the folder's name if the task is unknown.

    A record with problems must not be imported. It is only for finding further problems in its images.
    """

    task_id: str
    record: TrajectoryRecord | None
    problems: list[Problem]
    warnings: list[Problem]


def read_trajectories(package: Package, layout: Layout | None = None) -> Iterator[ReadTrajectory]:
    """Yield every trajectory of ``package``, without opening screenshots; ``layout`` is from `find_layout`.

    Problems of the package's entries come with the trajectory of their folder. The others, and files that belong to no
    trajectory, come last under `PACKAGE`. So the results contain all of ``package.problems``. Before these come,
    without a record, the problems of tasks with several folders: their records must not be imported.
    """
    folders, leftover = layout or find_layout(package)
    entry_problems, package_problems = _assign_problems(package, folders)
    # A document is parsed once and not stored, so duplicates are known only after the last folder.
    by_task: dict[str, list[TrajectoryFolder]] = defaultdict(list)
    for folder in folders:
        yield _read_folder(package, folder, entry_problems[folder.path], by_task)
    for task_id, same in by_task.items():
        if len(same) > 1:
            yield ReadTrajectory(task_id, None, _describe_duplicates(task_id, same), [])
    if not folders and not package_problems:
        says = f"{printable(package.path.name)} is empty: no folder in it has a {RESULT}."
        package_problems.append(Problem("package_empty", says))
    warnings = []
    if leftover:
        says = f"These files belong to no trajectory and were ignored: {listing(leftover)}."
        warnings.append(Problem("leftover_file", says, printable(leftover[0], LONGEST_WHERE)))
    if package.ignored > max(MANY_IGNORED, 2 * len(package.names())):
        says = f"{package.ignored:,} entries were ignored: files of operating systems, and empty folders."
        warnings.append(Problem("many_entries_ignored", says))
    if package_problems or warnings:
        yield ReadTrajectory(PACKAGE, None, package_problems, warnings)


def find_layout(package: Package) -> Layout:
    """Return the folders with a result.json or a trajectory/ folder, and the files outside of them."""
    names = package.names()
    paths = {_parent(name) for name in names if name.rpartition("/")[2] == RESULT}
    paths |= {_parent(_parent(name)) for name in names if _parent(name).rpartition("/")[2] == SCREENSHOTS}
    files: dict[str, list[str]] = defaultdict(list)
    leftover = []
    for name in names:
        home = _home(name, paths)
        if home is None:
            leftover.append(name)
        else:
            files[home].append(name.removeprefix(f"{home}/") if home else name)
    whole = package.path.resolve().stem
    labels = {path: printable(path.rpartition("/")[2] or whole, 80) for path in sorted(files)}
    return [TrajectoryFolder(path, label, tuple(files[path])) for path, label in labels.items()], leftover


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _home(name: str, paths: Container[str]) -> str | None:
    """Return the innermost of ``paths`` that contains ``name``."""
    while name:
        name = _parent(name)
        if name in paths:
            return name
    return None


def _assign_problems(
    package: Package, folders: list[TrajectoryFolder]
) -> tuple[dict[str, list[Problem]], list[Problem]]:
    """Return the package's problems by folder, and those outside of all folders."""
    paths = {printable(folder.path, LONGEST_WHERE): folder.path for folder in folders}
    by_folder: dict[str, list[Problem]] = defaultdict(list)
    rest: list[Problem] = []
    for problem in package.problems:
        home = problem.where if problem.where in paths else _home(problem.where, paths)
        # A path with ".." concerns the whole package, wherever it starts.
        inside = home is not None and ".." not in problem.where.split("/")
        (by_folder[paths[str(home)]] if inside else rest).append(problem)
    return by_folder, rest


def _describe_duplicates(task_id: str, folders: list[TrajectoryFolder]) -> list[Problem]:
    says = f"several folders hold the result of task {task_id}: {listing([folder.path for folder in folders])}"
    all_findings = [Findings(folder) for folder in folders]
    for findings in all_findings:
        findings.problem("duplicate_task_id", "task_id", says)
    return [problem for findings in all_findings for problem in findings.problems]


def _read_folder(
    package: Package,
    folder: TrajectoryFolder,
    entry_problems: list[Problem],
    by_task: dict[str, list[TrajectoryFolder]],
) -> ReadTrajectory:
    """Read a folder and add it to ``by_task``."""
    findings = Findings(folder, problems=list(dict.fromkeys(entry_problems)))
    if RESULT not in folder.files:
        findings.problem("result_missing", RESULT, f"there is no {RESULT} beside {SCREENSHOTS}/")
        return ReadTrajectory(folder.label, None, findings.finish(), findings.warnings)
    path = f"{folder.path}/" if folder.path else ""
    where = f"{folder.label}/{RESULT}"
    try:
        document = parse_json(package.read(f"{path}{RESULT}", RESULT_LIMIT), where)
        if not isinstance(document, dict):
            raise FormatError(Problem("wrong_type", f"{where}: must be an object, not {kind_of(document)}.", where))
    except FormatError as error:
        return ReadTrajectory(folder.label, None, list(dict.fromkeys([*findings.problems, *error.problems])), [])
    if document.get("schema_version") == SCHEMA_VERSION:
        record = read_native(document, findings, lambda name, limit: package.read(f"{path}{name}", limit))
    else:
        record = (read_v2 if _is_v2(document) else read_v1)(document, findings)
    if not record.task_id:
        return ReadTrajectory(folder.label, None, findings.finish(), findings.warnings)
    by_task[record.task_id].append(folder)
    return ReadTrajectory(record.task_id, None if entry_problems else record, findings.finish(), findings.warnings)


def _is_v2(document: dict[str, object]) -> bool:
    """Decide by schema_version, or by the structure: only version 2 has steps that are objects with a number."""
    actions = document.get("action_history")
    return "schema_version" in document or (
        isinstance(actions, list) and any(isinstance(entry, dict) and "step" in entry for entry in actions)
    )
