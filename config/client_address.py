"""Client address of a request, and the address to which limits on wrong passwords apply."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """Return the address of the peer or, behind BEHIND_PROXY proxies, the one that the outermost proxy saw.

    Each proxy appends the address of its own peer to X-Forwarded-For, so only the last BEHIND_PROXY entries are
    trustworthy. The client can forge the entries before them.
    """
    peer: str = request.META.get("REMOTE_ADDR", "")
    seen = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    proxies = settings.BEHIND_PROXY
    return seen[-proxies] if proxies and len(seen) >= proxies else peer


def limited_address(request: HttpRequest) -> str:
    """Return the client address; for IPv6 its /64 network, because one customer has all addresses of it."""
    address = client_address(request)
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket has no address
        return address
    if parsed.version == 4 or parsed.ipv4_mapped:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
