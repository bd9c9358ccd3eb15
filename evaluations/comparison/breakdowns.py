"""Breakdowns of a judge's agreement: by group of cases, by score, by case; its consistency and cost."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from annotation.records import Verdict
from evaluations.cases import Case, lengths
from evaluations.comparison.evidence import cited_steps
from evaluations.comparison.results import (
    GROUPS,
    Answer,
    Bin,
    Costs,
    Difference,
    Flips,
    Judged,
    Key,
    Label2,
    Pairs,
    Row,
    ScoreQuality,
)
from evaluations.comparison.rows import build_rows, by_task, count_by_name, rate, several_agents
from evaluations.naming import FAILURE_TYPE_NAMES, LEVELS, NOT_KNOWN, natural
from evaluations.statistics import Measure, brier_score, mean_of_items, roc_auc

BUCKETS = ((0, "0"), (1, "1-5"), (6, "6-10"), (11, "11-20"), (21, "21-40"), (41, "41 and more"))  # lowest value, name
STARTS = [start for start, _ in BUCKETS]
BINS = 10
MOST_INTERVALS = 20  # groups of a kind with intervals, and on a page: a benchmark can have 2,000 websites
MOST_VALUES = 12  # different scores that have a bin each

Scored = tuple[float, Hashable, bool]  # a judge's score, the case's task, whether people say success


def groups(pairs: Pairs) -> dict[str, list[Row]]:
    """Return the rows of each group, by the names of GROUPS. Breakdowns by failure type have only failures."""
    sizes = lengths([case for case, _, _ in pairs])
    buckets = {pk: (_bucket(steps), _bucket(shown)) for pk, (steps, shown) in sizes.items()}
    unknown = (NOT_KNOWN, NOT_KNOWN)
    named: dict[str, Callable[[Case], str | None]] = {
        "level": lambda case: case.level or NOT_KNOWN,
        "website": lambda case: case.website or NOT_KNOWN,
        "failure type": lambda case: (case.failure_type or NOT_KNOWN) if case.final is Verdict.FAILURE else None,
        "trajectory length": lambda case: buckets.get(case.trajectory or 0, unknown)[0],
        "screenshots": lambda case: buckets.get(case.trajectory or 0, unknown)[1],
    }
    shared = several_agents(case for case, _, _ in pairs)
    return {group: _rows(pairs, named[group], shared) for group in GROUPS}


def _rows(pairs: Pairs, named: Callable[[Case], str | None], shared: bool) -> list[Row]:
    """Return the rows; ``shared``: several agents attempted the tasks. The largest groups have intervals."""
    counts = count_by_name(pairs, named)
    names = sorted(counts, key=_order)
    largest = set(sorted(names, key=lambda name: -counts[name].total())[:MOST_INTERVALS])
    clusters = by_task(pairs, lambda case: name if (name := named(case)) in largest else None) if shared else {}
    return [each for name in names for each in build_rows(name, counts[name], clusters, intervals=name in largest)]


def _order(name: str) -> tuple[Any, ...]:
    """Sort levels, failure types and buckets in their fixed order, other names alphabetically, unknown last."""
    grown = [*LEVELS, *FAILURE_TYPE_NAMES, *(bucket for _, bucket in BUCKETS)]
    return name == NOT_KNOWN, grown.index(name) if name in grown else len(grown), natural(name)


def _bucket(size: int) -> str:
    return BUCKETS[bisect_right(STARTS, size) - 1][1]


# --- single cases ----------------------------------------------------------------------------------------------------


def differences(pairs: Pairs, said: Mapping[Key, Judged]) -> list[Difference]:
    """Return the cases where either only the judge or only people say success, with the cited step."""
    told = {Answer.SUCCESS: True, Answer.NO_SUCCESS: False}
    found = [
        (case, said[case.key])
        for case, human, what in pairs
        if what in told and told[what] is not (human is Verdict.SUCCESS)
    ]
    steps = cited_steps([each.judgment for _, each in found if each.judgment is not None])
    return [Difference(case, replace(each, step=steps.get(each.judgment or 0))) for case, each in found]


# --- consistency and cost --------------------------------------------------------------------------------------------


def flips(said: Mapping[Key, Judged], cases: Sequence[Case]) -> Flips:
    """Count how often two verdicts of one run on a case differ; unscored repetitions are not verdicts.

    A case with r >= 2 verdicts, r_c of them c, has a share of differing pairs of 1 - sum_c r_c (r_c - 1) / (r (r - 1)).
    The rate is the mean over these cases; it does not grow with r.
    """
    shared = several_agents(cases)
    tasks, shares = [], []
    for case in cases:
        told = said.get(case.key)
        verdicts = [verdict for verdict in told.repeated if verdict is not None] if told is not None else []
        if (pairs := len(verdicts) * (len(verdicts) - 1)) > 0:
            tasks.append(case.task_id if shared else case.key)
            shares.append(1 - sum(times * (times - 1) for times in Counter(verdicts).values()) / pairs)
    if not shares:
        return Flips(Measure.missing("no case was judged more than once"), 0)
    differing = sum(share > 0 for share in shares)
    if set(shares) <= {0.0, 1.0}:  # for example if all cases have two repetitions
        found = rate([(task, share > 0) for task, share in zip(tasks, shares, strict=True)])
        return Flips(replace(found, hits=None), differing)
    return Flips(mean_of_items(Measure(fmean(shares), len(shares)), shares, tasks), differing)


def costs(said: Iterable[Judged]) -> Costs:
    """Return the costs of all repetitions, because each one was paid for."""
    spent = [one for each in said for one in each.spent]
    tokens = [number for number, _ in spent if number is not None]
    dollars = [cost for _, cost in spent if cost is not None]
    return Costs(
        judgments=len(spent),
        with_tokens=len(tokens),
        tokens=fmean(tokens) if tokens else None,
        with_cost=len(dollars),
        cost=fmean(dollars) if dollars else None,
        total_cost=math.fsum(dollars) if dollars else None,
    )


# --- calibration -----------------------------------------------------------------------------------------------------


def calibration(pairs: Pairs, said: Mapping[Key, Judged]) -> list[Bin]:
    """Compute how often people say success by range of the judge's score; empty for a judge without scores.

    Scores from 0 to 1 have ten equal bins. Others have a bin for each value, or ten bins of about equal size if there
    are many values. Empty bins are left out. Label 2 of people is not a success.
    """
    scored = _scored(pairs, said)
    if not scored:
        return []
    edges = _edges(sorted(score for score, _, _ in scored))
    return [_bin(low, high, inside) for low, high, inside in _binned(scored, edges) if inside]


def score_quality(pairs: Pairs, said: Mapping[Key, Judged]) -> list[ScoreQuality]:
    """Return the Brier score and the area under the ROC curve under both rules for label 2."""
    executable = [pair for pair in pairs if pair[1] is not Verdict.NOT_EXECUTABLE]
    found = []
    for rule, own in ((Label2.EXCLUDED, executable), (Label2.NOT_SUCCESS, pairs)):
        scored = _scored(own, said)
        columns = [one[0] for one in scored], [one[2] for one in scored], [one[1] for one in scored]
        found.append(ScoreQuality(rule, len(scored), brier_score(*columns), roc_auc(*columns)))
    return found


def _scored(pairs: Pairs, said: Mapping[Key, Judged]) -> list[Scored]:
    shared = several_agents(case for case, _, _ in pairs)
    return [
        (found.score, case.task_id if shared else case.key, human is Verdict.SUCCESS)
        for case, human, _ in pairs
        if (found := said.get(case.key)) is not None and found.score is not None and found.verdict is not None
    ]


def _edges(scores: Sequence[float]) -> list[tuple[float, float]]:
    """Return bins as pairs of bounds, ascending; a score belongs to the last bin that starts at or below it."""
    values = sorted(set(scores))
    if values[0] >= 0 and values[-1] <= 1:
        return [(number / BINS, (number + 1) / BINS) for number in range(BINS)]
    if len(values) <= MOST_VALUES:
        return [(value, value) for value in values]
    starts = sorted({scores[number * len(scores) // BINS] for number in range(BINS)})
    return list(zip(starts, [*starts[1:], values[-1]], strict=True))


def _binned(scored: Sequence[Scored], edges: Sequence[tuple[float, float]]) -> list[tuple[float, float, list[Scored]]]:
    starts = [low for low, _ in edges]
    inside: list[list[Scored]] = [[] for _ in edges]
    for one in scored:
        inside[bisect_right(starts, one[0]) - 1].append(one)
    return [(low, high, found) for (low, high), found in zip(edges, inside, strict=True)]


def _bin(low: float, high: float, inside: Sequence[Scored]) -> Bin:
    return Bin(low, high, fmean(score for score, _, _ in inside), rate([(task, good) for _, task, good in inside]))
