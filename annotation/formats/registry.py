"""The external formats of trajectories: each module of `annotation.formats.external` declares one as ``FORMAT``."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from annotation.formats import external, scratch
from annotation.formats.archive import Package, open_package
from annotation.records import ImportReport, Problem, TaskRecord

Progress = Callable[[int, int], None]  # parts done, and parts in total


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """An external format of trajectories.

    ``name`` is stored with each trajectory and is part of its digest, so it never changes. ``title`` and ``files``
    (the files to upload) are for people. If there is no ``convert``, `packages` reads the format.

    ``recognise`` decides by names or first bytes whether files are of this format; a file that is not a zip has no
    names, only ``package.path``. ``convert(package, folder, report, progress, agent)`` writes packages of the form
    `webverdict` below ``folder``, one for each attempt, and returns their paths. It adds problems to ``report``.
    ``agent`` is the name given to the import, for files with several agents. It raises OSError when the disk is full.

    With ``is_log`` the files are logs of agents, which `agent_logs` converts: a trajectory may lack the text of its
    task and have an answer without steps, and actions may begin with a point.

    ``read_tasks(path, warnings)`` yields the tasks in the files. It raises FormatError. With ``is_answer`` a
    trajectory may have an answer instead of steps, and may lack the text of the task.
    """

    name: str
    title: str
    files: str
    recognise: Callable[[Package], bool] | None = None
    convert: Callable[[Package, Path, ImportReport, Progress, str], list[Path]] | None = None
    read_tasks: Callable[[Path, list[Problem]], Iterator[TaskRecord]] | None = None
    is_answer: bool = False
    is_log: bool = False


# Not at import time: the formats import this module.
@functools.cache
def formats() -> dict[str, Format]:
    names = [module.name for module in pkgutil.iter_modules(external.__path__, f"{external.__name__}.")]
    found: list[Format] = [importlib.import_module(name).FORMAT for name in names]
    return {each.name: each for each in sorted(found, key=lambda each: (each.convert is not None, each.name))}


def converted_formats() -> dict[str, Format]:
    return {name: each for name, each in formats().items() if each.convert}


def describe_files() -> str:
    """Return the files that can be imported, as a phrase for help texts."""
    titles: dict[str, list[str]] = {}
    for each in formats().values():
        files = "logs of agents, as a file, zip or folder" if each.is_log else each.files
        titles.setdefault(files, []).append(each.title)
    return "; ".join(f"{files} ({', '.join(names)})" for files, names in titles.items())


def describe_task_files() -> str:
    """Return the files, other than task lists, that tasks can be imported from."""
    return "; ".join(f"{each.files} ({each.title})" for each in formats().values() if each.read_tasks)


def recognise(package: Package) -> Format | None:
    """Return the format whose ``recognise`` accepts the package; None if it needs no conversion."""
    return next((each for each in formats().values() if each.recognise and each.recognise(package)), None)


def find_task_reader(path: Path) -> Callable[[Path, list[Problem]], Iterator[TaskRecord]] | None:
    """Return ``read_tasks`` of the format of a file; None if it is not one that states tasks."""
    with open_package(path) as package:
        known = recognise(package)
    return known.read_tasks if known else None


@contextmanager
def open_packages(path: Path, report: ImportReport, progress: Progress, agent: str = "") -> Iterator[list[Package]]:
    """Open the file or folder ``path`` as packages, in the order of their attempts; see `Format` for the arguments.

    Packages that a conversion writes are deleted on exit. If ``report`` has problems, the list may be incomplete.
    """
    with ExitStack() as opened:
        package = opened.enter_context(open_package(path))
        known = recognise(package)
        if known is None or known.convert is None:
            yield [package]
            return
        folder = opened.enter_context(scratch.folder("conversion"))
        paths = known.convert(package, folder, report, progress, agent)
        yield [opened.enter_context(open_package(each)) for each in paths]
