"""Text from outside, made fit for a message."""

from __future__ import annotations


def printable(text: str, limit: int = 120) -> str:
    """``text`` on one line and at most ``limit`` characters long, with what cannot be shown written as escapes."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if char.isprintable() else _escape(char) for char in shown)


def listing(names: list[str], limit: int = 10) -> str:
    """The first ``limit`` of ``names``, printable, and how many more there are."""
    shown = ", ".join(printable(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
