"""Network traces that were tampered with: bytes flipped, keys dropped, types swapped, ends cut off."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from hypothesis import strategies as st

from annotation.tests.traces import FORM, body, entry, form, gzipped, har_of, snapshots, zipped

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtaXJhIn0.c2ln"
ENTRIES = (
    entry(
        f"http://u:p@shop.example/c?page=2&sid=1#x={TOKEN}",
        headers={"Accept": "text/html", "Cookie": "sid=1", "Referer": "http://shop.example/?code=1&state=2"},
        got={"Content-Type": "text/html", "Location": "/cart"},
        status=302,
        query={"page": "2", "sid": "1"},
        content=body('<input name="csrf" value="1"><a href="/?token=1">x</a>', "text/html"),
        _resourceType="document",
    ),
    entry("http://shop.example/add", "POST", post=form("a=1&password=2"), content=body({"token": [1, {"a": "b"}]})),
    entry(
        "http://shop.example/file",
        "PUT",
        post={
            "mimeType": "multipart/form-data; boundary=XX",
            "text": '--XX\r\nContent-Disposition: form-data; name="pin"\r\n\r\n1\r\n--XX--',
            "params": [{"name": "pin", "value": "1"}],
        },
        content={"mimeType": "application/json", "text": "eyJhIjoxfQ==", "encoding": "base64", "size": 7},
    ),
)
INSTEAD: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1e300, "", "x" * 2000, "\x00\ud800", [], {}, [[]], [None], {"name": 1}, "[redacted]",
    "http://[::1", "%", TOKEN, FORM, "base64",
)  # fmt: skip
BYTES = (
    b"",
    b"\x00",
    b'"',
    b"\\",
    b"{",
    b"[" * 500,
    b"]",
    b",",
    b"\xff",
    b"NaN",
    b"1e999",
    b"\\ud800",
    b"\n",
    b"9" * 5000,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every list or object with each of its keys, in order."""
    found: list[tuple[Any, Any]] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        found += [(inner, key) for key in keys]
        waiting += [inner[key] for key in keys]
    return found


def swapped(document: Any, change: tuple[str, int, int]) -> None:
    """Drop, replace, or double one value of the document."""
    kind, where, what = change
    known = places(document)
    if not known:
        return
    home, key = known[where % len(known)]
    if kind == "drop":
        del home[key]
    elif kind == "replace":
        home[key] = copy.deepcopy(INSTEAD[what % len(INSTEAD)])  # a later change may be inside it
    elif isinstance(home, list):
        home.append(home[key])
    else:
        home[f"{key}_token"] = home[key]


def damaged(data: bytes, change: tuple[str, int, int]) -> bytes:
    """Flip, insert, remove, or cut off bytes."""
    kind, where, what = change
    at = where % (len(data) + 1)
    if kind == "flip":
        return data[:at] + bytes(byte ^ (1 + what % 255) for byte in data[at : at + 1]) + data[at + 1 :]
    if kind == "insert":
        return data[:at] + BYTES[what % len(BYTES)] + data[at:]
    return data[:at] if kind == "cut" else data[:at] + data[at + what % 50 :]


def made(form_of: str, swaps: list[tuple[str, int, int]], damages: list[tuple[str, int, int]], packed: bool) -> bytes:
    """A trace in one of the forms; ``packed`` damage happens to the packed bytes, other to what is in them."""
    document = json.loads(har_of(*ENTRIES))
    for change in swaps:
        swapped(document, change)
    if form_of == "zip":
        entries = document.get("log", {}) if isinstance(document, dict) else {}
        entries = entries.get("entries") if isinstance(entries, dict) else None
        data = snapshots(*entries) if isinstance(entries, list) else b"[]"
    else:
        data = json.dumps(document).encode()
    inside, outside = ([], damages) if packed else (damages, [])
    for change in inside:
        data = damaged(data, change)
    data = zipped({"trace.network": data}) if form_of == "zip" else gzipped(data) if form_of == "gzip" else data
    for change in outside:
        data = damaged(data, change)
    return data


def tampered(seed: int) -> bytes:
    """A trace with up to four values swapped and up to two places of its bytes damaged."""
    chance = random.Random(seed)
    swaps = [_change(chance, ("drop", "replace", "replace", "double")) for _ in range(chance.randrange(5))]
    damages = [_change(chance, ("flip", "insert", "cut", "remove")) for _ in range(chance.randrange(3))]
    return made(chance.choice(("json", "json", "gzip", "zip")), swaps, damages, chance.random() < 0.5)


def _change(chance: random.Random, kinds: tuple[str, ...]) -> tuple[str, int, int]:
    return chance.choice(kinds), chance.randrange(10**6), chance.randrange(10**6)


# One number is drawn for all of a trace: drawing each change by itself takes longer than the reading that is tested.
TRACES = st.integers(0, 2**62).map(tampered)
