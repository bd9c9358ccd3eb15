"""Pages without sign-in: the same bytes for everybody, cacheable, with a limit of requests per IP address."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from axes.helpers import get_client_ip_address
from django.conf import settings
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import get_conditional_response, patch_cache_control, patch_vary_headers
from django.utils.crypto import salted_hmac
from django.utils.http import quote_etag
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

SHORTLY = 60  # seconds that caches may store a page: until then, readers may still see removed texts
WINDOW = 60  # seconds in which requests are counted
View = TypeVar("View", bound=Callable[..., HttpResponse])

log = logging.getLogger(__name__)


def public(view: View) -> View:
    """Decorate a view that anybody may read (GET or HEAD); it must use neither session, cookies nor messages.

    An address that sends more than REGISTRY_REQUESTS_PER_MINUTE gets 429. `second_factor` reads ``is_public``.
    """

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if _exceeds_limit(request):
            return _refuse()
        try:
            response = view(request, *args, **kwargs)
        except Http404:
            # The same page for missing and for unpublished entries, so that it does not reveal which exist.
            response = render(request, "evaluations/registry_missing.html", status=404)
        patch_cache_control(response, public=True, max_age=SHORTLY)
        patch_vary_headers(response, ["Accept-Encoding"])
        return response

    answered.is_public = True  # type: ignore[attr-defined]
    return gzip_page(require_safe(answered))  # type: ignore[return-value]


def answer(request: HttpRequest, seal: str, build: Callable[[], HttpResponse]) -> HttpResponse:
    """Return 304 if the reader has the page with this seal, else build it; links of feeds depend on the host."""
    etag = quote_etag(hashlib.sha256(f"{request.scheme} {request.get_host()} {seal}".encode()).hexdigest()[:32])
    response = get_conditional_response(request, etag=etag) or build()
    response["ETag"] = etag
    return response


def _exceeds_limit(request: HttpRequest) -> bool:
    """Count the request. Nothing is limited while the cache does not respond, because the pages do not need it."""
    if not settings.REGISTRY_REQUESTS_PER_MINUTE:
        return False
    key = salted_hmac("public pages", str(get_client_ip_address(request) or "")).hexdigest()
    try:
        cache.add(key, 0, WINDOW)
        return bool(cache.incr(key) > settings.REGISTRY_REQUESTS_PER_MINUTE)
    except ValueError:  # it expired in between
        return False
    except Exception:  # each backend has its own errors
        log.warning("The cache does not answer: requests for public pages are not limited.", exc_info=True)
        return False


def _refuse() -> HttpResponse:
    text = f"Too many requests from your network. Try again in {WINDOW} seconds.\n"
    headers = {"Retry-After": str(WINDOW), "Cache-Control": "no-store"}
    return HttpResponse(text, status=429, headers=headers, content_type="text/plain; charset=utf-8")
