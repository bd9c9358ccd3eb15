"""Which addresses may be opened: public ones, and nothing of this machine or its networks."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

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
    """The one place where it is decided what is opened; TargetRefused says why something is not."""
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
