"""The address that a request came from, and the one by which wrong passwords are limited."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The address of the peer or, behind BEHIND_PROXY proxies, the one that the outermost of them saw.

    Each proxy appends the address of its own peer to X-Forwarded-For, so only the last BEHIND_PROXY entries are
    trustworthy; what stands before them was written by the client.
    """
    peer: str = request.META.get("REMOTE_ADDR", "")
    seen = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    proxies = settings.BEHIND_PROXY
    return seen[-proxies] if proxies and len(seen) >= proxies else peer


def limited_address(request: HttpRequest) -> str:
    """Return the client address, of IPv6 its network of 64 bits: one customer has all addresses of such a network."""
    address = client_address(request)
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a socket of the machine has none
        return address
    if parsed.version == 4 or parsed.ipv4_mapped:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
