"""Values out of JSON of which nothing is promised: each as what it should be, or as nothing."""

from __future__ import annotations

import json
import math
from typing import Any

LONGEST = 20_000  # characters of one text on a page; the download of the judgment has the whole
TOO_DEEP = "(nested too deeply to be shown)"


def text(value: Any, limit: int = LONGEST) -> str:
    """The value as a text; what is no text as JSON, since it was a value and is shown as one."""
    if value is None:
        return ""
    return (value if isinstance(value, str) else as_json(value))[:limit]


def as_json(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    except RecursionError:
        return TOO_DEEP


def texts(value: Any, most: int = 100) -> tuple[str, ...]:
    given = value if isinstance(value, list | tuple) else [] if value in (None, "") else [value]
    return tuple(text(one) for one in given[:most])


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) < value < 2**31:
        return None
    return value


def wholes(value: Any, most: int = 100) -> tuple[int, ...]:
    given = value if isinstance(value, list | tuple) else []
    return tuple(each for one in given[:most] if (each := whole(one)) is not None and each >= 0)


def dicts(value: Any, most: int) -> list[dict[str, Any]]:
    return [one for one in value[:most] if isinstance(one, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
