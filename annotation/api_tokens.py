"""Sign-in of scripts: `Authorization: Bearer wv_...`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from annotation.models import ApiToken
from annotation.models.people import Scope

LAST_USED_GRAIN = timedelta(minutes=1)  # a busy script would otherwise write a row with every request


class TokenAuthentication(authentication.BaseAuthentication):
    """Accept a known token of an active person that is neither revoked nor expired."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        scheme, _, value = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != self.keyword.lower():
            return None
        token = ApiToken.objects.select_related("person").filter(digest=ApiToken.digest_of(value.strip())).first()
        if token is None or not token.is_usable or not token.person.is_active:
            raise exceptions.AuthenticationFailed(
                "This token is unknown, revoked or expired. Create a new one on your account page."
            )
        now = timezone.now()
        if token.last_used_at is None or now - token.last_used_at > LAST_USED_GRAIN:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.person, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


class ScopePermission(BasePermission):
    """Refuse a token whose scope does not include the one that the view's ``scopes`` declares for the method.

    No token may use a method without a declared scope. A person in a browser has no such limit.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        token, method = request.auth, "GET" if request.method == "HEAD" else str(request.method)
        if not isinstance(token, ApiToken) or method not in view.allowed_methods:  # an unknown method gets 405
            return True
        needed = Scope.READ if method == "OPTIONS" else getattr(view, "scopes", {}).get(method)
        self.message = f"This token has the scope {token.scope}. Use a token with the scope {needed}."
        return needed is not None and token.allows(needed)


class TokenScheme(OpenApiAuthenticationExtension):
    """Describe the tokens in the OpenAPI schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        described = "A token from the account page. x-token-scope of each operation is the scope that it needs."
        return {"type": "http", "scheme": "bearer", "description": described}
