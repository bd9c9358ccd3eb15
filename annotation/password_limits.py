"""Limits on guessing passwords, in every form that checks one; docs/decisions/0022-limits-on-guessing.md has the
reasons.

Failures are rows of the database, which all processes share; the cache is not used.
"""

from __future__ import annotations

from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth import authenticate
from django.core.signing import BadSignature, TimestampSigner
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse

from annotation.models import Person

# Wrong passwords within AXES_COOLOFF_TIME. AXES_FAILURE_LIMIT is the limit for one name from one address.
MOST_OF_ADDRESS = 100
MOST_OF_ACCOUNT = 50
LINK_REQUESTS = "password link"  # no user name has a space
COOKIE_AGE = 180 * 24 * 3600  # seconds


class PasswordLimitHandler(AxesDatabaseHandler):
    """Handler of AXES_HANDLER: adds limits for the name alone and the address alone to the limit for both.

    The added limits do not apply to a browser in which the person has signed in before, because strangers can reach
    them.
    """

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        if super().is_locked(request, credentials):
            return True
        name = (credentials or {}).get("username")
        lately = AccessAttempt.objects.filter(attempt_time__gt=get_cool_off_threshold(request))
        exceeded = (
            _failures(lately.filter(ip_address=request.axes_ip_address)) >= MOST_OF_ADDRESS  # type: ignore[attr-defined]
            or (name != LINK_REQUESTS and _failures(lately.filter(username=name)) >= MOST_OF_ACCOUNT)
        )
        return exceeded and not is_known_browser(request, name)


def _failures(attempts: Any) -> int:
    return attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0


def confirms_password(request: HttpRequest, password: str) -> bool:
    """Return whether this is the password of the signed-in person. A wrong one counts as at the sign-in."""
    return authenticate(request, username=request.user.get_username(), password=password) is not None


def count_link_request(request: HttpRequest) -> bool:
    """Count a request for a password link like a failed sign-in from its address; return False if there were too many.

    It does not count for the name: a stranger could lock out the person.
    """
    credentials = {"username": LINK_REQUESTS}
    if not AxesProxyHandler.is_allowed(request, credentials):
        return False
    AxesProxyHandler.user_login_failed(__name__, credentials, request)
    return True


def remember_browser(response: HttpResponse, person: Person) -> None:
    """Set a cookie that proves a sign-in of the person in this browser. It is valid until their password changes."""
    value = _signer(person).sign(str(person.pk))
    response.set_cookie(
        _cookie(person), value, COOKIE_AGE, secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax"
    )


def is_known_browser(request: HttpRequest, name: str | None) -> bool:
    """Return whether the person with this user name has signed in with this browser before."""
    person = Person.objects.filter(username=name or "").first()
    try:
        return person is not None and bool(
            _signer(person).unsign(request.COOKIES.get(_cookie(person), ""), max_age=COOKIE_AGE)
        )
    except BadSignature:
        return False


def _cookie(person: Person) -> str:
    return f"{settings.COOKIE_PREFIX}known_{person.pk}"


def _signer(person: Person) -> TimestampSigner:
    return TimestampSigner(salt=f"annotation.guessing {person.pk} {person.password}")
