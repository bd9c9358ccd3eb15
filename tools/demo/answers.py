"""Three questions to the agent Researcher, and the cached pages of its answers.

The answers, two to each question, are Markdown written by hand (data/answers/researcher). One page that they cite is
not cached, on purpose.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from annotation.formats import cached_pages
from tools.demo.agents import VIEWPORT, write_json
from tools.demo.tasks import DemoTask

AGENT = "Researcher"
_SHOP, _STAY = "http://shop.example/", "http://stay.example/"
_WIDTH = 800  # pixels of a cached screenshot; that is enough to read the largest texts
_QUALITY = 45  # of the JPEG


@dataclass(frozen=True, slots=True)
class Question:
    """A task, and the addresses of its cached pages."""

    task: DemoTask
    pages: tuple[str, ...]


DOGS = Question(
    DemoTask(
        "dogs",
        "Which houses in Veldmar take dogs, until what time is check-out there, and what does a dog cost per night? "
        "Give the page of each house.",
        _STAY,
        4,
        (
            "Harbour House is named, and no other house of Veldmar",
            "Check-out is until 11:30 am",
            "A dog costs $12 per night",
            "The page of the house is given",
        ),
    ),
    (f"{_STAY}stays/harbour-house", f"{_STAY}stays/pine-lodge", f"{_STAY}stays/lantern-inn"),
)
TABLETS = Question(
    DemoTask(
        "tablets",
        "Name the two best rated tablets of Larkfield that cost less than $400, each with its rating, its price and "
        "its product page.",
        _SHOP,
        4,
        (
            "The Kestrel Slate 10 with 4.6 stars and $329",
            "The Tannwell Leaf 10 with 4.3 stars and $279",
            "No other tablet",
            "The product page of each is given",
        ),
    ),
    (
        f"{_SHOP}p/kestrel-slate-10",
        f"{_SHOP}p/tannwell-leaf-10",
        f"{_SHOP}p/aster-tab-11",
        f"{_SHOP}c/tablets?max=399&sort=rating",
    ),
)
NIGHTS = Question(
    DemoTask(
        "nights",
        "What do three nights in a double room with breakfast cost for two people at Harbour House and at Pine Lodge, "
        "and which of the two is cheaper? Give the pages that the prices are on.",
        _STAY,
        6,
        (
            "Harbour House costs $456",
            "Pine Lodge costs $408",
            "Pine Lodge is called the cheaper one",
            "The pages with the prices of room and breakfast are given",
        ),
    ),
    (f"{_STAY}stays/harbour-house", f"{_STAY}stays/pine-lodge"),
)
QUESTIONS = (DOGS, TABLETS, NIGHTS)


def write(browser: Browser, output: Path) -> None:
    """Write the cached pages to ``output``/cache, which is replaced, and the tasks to a file next to ``output``."""
    shutil.rmtree(output / "cache", ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    write_json(output.with_suffix(".json"), [question.task.as_json() for question in QUESTIONS])
    for question in QUESTIONS:
        folder = output / "cache" / question.task.task_id
        folder.mkdir(parents=True)
        for address, text, picture in _visited(browser, question.pages):
            (folder / f"{cached_pages.stem(address)}.txt").write_text(text, "utf-8")
            (folder / f"{cached_pages.stem(address)}.jpg").write_bytes(picture)
        write_json(folder / "index.json", dict.fromkeys(question.pages, cached_pages.WEB))


def _visited(browser: Browser, addresses: tuple[str, ...]) -> Iterator[tuple[str, str, bytes]]:
    """Yield each address with the text and a screenshot of its page."""
    context = browser.new_context(viewport=VIEWPORT, locale="en-US", timezone_id="UTC")  # type: ignore[arg-type]
    page = context.new_page()
    for address in addresses:
        page.goto(address)
        yield address, page.locator("body").inner_text() + "\n", small(page.screenshot(full_page=True), _WIDTH)
    context.close()


def small(image: bytes, width: int) -> bytes:
    """Return a screenshot as a JPEG of this width."""
    full = Image.open(io.BytesIO(image)).convert("RGB")
    out = io.BytesIO()
    size = (width, round(full.height * width / full.width))
    full.resize(size, Image.Resampling.LANCZOS).save(out, "JPEG", quality=_QUALITY, optimize=True)
    return out.getvalue()
