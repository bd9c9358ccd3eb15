"""Reads one PDF in a confined process: ``document.pdf`` in the working folder; text and pictures out, beside it."""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from judges.scorers.rubric.confinement import Limits, confine, limit

PAGES_READ = 100
PAGES_SHOWN = 50
SCALE = 144 / 72  # pixels for a point, of which an inch has 72
MOST_PIXELS = 12_000_000  # of one page; larger ones are shown smaller
MOST_TEXT = 2_000_000  # characters
QUALITY = 85


def run() -> None:
    """Writes ``text.txt``, ``<number>.jpg`` and, last, ``done.json`` with the number of pages, or an ``error``."""
    limit(Limits(**json.loads(sys.argv[2])))
    import pypdfium2  # noqa: PLC0415 - under the limits, and before what it needs is taken away
    from PIL import Image, JpegImagePlugin  # noqa: F401, PLC0415

    folder = Path.cwd()
    confine(folder, hook=False)
    try:
        said: dict[str, Any] = {"pages": _read(pypdfium2, folder)}
    except (pypdfium2.PdfiumError, OSError, ValueError, MemoryError, OverflowError) as error:
        said = {"error": str(error)[:300] or type(error).__name__}
    (folder / "done.json").write_text(json.dumps(said), encoding="utf-8")
    os._exit(0)


def _read(pypdfium2: Any, folder: Path) -> int:
    document = pypdfium2.PdfDocument(folder / "document.pdf")
    (folder / "text.txt").write_text(_text(pypdfium2, document), encoding="utf-8", errors="replace")
    for number in range(min(len(document), PAGES_SHOWN)):
        try:
            _show(document[number], folder / f"{number:03}.jpg")
        except (pypdfium2.PdfiumError, OSError, ValueError):
            continue  # a page that is broken by itself is missing among the pictures, and no more than that
    return len(document)


def _text(pypdfium2: Any, document: Any) -> str:
    texts: list[str] = []
    length = 0
    for number in islice(range(len(document)), PAGES_READ):
        try:
            page = document[number]
            textpage = page.get_textpage()
            texts.append(textpage.get_text_bounded().replace("\r\n", "\n"))
            textpage.close()
            page.close()
        except pypdfium2.PdfiumError:
            texts.append("(a page that cannot be read)")
        length += len(texts[-1])
        if length > MOST_TEXT:
            break
    return "\n\n".join(texts)[:MOST_TEXT]


def _show(page: Any, file: Path) -> None:
    width, height = page.get_size()
    scale = min(SCALE, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
    page.render(scale=scale).to_pil().convert("RGB").save(file, "JPEG", quality=QUALITY)
    page.close()
