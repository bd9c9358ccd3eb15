"""Files that are no package of trajectories: turned into packages of our own before anything is imported."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotation.formats import answers, mind2web_rows
from annotation.records import ImportReport

Progress = Callable[[int, int], None]
PREFIX = "webverdict-conversion-"
ABANDONED = 24 * 3600  # seconds since a folder was begun; no conversion takes as long


@contextmanager
def packages(path: Path, report: ImportReport, progress: Progress, agent: str = "") -> Iterator[list[Path]]:
    """The packages that the file or folder ``path`` stands for, in the order of their attempts.

    An ordinary package is itself. Rows of Multimodal-Mind2Web become one package; answers of Mind2Web-2 become one
    package for each answer number. What is converted lies in a temporary folder until the context is left; what a
    killed process has left there goes with the first conversion a day later. What is wrong goes into ``report``; where
    anything is, the list may be shorter, and nothing of it should be imported unless the maintainer asked to keep what
    is valid. ``agent`` is the name under which it is imported: it chooses where there are several agents.
    Raises OSError when the disk is full.
    """
    _sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        if path.is_file() and mind2web_rows.is_rows(path):
            mind2web_rows.convert(path, Path(folder), report, progress)
            yield [Path(folder)] if any(Path(folder).iterdir()) else []
        elif answers.are_answers(path):
            yield answers.convert(path, Path(folder), report, progress, agent)
        else:
            yield [path]


def _sweep() -> None:
    """Remove what killed processes have left; what cannot be removed, such as somebody else's, stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_mtime < time.time() - ABANDONED:
                shutil.rmtree(folder)  # refuses a link, and follows none
