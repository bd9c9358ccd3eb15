"""Cut large values out of JSON before it is parsed: logs repeat the structure of each page, up to 180 MB in a file."""

from __future__ import annotations

import re
from collections.abc import Collection

MARK = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}]', re.DOTALL)
BLANK = re.compile(rb"[ \t\r\n]*+")
SCALAR = re.compile(rb"[^][{},\" \t\r\n]*+")


def cut_values(data: bytes, keys: Collection[str]) -> tuple[bytes, list[bytes]]:
    """Return the JSON ``data`` with an index of the list in place of each value of ``keys``, and the list of values.

    Values in a value that is cut out stay in it. Nothing is checked: parse both.
    """
    # In JSON, no text can have these quotes in it: there, they would follow a backslash.
    key = re.compile(rb'(?<!\\)"(?:%b)"[ \t\r\n]*+:' % b"|".join(re.escape(name.encode()) for name in sorted(keys)))
    kept: list[bytes] = []
    values: list[bytes] = []
    position = 0
    while found := key.search(data, position):
        blank = BLANK.match(data, found.end())
        start = blank.end() if blank else found.end()
        end = _find_end(data, start)
        kept += [data[position:start], b"%d" % len(values)]
        values.append(data[start:end])
        position = end
    return b"".join([*kept, data[position:]]), values


def _find_end(data: bytes, start: int) -> int:
    """Return the end of the value at ``start``; that of ``data`` if the value does not end."""
    if data[start : start + 1] not in (b"{", b"[", b'"'):
        scalar = SCALAR.match(data, start)
        return scalar.end() if scalar else start
    depth = 0
    for mark in MARK.finditer(data, start):
        sign = mark[0]
        depth += (sign in (b"{", b"[")) - (sign in (b"}", b"]"))
        if depth == 0:
            return mark.end()
    return len(data)
