"""Whose address a request came from, for the limit on failed sign-ins."""

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
