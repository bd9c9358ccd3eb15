"""Checks, traces and rubrics of the tests: small HARs, what is expected of them, and trajectories that have both."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

from annotation import screenshots
from annotation.formats import har
from annotation.models import Attachment, Task, Trajectory
from annotation.records import AttachmentKind
from judges import expectations
from judges.expectations import Kind
from judges.models import Expectation

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
    headers = [{"name": "Accept", "value": "text/html"}] if method == "GET" else []
    request: dict[str, Any] = {"method": method, "url": url, "headers": headers, "queryString": [], "cookies": []}
    if body:
        request["postData"] = {"mimeType": "application/x-www-form-urlencoded", "text": body}
    content = {"size": 0, "mimeType": "text/html"}
    response = {"status": status, "statusText": "", "headers": [], "cookies": [], "content": content}
    return {
        "startedDateTime": "2026-01-05T10:00:00Z",
        "time": 1,
        "request": request | {"httpVersion": "HTTP/1.1", "headersSize": -1, "bodySize": -1},
        "response": response | {"httpVersion": "HTTP/1.1", "redirectURL": "", "headersSize": -1, "bodySize": -1},
        "cache": {},
        "timings": {"send": 0, "wait": 1, "receive": 0},
    }


USUAL = (
    entry("GET", "http://shop.example/"),
    entry("GET", "http://shop.example/search?q=lamp&page=1"),
    entry("POST", "http://shop.example/cart", "item=lamp&count=2"),
    entry("GET", "http://shop.example/cart"),
)


def give_trace(trajectory: Trajectory, entries: tuple[dict[str, Any], ...] = USUAL) -> Attachment:
    """A network trace of these requests, as an import would have stored it."""
    log = {"version": "1.2", "creator": {"name": "tests", "version": "1"}, "entries": list(entries)}
    kept = io.BytesIO()
    har.redact(io.BytesIO(json.dumps({"log": log}).encode()), "network.har", kept)
    data = kept.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    screenshots.keep_bytes(digest, data)
    return Attachment.objects.create(
        trajectory=trajectory, kind=AttachmentKind.NETWORK_TRACE, name="network.har", sha256=digest, size=len(data)
    )


def expect(task: Task, text: str = CHECKS, kind: Kind = Kind.NETWORK_CHECKS) -> Expectation:
    return expectations.write(None, task, kind, text)
