"""Redact the bodies of requests and responses: forms, JSON, multipart, pages, plain texts.

Only texts are stored: no images, fonts, scripts, styles or videos. A text that is declared as JSON but is invalid is
treated like any other text.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from itertools import islice
from typing import Any

from annotation.formats.documents import UNSTORABLE, object_maker
from annotation.formats.har.scrubbing import (
    MOST_TAGS,
    PAIRS,
    REDACTED,
    TAG_BEGINS,
    is_secret,
    redact_query,
    scrub,
    scrub_html,
    scrub_lines,
    scrub_xml,
    secrets_together,
)

LONGEST_TEXT = 8 * 2**20  # characters of one body
MOST_VALUES = 300_000  # of a JSON body; Python needs 60 MB for this many
MOST_PARTS = 2_000  # of a multipart body
LONGEST_HEAD = 4_096  # characters of the headers of a part that are searched for its name
MOST_LINES = 100_000  # of JSON documents
NAMING = ("name", "key", "id", "field")  # keys whose text is the name of the `value` in the same object
UNTOLD = ("", "text/plain")
FILE_LEFT_OUT = "[file not stored]"

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
PAGES = ("text/html", "application/xhtml+xml", "application/xml", "text/xml", "image/svg+xml")
NO_TEXTS = ("text/css", "text/javascript", "text/ecmascript", "text/x-javascript")
BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})"?', re.IGNORECASE)
FIRST_LINE = re.compile(r"\s{0,8}(--[^\s]{1,200})\r?\n")
DISPOSITION = re.compile(r"^content-disposition:[ \t]{0,8}form-data", re.IGNORECASE | re.MULTILINE)
PART_NAME = re.compile(r'[; ]name="?((?:[^"\\;\r\n]|\\.){0,1000})"?', re.IGNORECASE)
PART_FILE = re.compile(r"[; ]filename\*?=", re.IGNORECASE)


def media_type(stated: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return stated.partition(";")[0].strip().lower()


def is_json(kind: str) -> bool:
    return kind.endswith(("/json", "+json")) or kind in ("application/graphql-response", "application/csp-report")


def is_text(kind: str) -> bool:
    """Return whether a body of this media type is stored; "" is an unknown type."""
    if kind in NO_TEXTS:
        return False
    known = kind in ("", FORM, MULTIPART, "application/graphql", "application/x-ndjson", *PAGES)
    return known or is_json(kind) or kind.startswith("text/") or (kind.endswith("+xml") and kind != "image/svg+xml")


def decoded(text: str, encoding: str, kind: str) -> str | None:
    """Return the text of a body, decoded if it is base64; None if it is not stored."""
    if not is_text(kind) or len(text) > LONGEST_TEXT:
        return None
    if not encoding:
        return text
    if encoding.lower() != "base64":
        return None
    try:
        data = base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        return None
    return None if 0 in data[:1000] else data.decode("utf-8", "replace")


def marks(text: str) -> int:
    """Return the number of characters that may begin a secret, which is the cost of the search."""
    return sum(text.count(mark) for mark in ":=<&;")


def too_many_tags(text: str) -> bool:
    return next(islice(TAG_BEGINS.finditer(text), MOST_TAGS, None), None) is not None


def redact_body(text: str, stated: str, header: str = "") -> str:
    """Redact a text; ``stated`` is its media type with parameters, ``header`` that of the message as a fallback."""
    if media_type(stated) in UNTOLD and header:
        stated = header
    kind = media_type(stated)
    if kind == MULTIPART or (kind in UNTOLD and DISPOSITION.search(text[:LONGEST_HEAD])):
        return _redact_multipart(text, stated)
    if kind == FORM or (kind in UNTOLD and PAIRS.fullmatch(text)):
        return redact_query(text, in_url=False)
    begins = text.lstrip()[:1]
    if is_json(kind) or begins in ("{", "["):
        redacted = _redact_json(text)
        if redacted is None:
            return _redact_json_lines(text) if begins in ("{", "[") else scrub(text)
        return redacted
    if kind in PAGES[:2]:
        return scrub_html(text)
    if kind in PAGES or kind.endswith("+xml") or begins == "<":
        return scrub_xml(text)
    return scrub_lines(text)


def _redact_json_lines(text: str) -> str:
    """Redact JSON Lines; a line that is not JSON is text."""
    lines = text.split("\n", MOST_LINES)
    return scrub("\n".join((_redact_json(line) if line[:1] in ("{", "[") else None) or line for line in lines))


def _redact_json(text: str) -> str | None:
    """Return JSON without its secrets, unchanged if it has none; None if it cannot be parsed."""
    if sum(text.count(mark) for mark in ",[{") > MOST_VALUES:
        return None
    repeated: list[str] = []  # only the last value of a repeated key is parsed, but the text has all of them
    try:
        document = json.loads(text, parse_constant=reject_constant, object_pairs_hook=object_maker(repeated))
        changed, document = redact_json(document)
        if not changed and not repeated:
            return text
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return None


def reject_constant(constant: str) -> None:
    raise ValueError(constant)


def redact_json(document: Any) -> tuple[bool, Any]:
    """Return whether a JSON value has secrets, and the value without them; lists and objects are changed in place.

    Under the name of a secret, every text and number is replaced at any depth; true, false and null do not change.
    """
    root: list[Any] = [document]
    changed = False
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        node, hidden = waiting.pop()
        for key, value, secret in _children(node, hidden):
            if isinstance(value, (dict, list)):
                waiting.append((value, secret))
                continue
            redacted = _redact_leaf(value, secret)
            if redacted != value:
                node[key] = redacted
                changed = True
    return changed, root[0]


def _children(node: Any, hidden: bool) -> list[tuple[Any, Any, bool]]:
    """Return key, value, and whether the value is a secret, for each item of an object or list."""
    if isinstance(node, list):
        pair = len(node) == 2 and isinstance(node[0], str) and is_secret(node[0])
        return [(index, value, hidden or (pair and index == 1)) for index, value in enumerate(node)]
    texts = {key: value for key, value in node.items() if isinstance(value, str)}
    together = secrets_together(texts, in_url=False)
    named = any(key.lower() in NAMING and is_secret(value) for key, value in texts.items())
    return [
        (key, value, hidden or is_secret(key) or key in together or (named and key.lower() == "value"))
        for key, value in node.items()
    ]


def _redact_leaf(value: Any, secret: bool) -> Any:
    if isinstance(value, str):
        cleaned = UNSTORABLE.sub("\ufffd", value)
        return (REDACTED if value else value) if secret else scrub(cleaned)
    return REDACTED if secret and isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _redact_multipart(text: str, stated: str) -> str:
    boundary, first = BOUNDARY.search(stated), FIRST_LINE.match(text)
    known = [found for found in (f"--{boundary[1]}" if boundary else "", first[1] if first else "") if found]
    mark = next((mark for mark in known if mark in text), "")
    if not mark:
        return FILE_LEFT_OUT if text else text
    parts = text.split(mark, MOST_PARTS)
    if len(parts) > MOST_PARTS:
        parts[-1] = REDACTED
    return mark.join(_redact_part(part) for part in parts)


def _redact_part(part: str) -> str:
    """Redact the value of a part, or omit it if it is a file; the headers do not change."""
    gap = "\r\n\r\n" if "\r\n\r\n" in part else "\n\n"
    head, found, value = part.partition(gap)
    if not found:
        return scrub(part)
    end = "\r\n" if value.endswith("\r\n") else "\n" if value.endswith("\n") else ""
    named = PART_NAME.search(head[:LONGEST_HEAD])
    if PART_FILE.search(head):
        return head + gap + FILE_LEFT_OUT + end
    if named and is_secret(named[1]):
        return head + gap + REDACTED + end
    return head + gap + redact_body(value.removesuffix(end), "text/plain") + end
