"""Live capture of cited pages into a cache: an explicit command, and the only thing here that opens addresses.

Addresses come from answers of agents, so each is somebody else's: only http and https, only hosts whose every address
is public, checked after the name was resolved and again at every redirect, and the connection goes to what was checked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from annotation.formats.printable import printable
from judges.capturing.fetching import (
    GONE,
    CaptureError,
    Dial,
    Fetched,
    FetchLimits,
    Resolve,
    TargetRefused,
    fetch,
    open_connection,
    resolve_host,
)
from judges.capturing.rendering import extract_text, take_screenshot
from judges.scorers.rubric.pages import CacheFileSys
from judges.scorers.rubric.pictures import PictureError


@dataclass(frozen=True, slots=True)
class Captured:
    """The result for one address. ``stored``: web, pdf, or "" for nothing; ``says`` is a remark or the reason."""

    url: str
    stored: str
    says: str = ""


def capture(
    urls: Iterable[str],
    cache: CacheFileSys,
    *,
    program: str | None,
    limits: FetchLimits | None = None,
    resolve: Resolve = resolve_host,
    dial: Dial = open_connection,
) -> Iterator[Captured]:
    """Capture what the cache does not have yet; its index is written after each page, so that it may be stopped.

    ``program`` is the browser that takes pictures (`rendering.find_browser`), None for none.
    """
    for url in dict.fromkeys(urls):
        kind = cache.has(url)
        if kind is not None:
            yield Captured(url, kind, "It was there already.")
        else:
            yield _capture_page(url, cache, program, limits or FetchLimits(), resolve, dial)


def _capture_page(
    url: str, cache: CacheFileSys, program: str | None, limits: FetchLimits, resolve: Resolve, dial: Dial
) -> Captured:
    until = time.monotonic() + limits.seconds
    try:
        found = fetch(url, resolve, limits, dial)
        if found.is_pdf:
            kept = _store_pdf(url, found, cache)
        else:
            kept = _store_page(url, found, cache, take_screenshot(found.target, program, limits, until, dial))
    except (TargetRefused, CaptureError, PictureError) as why:
        return Captured(url, "", printable(str(why), 500))
    cache.save()
    return kept


def _store_pdf(url: str, found: Fetched, cache: CacheFileSys) -> Captured:
    if found.status in GONE:
        raise CaptureError(f"The server answered {found.status}.")
    cache.put_pdf(url, found.body)
    return Captured(url, "pdf")


def _store_page(url: str, found: Fetched, cache: CacheFileSys, pictured: tuple[bytes, str]) -> Captured:
    """Store a page; one that does not exist is stored with that statement, and supports no claim."""
    text = extract_text(found.body, found.charset)
    if found.status in GONE:
        text = f"(The server answered {found.status}: there is no such page.)\n{text}"
    picture, says = pictured
    cache.put_web(url, text or "(The page has no text.)", picture)
    return Captured(url, "web", says)
