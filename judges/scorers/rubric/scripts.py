"""Rubric scripts that an administrator has installed: one file a task in the folder that a setting names.

Nothing that anybody uploads ever comes here. The folder is read when a trajectory is judged, so a script can be
installed while workers run.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from judges.llm import NotConfigured
from judges.scorers.rubric.alias import LONGEST_SCRIPT

SETTING = "RUBRIC_SCRIPTS"  # as messages name it; whoever asks gives its value
TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")


@dataclass(frozen=True, slots=True)
class Script:
    """An installed script as it was read; ``digest`` is its SHA-256."""

    name: str
    source: bytes
    digest: str


def find_script(folder: str, task_id: str) -> Script | None:
    """The script of a task in ``folder`` ("" has none), None where there is none.

    Raises NotConfigured where there is one that cannot be used.
    """
    if not folder or not TASK.fullmatch(task_id):
        return None
    home = Path(folder)
    file = home / f"{task_id}.py"
    if not file.exists() and not file.is_symlink():
        return None
    try:
        return _read(home, file)
    except OSError as error:
        raise NotConfigured(f"The rubric script {file.name} cannot be read: {error.strerror or error}.") from None


def _read(home: Path, file: Path) -> Script:
    if file.is_symlink() and not file.resolve().is_relative_to(home.resolve()):
        raise NotConfigured(f"The rubric script {file.name} is a link that leads out of the folder {SETTING} names.")
    handle = os.open(file.resolve(), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise NotConfigured(f"The rubric script {file.name} is no file.")
        if found.st_mode & stat.S_IWOTH:
            raise NotConfigured(
                f"Everybody on this machine may change the rubric script {file.name}; take that right away (chmod o-w)."
            )
        source = stream.read(LONGEST_SCRIPT + 1)
    if len(source) > LONGEST_SCRIPT:
        raise NotConfigured(f"The rubric script {file.name} has more than {LONGEST_SCRIPT:,} bytes.")
    return Script(file.name, source, hashlib.sha256(source).hexdigest())
