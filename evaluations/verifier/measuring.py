"""One figure as a report writes it, with the reason where there is none."""

from __future__ import annotations

import re
from typing import Any

from evaluations.verifier.canonical import MOST_DIGITS
from evaluations.verifier.numbers import wilson_interval
from evaluations.verifier.resampling import NOWHERE, Ends

NO_CASES = "no cases"


def rate_figure(hits: int, n: int, why: str = NO_CASES, *, interval: bool = True) -> dict[str, Any]:
    """hits / n with Wilson's interval; ``why`` there is none where n is 0."""
    if not n:
        return {"value": None, "low": None, "high": None, "n": 0, "hits": 0, "undefined": why}
    low, high = wilson_interval(hits, n) if interval else (None, None)
    return {"value": hits / n, "low": low, "high": high, "n": n, "hits": hits}


def coefficient_figure(value: float | None, n: int, why: str, ends: Ends = NOWHERE) -> dict[str, Any]:
    """A coefficient over n cases, with the ``ends`` that its interval can have; ``why`` there is none."""
    if value is None:
        return {"value": None, "low": None, "high": None, "n": n, "undefined": why}
    return {"value": float(value), "low": ends.low, "high": ends.high, "n": n}


def natural_order(name: str) -> tuple[Any, ...]:
    """A2 before A10, and never two names alike."""
    parts = re.split(r"(\d+)", name)
    return tuple(int(part[:MOST_DIGITS]) if odd % 2 else part.casefold() for odd, part in enumerate(parts)), name
