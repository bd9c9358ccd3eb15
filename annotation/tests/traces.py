"""Network traces to test with: entries, HARs in their three forms, and what comes of redacting one."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import Any

from annotation.formats import har

FORM = "application/x-www-form-urlencoded"


def pairs(given: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in given.items()]


def entry(
    url: str = "http://shop.example/",
    method: str = "GET",
    status: int = 200,
    *,
    headers: dict[str, str] | None = None,
    got: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
    post: dict[str, Any] | None = None,
    content: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One request and its response; ``headers`` were sent and ``got`` came back."""
    request: dict[str, Any] = {"method": method, "url": url, "httpVersion": "HTTP/1.1", "cookies": []}
    request |= {"headers": pairs(headers or {}), "queryString": pairs(query or {})}
    request |= {"postData": post} if post is not None else {}
    response = {"status": status, "statusText": "", "cookies": [], "headers": pairs(got or {}), "redirectURL": ""}
    response |= {"content": content if content is not None else {"size": 0, "mimeType": "text/html"}}
    return {"startedDateTime": "2026-01-05T09:00:00.000Z", "time": 1, "request": request, "response": response, **more}


def har_of(*entries: Any, **head: Any) -> bytes:
    log = {"version": "1.2", "creator": {"name": "a browser", "version": "1"}, **head, "entries": list(entries)}
    return json.dumps({"log": log}).encode()


def form(text: str) -> dict[str, Any]:
    return {"mimeType": FORM, "text": text}


def body(value: Any, mime: str = "application/json") -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"size": len(text), "mimeType": mime, "text": text}


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def snapshots(*entries: dict[str, Any]) -> bytes:
    """A ``.network`` file of a Playwright trace."""
    lines = [{"type": "resource-snapshot", "snapshot": one} for one in entries]
    return b"".join(json.dumps(line).encode() + b"\n" for line in [{"type": "context-options"}, *lines])


def redacted(data: bytes, name: str = "network.har") -> dict[str, Any]:
    """The log of the trace without its secrets."""
    log = json.loads(redacted_bytes(data, name))["log"]
    assert isinstance(log, dict)
    return log


def redacted_bytes(data: bytes, name: str = "network.har") -> bytes:
    target = io.BytesIO()
    har.redact(io.BytesIO(data), name, target)
    return target.getvalue()
