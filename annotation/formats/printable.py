"""Format external texts for messages."""

from __future__ import annotations

from pathlib import PurePath


def printable(text: str, limit: int = 120) -> str:
    """Return ``text`` on one line, cut after ``limit`` characters, with escapes for unprintable characters."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if char.isprintable() else _escape(char) for char in shown)


def file_name(given: str, suffix: str) -> str:
    """Return the name for a copy of the uploaded file ``given``, so that messages show a similar name.

    60 characters have at most 240 bytes; file systems allow 255. An escape is longer than its character.
    """
    return f"{printable(printable(PurePath(given).stem, 60), 60) or 'file'}{suffix}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return "1 step", "2 steps", "1,200 trajectories"; ``plural`` is needed if it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_clock(seconds: int) -> str:
    """Return 4:30, or 1:04:30 from an hour on."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def listing(names: list[str], limit: int = 10) -> str:
    """Return the first ``limit`` of ``names`` as printable text, and the number of the others."""
    shown = ", ".join(printable(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
