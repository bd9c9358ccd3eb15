"""Which account an identity of the provider belongs to, and which rights its groups give.

An identity is linked only through an invitation, or by a signed-in person with their password. Addresses and names
never identify anybody: at many providers people choose them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any, NoReturn

from allauth.account.internal.flows.login import clear_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthError
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from requests import RequestException, Timeout

from annotation.models import Person
from annotation.models.people import lock_with_operators
from annotation.openid_connect import Claims, Exchange, LimitedSession, Provider
from annotation.workflow.passwords import has_joined, record_account_change

logger = logging.getLogger(__name__)
# A provider that does not answer must not occupy all threads of a web server.
_exchanges = BoundedSemaphore(2)
PATIENCE = 3.0  # seconds to wait for one of these
LONGEST_NAME = 150  # characters of Person.username, first_name and last_name
NO_ACCOUNT = (
    "No account here",
    "Your identity at {name} is not linked to an account here. Ask a maintainer for an invitation.",
)
TAKEN = (
    "This identity belongs to another account",
    (
        "Another account here is linked to the identity that you used at {name}. Nothing was changed. Sign in there "
        "with your own identity."
    ),
)
USED = (
    "This invitation does not work any more",
    "It was used, or it is too old. Ask the maintainer who invited you for a new link.",
)
CLOSED = ("This account is closed", "An operator has closed your account. Ask an operator to open it again.")
OTHER_SESSION = ("You are not signed in any more", "Nothing was linked. Sign in, then link your identity again.")
SILENT = ("No answer from {name}", "Nothing was changed. Try again in a few minutes, or ask an operator.")
WRONG = ("The sign-in could not be verified", "The reply of {name} was not as expected. Start the sign-in again.")


class SocialAdapter(DefaultSocialAccountAdapter):
    """Hooks of django-allauth (setting SOCIALACCOUNT_ADAPTER)."""

    def get_requests_session(self) -> LimitedSession:
        return LimitedSession()

    def list_apps(self, request: HttpRequest, provider: Any = None, client_id: Any = None) -> list[SocialApp]:
        """Return the provider of the settings. The table of providers is not used."""
        if not settings.OIDC_ISSUER:
            return []
        fields = {"provider_id": settings.OIDC_ISSUER, "name": settings.OIDC_NAME}
        keys = {"client_id": settings.OIDC_CLIENT_ID, "secret": settings.OIDC_CLIENT_SECRET}
        return [SocialApp(provider=Provider.id, settings={}, **fields, **keys)]

    def get_provider(self, request: HttpRequest, provider: Any, client_id: Any = None) -> Provider:
        return Provider(request, app=self.get_app(request, provider))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        clear_authentication_records(request)
        purpose = sociallogin.state.get("data") or {}
        linked = sociallogin.user if sociallogin.is_existing else None
        try:
            with transaction.atomic():
                person = _find_person(request, sociallogin, purpose, linked)
                apply_groups(person, sociallogin.claims)
        except IntegrityError:  # another account has the identity, maybe since this moment
            refuse(request, TAKEN)
        if "link" in purpose:
            messages.success(request, f"Identity linked. You can sign in with {settings.OIDC_NAME}.")
            raise ImmediateHttpResponse(redirect("account"))
        sociallogin.user = Person.objects.get(pk=person.pk)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False  # `pre_social_login` has created the account, if there is to be one

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        if error == AuthError.CANCELLED:
            messages.info(request, f"You cancelled the sign-in at {settings.OIDC_NAME}.")
            raise ImmediateHttpResponse(redirect("sign-in"))
        raise ImmediateHttpResponse(_fail(request, exception))


def redirect_to_provider(request: HttpRequest, next_url: str = "", **purpose: Any) -> HttpResponse:
    """Return a page that leads to the provider.

    ``purpose`` is empty for a sign-in, else ``link``: the primary key of the signed-in person, or ``invitation``:
    primary key and token. It is stored in the session. A redirect instead of a page would break `form-action` of the
    content security policy in Chromium.
    """
    provider = get_adapter().get_provider(request, settings.OIDC_ISSUER)
    try:
        with _exchanging():
            response = provider.redirect(request, process="login", next_url=next_url, data=purpose)
    except (OAuth2Error, RequestException) as error:
        return _fail(request, error)
    return render(request, "registration/to_provider.html", {"address": response["Location"]})


def complete(request: HttpRequest) -> HttpResponse:
    """Answer the redirect with which the provider sends a browser back."""
    try:
        with _exchanging():
            return OAuth2CallbackView.adapter_view(Exchange(request, settings.OIDC_ISSUER))(request)
    except (OAuth2Error, RequestException) as error:
        return _fail(request, error)


@contextmanager
def _exchanging() -> Iterator[None]:
    if not _exchanges.acquire(timeout=PATIENCE):
        raise Timeout("All exchanges with the provider wait for it.")
    try:
        yield
    finally:
        _exchanges.release()


def identity_of(person: Person) -> SocialAccount | None:
    """Return the identity that is linked to a person, at the provider of the settings."""
    return SocialAccount.objects.filter(user=person, provider=settings.OIDC_ISSUER or None).first()


def _fail(request: HttpRequest, error: Exception | None) -> HttpResponse:
    unreachable = isinstance(error, RequestException)
    logger.warning("Single sign-on failed: %s", f"{type(error).__name__}: {error}" if error else "no usable reply")
    return _explain(request, SILENT if unreachable else WRONG, 503 if unreachable else 400)


def _explain(request: HttpRequest, texts: tuple[str, str], status: int) -> HttpResponse:
    title, text = (each.format(name=settings.OIDC_NAME) for each in texts)
    return render(request, "registration/not_signed_in.html", {"title": title, "text": text}, status=status)


def refuse(request: HttpRequest, texts: tuple[str, str]) -> NoReturn:
    raise ImmediateHttpResponse(_explain(request, texts, 403))


def _find_person(request: HttpRequest, login: SocialLogin, purpose: dict[str, Any], linked: Person | None) -> Person:
    """Return the account of an identity; link or create it if the purpose or the groups allow that."""
    if "link" in purpose or "invitation" in purpose:
        pk, token = purpose["invitation"] if "invitation" in purpose else (purpose["link"], None)
        # All operators at once, in the order of `apply_groups`, which locks them again.
        person = next(each for each in lock_with_operators(Person.objects.get(pk=pk)) if each.pk == pk)
        if token is None and (not request.user.is_authenticated or request.user.pk != pk):
            refuse(request, OTHER_SESSION)
        if token is not None and (has_joined(person) or not default_token_generator.check_token(person, token)):
            refuse(request, USED)
        _require_open(request, person)
        SocialAccount.objects.update_or_create(
            user=person, provider=login.account.provider, defaults={"uid": login.account.uid}
        )
        if token is not None:
            person.last_login = timezone.now()  # ends the invitation, even if this request fails later
            person.save(update_fields=["last_login"])
        return person
    if linked is not None:
        _require_open(request, linked)
        return linked
    if not any(_rights_of(login.claims).values()):
        refuse(request, NO_ACCOUNT)
    person = _create_person(login.claims)
    SocialAccount.objects.create(user=person, provider=login.account.provider, uid=login.account.uid)
    return person


def _require_open(request: HttpRequest, person: Person) -> None:
    if not person.is_active:
        refuse(request, CLOSED)


def _create_person(claims: Claims) -> Person:
    email = _verified_email(claims)
    wanted = _text(claims, "preferred_username") or email.partition("@")[0] or "person"
    name = re.sub(r"[^\w.@+-]", "-", Person.normalize_username(wanted))[: LONGEST_NAME - 10]
    free, number = name, 1
    while Person.objects.filter(username__iexact=free).exists():
        number += 1
        free = f"{name}-{number}"
    names = {"first_name": _text(claims, "given_name"), "last_name": _text(claims, "family_name")}
    return Person.objects.create_user(free, email, **names)


def _text(claims: Claims, name: str) -> str:
    value = claims.get(name)
    return value.replace("\x00", "").strip()[:LONGEST_NAME] if isinstance(value, str) else ""


def _verified_email(claims: Claims) -> str:
    email = claims.get("email")
    if claims.get("email_verified") not in (True, "true") or not isinstance(email, str):
        return ""
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if len(email) <= 254 else ""


def _rights_of(claims: Claims) -> dict[str, bool]:
    """Return, for each right that has a group in the settings, whether the claims have that group."""
    given = claims.get(settings.OIDC_GROUPS_CLAIM, [])
    groups = given if isinstance(given, list) else [given]
    named = {"is_superuser": settings.OIDC_OPERATOR_GROUP, "is_staff": settings.OIDC_MAINTAINER_GROUP}
    return {right: group in groups for right, group in named.items() if group}


def apply_groups(person: Person, claims: Claims) -> None:
    """Give and take the rights that have a group, and record a change. The last operator stays one."""
    with transaction.atomic():
        locked = lock_with_operators(person)
        row = next(each for each in locked if each.pk == person.pk)
        changed = {right: value for right, value in _rights_of(claims).items() if getattr(row, right) != value}
        if changed.get("is_superuser") is False and len(locked) == 1:
            logger.warning("Account %s is the last operator and stays one without its group.", row.pk)
            del changed["is_superuser"]
        if changed:
            for right, value in changed.items():
                setattr(row, right, value)
            row.save(update_fields=list(changed))
            record_account_change(None, row, changed)
