"""Remove the secrets from network traces (HAR 1.2).

`redact` reads JSON, gzipped JSON or the zip of a Playwright trace, and writes compact JSON, with one entry in memory.
`REDACTED` replaces secrets; names and structure do not change (docs/decisions/0012-secrets-in-network-traces.md).
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Protocol

from annotation.formats.har.entries import LEFT_OUT, Budget, redact_entry
from annotation.formats.har.reading import LARGEST, failed, open_entries
from annotation.formats.har.scrubbing import REDACTED, REDACTED_IN_AUTHORITY
from annotation.formats.printable import printable

__all__ = ["LARGEST", "LEFT_OUT", "REDACTED", "REDACTED_IN_AUTHORITY", "Target", "failed", "open_entries", "redact"]


class Target(Protocol):
    """The destination of the redacted trace."""

    def write(self, data: bytes, /) -> object: ...


def redact(source: BinaryIO, name: str, target: Target) -> int:
    """Write the trace in ``source`` to ``target`` without its secrets, and return the number of entries.

    The result is deterministic. Raises FormatError for other files and for files beyond the limits of `reading`, and
    the errors of ``source.read`` and ``target.write``. ``target`` then has a part of the trace.
    """
    count, budget = 0, Budget()
    with open_entries(source, name) as entries:
        for entry in entries:
            redacted = redact_entry(entry, f"{printable(name)}: log.entries[{count}]", budget)
            target.write((b"," if count else _beginning(entries.head)) + _compact(redacted))
            count += 1
        target.write((b"" if count else _beginning(entries.head)) + b"]}}")
    return count


def _beginning(head: dict[str, Any]) -> bytes:
    """Return the bytes before the entries; HAR requires version and creator, so missing ones get default values."""
    known = {key: _compact(_named(head.get(key))) for key in ("creator", "browser") if key in head}
    known.setdefault("creator", _compact({"name": "unknown", "version": ""}))
    inner = b"".join(b'"' + key.encode() + b'":' + value + b"," for key, value in known.items())
    return b'{"log":{"version":"1.2",' + inner + b'"entries":['


def _named(program: Any) -> dict[str, str]:
    given = program if isinstance(program, dict) else {}
    return {key: value[:200] for key, value in given.items() if key in ("name", "version") and isinstance(value, str)}


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
