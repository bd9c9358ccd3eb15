"""Temporary files: one private directory for each user of the system, with one folder for each process.

A process holds a lock on its folder. The kernel releases the lock when the process ends for any reason. A sweep removes
the folders with a free lock, so it never deletes files in use or files outside of the private directory.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARKER = ".webverdict-scratch"  # identifies our directory; locked while folders are created or removed

_own: dict[tuple[int, Path], Path] = {}  # folders of this process; a fork has another process id


@contextmanager
def folder(what: str) -> Iterator[Path]:
    """Yield an empty folder with ``what`` in its name, and delete it afterwards. Raises OSError."""
    sweep()
    with tempfile.TemporaryDirectory(prefix=f"{what}-", dir=process_folder(), ignore_cleanup_errors=True) as name:
        yield Path(name)


def process_folder() -> Path:
    """Return the folder of this process, created on the first call. Raises OSError."""
    key = os.getpid(), private_directory()
    if key not in _own or not _own[key].is_dir():
        with _locked(key[1]):
            path = Path(tempfile.mkdtemp(prefix="process-", dir=key[1]))
            fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX)  # open until the process ends
            _own[key] = path
    return _own[key]


def private_directory() -> Path:
    """Return the directory (mode 0700) of this user, created if it does not exist.

    Raises PermissionError if another file or another user's directory has its name.
    """
    path = Path(tempfile.gettempdir()).resolve() / f"webverdict-{os.geteuid()}"
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    facts = path.lstat()
    is_private = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
    if not is_private or (not (path / MARKER).exists() and any(path.iterdir())):
        raise PermissionError(f"{path} is not a temporary directory of WebVerdict. Move it away, or set TMPDIR.")
    (path / MARKER).touch(mode=0o600)
    return path


def sweep() -> None:
    """Remove the folders of ended processes, as far as possible."""
    with suppress(OSError):
        directory = private_directory()
        with _locked(directory):
            for left in directory.glob("process-*"):
                with suppress(OSError, RecursionError):
                    _remove_unused(left)


def _remove_unused(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError while its process lives
        shutil.rmtree(path)
    finally:
        os.close(descriptor)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with (directory / MARKER).open("a") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX)
        yield


class ProcessFolder(os.PathLike[str]):
    """The folder of the current process, for settings that are read before processes fork."""

    def __fspath__(self) -> str:
        return str(process_folder())
