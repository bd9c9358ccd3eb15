"""Pages as a model is shown them, from a cache, each prepared once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from judges.scorers.framing import cut
from judges.scorers.rubric import pictures
from judges.scorers.rubric.engine import Engine
from judges.scorers.rubric.semaphores import Limit

LONGEST_TEXT = 400_000  # characters
PREPARED = 128 * 1024 * 1024  # bytes of pages that are kept in memory: shrinking a picture takes most of the time

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page:
    """``images`` are JPEGs, from top to bottom or page by page."""

    url: str
    kind: str
    text: str
    images: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Bytes, about."""
        return len(self.text) + sum(map(len, self.images))


def shorten(text: str) -> str:
    """``text`` of a page; a longer one than `LONGEST_TEXT` has its white space collapsed, and may be cut then."""
    return text if len(text) <= LONGEST_TEXT else cut(" ".join(text.split()), LONGEST_TEXT)


class Pages:
    """The pages of a cache (whatever has ``has``, ``get_web`` and ``get_pdf``), as they were asked for.

    ``asked`` maps every address that was asked for to ``web``, ``pdf`` or ``missing``, in that order.
    """

    def __init__(self, cache: Any, limit: Limit, engine: Engine) -> None:
        self.cache = cache
        self.limit = limit
        self.engine = engine
        self.asked: dict[str, str] = {}
        self._prepared: OrderedDict[str, Page] = OrderedDict()

    async def get(self, url: str) -> Page | None:
        async with self.limit:
            kind = self.cache.has(url) if self.cache is not None else None
            self.asked.setdefault(url, kind or "missing")
            if kind is None:
                return None
            if url not in self._prepared:
                page = await self._prepare_apart(lambda: self._prepare(url, kind))
                if page is None:
                    self.asked[url] = "missing"
                    return None
                self._prepared[url] = page
            self._prepared.move_to_end(url)
            found = self._prepared[url]
            while len(self._prepared) > 1 and sum(page.size for page in self._prepared.values()) > PREPARED:
                self._prepared.popitem(last=False)
            return found

    async def _prepare_apart(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work) if self.engine.threads else work()

    def _prepare(self, url: str, kind: str) -> Page | None:
        if kind == "pdf":
            text, images = self.engine.read_pdf(self.cache.get_pdf(url))
            return Page(url, kind, shorten(text), tuple(images))
        text, screenshot = self.cache.get_web(url)
        if text is None or not screenshot:
            return None
        return Page(url, kind, shorten(text), (pictures.convert_for_model(screenshot),))
