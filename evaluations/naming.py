"""Names and order of groups of cases on pages, in files and on terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from annotation.protocol import FAILURE_TYPES

LEVELS = ("easy", "medium", "hard")
NOT_KNOWN = "not known"  # a level or website that the task does not state
FAILURE_TYPE_NAMES = {term.code: term.name for term in FAILURE_TYPES}

Order = tuple[Any, ...]


@lru_cache(maxsize=10_000)  # the same few names are sorted again and again
def natural(name: str) -> Order:
    """Return a sort key: A2 before A10, "agent b" next to "Agent a", and different keys for different names."""
    parts = re.split(r"(\d+)", name)
    return tuple(int(part) if odd % 2 else part.casefold() for odd, part in enumerate(parts)), name


def level_order(level: str) -> Order:
    """Sort easy, medium, hard, then other levels, and unknown last."""
    return _after(LEVELS, level)


def failure_type_order(code: str) -> Order:
    return _after(list(FAILURE_TYPE_NAMES), code)


def failure_type_name(code: str) -> str:
    """Return its name in the protocol; a code that the protocol does not have is its own name."""
    return FAILURE_TYPE_NAMES.get(code, code) or NOT_KNOWN


def _after(known: Sequence[str], name: str) -> Order:
    return name in ("", NOT_KNOWN), known.index(name) if name in known else len(known), natural(name)
