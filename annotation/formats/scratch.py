"""Temporary folders for what is unpacked or converted; those that killed processes have left go a day later."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "webverdict-"
ABANDONED = 24 * 3600  # seconds since a folder was begun; nothing that is done in one takes as long


@contextmanager
def folder(what: str) -> Iterator[Path]:
    """An empty folder with ``what`` in its name, which is gone afterwards. Raises OSError where none can be made."""
    sweep()
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{what}-") as name:
        yield Path(name)


def sweep() -> None:
    """Remove what killed processes have left; what cannot be removed, such as somebody else's, stays."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError, RecursionError):
            if left.lstat().st_mtime < time.time() - ABANDONED:
                shutil.rmtree(left)  # refuses a link, and follows none
