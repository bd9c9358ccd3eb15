"""One entry of a HAR: checked, cut down to what is kept, and without its secrets.

What is kept is listed here: every other key of an entry (who asked for it, web socket messages, connection numbers,
extensions of browsers) is left out, since nobody knows what is in it. A key that is not there is not made up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from annotation.formats.documents import UNSTORABLE, FormatError, kind_of
from annotation.formats.har.bodies import decoded, marks, media_type, redact_body, too_many_tags
from annotation.formats.har.limits import MOST_MARKS
from annotation.formats.har.names import is_secret_header, secrets_together
from annotation.formats.har.scrubbing import REDACTED, redact_url, redact_value, scrub
from annotation.records import Problem

LEFT_OUT = "text left out: no JSON or text, or too long"
# What a header or cookie may be called; what comes behind is a value that slipped in.
HEADER_NAME = re.compile(r":?[^:=;,\s]*+")
COOKIE_NAME = re.compile(r"[^=;,\s]*+")
URL_HEADERS = frozenset(
    {"referer", "location", "content-location", "refresh", "link", ":path", "origin", "x-original-url", "x-referer"}
)

Keep = Callable[[Any, str], Any]


class Budget:
    """How much of the bodies of one trace may be stored; others are left out."""

    def __init__(self, marks: int = MOST_MARKS) -> None:
        self._left = marks

    def allows(self, text: str) -> bool:
        self._left -= marks(text)
        return self._left >= 0


def redact_entry(entry: Any, where: str, budget: Budget) -> dict[str, Any]:
    """Return the entry as it is stored; ``where`` is its place (``log.entries[3]``). Raises FormatError."""
    kept = _kept(entry, where, ENTRY)
    if "request" not in kept:
        raise wrong(where, "has no request; an entry of a HAR has what was asked and what came back")
    for side, key in (("request", "postData"), ("response", "content")):
        message = kept.get(side, {})
        if key in message:
            _body(message[key], _content_type(message), budget)
    return kept


def _content_type(message: dict[str, Any]) -> str:
    headers = message.get("headers", ())
    return next((h.get("value", "") for h in headers if h.get("name", "").lower() == "content-type"), "")


def wrong(where: str, says: str) -> FormatError:
    return FormatError(Problem("har_invalid", f"{where}: {says}.", where))


def _kept(value: Any, where: str, keys: Mapping[str, Keep]) -> dict[str, Any]:
    """Return the listed keys of an object, in its order; null counts as absent."""
    if not isinstance(value, dict):
        raise wrong(where, f"must be an object, not {kind_of(value)}")
    kept = {}
    for key, inner in value.items():
        keep = keys.get(key)
        if keep is not None and inner is not None:
            kept[key] = keep(inner, f"{where}.{key}")
    return kept


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise wrong(where, f"must be text, not {kind_of(value)}")
    return UNSTORABLE.sub("\ufffd", value)


def _plain(value: Any, where: str) -> str:
    return scrub(_text(value, where))


def _url(value: Any, where: str) -> str:
    return redact_url(_text(value, where))


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise wrong(where, f"must be a whole number, not {kind_of(value)}")
    if abs(value) >= 2**53:
        raise wrong(where, "is too large a number")
    return int(value)


def _number(value: Any, where: str) -> int | float:
    """Return a time or a size, or unknown for any other value: nothing depends on it."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) and abs(value) < 2**53 else -1


def _flag(value: Any, where: str) -> bool:
    return value is True


def _nothing(value: Any, where: str) -> dict[str, Any]:
    return {}


def _listed(value: Any, where: str, keys: Mapping[str, Keep]) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise wrong(where, f"must be a list, not {kind_of(value)}")
    return [_kept(item, f"{where}[{index}]", keys) for index, item in enumerate(value)]


def _cookies(value: Any, where: str) -> list[dict[str, Any]]:
    cookies = _listed(value, where, COOKIE)
    for cookie in cookies:
        if "value" in cookie:
            cookie["value"] = REDACTED
        if "name" in cookie:
            cookie["name"] = _name(cookie["name"], COOKIE_NAME)
    return cookies


