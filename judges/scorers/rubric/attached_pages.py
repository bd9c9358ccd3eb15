"""The cached pages that came with a trajectory: for the engine in this process, and for a script in its own."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from annotation.formats import cached_pages
from annotation.formats.documents import FormatError
from annotation.records import AttachmentKind
from judges.llm import CallFailed
from judges.scorer import StoredFile, Subject
from judges.scorers.rubric.cache import StoredPages
from judges.scorers.rubric.confinement import MEGABYTE
from judges.scorers.rubric.pdf import PdfReader, Stopped

MOST_BYTES = 2048 * MEGABYTE  # of all pages of one answer
PDF_SECONDS = 300.0  # for all PDFs of an answer, which are read before its script begins


def open_pages(subject: Subject) -> StoredPages:
    """The pages, read from the store as they are asked for; blocks. Raises CallFailed when the store has lost one."""
    files = _map_files(subject)
    index = files.get("index.json")
    return StoredPages(_read_index(index) if index else {}, {name: _make_reader(file) for name, file in files.items()})


async def copy_pages(subject: Subject, folder: Path) -> None:
    """`copy_to` beside the event loop; who is cancelled leaves nothing behind that goes on reading."""
    with PdfReader(PDF_SECONDS) as reading:
        await asyncio.to_thread(copy_to, subject, folder, reading)


def copy_to(subject: Subject, folder: Path, reading: PdfReader) -> None:
    """Put the pages into ``folder`` as a cache, and what PDFs say into ``pdf`` beside it; blocks. Raises Stopped.

    Folders are made at the beginning only, so that a ``folder`` that was removed meanwhile stays removed.
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
        return cached_pages.read_index(_make_reader(file)(), file.name)
    except FormatError as error:
        raise CallFailed(f"The index of cached pages cannot be read: {error}") from None


def _make_reader(file: StoredFile) -> Callable[[], bytes]:
    def read() -> bytes:
        with file.open() as stream:
            return stream.read()

    return read
