"""PDFs as a model is shown them: the text of the first 100 pages, and pictures of the first 50 at 144 dpi.

Readers of PDF are large and have faults, so one reads in a process of its own, which has neither network nor files.
`annotation.formats.pdf_text` reads the text alone, for people, who need no pictures of the pages.
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

from annotation.formats import scratch
from judges.llm import CallFailed
from judges.scorers.rubric.confinement import MEGABYTE, ProcessLimits
from judges.scorers.rubric.pdf_child import UNWRITTEN
from judges.scorers.rubric.process import build_command, build_environment, end_group

LARGEST = 100 * MEGABYTE  # bytes of a document
LIMITS = ProcessLimits(cpu=60, wall=120.0, memory=1536 * MEGABYTE, file=64 * MEGABYTE, files=64)
MOST_PICTURES = 32 * MEGABYTE  # bytes of all pictures together; those after them are left out

LOOKS = 0.2  # seconds between two looks at whether it is still wanted

NOTHING = "(This PDF could not be read: {why}. Nothing of it can be shown.)"
UNREADABLE = "A PDF could not be read on this machine: {why}."
EMPTY = "(This PDF has no text that could be read. Its pages may be pictures.)"


class Stopped(Exception):
    """The reader was stopped because its result is no longer needed."""


def read_pdf(data: bytes, limits: ProcessLimits = LIMITS, stop: Event | None = None) -> tuple[str, list[bytes]]:
    """Text, and the pages as JPEGs from the first. Blocks, so it is called in a thread; raises Stopped soon after
    ``stop`` is set, and CallFailed where this machine cannot read it: its disk is full.

    Nothing is raised for what a document may do: where it is broken, encrypted, too large or too slow, the text says so
    and there are no pictures. So a broken page is judged for what it shows, as the published engine does.
    """
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
    """Reads the documents of one answer, in ``seconds`` for all of them together; a context, which ends what is still
    being read when it is left: a thread cannot be cancelled."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.stop = Event()
        self._until = time.monotonic() + seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop.set()

    def read(self, data: bytes) -> tuple[str, list[bytes]]:
        """As `read_pdf`; what would be read too late says so."""
        left = self._until - time.monotonic()
        if left <= 0:
            return NOTHING.format(why="reading the others that the answer cites took too long"), []
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
            raise CallFailed(UNREADABLE.format(why="its temporary folder takes no more"))
    finally:
        if reader.returncode is None:
            end_group(reader.pid)
            reader.wait()
    try:
        said = json.loads((folder / "done.json").read_bytes())
    except (OSError, ValueError):
        return "reading it took too much memory or time, or ended the reader"
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
