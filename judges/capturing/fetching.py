"""One page over HTTP, within limits, from an address that was checked."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from judges.capturing.targets import Resolve, Target, check_target

MEGABYTE = 1024 * 1024
HTML = ("text/html", "application/xhtml+xml")
PDF = "application/pdf"
PDF_MARK = b"%PDF-"
REDIRECTS = (301, 302, 303, 307, 308)
GONE = (404, 410)  # what a page says that does not exist; every other error says nothing about it
AGENT = "Mozilla/5.0 (compatible; WebVerdict page capture)"


Dial = Callable[[tuple[str, int], float], socket.socket]  # a checked address and port, and seconds


def open_connection(place: tuple[str, int], seconds: float) -> socket.socket:
    return socket.create_connection(place, timeout=seconds)


class CaptureError(Exception):
    """A page that could not be captured, and why; it may be tried again."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """``seconds`` are for one page with its redirects and its picture. ``size`` is in bytes: of the page itself, and
    again of everything that the browser receives for the picture."""

    seconds: float = 30.0
    size: int = 20 * MEGABYTE
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came from ``target``, after redirects."""

    target: Target
    status: int
    content_type: str
    charset: str
    body: bytes

    @property
    def is_pdf(self) -> bool:
        return self.content_type == PDF or (self.content_type not in HTML and self.body.startswith(PDF_MARK))


def fetch(url: str, resolve: Resolve, limits: FetchLimits, dial: Dial = open_connection) -> Fetched:
    """The page at ``url``; TargetRefused for an address that is not opened, CaptureError for all that goes wrong.

    Neither proxies nor cookies of the environment are used.
    """
    until = time.monotonic() + limits.seconds
    for _ in range(limits.redirects + 1):
        target = check_target(url, resolve)
        answer = _ask(target, until, limits, dial)
        if isinstance(answer, Fetched):
            return answer
        url = urljoin(target.url, answer)
    raise CaptureError(f"It leads on more than {limits.redirects} times.")


def _ask(target: Target, until: float, limits: FetchLimits, dial: Dial) -> Fetched | str:
    """The answer of one server, or where it points instead."""
    late = CaptureError(f"There was no whole answer within {limits.seconds:g} seconds.")
    try:
        with _connect(target, until, dial) as connection:
            connection.request("GET", target.path, headers=_build_headers(target))
            with connection.getresponse() as response:
                place = response.headers.get("location", "")
                if response.status in REDIRECTS and place:
                    return place
                found = _read(target, response, limits)
    except TimeoutError:
        raise late from None
    except CaptureError:
        if time.monotonic() < until:
            raise
        raise late from None
    except ssl.SSLError as error:
        raise CaptureError(f"No safe connection: {error.reason or 'the certificate is not valid'}.") from None
    except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
        if time.monotonic() < until:
            raise CaptureError(f"The connection failed: {type(error).__name__}.") from None
        raise late from None
    if time.monotonic() >= until:  # what came may be a part only: the guard has shut the connection
        raise late
    return found


def _build_headers(target: Target) -> dict[str, str]:
    usual = {"http": 80, "https": 443}[target.scheme]
    host = f"[{target.host}]" if ":" in target.host else target.host
    return {
        "Host": host if target.port == usual else f"{host}:{target.port}",
        "User-Agent": AGENT,
        "Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


@contextmanager
def _connect(target: Target, until: float, dial: Dial) -> Iterator[http.client.HTTPConnection]:
    """A connection to the checked address, which is shut when the time is over, whoever is still sending."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    plain = dial((target.ip, target.port), left)
    spare = plain.dup()  # a hold on the same connection, whatever wraps it
    guard = threading.Timer(left, _shut, (spare,))
    guard.daemon = True
    guard.start()
    connection = http.client.HTTPConnection(target.host, target.port)
    try:
        connection.sock = _secure(plain, target) if target.scheme == "https" else plain
        yield connection
    finally:
        guard.cancel()
        connection.close()
        plain.close()
        spare.close()


def _secure(plain: socket.socket, target: Target) -> Any:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _read(target: Target, response: http.client.HTTPResponse, limits: FetchLimits) -> Fetched:
    if response.status >= 400 and response.status not in GONE:
        raise CaptureError(f"The server answered {response.status}.")
    content_type = response.headers.get_content_type()
    if content_type not in (*HTML, PDF, "application/octet-stream"):
        raise CaptureError(f"It is {content_type[:80]}, neither a web page nor a PDF.")
    body = response.read(limits.size + 1)
    if len(body) > limits.size:
        raise CaptureError(f"It has more than {limits.size:,} bytes.")
    if response.headers.get("content-encoding", "identity").lower() in ("gzip", "deflate"):
        body = zlib.decompressobj(wbits=47).decompress(body, limits.size + 1)
    if len(body) > limits.size:
        raise CaptureError(f"It has more than {limits.size:,} bytes.")
    if response.length:
        raise CaptureError("The connection ended before the page did.")
    charset = response.headers.get_content_charset() or ""
    found = Fetched(target, response.status, content_type, charset, body)
    if content_type == "application/octet-stream" and not found.is_pdf:
        raise CaptureError("It is a file of some kind, neither a web page nor a PDF.")
    return found
