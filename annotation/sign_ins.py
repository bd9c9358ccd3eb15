"""Stored sign-in data: sessions, failed attempts, and account changes in the administration."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from axes.helpers import get_client_ip_address
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from annotation.models import Person, SignIn

KEPT = timedelta(days=1)  # of failed sign-ins, which lock an account for minutes
USE_GRAIN = timedelta(minutes=10)  # each update is a write of the session
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
# The order matters: most browsers also name the browsers that they imitate.
BROWSERS = [("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari")]
SYSTEMS = [("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows")]
SYSTEMS += [("Mac OS", "macOS"), ("Linux", "Linux")]
METHODS = {"socialaccount": "single sign-on", "totp": "app", "webauthn": "passkey", "recovery_codes": "recovery code"}
RECORDS = (AccessAttempt, AccessFailureLog, AccessLog)  # with our settings, only the first is written


def attempts_of(person: Person, model: Any = AccessAttempt) -> QuerySet:
    """Return failed or earlier sign-ins under the person's user name or e-mail address, in any case."""
    typed = Q(username__iexact=person.username)
    return model.objects.filter(typed | Q(username__iexact=person.email) if person.email else typed)


@dataclass(frozen=True)
class ListedSession:
    """A session on the account page. Sessions of earlier versions have no times and no device."""

    device: str
    signed_in_at: datetime | None
    used_at: datetime | None
    is_this: bool
    id: str  # not the key, with which anybody could use the session


class SessionUseMiddleware:
    """Middleware that records the last use of a session, at most every `USE_GRAIN`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not request.session.accessed or response.status_code >= 500:  # the database may be down: wait only once
            return response
        used_at = _time(request.session.get("used_at"))
        if used_at is not None and timezone.now() - used_at > USE_GRAIN:
            request.session["used_at"] = timezone.now().isoformat()
            _limit(request.session)
        return response


def describe_session(request: HttpRequest) -> None:
    request.session["device"] = device_of(request.META.get("HTTP_USER_AGENT", ""))
    request.session["signed_in_at"] = request.session["used_at"] = timezone.now().isoformat()
    _limit(request.session)


def _limit(session: SessionBase) -> None:
    """Let the session end without use for SESSION_IDLE_HOURS, and SESSION_DAYS after the sign-in in any case."""
    idle = datetime.fromisoformat(session["used_at"]) + timedelta(hours=settings.SESSION_IDLE_HOURS)
    longest = datetime.fromisoformat(session["signed_in_at"]) + timedelta(days=settings.SESSION_DAYS)
    session.set_expiry(min(idle, longest))


def log_sign_in(request: HttpRequest, person: Person, records: Iterable[dict[str, Any]]) -> None:
    """Store a sign-in; ``records`` are the steps that allauth recorded, in their order."""
    steps = [METHODS.get(each.get("type") or each["method"], each["method"]) for each in records]
    SignIn.objects.create(
        person=person,
        address=str(get_client_ip_address(request) or "")[:45],
        device=device_of(request.META.get("HTTP_USER_AGENT", "")),
        method=", ".join(steps),
    )


def logged_sign_ins() -> QuerySet[SignIn]:
    """Return the stored sign-ins, the newest first."""
    return SignIn.objects.order_by("-at", "-pk")


def has_signed_in_since(request: HttpRequest, moment: datetime) -> bool:
    signed_in_at = _time(request.session.get("signed_in_at"))
    return signed_in_at is not None and signed_in_at >= moment


def device_of(user_agent: str) -> str:
    """Return browser and system from the header, such as "Firefox on Linux"."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "Unknown browser")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "unknown system")
    return f"{browser} on {system}"


def list_sessions(request: HttpRequest) -> list[ListedSession]:
    """Return the current sessions of the signed-in person: this one first, then by last use, newest first."""
    listed = []
    for row in sessions_of(request.user.pk):
        if row.expire_date > timezone.now():
            held = row.get_decoded()
            times = _time(held.get("signed_in_at")), _time(held.get("used_at"))
            device = str(held.get("device", "Unknown device"))
            is_this = row.session_key == request.session.session_key
            listed.append(ListedSession(device, *times, is_this, _public_id(row)))
    return sorted(listed, key=lambda each: (each.is_this, each.used_at or LONG_AGO), reverse=True)


def _time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def sessions_of(person_pk: int | None) -> list[Session]:
    """Return the sessions of a person. All are read: the person is encoded in the data of a session."""
    key = str(person_pk)
    return [row for row in Session.objects.iterator() if row.get_decoded().get("_auth_user_id") == key]


def _public_id(row: Session) -> str:
    return hashlib.sha256(row.session_key.encode()).hexdigest()


def end_session(person: Person, public_id: str) -> bool:
    """End the session of the person with this id of the account page; return False if there is none."""
    found = [row for row in sessions_of(person.pk) if _public_id(row) == public_id]
    for row in found:
        row.delete()
    return bool(found)


def end_sessions(person: Person, except_key: str | None = None) -> None:
    for session in sessions_of(person.pk):
        if session.session_key != except_key:
            session.delete()


def admin_entries_about(person: Person) -> QuerySet[LogEntry]:
    """Return the administration's entries about the person's account, with the name it had at the time."""
    about = LogEntry.objects.filter(content_type__app_label="annotation", content_type__model="person")
    return about.filter(object_id=str(person.pk))


def forget_sign_ins() -> int:
    """Delete expired sessions and old records of sign-ins; return the number of rows."""
    ended = Session.objects.filter(expire_date__lt=timezone.now()).delete()[0]
    logged = timezone.now() - timedelta(days=settings.SIGN_IN_LOG_DAYS)
    ended += SignIn.objects.filter(at__lt=logged).delete()[0]
    before = timezone.now() - KEPT
    return ended + sum(model.objects.filter(attempt_time__lt=before).delete()[0] for model in RECORDS)
