"""Live capture of cited pages into a cache, by an explicit command; the only code here that opens web addresses.

The addresses come from agents' answers, so they are untrusted. Allowed are http and https, and hosts with public IP
addresses only, checked after name resolution and at every redirect. The connection goes to the checked IP address.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from annotation.formats.printable import printable
from annotation.web_targets import Dial, Resolve, TargetRefused, open_connection, resolve_host
from judges.capturing.fetching import GONE, CaptureError, Fetched, FetchLimits, fetch
from judges.capturing.rendering import extract_text, take_screenshot
from judges.scorers.rubric.pages import CacheFileSys
from judges.scorers.rubric.pictures import PictureError


@dataclass(frozen=True, slots=True)
class Captured:
    """The result for one address. ``stored``: web, pdf, or "" if failed; ``says``: a remark or the reason."""

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
    """Capture pages that the cache lacks; save its index after each page, so that a capture can be interrupted.

    ``program`` is the browser that takes screenshots (`rendering.find_browser`), None for none.
    """
    for url in dict.fromkeys(urls):
        kind = cache.has(url)
        if kind is not None:
            yield Captured(url, kind, "It was already stored.")
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
    """Store a page. A page that does not exist (404, 410) is stored with that statement and supports no claim."""
    text = extract_text(found.body, found.charset)
    if found.status in GONE:
        text = f"(The server answered {found.status}: this page does not exist.)\n{text}"
    picture, says = pictured
    cache.put_web(url, text or "(The page has no text.)", picture)
    return Captured(url, "web", says)
