"""Reader of ``document.pdf`` of the working folder in a confined process; it writes text and images next to it."""

from __future__ import annotations

import json
import os
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from annotation.formats.pdf_text import page_texts
from judges.scorers.rubric.confinement import ProcessLimits, confine, limit

PAGES_SHOWN = 50
SCALE = 144 / 72  # pixels per point; an inch has 72 points
MOST_PIXELS = 12_000_000  # of one page; larger ones are scaled down
MOST_TEXT = 2_000_000  # characters
QUALITY = 85
UNWRITTEN = 28  # the exit code if the disk is full: the document is not the cause


class Unwritten(Exception):
    """The output could not be written."""


def run() -> None:
    """Write ``text.txt``, ``<number>.jpg`` and, last, ``done.json`` with the number of pages, or an ``error``.

    Exit with `UNWRITTEN` if they cannot be written.
    """
    limit(ProcessLimits(**json.loads(sys.argv[2])))
    import pypdfium2  # noqa: PLC0415 - under the limits, and before its files are blocked
    from PIL import Image, JpegImagePlugin  # noqa: F401, PLC0415

    folder = Path.cwd()
    confine(folder, hook=False)
    try:
        try:
            said: dict[str, Any] = {"pages": _read(pypdfium2, folder)}
        except (pypdfium2.PdfiumError, OSError, ValueError, MemoryError, OverflowError) as error:
            said = {"error": str(error)[:300] or type(error).__name__}
        _write(folder / "done.json", json.dumps(said).encode())
    except Unwritten:
        os._exit(UNWRITTEN)
    os._exit(0)


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        raise Unwritten from error


def _read(pypdfium2: Any, folder: Path) -> int:
    document = pypdfium2.PdfDocument(folder / "document.pdf")
    _write(folder / "text.txt", _extract_text(document).encode("utf-8", "replace"))
    for number in range(min(len(document), PAGES_SHOWN)):
        try:
            picture = _render_page(document[number])
        except (pypdfium2.PdfiumError, OSError, ValueError):
            continue  # a broken page is only missing among the images
        _write(folder / f"{number:03}.jpg", picture)
    return len(document)


def _extract_text(document: Any) -> str:
    texts: list[str] = []
    length = 0
    for text in page_texts(document):
        texts.append(text)
        length += len(text)
        if length > MOST_TEXT:
            break
    return "\n\n".join(texts)[:MOST_TEXT]


def _render_page(page: Any) -> bytes:
    width, height = page.get_size()
    scale = min(SCALE, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
    jpeg = BytesIO()
    page.render(scale=scale).to_pil().convert("RGB").save(jpeg, "JPEG", quality=QUALITY)
    page.close()
    return jpeg.getvalue()
