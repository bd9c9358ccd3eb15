"""Errors below /api/ are problem details, wherever they come from."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from annotation.models import ApiToken, Person
from annotation.tests import testing
from annotation.views.failures import LONGEST_ADDRESS

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> Client:
    """A script of an operator."""
    token = ApiToken.issue(Person.objects.create_superuser("root", password=testing.PASSWORD), "test", "admin")[1]
    return Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)


def routes(resolver: Any = None) -> Iterator[tuple[str, str]]:
    """The name and the route of every endpoint of the API."""
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            yield from routes(entry)
        elif isinstance(entry, URLPattern) and hasattr(entry.callback, "cls"):
            yield str(entry.name), str(entry.pattern)


def problem(answer: Any, status: int) -> str:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    body = answer.json()
    assert (body["status"], body["type"]) == (status, "about:blank")
    return str(body["detail"])


@pytest.mark.parametrize("path", ["", "v2/submissions", "v1", "nowhere", "v1/submissions/", "schema/", "v1/a/b/c"])
def test_unknown_address_is_answered_with_problem_details(root: Client, path: str) -> None:
    assert "This address does not exist" in problem(root.get(f"/api/{path}"), 404)
    problem(Client().get(f"/api/{path}"), 401)


def test_too_large_body_is_answered_with_problem_details(root: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10_240
    large = {"name": "x" * 20_000}

    assert "at most 10.0 KB" in problem(root.post("/api/v1/judges", large, content_type="application/json"), 413)
    assert "at most 10.0 KB" in problem(root.post("/api/v1/uploads", large), 413)  # a field of a form with files


def test_too_many_fields_are_answered_with_problem_details(root: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3

    problem(root.post("/api/v1/uploads", {f"field{number}": "x" for number in range(5)}), 400)


def test_too_long_address_is_answered_with_problem_details(root: Client) -> None:
    long = "x" * LONGEST_ADDRESS

    assert str(LONGEST_ADDRESS) in problem(root.get(f"/api/v1/submissions?agent={long}"), 414)
    page = root.get(f"/sign-in?next={long}")
    assert (page.status_code, page["Content-Type"]) == (414, "text/plain; charset=utf-8")


def test_unknown_host_is_answered_with_problem_details(root: Client) -> None:
    problem(root.get("/api/v1/submissions", headers={"host": "elsewhere.example"}), 400)
    assert root.get("/sign-in", headers={"host": "elsewhere.example"})["Content-Type"].startswith("text/html")


def test_pages_keep_their_own_errors(client: Client) -> None:
    answer = client.get("/nowhere", headers={"accept": "text/html"})

    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")


SAMPLE = {
    "pk": 1, "slug": "shops", "external_id": "task_0000", "expected": "network_checks", "digest": "0" * 64,
    "export_format": "labels", "rest": "nowhere", "pseudonym": "A1", "item": 1, "step": 0, "kind": "full",
    "attachment": 1, "part": "labels", "number": 1, "key": "0" * 12,
}  # fmt: skip
ROUTES = {name: route for name, route in routes() if name not in {"schema", "api-docs"}}


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_options_is_answered_by_every_endpoint(root: Client, name: str) -> None:
    given = dict.fromkeys(re.findall(r"<uuid:(\w+)>", ROUTES[name]), uuid.uuid4())
    wanted = re.findall(r"<(?:\w+:)?(\w+)>", ROUTES[name])

    answer = root.options(reverse(name, kwargs={key: given[key] if key in given else SAMPLE[key] for key in wanted}))

    if "resumable" in name:  # tus: 204, and what the server can in headers
        assert (answer.status_code, answer["Tus-Version"]) == (204, "1.0.0")
        return
    assert answer.status_code in (200, 405)
    assert answer["Content-Type"] in ("application/json", "application/problem+json")
