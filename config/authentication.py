"""Hashing of passwords, and authentication of requests, also after a change of SECRET_KEY."""

from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend, middleware
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from annotation.models import Person

LARGE = 6  # digits of a length in bytes; config/Caddyfile passes such bodies on while they arrive


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with the parameters that OWASP's Password Storage Cheat Sheet recommends: 19 MiB, two passes.

    A check takes a twentieth of the CPU time of Django's default, so that many people can sign in at once.
    """

    memory_cost = 19 * 1024  # KiB
    time_cost = 2
    parallelism = 1


class AuthenticationMiddleware(middleware.AuthenticationMiddleware):
    """Django's middleware, except that a session from one of SECRET_KEY_FALLBACKS does not get a new session key.

    Django creates a new session and deletes the old one. Other requests that the browser sent at the same time then
    find no session and sign the person out.
    """

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if settings.SECRET_KEY_FALLBACKS:
            request.user = cast(Person, SimpleLazyObject(lambda: _get_user(request)))


class SignInBeforeFiles:
    """Middleware that does not read large bodies, such as files, of people who are not signed in.

    The check of CSRF tokens would read them first, however slowly they arrive. The API checks a token before the body.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        large = len(request.META.get("CONTENT_LENGTH", "")) >= LARGE
        if large and not request.path_info.startswith("/api/") and not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return self.get_response(request)


def _get_user(request: HttpRequest) -> Person | AnonymousUser:
    _update_hash(request)
    return middleware.get_user(request)


def _update_hash(request: HttpRequest) -> None:
    """Replace the hash of a fallback key in a session with the hash of the current SECRET_KEY."""
    given = request.session.get(HASH_SESSION_KEY)
    backend = request.session.get(BACKEND_SESSION_KEY)
    if not given or backend not in settings.AUTHENTICATION_BACKENDS:
        return
    person = load_backend(backend).get_user(request.session.get(SESSION_KEY))
    if person and any(constant_time_compare(given, known) for known in person.get_session_auth_fallback_hash()):
        request.session[HASH_SESSION_KEY] = person.get_session_auth_hash()
