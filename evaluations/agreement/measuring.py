"""Rates, tables and seeds shared by the parts of an agreement."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from annotation.records import Verdict
from evaluations.agreement.results import Table
from evaluations.cases import Case
from evaluations.statistics import Measure, clusters_of, wilson

SEED = 0
RESAMPLES, FEWER_RESAMPLES = 2000, 1000  # of all cases; of groups and pairs, because there are hundreds


def made_elsewhere(case: Case) -> bool:
    """Return whether its labels were imported; then it has no decision."""
    return case.state is None


def pooled(cases: Sequence[Case]) -> bool:
    """Return whether several agents did the same tasks. Then cases of a task are dependent, and tasks are drawn."""
    tasks = {case.task_id for case in cases}
    return len(tasks) < len(cases) and len({(case.agent, case.attempt) for case in cases}) > 1


def share(found: Sequence[tuple[Case, bool]], why_not: str) -> Measure:
    """Compute the share of cases with a property, by Wilson or, if `pooled`, by resampling tasks."""
    hits = sum(is_so for _, is_so in found)
    if not found:
        return Measure(None, 0, hits=0, undefined=why_not)
    if not pooled([case for case, _ in found]):
        return wilson(hits, len(found))
    return wilson(hits, len(found), hits_of_tasks((case.task_id, is_so) for case, is_so in found))


def hits_of_tasks(found: Iterable[tuple[Hashable, bool]]) -> Any:
    """Return (c, 2): for each task, the number of cases with the property and without it."""
    return clusters_of(((task, 0 if is_so else 1) for task, is_so in found), 2)


def rate(hits: int, n: int, why_not: str) -> Measure:
    return wilson(hits, n) if n else Measure(None, 0, hits=0, undefined=why_not)


def table(counts: Mapping[Any, int]) -> Table:
    a, b, c = Verdict

    def row(one: Verdict) -> tuple[int, int, int]:
        return counts.get((one, a), 0), counts.get((one, b), 0), counts.get((one, c), 0)

    return row(a), row(b), row(c)
