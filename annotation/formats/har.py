"""Network traces (HAR 1.2): taken over without the secrets that a browser writes into them."""

from __future__ import annotations

import json
from typing import Any

from annotation.formats.documents import parse_json

REDACTED = "[redacted]"
SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token", "x-csrf-token"}
)


def redact(data: bytes, name: str) -> bytes:
    """The HAR with cookies and credentials blanked; raises FormatError when it is not a JSON document."""
    document = parse_json(data, name)
    _blank(document)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _blank(node: Any) -> None:
    # An explicit stack: a hostile document may be nested deeper than Python's own.
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            for key, value in node.items():
                if key == "cookies" and isinstance(value, list):
                    for cookie in value:
                        if isinstance(cookie, dict) and "value" in cookie:
                            cookie["value"] = REDACTED
                elif key == "headers" and isinstance(value, list):
                    _blank_headers(value)
                else:
                    waiting.append(value)


def _blank_headers(headers: list[Any]) -> None:
    for header in headers:
        if isinstance(header, dict) and str(header.get("name", "")).lower() in SECRET_HEADERS:
            header["value"] = REDACTED
