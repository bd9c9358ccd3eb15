"""PDFs as shown to a model: the text of the first 100 pages, and images of the first 50 at 144 dpi.

PDF libraries are large and have bugs, so a separate process reads a PDF, without network and with only its own files.
`annotation.formats.pdf_text` reads only the text, for people, who need no images of the pages.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from typing import Self

from annotation.extras import explain_missing
from annotation.formats import scratch
from judges.llm import CallFailed
from judges.scorers.rubric.confinement import MEGABYTE, ProcessLimits
from judges.scorers.rubric.pdf_child import UNWRITTEN
from judges.scorers.rubric.process import build_command, build_environment, end_group

LARGEST = 100 * MEGABYTE  # bytes of a document
LIMITS = ProcessLimits(cpu=60, wall=120.0, memory=1536 * MEGABYTE, file=64 * MEGABYTE, files=64)
MOST_PICTURES = 32 * MEGABYTE  # bytes of all images together; further images are left out

LOOKS = 0.2  # seconds between two checks whether the result is still wanted

NOTHING = "(This PDF could not be read: {why}. Nothing of it can be shown.)"
UNREADABLE = "A PDF could not be read on this machine: {why}."
EMPTY = "(This PDF has no text that could be read. Its pages may be pictures.)"


class Stopped(Exception):
    """The reader was stopped because its result is no longer needed."""


def read_pdf(data: bytes, limits: ProcessLimits = LIMITS, stop: Event | None = None) -> tuple[str, list[bytes]]:
    """Return the text, and the pages as JPEGs from the first. It blocks: call it in a thread. Raise Stopped soon after
    ``stop`` is set, and CallFailed if this machine cannot read it: its disk is full, or the library is missing.

    A bad document raises nothing: if it is broken, encrypted, too large or too slow, the text says so and there are no
    images. So a broken page is judged for what it shows, as in the published engine.
    """
    if missing := explain_missing("pypdfium2", "Reading a PDF"):
        raise CallFailed(missing)
    if len(data) > LARGEST:
        return NOTHING.format(why=f"it has more than {LARGEST:,} bytes"), []
    try:
        with scratch.folder("rubric-pdf") as folder:
            (folder / "document.pdf").write_bytes(data)
            why = _read(folder, limits, stop or Event())
            return (NOTHING.format(why=why), []) if why else _read_result(folder)
    except OSError as error:
        raise CallFailed(UNREADABLE.format(why=error.strerror or error)) from error


class PdfReader:
    """Reader of the documents of one answer, in ``seconds`` for all of them together; a context manager that stops a
    running read at its exit, because a thread cannot be cancelled."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.stop = Event()
        self._until = time.monotonic() + seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop.set()

    def read(self, data: bytes) -> tuple[str, list[bytes]]:
        """Return the same as `read_pdf`; if the time is over, the text says so."""
        left = self._until - time.monotonic()
        if left <= 0:
            return NOTHING.format(why="reading the other cited PDFs took too long"), []
        return read_pdf(data, replace(LIMITS, wall=min(LIMITS.wall, round(left, 1))), self.stop)


def _read(folder: Path, limits: ProcessLimits, stop: Event) -> str:
    reader = subprocess.Popen(  # noqa: S603 - our own module, in an interpreter of our own
        [*build_command("pdf"), json.dumps(asdict(limits))],
        cwd=folder,
        env=build_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        if not _wait_for_end(reader, limits.wall, stop):
            return f"it took more than {limits.wall:g} seconds"
        if reader.returncode == UNWRITTEN:
            raise CallFailed(UNREADABLE.format(why="its temporary folder is full"))
    finally:
        if reader.returncode is None:
            end_group(reader.pid)
            reader.wait()
    try:
        said = json.loads((folder / "done.json").read_bytes())
    except (OSError, ValueError):
        return "reading it took too much memory or time, or crashed the reader"
    return str(said.get("error", "")).strip().rstrip(".")


def _wait_for_end(reader: subprocess.Popen[bytes], seconds: float, stop: Event) -> bool:
    until = time.monotonic() + seconds
    while not stop.is_set():
        left = until - time.monotonic()
        if left <= 0:
            return False
        with suppress(subprocess.TimeoutExpired):
            reader.wait(min(left, LOOKS))
            return True
    raise Stopped


def _read_result(folder: Path) -> tuple[str, list[bytes]]:
    text = (folder / "text.txt").read_text(encoding="utf-8").strip()
    pictures: list[bytes] = []
    left = MOST_PICTURES
    for file in sorted(folder.glob("*.jpg")):
        left -= file.stat().st_size
        if left < 0:
            break
        pictures.append(file.read_bytes())
    return text or EMPTY, pictures
