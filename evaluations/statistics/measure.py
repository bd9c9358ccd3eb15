"""A number that may be undefined, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measure:
    """A rate or a coefficient, or in ``undefined`` the reason why there is no value; never NaN.

    ``n`` counts the cases that it is based on, ``hits`` those that a rate counts, None if it is not a rate. ``low`` and
    ``high`` bound its 95% interval, None if none was requested or none can be given.
    """

    value: float | None
    n: int
    hits: int | None = None
    low: float | None = None
    high: float | None = None
    undefined: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) == (not self.undefined):
            raise ValueError("A measure has either a value or a reason why there is none.")

    @classmethod
    def missing(cls, why: str, n: int = 0) -> Measure:
        return cls(None, n, undefined=why)

    def as_json(self) -> dict[str, Any]:
        """Return value, low, high and n; hits for a rate; undefined if there is no value."""
        found: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high, "n": self.n}
        if self.hits is not None:
            found["hits"] = self.hits
        return found | ({"undefined": self.undefined} if self.undefined else {})
