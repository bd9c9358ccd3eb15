"""What every sign-in has in common, however the person proved who they are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import (
    clear_authentication_records,
    get_authentication_records,
    perform_login,
    record_authentication,
)
from allauth.account.models import Login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.core.exceptions import PermissionDenied
from django.core.signing import BadSignature, TimestampSigner
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone

from annotation import password_limits, second_factor, sign_ins
from annotation.models import Person
from annotation.models.people import PasswordWay
from annotation.workflow import passwords

BACKEND = "django.contrib.auth.backends.ModelBackend"
TOLD = timedelta(days=14)  # longer than one sign-in, which may be that of the person who set the password
FRESH = timedelta(minutes=10)  # a sign-in that replaces the password of a person who has none
LINK_SECONDS = 600
WAYS = {
    PasswordWay.LINK: "with a link that an operator created",
    PasswordWay.MAIL: "with a link that was sent to your e-mail address",
    PasswordWay.ADMINISTRATION: "by an operator in the administration",
    PasswordWay.COMMAND: "by an operator on the server",
}


class AccountAdapter(DefaultAccountAdapter):
    """Hooks of django-allauth (setting ACCOUNT_ADAPTER). Its own pages and mails are not used."""

    def get_login_stages(self) -> list[str]:
        return ["allauth.mfa.stages.AuthenticateStage"]

    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse | None:
        if not user.is_active:
            raise PermissionDenied("This account is closed.")
        return None

    def login(self, request: HttpRequest, user: Any) -> None:
        login(request, user, BACKEND)

    def post_login(self, request: HttpRequest, user: Any, *, redirect_url: str | None, **kwargs: Any) -> HttpResponse:
        response = HttpResponseRedirect(redirect_url or settings.LOGIN_REDIRECT_URL)  # not the name of a view
        password_limits.remember_browser(response, user)
        sign_ins.describe_session(request)
        records = get_authentication_records(request, user)
        sign_ins.log_sign_in(request, user, records)
        methods = [each["method"] for each in records]
        if "mfa" in methods:
            request.session[second_factor.SESSION_KEY] = True
        if "link" not in methods:
            _show_password_notice(request)
        return response


def sign_in(request: HttpRequest, person: Person, method: str, next_url: str = "") -> HttpResponse:
    """Sign a person in who has proved their identity by ``method``, and return the redirect to ``next_url``."""
    if request.user.is_authenticated:  # that session may have ended with a new password, or be another person's
        logout(request)
    clear_authentication_records(request)
    record_authentication(request, person, method)
    return cast(HttpResponse, perform_login(request, Login(user=person, redirect_url=next_url)))


def create_link(person: Person) -> str:
    """Return the token of a link that signs an operator in once, within `LINK_SECONDS`."""
    return _link_signer(person).sign(str(person.pk))


def take_link(token: str) -> Person | None:
    """Return the operator of a link and end its validity, or return None if it is not valid."""
    pk = token.partition(":")[0]
    with transaction.atomic():
        operators = Person.objects.select_for_update(no_key=True, of=("self",)).filter(
            is_superuser=True, is_active=True
        )
        person = operators.filter(pk=pk).first() if pk.isdecimal() and len(pk) < 10 else None
        try:
            if person is None or not _link_signer(person).unsign(token, max_age=LINK_SECONDS):
                return None
        except BadSignature:
            return None
        person.last_login = timezone.now()  # part of the signature
        person.save(update_fields=["last_login"])
    return person


def _link_signer(person: Person) -> TimestampSigner:
    return TimestampSigner(salt=f"annotation.sign_in_link {person.pk} {person.password} {person.last_login}")


def confirms_identity(request: HttpRequest, password: str) -> bool:
    """Return whether this is the signed-in person's password or, if they have none, whether they just signed in."""
    if cast(Person, request.user).has_usable_password():
        return password_limits.confirms_password(request, password)
    return sign_ins.has_signed_in_since(request, timezone.now() - FRESH)


def _show_password_notice(request: HttpRequest) -> None:
    """Show a notice if another person has recently set the password, and could thus act as this person."""
    for event in passwords.changes_by_others(cast(Person, request.user).pk).filter(at__gt=timezone.now() - TOLD):
        when, how = f"{event.at:%Y-%m-%d %H:%M} UTC", WAYS[event.payload["way"]]
        what_to_do = "If you did not ask for this, contact the maintainers of your submissions."
        messages.warning(request, f"Your password was set {how} on {when}. {what_to_do}")
