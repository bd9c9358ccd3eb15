"""Cases and what a judge says of them, in a line each, for figures that are computed by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from annotation.records import Verdict
from evaluations.cases import ELSEWHERE, BlindLabel, Case
from evaluations.comparison import Judged


def case(number: int, final: int | None, agent: str = "X", **fields: Any) -> Case:
    """A case with imported labels: two that are final, or two that differ."""
    said = (0, 1) if final is None else (final, final)
    base: dict[str, Any] = {
        "agent": agent,
        "task_id": f"task_{number:04d}",
        "level": "easy",
        "website": "https://shop.example/",
        "labels": tuple(BlindLabel(f"person {n}", Verdict(verdict)) for n, verdict in enumerate(said, 1)),
        "final": None if final is None else Verdict(final),
        "expected": ELSEWHERE,
    }
    return Case(**(base | fields))


def told(verdict: int | None, *, tokens: int | None = None, cost: float | None = None, **fields: Any) -> Judged:
    """One repetition with these tokens and US dollars, unless ``spent`` says what each took."""
    return Judged(None, None if verdict is None else Verdict(verdict), **({"spent": ((tokens, cost),)} | fields))


def both(pairs: Iterable[tuple[int | None, int | None]], **fields: Any) -> tuple[list[Case], dict[Any, Judged]]:
    """Cases and what is said of them, from what people and the judge say of each; None of the judge is unscored."""
    said = {}
    cases = []
    for number, (human, judge) in enumerate(pairs):
        cases.append(case(number, human, **fields))
        said[cases[-1].key] = told(judge)
    return cases, said
