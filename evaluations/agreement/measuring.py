"""What every part of an agreement is measured with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from annotation.records import Verdict
from evaluations.agreement.results import Table
from evaluations.cases import Case
from evaluations.statistics import Measure, wilson

SEED = 0
RESAMPLES, FEWER_RESAMPLES = 2000, 1000  # of all cases; of groups and pairs, of which there are hundreds


def made_elsewhere(case: Case) -> bool:
    """Whether its labels were imported: nobody has decided anything but by them."""
    return case.state is None


def rate(hits: int, n: int, why_not: str) -> Measure:
    return wilson(hits, n) if n else Measure(None, 0, hits=0, undefined=why_not)


def table(counts: Mapping[Any, int]) -> Table:
    """Counts of two verdicts as ``table[one][other]``."""
    a, b, c = Verdict

    def row(one: Verdict) -> tuple[int, int, int]:
        return counts.get((one, a), 0), counts.get((one, b), 0), counts.get((one, c), 0)

    return row(a), row(b), row(c)


def natural(name: str) -> tuple[Any, ...]:
    """A2 before A10, and never two names alike."""
    parts = re.split(r"(\d+)", name)
    return tuple(int(part) if odd % 2 else part.casefold() for odd, part in enumerate(parts)), name
