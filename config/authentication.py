"""Who sends a request, also while SECRET_KEY changes."""

from typing import cast

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend, middleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from annotation.models import Person


class AuthenticationMiddleware(middleware.AuthenticationMiddleware):
    """Django's, but a session that was opened under one of SECRET_KEY_FALLBACKS keeps its key.

    Django gives it another key and deletes it, so that requests which the browser had sent at the same time find no
    session, and sign the person out.
    """

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if settings.SECRET_KEY_FALLBACKS:
            request.user = cast(Person, SimpleLazyObject(lambda: _get_user(request)))


def _get_user(request: HttpRequest) -> Person | AnonymousUser:
    _update_hash(request)
    return middleware.get_user(request)


def _update_hash(request: HttpRequest) -> None:
    """Write the hash of the present SECRET_KEY into a session with one of a fallback."""
    given = request.session.get(HASH_SESSION_KEY)
    backend = request.session.get(BACKEND_SESSION_KEY)
    if not given or backend not in settings.AUTHENTICATION_BACKENDS:
        return
    person = load_backend(backend).get_user(request.session.get(SESSION_KEY))
    if person and any(constant_time_compare(given, known) for known in person.get_session_auth_fallback_hash()):
        request.session[HASH_SESSION_KEY] = person.get_session_auth_hash()
