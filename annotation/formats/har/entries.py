"""Check one entry of a HAR and reduce it to the keys listed at the end of this module, without secrets.

All other keys (initiator, web socket messages, connection numbers, extensions of browsers) may contain anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from annotation.formats.documents import UNSTORABLE, FormatError, kind_of
from annotation.formats.har.bodies import decoded, marks, media_type, redact_body, too_many_tags
from annotation.formats.har.scrubbing import (
    REDACTED,
    is_secret_header,
    redact_url,
    redact_value,
    scrub,
    secrets_together,
)
from annotation.records import Problem

MOST_MARKS = 30_000_000  # `:=<&;` in the bodies of a trace: each may begin a secret, and costs a microsecond
LEFT_OUT = "text not stored: not JSON or text, or too long"
# The name of a header or cookie; anything after it is a misplaced value.
HEADER_NAME = re.compile(r":?[^:=;,\s]*+")
COOKIE_NAME = re.compile(r"[^=;,\s]*+")
URL_HEADERS = frozenset(
    {"referer", "location", "content-location", "refresh", "link", ":path", "origin", "x-original-url", "x-referer"}
)

Keep = Callable[[Any, str], Any]


class Budget:
    """Limit of the stored bodies of one trace; further bodies are not stored."""

    def __init__(self, marks: int = MOST_MARKS) -> None:
        self._left = marks

    def allows(self, text: str) -> bool:
        self._left -= marks(text)
        return self._left >= 0


def redact_entry(entry: Any, where: str, budget: Budget) -> dict[str, Any]:
    """Return the entry as it is stored; ``where`` is its place (``log.entries[3]``). Raises FormatError."""
    stored = _object(entry, where, ENTRY)
    if "request" not in stored:
        raise invalid(where, "has no request; an entry of a HAR file has a request and a response")
    for side, key in (("request", "postData"), ("response", "content")):
        message = stored.get(side, {})
        if key in message:
            _redact_body(message[key], _find_content_type(message), budget)
    return stored


def _find_content_type(message: dict[str, Any]) -> str:
    headers = message.get("headers", ())
    return next((h.get("value", "") for h in headers if h.get("name", "").lower() == "content-type"), "")


def invalid(where: str, says: str) -> FormatError:
    return FormatError(Problem("har_invalid", f"{where}: {says}.", where))


def _object(value: Any, where: str, keys: Mapping[str, Keep]) -> dict[str, Any]:
    """Return the listed keys of an object, in its order; null counts as absent."""
    if not isinstance(value, dict):
        raise invalid(where, f"must be an object, not {kind_of(value)}")
    stored = {}
    for key, inner in value.items():
        keep = keys.get(key)
        if keep is not None and inner is not None:
            stored[key] = keep(inner, f"{where}.{key}")
    return stored


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise invalid(where, f"must be text, not {kind_of(value)}")
    return UNSTORABLE.sub("\ufffd", value)


def _plain(value: Any, where: str) -> str:
    return scrub(_text(value, where))


def _url(value: Any, where: str) -> str:
    return redact_url(_text(value, where))


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise invalid(where, f"must be a whole number, not {kind_of(value)}")
    if abs(value) >= 2**53:
        raise invalid(where, "is too large a number")
    return int(value)


def _number(value: Any, where: str) -> int | float:
    """Return a time or a size; -1 (unknown) for any other value, because nothing depends on it."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) and abs(value) < 2**53 else -1


def _list(value: Any, where: str, keys: Mapping[str, Keep]) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise invalid(where, f"must be a list, not {kind_of(value)}")
    return [_object(item, f"{where}[{index}]", keys) for index, item in enumerate(value)]


def _cookies(value: Any, where: str) -> list[dict[str, Any]]:
    cookies = _list(value, where, COOKIE)
    for cookie in cookies:
        if "value" in cookie:
            cookie["value"] = REDACTED
        if "name" in cookie:
            cookie["name"] = _redact_name(cookie["name"], COOKIE_NAME)
    return cookies


def _redact_name(name: str, allowed: re.Pattern[str]) -> str:
    """Return a name with any value after it redacted: ``sid=[redacted]`` for ``sid=abc``."""
    match = allowed.match(name)
    return name if match is None or match.end() == len(name) else f"{match[0]}={REDACTED}"


def _headers(value: Any, where: str) -> list[dict[str, Any]]:
    headers = _list(value, where, PAIR)
    for header in headers:
        name, text = _redact_name(header.get("name", ""), HEADER_NAME), header.get("value", "")
        if "name" in header:
            header["name"] = name
        if text and is_secret_header(name):
            header["value"] = REDACTED
        elif text:
            header["value"] = redact_url(text) if name.lower() in URL_HEADERS else scrub(text)
    return headers


def _parameters(value: Any, where: str, keys: Mapping[str, Keep], *, in_url: bool) -> list[dict[str, Any]]:
    pairs = _list(value, where, keys)
    fields = {pair.get("name", ""): pair.get("value", "") for pair in pairs}
    together = secrets_together(fields, in_url=in_url)
    for pair in pairs:
        if "value" in pair:
            pair["value"] = redact_value(pair.get("name", ""), pair["value"], together)
    return pairs


def _redact_body(body: dict[str, Any], header: str, budget: Budget) -> None:
    stated, encoding = body.get("mimeType", ""), body.pop("encoding", "")
    if "text" not in body:
        return
    text = decoded(body["text"], encoding, media_type(stated))
    if text is None or too_many_tags(text) or not budget.allows(text):
        del body["text"]
        body["comment"] = LEFT_OUT
    else:
        body["text"] = UNSTORABLE.sub("\ufffd", redact_body(text, stated, header))


def _flag(value: Any, where: str) -> bool:
    return value is True


COOKIE: dict[str, Keep] = {
    "name": _plain, "value": _text, "path": _url, "domain": _plain, "expires": _plain, "httpOnly": _flag,
    "secure": _flag, "sameSite": _plain,
}  # fmt: skip
PAIR: dict[str, Keep] = {"name": _plain, "value": _text}
PARAM: dict[str, Keep] = {**PAIR, "fileName": _plain, "contentType": _plain}
PARAMS = partial(_parameters, keys=PARAM, in_url=False)
POST_DATA: dict[str, Keep] = {"mimeType": _plain, "params": PARAMS, "text": _text, "encoding": _text}
CONTENT: dict[str, Keep] = {
    "size": _number, "compression": _number, "mimeType": _plain, "text": _text, "encoding": _text,
}  # fmt: skip
TIMINGS: dict[str, Keep] = dict.fromkeys(("blocked", "dns", "connect", "send", "wait", "receive", "ssl"), _number)
REQUEST: dict[str, Keep] = {
    "method": _plain, "url": _url, "httpVersion": _plain, "cookies": _cookies, "headers": _headers,
    "queryString": partial(_parameters, keys=PAIR, in_url=True), "postData": partial(_object, keys=POST_DATA),
    "headersSize": _number, "bodySize": _number,
}  # fmt: skip
RESPONSE: dict[str, Keep] = {
    "status": _count, "statusText": _plain, "httpVersion": _plain, "cookies": _cookies, "headers": _headers,
    "content": partial(_object, keys=CONTENT), "redirectURL": _url, "headersSize": _number, "bodySize": _number,
}  # fmt: skip
ENTRY: dict[str, Keep] = {
    "startedDateTime": _plain, "time": _number, "_resourceType": _plain,
    "request": partial(_object, keys=REQUEST), "response": partial(_object, keys=RESPONSE),
    "cache": lambda value, where: {}, "timings": partial(_object, keys=TIMINGS),
}  # fmt: skip
