"""Events that do what a check of WebArena-Verified asks for, and events that almost do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from judges.tests.parity.oracle import SITES

STAND_INS = ((r"\d+", "7"), (".*", "x"), (r"\s+", " "), (r"\s*", ""), (r"[.\s]+", ". "), ("?", ""), ("\\", ""))
KEYS = re.compile(r"\.(\w+)|\[(\d+)\]|\['([^']+)'\]")


def fitting(check: dict[str, Any], sites: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of `oracle.entry` for an event that fits, as far as that can be told from the check."""
    expected = check["expected"]
    url = _rendered(sample(first(expected["url"])), sites)
    if params := expected.get("query_params"):
        pairs = [(name, sample(value)) for name, values in params.items() for value in values]
        url = f"{url.partition('?')[0]}?{urlencode(pairs)}"
    method = expected.get("http_method", "GET")
    headers = {"Accept": "text/html"} if method == "GET" else {}
    for name, value in (expected.get("headers") or {}).items():
        text = sample(first(value))
        headers[name] = _rendered(text, sites) if name == "referer" else text
    received = expected.get("response_content")
    return {
        "url": url,
        "method": method,
        "status": expected.get("response_status", 200),
        "headers": headers,
        "sent": _sent(check),
        "received": ("application/json", json.dumps(_document(received))) if received else None,
    }


def variants(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The event itself and others that differ from it in one thing, with a name."""
    url, plain, query = event["url"], *event["url"].partition("?")[::2]
    more = "&" if query else "?"
    changed = {
        "itself": url,
        "a slash": plain.rstrip("/") + ("/?" if query else "/") + query,
        "a parameter": f"{url}{more}zzz=1",
        "an empty parameter": f"{url}{more}zzz=",
        "a page": f"{url}{more}page=2",
        "a fragment": f"{url}#x",
        "another path": f"{plain}/more?{query}",
        "another host": url.replace(".local", ".example", 1),
        "no parameters": plain,
        "another order": f"{plain}?{'&'.join(reversed(query.split('&')))}",
    }
    yield from ((name, event | {"url": one}) for name, one in changed.items())
    yield "another status", event | {"status": 404}
    yield "another method", event | {"method": "POST" if event["method"] == "PUT" else "PUT"}
    yield "no headers", event | {"headers": {}}
    if event["sent"]:
        media, text = event["sent"]
        yield "sent in capitals", event | {"sent": (media, text.upper())}
        yield "sent otherwise", event | {"sent": (media, text.replace("e", "x"))}
        yield "nothing sent", event | {"sent": None}
    if event["received"]:
        yield "another answer", event | {"received": (event["received"][0], event["received"][1].replace("1", "2"))}


def _sent(check: dict[str, Any]) -> tuple[str, str] | None:
    expected = check["expected"].get("post_data")
    if not expected:
        return None
    arrays = {
        name
        for name, one in ((check.get("post_data_schema") or {}).get("properties") or {}).items()
        if one.get("type") == "array"
    }
    values = {key: value if key in arrays else sample(first(value)) for key, value in expected.items()}
    if any(key.startswith("$") and not key.startswith("$.^") for key in values):
        return "application/json", json.dumps(_document(values))
    form = {
        sample(key[2:]) if key.startswith("$.^") else key: value for key, value in values.items() if value is not None
    }
    return "application/x-www-form-urlencoded", urlencode(form)


def _document(values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, value in values.items():
        if not path.startswith("$"):
            found[path] = value
        elif "?(" not in path:
            _put(found, [int(b) if b else a or c for a, b, c in KEYS.findall(path)], value)
    return found


def _put(node: Any, keys: list[Any], value: Any) -> None:
    for place, key in enumerate(keys):
        last = place == len(keys) - 1
        inner: Any = value if last else [] if isinstance(keys[place + 1], int) else {}
        if isinstance(key, int):
            node.extend({} for _ in range(key + 1 - len(node)))
            node[key] = inner if last else node[key]
        elif last or key not in node:
            node[key] = inner
        node = node[key]


def sample(value: Any) -> Any:
    """A text that a simple pattern matches, also inside of objects; any other value as it is."""
    if isinstance(value, dict):
        return {key: sample(one) for key, one in value.items()}
    if not isinstance(value, str) or not (value.startswith("^") and value.endswith("$")):
        return value
    if alternatives := re.fullmatch(r"\^\(([^|)]*)\|.*\)\$", value):
        return alternatives[1]
    text = value[1:-1]
    for mark, stand_in in STAND_INS:
        text = text.replace(mark, stand_in)
    return text


def _rendered(url: str, sites: tuple[str, ...]) -> str:
    for name, (base,) in SITES.items():
        url = url.replace(f"__{name.upper()}__", base)
    return url if "://" in url else f"{SITES[sites[0]][0]}/{url.lstrip('x/')}"


def first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value
