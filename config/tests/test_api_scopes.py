"""Every endpoint of the API declares the scope that a token needs; one without a declaration accepts no token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from annotation.api_tokens import Scope
from annotation.models import ApiToken
from annotation.tests import testing

OPEN_TO_ALL = {"schema", "api-docs", "api-join"}  # the description of the API itself, and invitations
ADMIN = {
    ("api-intake", "PUT"),
    ("api-owners", "POST"),
    ("api-owners", "DELETE"),
    ("api-entry-actions", "POST"),
    ("api-token", "DELETE"),
    ("api-account-data", "GET"),
    ("api-members", "GET"),
    ("api-members", "POST"),
    ("api-invitations", "POST"),
    ("api-invite-people", "POST"),
    ("api-invitation-links", "POST"),
    ("api-invite-again", "POST"),
    ("api-deactivate", "POST"),
    ("api-reactivate", "POST"),
    ("api-reminders", "POST"),
    ("api-submission", "DELETE"),
    ("api-benchmark", "DELETE"),
    ("api-judge", "DELETE"),
    ("api-model-terms-of", "DELETE"),
    ("api-audit-sample", "POST"),
    ("api-auditors", "POST"),
    ("api-audit-decisions", "POST"),
    ("api-webhooks", "POST"),
    ("api-webhook", "PATCH"),
    ("api-webhook", "DELETE"),
    ("api-webhook-rotate", "POST"),
    ("api-webhook-test", "POST"),
    ("api-webhook-replay", "POST"),
}


def endpoints(resolver: Any = None) -> Iterator[tuple[str, Any]]:
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            yield from endpoints(entry)
        elif isinstance(entry, URLPattern) and hasattr(entry.callback, "cls"):
            yield str(entry.name), entry.callback.cls


def test_every_method_of_every_endpoint_declares_its_scope() -> None:
    found = {name: cls for name, cls in endpoints() if name not in OPEN_TO_ALL}

    undeclared = {
        (name, method)
        for name, cls in found.items()
        for method in set(cls().allowed_methods) - {"HEAD", "OPTIONS"}
        if not isinstance(getattr(cls, "scopes", {}).get(method), Scope)
    }

    assert undeclared == set()
    assert len(found) > 40


def test_admin_scope_is_asked_where_people_are_named_audits_decided_or_rows_deleted() -> None:
    declared = {(name, method) for name, cls in endpoints() for method, scope in getattr(cls, "scopes", {}).items()
                if scope == Scope.ADMIN}  # fmt: skip

    assert declared == ADMIN


@pytest.mark.django_db
def test_endpoint_without_a_declared_scope_accepts_no_token() -> None:
    class Forgotten(APIView):
        def get(self, request: Request) -> Response:
            return Response("reached")

    token = ApiToken.issue(testing.person("amy"), "script", "admin")[1]
    request = APIRequestFactory().get("/", HTTP_AUTHORIZATION=f"Bearer {token}")

    assert Forgotten.as_view()(request).status_code == 403


def test_schema_names_the_scope_of_every_operation() -> None:
    paths = SchemaGenerator().get_schema(public=True)["paths"]

    assert paths["/api/v1/uploads"]["post"]["x-token-scope"] == "write"
    without = [path for path, methods in paths.items() for each in methods.values() if "x-token-scope" not in each]
    assert without == ["/api/v1/join"]
