"""The folder in which a confined process may write: created for it, filled with pages, and always removed."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from annotation.formats import cached_pages, scratch
from annotation.formats.documents import FormatError
from annotation.records import AttachmentKind
from judges.llm import CallFailed
from judges.scorer import StoredFile, Subject
from judges.scorers.rubric.confinement import MEGABYTE
from judges.scorers.rubric.pages import StoredPages
from judges.scorers.rubric.pdf import PdfReader, Stopped

logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_folder() -> AsyncIterator[Path]:
    """Open an empty folder and remove it afterwards; log a warning if it cannot be removed."""
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

    Subfolders are moved up before they are emptied, so that thousands of nested folders need neither a path that is
    longer than a system accepts, nor recursion. Names in ``home`` itself must be ours.
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
    """Remove a folder except the folders in it; move those to ``home`` and return them."""
    found: list[Path] = []
    folder.chmod(0o700)  # a script may create an unreadable one
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            entry.chmod(0o700)
            found.append(entry.rename(home / f"moved-{next(numbers)}"))
        else:
            entry.unlink()
    folder.rmdir()
    return found


MOST_BYTES = 2048 * MEGABYTE  # of all pages of one answer
PDF_SECONDS = 300.0  # for all PDFs of an answer, which are read before its script starts


def open_pages(subject: Subject) -> StoredPages:
    """Return the pages, which are read from the store on demand; blocks. Raise CallFailed if the store lost one."""
    files = _map_files(subject)
    index = files.get("index.json")
    return StoredPages(
        _read_index(index) if index else {}, {name: partial(_read_stored, file) for name, file in files.items()}
    )


async def copy_pages(subject: Subject, folder: Path) -> None:
    """Run `copy_to` in a thread; a cancellation stops the reading."""
    with PdfReader(PDF_SECONDS) as reading:
        await asyncio.to_thread(copy_to, subject, folder, reading)


def copy_to(subject: Subject, folder: Path, reading: PdfReader) -> None:
    """Write pages to ``folder``/pages as a cache, and contents of PDFs to ``folder``/pdf; blocks. Raise Stopped.

    Both folders are created only at the start, so a ``folder`` that was removed meanwhile stays removed.
    """
    pages, documents = folder / "pages", folder / "pdf"
    pages.mkdir()
    documents.mkdir()
    files = _map_files(subject)
    if sum(file.size for file in files.values()) > MOST_BYTES:
        raise CallFailed(f"The cached pages have more than {MOST_BYTES:,} bytes.")
    for name, file in files.items():
        if reading.stop.is_set():
            raise Stopped
        with file.open() as source, (pages / name).open("wb") as target:
            shutil.copyfileobj(source, target)
        if name.endswith(".pdf"):
            _read_apart((pages / name).read_bytes(), documents, reading)


def _read_apart(data: bytes, folder: Path, reading: PdfReader) -> None:
    place = folder / hashlib.sha256(data).hexdigest()
    if place.exists():
        return
    text, pictures = reading.read(data)
    place.mkdir()
    (place / "text.txt").write_text(text, encoding="utf-8")
    for number, picture in enumerate(pictures):
        (place / f"{number:03}.jpg").write_bytes(picture)


def _map_files(subject: Subject) -> dict[str, StoredFile]:
    found = {file.name.rpartition("/")[2]: file for file in subject.files_of(AttachmentKind.CACHED_PAGE)}
    return {name: file for name, file in found.items() if name not in ("", ".", "..") and "\\" not in name}


def _read_index(file: StoredFile) -> dict[str, str]:
    try:
        return cached_pages.read_index(_read_stored(file), file.name)
    except FormatError as error:
        raise CallFailed(f"The index of cached pages cannot be read: {error}") from None


def _read_stored(file: StoredFile) -> bytes:
    with file.open() as stream:
        return stream.read()
