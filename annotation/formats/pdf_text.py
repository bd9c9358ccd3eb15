"""Read the text of a PDF in a separate process: the library is C, and the file may be hostile.

Run as a script, this module is that process: it reads a PDF from standard input and writes UTF-8 to standard output.
Judges also need images, from a more confined process (`judges.scorers.rubric.pdf`). Both use `page_texts`, so people
and models see the same text.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

SECONDS = 10
MEMORY = 2**30  # bytes of address space
MOST_PAGES = 100
LONGEST = 400_000  # characters
LARGEST = 4 * LONGEST + MOST_PAGES  # bytes that the process may write
UNREADABLE = "(This page cannot be read.)"
COMMAND = [sys.executable, "-I", "-B", __file__]  # isolated from the environment and the current folder
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}  # no keys, no settings, no addresses


class NoText(Exception):
    """The text cannot be read; the message has a short reason."""


def text_of(data: bytes) -> str:
    """Return the text of the first pages, with a form feed between pages; at most `LONGEST` characters.

    Raises NoText if it is not a PDF, needs a password, is damaged, or takes too long or too much memory.
    """
    from annotation.extras import explain_missing  # noqa: PLC0415 - the process that runs this file cannot import it

    if missing := explain_missing("pypdfium2", "Reading a PDF"):
        raise NoText(missing)
    # Files, not pipes: the process has a limit only for the size of files.
    with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as words:
        try:
            done = subprocess.run(  # noqa: S603 - our own module, in an interpreter of our own
                COMMAND,
                input=data,
                stdout=text,
                stderr=words,
                env=ENVIRONMENT,
                cwd="/",
                timeout=SECONDS + 5,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NoText("reading took too long") from error
        if done.returncode != 0:
            lines = _read(words).strip().splitlines()
            raise NoText(lines[-1][:200] if done.returncode == 1 and lines else "it could not be read")
        return _read(text).replace("\x00", "")[:LONGEST]


def page_texts(document: Any) -> Iterator[str]:
    """Yield the text of the first `MOST_PAGES` pages of a `pypdfium2.PdfDocument`; a broken page is `UNREADABLE`."""
    import pypdfium2  # noqa: PLC0415 - only in a process that may crash

    for number in range(min(len(document), MOST_PAGES)):
        try:
            page = document[number]
            textpage = page.get_textpage()
            text = textpage.get_text_bounded()
            textpage.close()
            page.close()
        except pypdfium2.PdfiumError:
            text = UNREADABLE
        yield text.replace("\r\n", "\n")


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(LARGEST).decode("utf-8", errors="replace")


def _limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))


def _print_text() -> None:
    import pypdfium2  # noqa: PLC0415 - only in a process that may crash

    data = sys.stdin.buffer.read()
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise SystemExit(f"it is damaged or needs a password: {error}") from error
    left = LONGEST
    for text in page_texts(document):
        sys.stdout.buffer.write(text[:left].encode("utf-8", errors="replace") + b"\f")
        left -= len(text) + 1
        if left <= 0:
            break


if __name__ == "__main__":
    _limit_resources()
    _print_text()
