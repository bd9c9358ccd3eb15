"""One page over HTTP, within limits, from an address that was checked."""

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
    """Return the answer of one server, or the address that it redirects to."""
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
    """Connect to the checked address; the connection is shut when the time is over."""
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


PORTS = (80, 443, 8080, 8443)
LONGEST = 8_000  # characters of an address
NUMERIC = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)")  # a last label that systems read as a part of a number
NAME = re.compile(r"[a-z0-9_.-]*")  # after IDNA; a browser is told of hosts in lists with commas and spaces
NAT64 = ipaddress.ip_network("64:ff9b::/96")
LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]


class TargetRefused(Exception):
    """An address that is not opened, and why."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address that may be opened, by the connection to ``ip`` and no other."""

    url: str
    scheme: str
    host: str
    port: int
    ip: str
    path: str


def resolve_host(host: str, port: int) -> list[str]:
    """Every address that the system knows for a host, as text; OSError when there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check_target(url: str, resolve: Resolve = resolve_host) -> Target:
    """Decide whether an address is opened, in this one place; raise TargetRefused with the reason if not."""
    if len(url) > LONGEST or re.search(r"[\x00-\x20\x7f\\]", url):
        raise TargetRefused("The address is too long, or has spaces, backslashes or control characters.")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
        host = host if ":" in host else host.encode("idna").decode("ascii").lower()
    except (ValueError, UnicodeError):
        raise TargetRefused("This is no address.") from None
    if ":" not in host and not NAME.fullmatch(host):
        raise TargetRefused("The address has a host of characters that no host has.")
    if parts.scheme.lower() not in ("http", "https"):
        raise TargetRefused("Only http:// and https:// are opened.")
    if not host or parts.username is not None or parts.password is not None:
        raise TargetRefused("The address has no host, or a name and a password.")
    port = port if port is not None else 443 if parts.scheme.lower() == "https" else 80
    if port not in PORTS:
        raise TargetRefused(f"Port {port} is not opened; {', '.join(map(str, PORTS))} are.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(url, parts.scheme.lower(), host, port, _choose_public(host, port, resolve), _quote(path))


def _choose_public(host: str, port: int, resolve: Resolve) -> str:
    given = _parse_literal(host)
    try:
        found = [str(given)] if given is not None else list(resolve(host, port))
    except OSError as error:
        raise TargetRefused(f"There is no host {host} ({error.strerror or error}).") from None
    for one in found:
        if not is_public(ipaddress.ip_address(one.partition("%")[0])):
            raise TargetRefused(f"{host} is at {one}, which is not a public address.")
    if not found:
        raise TargetRefused(f"There is no host {host}.")
    return found[0]


def _parse_literal(host: str) -> IP | None:
    """The address that a host is written as; None for a name. Other ways to write one (decimal, octal, hexadecimal,
    with parts left out) are refused: systems read them, each in its own way."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        if ":" in host or NUMERIC.fullmatch(host.rpartition(".")[2]):
            raise TargetRefused(f"{host} is no name, and an unusual way to write an address.") from None
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
