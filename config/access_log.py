"""Give each request an id, and write a log line at its end."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import SimpleLazyObject

from config.client_address import client_address
from config.log_formats import request_id
from config.request_counts import count

LONGEST_PATH = 1000  # characters: the system writes a line of up to 4096 bytes in one piece
PROBES = ("/healthz", "/readyz", "/metrics")

log = logging.getLogger(__name__)


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
    """Count the request, and log it without its query, which may contain a search text."""
    seconds = time.monotonic() - started
    count(request, status, seconds)
    fields = {
        "client": quote(client_address(request), safe=":.")[:64] or "-",
        "person": _find_person(request) or "-",
        "method": quote(str(request.method)),
        "path": quote(request.path)[:LONGEST_PATH],
        "status": status,
        "seconds": round(seconds, 3),
    }
    log.log(
        logging.DEBUG if request.path_info in PROBES else logging.INFO,
        "client=%s person=%s %s %s %d %.3f s",
        *fields.values(),
        extra={"fields": fields},
    )


def _find_person(request: HttpRequest) -> int | None:
    """Return the id of the signed-in person, or None if it is not loaded yet: this sends no query."""
    user = getattr(request, "user", None)
    loaded = getattr(request, "_cached_user", None) if isinstance(user, SimpleLazyObject) else user
    return loaded.pk if loaded else None
