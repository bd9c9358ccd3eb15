"""The folder that a confined process may write in: made for it, and removed whatever it has left there."""

from __future__ import annotations

import asyncio
import itertools
import logging
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from annotation.formats import scratch

logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_folder() -> AsyncIterator[Path]:
    """An empty folder that is gone afterwards; what cannot be removed is left, and said in the log."""
    await asyncio.to_thread(scratch.sweep)
    home = Path(tempfile.mkdtemp(prefix="rubric-", dir=scratch.process_folder())).resolve()
    folder = home / "own"
    folder.mkdir()
    try:
        yield folder
    finally:
        await asyncio.shield(asyncio.to_thread(remove, home))


def remove(home: Path) -> None:
    """Remove a folder and everything below it. Blocks, and raises nothing.

    Folders below folders are moved up before they are emptied, so that thousands in one another need neither a path
    that is longer than a system takes, nor recursion. Names in ``home`` itself have to be ours.
    """
    try:
        numbers = itertools.count()
        waiting = list(home.iterdir())
        while waiting:
            waiting += _empty(waiting.pop(), home, numbers)
        home.rmdir()
    except Exception:
        logger.warning("The temporary folder %s could not be removed.", home, exc_info=True)


def _empty(folder: Path, home: Path, numbers: itertools.count[int]) -> list[Path]:
    """Remove a folder but for the folders in it, which now lie in ``home``."""
    found: list[Path] = []
    folder.chmod(0o700)  # a script may make one that nobody can read
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            entry.chmod(0o700)
            found.append(entry.rename(home / f"moved-{next(numbers)}"))
        else:
            entry.unlink()
    folder.rmdir()
    return found
