"""Which steps a claim is about, as people write it: all, last, 4, "3-7", [0, 2]."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

RANGE = re.compile(r"(\d{1,5})\s*(?:-|–|\.\.|to)\s*(\d{1,5})")
MOST = 100_000  # steps are counted up to here
MOST_LISTED = 500


@dataclass(frozen=True, slots=True)
class Steps:
    """``last``: the last so many. Otherwise ``numbers``, or from ``first`` to ``to`` with both; to None: to the end."""

    first: int = 0
    to: int | None = None
    last: int = 0
    numbers: tuple[int, ...] = ()

    def of(self, count: int) -> tuple[int, ...]:
        """The numbers that a trajectory of ``count`` steps has of these, in order."""
        if self.last:
            return tuple(range(max(0, count - self.last), count))
        if self.numbers:
            return tuple(number for number in self.numbers if number < count)
        return tuple(range(self.first, count if self.to is None else min(count, self.to + 1)))

    def __str__(self) -> str:
        if self.last:
            return "last" if self.last == 1 else f"last {self.last}"
        if self.numbers:
            return ", ".join(map(str, self.numbers))
        return "all" if self.to is None and not self.first else f"{self.first}-{'' if self.to is None else self.to}"


ALL = Steps()


def parse_steps(value: Any) -> Steps | None:
    if isinstance(value, str):
        return _parse_words(value.strip().lower())
    numbers = value if isinstance(value, list) else [value]
    if not 0 < len(numbers) <= MOST_LISTED or not all(_is_step(one) for one in numbers):
        return None
    return Steps(numbers=tuple(sorted(set(numbers))))


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _parse_words(text: str) -> Steps | None:
    if text == "all":
        return ALL
    if text == "last":
        return Steps(last=1)
    if found := re.fullmatch(r"last\s+(\d{1,4})", text):
        return Steps(last=int(found[1])) if int(found[1]) else None
    if text.isascii() and text.isdigit() and len(text) <= 5:
        return Steps(numbers=(int(text),))
    found = RANGE.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        return None
    return Steps(first=int(found[1]), to=int(found[2]))
