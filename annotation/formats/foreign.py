"""Files that are no package of trajectories: turned into packages of our own before anything is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from annotation.formats import answers, mind2web_rows, scratch
from annotation.records import ImportReport

Progress = Callable[[int, int], None]


@contextmanager
def packages(path: Path, report: ImportReport, progress: Progress, agent: str = "") -> Iterator[list[Path]]:
    """The packages that the file or folder ``path`` stands for, in the order of their attempts.

    An ordinary package is itself. Rows of Multimodal-Mind2Web become one package; answers of Mind2Web-2 become one
    package for each answer number. What is converted lies in a temporary folder until the context is left. What is
    wrong goes into ``report``; where anything is, the list may be shorter, and nothing of it should be imported unless
    the maintainer asked to keep what is valid. ``agent`` is the name under which it is imported: it chooses where there
    are several agents. Raises OSError when the disk is full.
    """
    with scratch.folder("conversion") as folder:
        if path.is_file() and mind2web_rows.is_rows(path):
            mind2web_rows.convert(path, folder, report, progress)
            yield [folder] if any(folder.iterdir()) else []
        elif answers.are_answers(path):
            yield answers.convert(path, folder, report, progress, agent)
        else:
            yield [path]
