"""Text in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(flat(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def start_page(title: str, text: str) -> str:
    return f"# {title}\n\n{text}"


def code(value: Any) -> str:
    return f"`{value}`" if value not in ("", None) else ""
