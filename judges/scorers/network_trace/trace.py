"""Requests and responses of a browser, from a HAR: events, and which of them are navigations and mutations.

**Document event**: a request that loads a page into the tab. ``sec-fetch-dest`` and ``sec-fetch-mode`` say so
(``document`` and ``navigate``). If a request has neither, ``_resourceType`` (``document``) says so, and without all
three, an ``Accept`` that starts with ``text/html``. A frame inside a page is not a document event, by its
``sec-fetch-dest``; without that header it cannot be recognised. A page that is loaded ahead (``sec-purpose: prefetch``,
also of prerendering) is not a document event.

**Navigation**: a document event whose method is GET. A redirect is one too, and so is its target: the last of
`NetworkTrace.navigation_events` is the page on which the agent ended.

**Mutation**: POST, PUT, PATCH or DELETE of anything, a document event or not, except beacons: an agent did not do
what a page reports about itself. Beacons are ``ping`` and ``sendBeacon`` (mode ``no-cors`` with destination
``empty``) and reports to ``report-uri``, recognised by their headers, ``_resourceType`` or media type.

**Other**: all the rest. **Static**: a GET or HEAD of a file that a page displays or runs (style, script, image, font,
video), recognised by ``sec-fetch-dest``, ``_resourceType``, the suffix of the path or the media type of the response;
never a document event. Static events have an index and a URL, but neither headers nor texts.

Memory is bounded: see the constants. Only the latest response texts are stored, because checks look at the end of a
trace; `Body.truncated` marks an incomplete text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from annotation.formats import har
from annotation.formats.documents import UNSTORABLE
from annotation.formats.har.bodies import decoded, is_text, media_type
from judges.scorers.network_trace.bodies import Body

LONGEST_TEXT = 2 * 2**20  # characters of one body
MOST_TEXT = 16 * 2**20  # characters of all responses together
MOST_SENT = 96 * 2**20  # characters of URLs, headers and posted texts together; each different text counts once
LONGEST_URL = 2**16  # characters; only a data: URL is longer
LONGEST_HEADER = 8192
MOST_HEADERS = 300  # of one message
SHARED = 512  # characters; shorter texts occur often, and are stored once

MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
READING = frozenset({"GET", "HEAD"})
STATIC_DESTINATIONS = frozenset({"style", "script", "image", "font", "audio", "video", "track", "manifest", "worker"})
STATIC_RESOURCES = frozenset({"stylesheet", "script", "image", "font", "media", "texttrack", "manifest"})
STATIC_MEDIA = ("image/", "font/", "audio/", "video/", "text/css", "text/javascript", "application/javascript")
STATIC_SUFFIXES = (
    ".css", ".js", ".mjs", ".map", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".bmp", ".ico", ".woff",
    ".woff2", ".ttf", ".otf", ".eot", ".mp4", ".webm", ".mp3",
)  # fmt: skip
BEACON_RESOURCES = frozenset({"ping", "beacon", "cspviolationreport", "csp_report", "csp-violation-report"})
BEACON_MEDIA = frozenset({"text/ping", "application/csp-report", "application/reports+json"})


class EventType(StrEnum):
    NAVIGATION = "navigation"
    MUTATION = "mutation"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class NetworkEvent:
    """One request and its response.

    ``index`` is its position among the entries of the HAR, from 0. ``method`` is in capitals. ``status`` is 0 without
    a response. Header names are in lower case; several headers of one name are joined by ", ". ``referer`` is "" if
    none was sent. ``post_data`` and ``response_content`` are None if there was none; a response is stored only if it
    is JSON or another text. Secrets are replaced by `annotation.formats.har.REDACTED`.
    """

    index: int
    url: str
    method: str = "GET"
    status: int = 0
    referer: str = ""
    request_headers: Mapping[str, str] = field(default_factory=dict)
    post_data: Body | None = None
    response_content: Body | None = None
    is_document_event: bool = False
    is_static: bool = False
    event_type: EventType = EventType.OTHER

    @property
    def is_navigation(self) -> bool:
        return self.event_type is EventType.NAVIGATION

    @property
    def is_mutation(self) -> bool:
        return self.event_type is EventType.MUTATION


@dataclass(frozen=True)
class NetworkTrace:
    """The events of a HAR in the order of time; ``entries`` is the number of HAR entries, ``name`` is its file."""

    events: tuple[NetworkEvent, ...] = ()
    name: str = ""

    @property
    def entries(self) -> int:
        return len(self.events)

    @cached_property
    def navigation_events(self) -> tuple[NetworkEvent, ...]:
        return tuple(event for event in self.events if event.is_navigation)

    @cached_property
    def evaluated(self) -> tuple[NetworkEvent, ...]:
        return tuple(event for event in self.events if not event.is_static)


def read_trace(stream: BinaryIO, name: str) -> NetworkTrace:
    """Return the trace in ``stream``: a HAR, gzipped or not, or a Playwright trace zip; ``name`` is for messages.

    It is read entry by entry, in bounded memory; the stream stays open. Raises FormatError if it is not a HAR,
    or if a trace exceeds the limits. Nothing is redacted here: the import has done that.
    """
    reading = _TraceReader(name)
    with har.open_entries(stream, name) as entries:
        for entry in entries:
            reading.take(entry)
    return NetworkTrace(reading.in_time(), name)


def has_static_suffix(url: str) -> bool:
    try:
        return urlsplit(url).path.lower().endswith(STATIC_SUFFIXES)
    except ValueError:
        return False


class _TraceReader:
    def __init__(self, name: str) -> None:
        self.events: list[NetworkEvent] = []
        self._name = name
        self._known: dict[str, str] = {}
        self._sent = self._received = 0
        self._with_content: deque[int] = deque()
        self._begun: list[float] = []

    def take(self, entry: Any) -> None:
        index = len(self.events)
        where = f"log.entries[{index}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("request"), dict):
            raise har.failed("har_invalid", self._name, f"{where} is not a HAR entry: it has no request")
        self._begun.append(_read_start(entry, self._begun[-1] if self._begun else 0.0))
        self.events.append(self._read_event(index, entry, entry["request"], _read_object(entry, "response")))
        self._forget()
        if self._sent > MOST_SENT:
            says = f"{where}: URLs, headers and posted texts up to here have more than {MOST_SENT:,} characters"
            raise har.failed("har_too_large", self._name, says)

    def in_time(self) -> tuple[NetworkEvent, ...]:
        """Return the events by start time, as HAR 1.2 requires of readers; events of the same time stay as listed."""
        return tuple(sorted(self.events, key=lambda event: self._begun[event.index]))

    def _read_event(self, index: int, entry: dict[str, Any], request: dict[str, Any], response: dict[str, Any]) -> Any:
        url = self._intern(_read_text(request, "url")[:LONGEST_URL])
        method = (_read_text(request, "method") or "GET").upper()[:40]
        sent, content = dict(_read_headers(request)), _read_object(response, "content")
        kind = _read_text(entry, "_resourceType").lower()
        is_document = _is_document(sent, kind)
        bare = NetworkEvent(
            index=index,
            url=url,
            method=method,
            status=_read_status(response.get("status")),
            is_document_event=is_document,
            is_static=not is_document and method in READING and _is_static(url, sent, kind, content),
        )
        if bare.is_static:
            return bare
        post = self._read_post_data(request, sent)
        return replace(
            bare,
            referer=self._intern(sent.get("referer", "")[:LONGEST_URL]),
            request_headers={self._intern(name): self._intern(value) for name, value in sent.items()},
            post_data=post,
            response_content=self._read_content(index, content),
            event_type=_classify(bare, sent, kind, post),
        )

    def _intern(self, text: str) -> str:
        """Return the text in a form that can be stored; a short text is stored once, however often it occurs."""
        if len(text) > SHARED:
            self._sent += len(text)
            return UNSTORABLE.sub("\ufffd", text)
        held = self._known.get(text)
        if held is None:
            self._sent += len(text)
            held = self._known[text] = UNSTORABLE.sub("\ufffd", text)
        return held

    def _read_post_data(self, request: dict[str, Any], headers: Mapping[str, str]) -> Body | None:
        posted = request.get("postData")
        if not isinstance(posted, dict):
            return None
        stated = _read_text(posted, "mimeType") or headers.get("content-type", "")
        body = _read_body(posted, stated)
        if body is None:
            return None
        fields = tuple((self._intern(name), self._intern(value)) for name, value in _read_pairs(posted.get("params")))
        self._sent += len(body.text)
        return replace(body, params=fields)

    def _read_content(self, index: int, content: dict[str, Any]) -> Body | None:
        stated = _read_text(content, "mimeType")
        body = _read_body(content, stated) if "text" in content or "comment" in content else None
        if body is None or not is_text(media_type(stated)):
            return None
        self._received += len(body.text)
        self._with_content.append(index)
        return body

    def _forget(self) -> None:
        """Drop the oldest response texts until the rest is within bounds."""
        while self._received > MOST_TEXT:
            index = self._with_content.popleft()
            event = self.events[index]
            if event.response_content is not None:
                self._received -= len(event.response_content.text)
                emptied = replace(event.response_content, text="", truncated=True)
                self.events[index] = replace(event, response_content=emptied)


def _read_object(message: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = message.get(key)
    return found if isinstance(found, dict) else {}


def _read_text(message: Mapping[str, Any], key: str) -> str:
    found = message.get(key)
    return found if isinstance(found, str) else ""


def _read_start(entry: Mapping[str, Any], before: float) -> float:
    """Return the start of an entry in seconds; that of the entry before if it states none."""
    try:
        stated = datetime.fromisoformat(_read_text(entry, "startedDateTime").strip())
        return (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return before


def _read_status(stated: Any) -> int:
    """Return the status of a response, 0 if there is none: browsers then write -1 or 0."""
    is_number = isinstance(stated, (int, float)) and not isinstance(stated, bool)
    return int(stated) if is_number and 0 < stated < 1000 else 0


def _read_pairs(listed: Any) -> Iterator[tuple[str, str]]:
    for pair in listed if isinstance(listed, list) else ():
        if isinstance(pair, dict) and isinstance(pair.get("name"), str):
            yield pair["name"], _read_text(pair, "value")


def _read_headers(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    headers: dict[str, str] = {}
    for name, value in _read_pairs(message.get("headers")):
        key = name.strip().lower()[:SHARED]
        if key in headers:
            headers[key] = f"{headers[key]}, {value}"[:LONGEST_HEADER]
        elif len(headers) < MOST_HEADERS:
            headers[key] = value[:LONGEST_HEADER]
    yield from headers.items()


def _read_body(message: Mapping[str, Any], stated: str) -> Body | None:
    """Return a posted or received text; a text that the import left out is empty and ``truncated``."""
    stated = stated[:SHARED]
    text = _read_text(message, "text")
    if not text:
        left_out = _read_text(message, "comment") == har.LEFT_OUT
        return Body("", stated, truncated=left_out)
    kept = decoded(text, _read_text(message, "encoding"), media_type(stated))
    if kept is None:
        return Body("", stated, truncated=True)
    return Body(UNSTORABLE.sub("\ufffd", kept[:LONGEST_TEXT]), stated, truncated=len(kept) > LONGEST_TEXT)


def _is_document(headers: Mapping[str, str], resource: str) -> bool:
    destination, mode = headers.get("sec-fetch-dest", "").lower(), headers.get("sec-fetch-mode", "").lower()
    if any("prefetch" in headers.get(name, "").lower() for name in ("sec-purpose", "purpose")):
        return False
    if destination or mode:
        return destination in ("", "document") and mode in ("", "navigate")
    if resource:
        return resource == "document"
    return headers.get("accept", "").lstrip().lower().startswith("text/html")


def _is_static(url: str, headers: Mapping[str, str], resource: str, content: Mapping[str, Any]) -> bool:
    told = headers.get("sec-fetch-dest", "").lower() in STATIC_DESTINATIONS or resource in STATIC_RESOURCES
    return told or has_static_suffix(url) or media_type(_read_text(content, "mimeType")).startswith(STATIC_MEDIA)


def _is_beacon(headers: Mapping[str, str], resource: str, post: Body | None) -> bool:
    destination = headers.get("sec-fetch-dest", "").lower()
    without_answer = destination == "empty" and headers.get("sec-fetch-mode", "").lower() == "no-cors"
    media = post.media_type if post else media_type(headers.get("content-type", ""))
    return without_answer or destination == "report" or resource in BEACON_RESOURCES or media in BEACON_MEDIA


def _classify(event: NetworkEvent, headers: Mapping[str, str], resource: str, post: Body | None) -> EventType:
    if event.is_document_event and event.method == "GET":
        return EventType.NAVIGATION
    is_mutation = event.method in MUTATING and not _is_beacon(headers, resource, post)
    return EventType.MUTATION if is_mutation else EventType.OTHER
