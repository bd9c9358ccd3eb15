"""Download of one page over HTTP, within limits, from a checked address."""

from __future__ import annotations

import http.client
import ssl
import time
import zlib
from dataclasses import dataclass
from urllib.parse import urljoin

from annotation.web_targets import Dial, Resolve, Target, check_target, connect, open_connection

MEGABYTE = 1024 * 1024
HTML = ("text/html", "application/xhtml+xml")
PDF = "application/pdf"
PDF_MARK = b"%PDF-"
REDIRECTS = (301, 302, 303, 307, 308)
GONE = (404, 410)  # the page does not exist; no other status proves that
AGENT = "Mozilla/5.0 (compatible; WebVerdict page capture)"


class CaptureError(Exception):
    """The reason why a page could not be captured; the capture may be tried again."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits for one page. ``seconds`` include redirects and the screenshot. ``size`` is in bytes: it applies to the
    page itself, and separately to everything that the browser receives for the screenshot."""

    seconds: float = 30.0
    size: int = 20 * MEGABYTE
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    target: Target
    status: int
    content_type: str
    charset: str
    body: bytes

    @property
    def is_pdf(self) -> bool:
        return self.content_type == PDF or (self.content_type not in HTML and self.body.startswith(PDF_MARK))


def fetch(url: str, resolve: Resolve, limits: FetchLimits, dial: Dial = open_connection) -> Fetched:
    """Return the page at ``url``; raise TargetRefused for a forbidden address, CaptureError for other failures.

    Proxies and cookies of the environment are not used.
    """
    until = time.monotonic() + limits.seconds
    for _ in range(limits.redirects + 1):
        target = check_target(url, resolve)
        answer = _ask(target, until, limits, dial)
        if isinstance(answer, Fetched):
            return answer
        url = urljoin(target.url, answer)
    raise CaptureError(f"It has more than {limits.redirects} redirects.")


def _ask(target: Target, until: float, limits: FetchLimits, dial: Dial) -> Fetched | str:
    """Return the answer of one server, or the address that it redirects to."""
    late = CaptureError(f"The server did not complete its answer within {limits.seconds:g} seconds.")
    try:
        with connect(target, until, dial) as connection:
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
    if time.monotonic() >= until:  # the body may be incomplete: the guard has shut the connection
        raise late
    return found


def _build_headers(target: Target) -> dict[str, str]:
    return {
        "Host": target.host_header,
        "User-Agent": AGENT,
        "Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


def _read(target: Target, response: http.client.HTTPResponse, limits: FetchLimits) -> Fetched:
    if response.status >= 400 and response.status not in GONE:
        raise CaptureError(f"The server answered {response.status}.")
    content_type = response.headers.get_content_type()
    if content_type not in (*HTML, PDF, "application/octet-stream"):
        raise CaptureError(f"It is {content_type[:80]}, which is neither a web page nor a PDF.")
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
        raise CaptureError("It is neither a web page nor a PDF.")
    return found
