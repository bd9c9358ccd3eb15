"""Checks, traces and rubrics of the tests: small HARs, what is expected of them, and the pages that show both."""

from __future__ import annotations

import hashlib
import html
from typing import Any

from django.test import Client
from django.urls import reverse

from annotation import screenshots
from annotation.models import Attachment, Person, Task, Trajectory
from annotation.records import AttachmentKind
from annotation.tests import traces
from judges import expectations
from judges.expectations import Kind
from judges.models import Expectation
from judges.tests.pages import read_page

CHECKS = """\
checks:
  - name: The search
    key_point: at least 16 GB
    url: http://shop.example/search
    query_params: {q: [lamp]}
    ignored_query_params: [page]
    last_event_only: false
"""
FAILING = CHECKS.replace("lamp", "sofa")
RUBRIC = """\
pass_score: 0.5
nodes:
  - claim: The list is sorted by price.
    about: screenshots
    critical: true
  - group: The lamp
    strategy: sequential
    children:
      - claim: The answer names it.
        about: answer
      - claim: The page shows it.
        about: pages
        sources: [https://shop.example/lamp]
        note: Rounding is fine.
"""


def entry(method: str, url: str, body: str = "", status: int = 200) -> dict[str, Any]:
    """One request of a HAR; a GET is a page that was opened."""
    headers = {"Accept": "text/html"} if method == "GET" else None
    return traces.entry(url, method, status, headers=headers, post=traces.form(body) if body else None)


USUAL = (
    entry("GET", "http://shop.example/"),
    entry("GET", "http://shop.example/search?q=lamp&page=1"),
    entry("POST", "http://shop.example/cart", "item=lamp&count=2"),
    entry("GET", "http://shop.example/cart"),
)


def give_trace(trajectory: Trajectory, entries: tuple[dict[str, Any], ...] = USUAL) -> Attachment:
    """A network trace of these requests, as an import would have stored it."""
    data = traces.redacted_bytes(traces.har_of(*entries))
    digest = hashlib.sha256(data).hexdigest()
    screenshots.keep_bytes(digest, data)
    return Attachment.objects.create(
        trajectory=trajectory, kind=AttachmentKind.NETWORK_TRACE, name="network.har", sha256=digest, size=len(data)
    )


def expect(task: Task, text: str = CHECKS, kind: Kind = Kind.NETWORK_CHECKS) -> Expectation:
    return expectations.write(None, task, kind, text)


def ask(person: Person, name: str, *where: Any, htmx: bool = False, **query: Any) -> Any:
    """What the page ``name`` answers to a person."""
    client = Client(headers={"HX-Request": "true"} if htmx else {})
    client.force_login(person)
    return client.get(reverse(name, args=where), query)


def send(person: Person, name: str, *where: Any, htmx: bool = False, **fields: Any) -> Any:
    client = Client(headers={"HX-Request": "true"} if htmx else {})
    client.force_login(person)
    return client.post(reverse(name, args=where), fields)


def text(response: Any, status: int = 200) -> str:
    """The page as it is read: its references to characters are replaced."""
    assert response.status_code == status, response.content[:500]
    return html.unescape(read_page(response))