def _name(name: str, allowed: re.Pattern[str]) -> str:
    """``sid=abc`` is no name, but a name and a value."""
    match = allowed.match(name)
    return name if match is None or match.end() == len(name) else f"{match[0]}={REDACTED}"


def _headers(value: Any, where: str) -> list[dict[str, Any]]:
    headers = _listed(value, where, PAIR)
    for header in headers:
        name, text = _name(header.get("name", ""), HEADER_NAME), header.get("value", "")
        if "name" in header:
            header["name"] = name
        if text and is_secret_header(name):
            header["value"] = REDACTED
        elif text:
            header["value"] = redact_url(text) if name.lower() in URL_HEADERS else scrub(text)
    return headers


def _query(value: Any, where: str) -> list[dict[str, Any]]:
    return _parameters(_listed(value, where, PAIR), in_url=True)


def _params(value: Any, where: str) -> list[dict[str, Any]]:
    return _parameters(_listed(value, where, PARAM), in_url=False)


def _parameters(pairs: list[dict[str, Any]], *, in_url: bool) -> list[dict[str, Any]]:
    fields = {pair.get("name", ""): pair.get("value", "") for pair in pairs}
    together = secrets_together(fields, in_url=in_url)
    for pair in pairs:
        if "value" in pair:
            pair["value"] = redact_value(pair.get("name", ""), pair["value"], together)
    return pairs


def _post_data(value: Any, where: str) -> dict[str, Any]:
    return _kept(value, where, POST_DATA)


def _content(value: Any, where: str) -> dict[str, Any]:
    return _kept(value, where, CONTENT)


def _body(body: dict[str, Any], header: str, budget: Budget) -> None:
    """A body gets its text decoded and redacted, or loses it and gets a word about that."""
    stated, encoding = body.get("mimeType", ""), body.pop("encoding", "")
    if "text" not in body:
        return
    text = decoded(body["text"], encoding, media_type(stated))
    if text is None or too_many_tags(text) or not budget.allows(text):
        del body["text"]
        body["comment"] = LEFT_OUT
    else:
        body["text"] = UNSTORABLE.sub("\ufffd", redact_body(text, stated, header))


COOKIE: dict[str, Keep] = {
    "name": _plain, "value": _text, "path": _url, "domain": _plain, "expires": _plain, "httpOnly": _flag,
    "secure": _flag, "sameSite": _plain,
}  # fmt: skip
PAIR: dict[str, Keep] = {"name": _plain, "value": _text}
PARAM: dict[str, Keep] = {**PAIR, "fileName": _plain, "contentType": _plain}
POST_DATA: dict[str, Keep] = {"mimeType": _plain, "params": _params, "text": _text, "encoding": _text}
CONTENT: dict[str, Keep] = {
    "size": _number, "compression": _number, "mimeType": _plain, "text": _text, "encoding": _text,
}  # fmt: skip
TIMINGS: dict[str, Keep] = dict.fromkeys(("blocked", "dns", "connect", "send", "wait", "receive", "ssl"), _number)
REQUEST: dict[str, Keep] = {
    "method": _plain, "url": _url, "httpVersion": _plain, "cookies": _cookies, "headers": _headers,
    "queryString": _query, "postData": _post_data, "headersSize": _number, "bodySize": _number,
}  # fmt: skip
RESPONSE: dict[str, Keep] = {
    "status": _count, "statusText": _plain, "httpVersion": _plain, "cookies": _cookies, "headers": _headers,
    "content": _content, "redirectURL": _url, "headersSize": _number, "bodySize": _number,
}  # fmt: skip
ENTRY: dict[str, Keep] = {
    "startedDateTime": _plain, "time": _number, "_resourceType": _plain,
    "request": lambda value, where: _kept(value, where, REQUEST),
    "response": lambda value, where: _kept(value, where, RESPONSE),
    "cache": _nothing,
    "timings": lambda value, where: _kept(value, where, TIMINGS),
}  # fmt: skip
