"""Addresses that others wrote: which of them may be opened, and a connection to the IP address that was checked."""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

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


class PrivateTarget(TargetRefused):
    """The host has an address that is not public, which the message names."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address that may be opened, only by a connection to ``ip`` (empty before the check)."""

    url: str
    scheme: str
    host: str
    port: int
    ip: str
    path: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{self.port}"


def resolve_host(host: str, port: int) -> list[str]:
    """Return every IP address that the system resolves for a host, as text; raise OSError if there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check_target(
    url: str, resolve: Resolve = resolve_host, *, own: Collection[str] = (), https_only: bool = False
) -> Target:
    """Return the target if an address may be opened, which only this function decides; else raise TargetRefused.

    ``own`` are host names and networks of the operator, which may be private, use any port, and plain HTTP.
    """
    target = parse_target(url)
    found = _find_addresses(target, resolve)
    if target.host in own or all(_is_in(each, own) for each in found):
        return replace(target, ip=found[0])
    if https_only and target.scheme != "https":
        raise TargetRefused("The address must begin with https://.")
    if target.port not in PORTS:
        raise TargetRefused(f"Port {target.port} is not allowed. Allowed: {', '.join(map(str, PORTS))}.")
    for one in found:
        if not is_public(_read_ip(one)):
            raise PrivateTarget(f"{target.host} has the address {one}, which is not public.")
    return replace(target, ip=found[0])


def parse_target(url: str) -> Target:
    """Return the parts of an address, without an IP address; raise TargetRefused if they are not usable."""
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
    _parse_literal(host)
    port = port if port is not None else 443 if parts.scheme.lower() == "https" else 80
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(url, parts.scheme.lower(), host, port, "", _quote(path))


def _find_addresses(target: Target, resolve: Resolve) -> list[str]:
    given = _parse_literal(target.host)
    try:
        found = [str(given)] if given is not None else list(resolve(target.host, target.port))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TargetRefused(f"The host {target.host} does not exist ({reason}).") from None
    if not found:
        raise TargetRefused(f"The host {target.host} does not exist.")
    return found


def _read_ip(text: str) -> IP:
    return ipaddress.ip_address(text.partition("%")[0])


def _is_in(address: str, own: Collection[str]) -> bool:
    """Return whether an address is in one of the networks of ``own``; host names in it are passed over."""
    for each in own:
        with suppress(ValueError):
            if _read_ip(address) in ipaddress.ip_network(each, strict=False):
                return True
    return False


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


# --- connection -------------------------------------------------------------------------------------------------------

Dial = Callable[[tuple[str, int], float], socket.socket]  # takes a checked address with port, and a time-out in seconds


def open_connection(place: tuple[str, int], seconds: float) -> socket.socket:
    return socket.create_connection(place, timeout=seconds)


@contextmanager
def connect(target: Target, until: float, dial: Dial) -> Iterator[http.client.HTTPConnection]:
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
