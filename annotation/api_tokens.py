"""Sign-in of scripts: `Authorization: Bearer wv_...`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from annotation.models import ApiToken

LAST_USED_GRAIN = timedelta(minutes=1)  # a busy script would otherwise write a row with every request


class TokenAuthentication(authentication.BaseAuthentication):
    """A token that is known, not revoked, and belongs to an active person."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        scheme, _, value = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != self.keyword.lower():
            return None
        token = ApiToken.objects.select_related("person").filter(digest=ApiToken.digest_of(value.strip())).first()
        if token is None or token.revoked_at is not None or not token.person.is_active:
            raise exceptions.AuthenticationFailed(
                "This token is unknown or revoked; make a new one on your account page."
            )
        now = timezone.now()
        if token.last_used_at is None or now - token.last_used_at > LAST_USED_GRAIN:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.person, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


class TokenScheme(OpenApiAuthenticationExtension):
    """How the schema describes the tokens."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
