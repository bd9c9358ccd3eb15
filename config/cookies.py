"""Names of cookies: COOKIE_PREFIX, which is `__Host-` with HTTPS, and a name."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage
from django.http import HttpRequest, HttpResponse


class MessageCookie(CookieStorage):
    cookie_name = f"{settings.COOKIE_PREFIX}messages"


class MessageStorage(FallbackStorage):
    """Django's default, with the prefix (setting MESSAGE_STORAGE)."""

    storage_classes = (MessageCookie, SessionStorage)


# The first release whose cookies have the prefix. In the one after it, sessions with the former names have expired.
LAST_WITH_FORMER_NAMES = "0.1.0"


class FormerNames:
    """Middleware that also reads the cookies of earlier versions, whose names have no prefix.

    Otherwise an upgrade would sign everybody out. Remove it when a test says so: see `LAST_WITH_FORMER_NAMES`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        for name, value in list(request.COOKIES.items()):
            request.COOKIES.setdefault(settings.COOKIE_PREFIX + name, value)
        return self.get_response(request)
