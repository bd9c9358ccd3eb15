"""Download of one page over HTTP, within limits, from a checked address."""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

MEGABYTE = 1024 * 1024
HTML = ("text/html", "application/xhtml+xml")
PDF = "application/pdf"
PDF_MARK = b"%PDF-"
REDIRECTS = (301, 302, 303, 307, 308)
GONE = (404, 410)  # the page does not exist; no other status proves that
AGENT = "Mozilla/5.0 (compatible; WebVerdict page capture)"


Dial = Callable[[tuple[str, int], float], socket.socket]  # takes a checked address with port, and a time-out in seconds


def open_connection(place: tuple[str, int], seconds: float) -> socket.socket:
    return socket.create_connection(place, timeout=seconds)


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
    if time.monotonic() >= until:  # the body may be incomplete: the guard has shut the connection
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
    """Connect to the checked address; the connection is shut when the time is over."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    plain = dial((target.ip, target.port), left)
    spare = plain.dup()  # a second handle of the connection, valid if TLS wraps the first
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


PORTS = (80, 443, 8080, 8443)
LONGEST = 8_000  # characters of an address
NUMERIC = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)")  # a last label that systems parse as part of a numeric address
NAME = re.compile(r"[a-z0-9_.-]*")  # after IDNA; commas and spaces separate hosts in browser options
NAT64 = ipaddress.ip_network("64:ff9b::/96")
LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]


class TargetRefused(Exception):
    """The reason why an address is not opened."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address that may be opened, only by a connection to ``ip``."""

    url: str
    scheme: str
    host: str
    port: int
    ip: str
    path: str


def resolve_host(host: str, port: int) -> list[str]:
    """Return every IP address that the system resolves for a host, as text; raise OSError if there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check_target(url: str, resolve: Resolve = resolve_host) -> Target:
    """Return the target if an address may be opened, which only this function decides; else raise TargetRefused."""
    if len(url) > LONGEST or re.search(r"[\x00-\x20\x7f\\]", url):
        raise TargetRefused("The address is too long, or has spaces, backslashes or control characters.")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
        host = host if ":" in host else host.encode("idna").decode("ascii").lower()
    except (ValueError, UnicodeError):
        raise TargetRefused("This is not an address.") from None
    if ":" not in host and not NAME.fullmatch(host):
        raise TargetRefused("The host of the address has invalid characters.")
    if parts.scheme.lower() not in ("http", "https"):
        raise TargetRefused("The address must begin with http:// or https://.")
    if not host or parts.username is not None or parts.password is not None:
        raise TargetRefused("The address has no host, or it contains a user name and password.")
    port = port if port is not None else 443 if parts.scheme.lower() == "https" else 80
    if port not in PORTS:
        raise TargetRefused(f"Port {port} is not allowed. Allowed: {', '.join(map(str, PORTS))}.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(url, parts.scheme.lower(), host, port, _choose_public(host, port, resolve), _quote(path))


def _choose_public(host: str, port: int, resolve: Resolve) -> str:
    given = _parse_literal(host)
    try:
        found = [str(given)] if given is not None else list(resolve(host, port))
    except OSError as error:
        raise TargetRefused(f"The host {host} does not exist ({error.strerror or error}).") from None
    for one in found:
        if not is_public(ipaddress.ip_address(one.partition("%")[0])):
            raise TargetRefused(f"{host} has the address {one}, which is not public.")
    if not found:
        raise TargetRefused(f"The host {host} does not exist.")
    return found[0]


def _parse_literal(host: str) -> IP | None:
    """Return the IP address if the host is one, or None for a name. Raise TargetRefused for other notations (decimal,
    octal, hexadecimal, with omitted parts), because systems parse them differently."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        if ":" in host or NUMERIC.fullmatch(host.rpartition(".")[2]):
            raise TargetRefused(f"{host} is neither a host name nor an address in the usual notation.") from None
        return None


def is_public(address: IP) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address in LOCAL_NAT64 or address.sixtofour or address.teredo or address.is_site_local:
            return False
    special = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    return address.is_global and not special and not address.is_reserved and not address.is_unspecified


def _quote(path: str) -> str:
    return quote(path, safe="".join(map(chr, range(0x21, 0x7F))), errors="replace")
