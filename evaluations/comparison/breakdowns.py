"""Where a judge is good and where it is not: by kind of case, by score, by case; how steady and how dear it is."""

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
from evaluations.comparison.results import GROUPS, Answer, Bin, Costs, Difference, Flips, Judged, Key, Pairs, Row
from evaluations.comparison.rows import build_rows, by_task, count_by_name, rate, several_agents
from evaluations.naming import FAILURE_TYPE_NAMES, LEVELS, NOT_KNOWN, natural
from evaluations.statistics import Measure, mean_of_items

BUCKETS = ((0, "0"), (1, "1-5"), (6, "6-10"), (11, "11-20"), (21, "21-40"), (41, "41 and more"))  # from, name
STARTS = [start for start, _ in BUCKETS]
BINS = 10
MOST_INTERVALS = 20  # groups of a kind, which are also all that a page shows: a benchmark can have 2,000 websites
MOST_VALUES = 12  # different scores that have a bin each

Scored = tuple[float, Hashable, bool]  # a judge's score, what the case belongs to, whether people say success


def groups(pairs: Pairs) -> dict[str, list[Row]]:
    """The rows of each group, by the names of GROUPS. Only failures have a failure type: other cases are left out."""
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
    """``shared``: several agents attempted the tasks. The largest groups have intervals."""
    counts = count_by_name(pairs, named)
    names = sorted(counts, key=_order)
    largest = set(sorted(names, key=lambda name: -counts[name].total())[:MOST_INTERVALS])
    clusters = by_task(pairs, lambda case: name if (name := named(case)) in largest else None) if shared else {}
    return [each for name in names for each in build_rows(name, counts[name], clusters, intervals=name in largest)]


def _order(name: str) -> tuple[Any, ...]:
    """Levels, failure types and buckets as they are always listed, other names by the alphabet, unknown at the end."""
    grown = [*LEVELS, *FAILURE_TYPE_NAMES, *(bucket for _, bucket in BUCKETS)]
    return name == NOT_KNOWN, grown.index(name) if name in grown else len(grown), natural(name)


def _bucket(size: int) -> str:
    return BUCKETS[bisect_right(STARTS, size) - 1][1]


# --- by case ---------------------------------------------------------------------------------------------------------


def differences(pairs: Pairs, said: Mapping[Key, Judged]) -> list[Difference]:
    """The cases where one of judge and people says success and the other does not, with the step that is cited."""
    told = {Answer.SUCCESS: True, Answer.NO_SUCCESS: False}
    found = [
        (case, said[case.key])
        for case, human, what in pairs
        if what in told and told[what] is not (human is Verdict.SUCCESS)
    ]
    steps = cited_steps([each.judgment for _, each in found if each.judgment is not None])
    return [Difference(case, replace(each, step=steps.get(each.judgment or 0))) for case, each in found]


# --- how steady, how dear --------------------------------------------------------------------------------------------


def flips(said: Mapping[Key, Judged], cases: Sequence[Case]) -> Flips:
    """How often two verdicts of one run on a case differ; unscored repetitions are no verdicts.

    A case with r >= 2 verdicts, of which r_c are c, has a share of differing pairs of
    1 - sum_c r_c (r_c - 1) / (r (r - 1)). The rate is the mean over these cases; it does not grow with r.
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
    """Over all repetitions: each of them was paid for."""
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
    """How often people say success where the judge's score is so high; nothing for a judge that gives no scores.

    Scores from 0 to 1 have ten equal bins; others a bin for each value, or ten of about as many cases where there are
    many values. Empty bins are left out. Label 2 of people is no success.
    """
    shared = several_agents(case for case, _, _ in pairs)
    scored = [
        (found.score, case.task_id if shared else case.key, human is Verdict.SUCCESS)
        for case, human, _ in pairs
        if (found := said.get(case.key)) is not None and found.score is not None and found.verdict is not None
    ]
    if not scored:
        return []
    edges = _edges(sorted(score for score, _, _ in scored))
    return [_bin(low, high, inside) for low, high, inside in _binned(scored, edges) if inside]


def _edges(scores: Sequence[float]) -> list[tuple[float, float]]:
    """Bins as pairs of their bounds, growing; a score belongs to the last bin that begins at or below it."""
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
