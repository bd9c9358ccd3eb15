"""Log format with one line per record and the id of its request, and a log line at the end of each request."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import SimpleLazyObject

from config.client_address import client_address

LONGEST_PATH = 1000  # characters: the system writes a line of up to 4096 bytes in one piece
PROBES = ("/healthz", "/readyz")

# The secret part of a link in an e-mail or an invitation. Django also logs the path of a rejected request.
LINK = re.compile(r"(/(?:join/[^/\s]+|new-password/[^/\s]+|unsubscribe)/)\S+")

log = logging.getLogger(__name__)
request_id: ContextVar[str] = ContextVar("request_id", default="")


class AccessLog:
    """Middleware that gives each request an id, returns it as X-Request-ID, and logs the request at its end."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.monotonic()
        # Not reset at the end: a streamed body may log too. The next request of the thread sets its own id.
        request_id.set(_choose_id(request))
        response = self.get_response(request)
        response["X-Request-ID"] = request_id.get()
        # After the last byte of a download. Servers close a response even if the client has gone.
        closers = response._resource_closers  # type: ignore[attr-defined]  # the stubs do not have it
        closers.append(lambda: _write_line(request, response.status_code, started))
        return response


def _choose_id(request: HttpRequest) -> str:
    given = request.headers.get("X-Request-ID", "")
    # Without a proxy that overwrites it, anybody could send this header.
    return given if settings.BEHIND_PROXY and re.fullmatch("[A-Za-z0-9-]{1,64}", given) else uuid.uuid4().hex


def _write_line(request: HttpRequest, status: int, started: float) -> None:
    """Log the request without its query, which may contain a search text."""
    log.log(
        logging.DEBUG if request.path_info in PROBES else logging.INFO,
        "client=%s person=%s %s %s %d %.3f s",
        quote(client_address(request), safe=":.")[:64] or "-",
        _find_person(request) or "-",
        quote(str(request.method)),
        quote(request.path)[:LONGEST_PATH],
        status,
        time.monotonic() - started,
    )


def _find_person(request: HttpRequest) -> int | None:
    """Return the id of the signed-in person, or None if it is not loaded yet: this sends no query."""
    user = getattr(request, "user", None)
    loaded = getattr(request, "_cached_user", None) if isinstance(user, SimpleLazyObject) else user
    return loaded.pk if loaded else None


class OneLineFormatter(logging.Formatter):
    """Formatter that writes each record as one line. Line ends become ` | ` and control characters are escaped, so
    that nobody can forge a line.

    The secret of a link is removed. ``{request}`` is the id of the request that a record belongs to.
    """

    def format(self, record: logging.LogRecord) -> str:
        record.request = f" request={number}" if (number := request_id.get()) else ""
        line = " | ".join(super().format(record).splitlines())
        line = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
        return LINK.sub(r"\1...", line)
