"""Where a judge is good and where it is not: by kind of case, by score, by case; how steady and how dear it is."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from annotation.records import Verdict
from evaluations.cases import Case, lengths
from evaluations.comparison.evidence import cited_steps
from evaluations.comparison.results import GROUPS, Bin, Costs, Difference, Judged, Key, Row
from evaluations.comparison.rows import Pairs, Said, both, by
from evaluations.statistics import Measure, wilson

NOT_KNOWN = "not known"
LEVELS = ("easy", "medium", "hard")  # in this order; others follow by name
BUCKETS = ((0, "0"), (1, "1-5"), (6, "6-10"), (11, "11-20"), (21, "21-40"), (41, "41 and more"))  # from, name
BINS = 10
MOST_VALUES = 12  # different scores that have a bin each


def groups(pairs: Pairs) -> dict[str, list[Row]]:
    """The rows of each group, by the names of GROUPS. Only failures have a failure type: other cases are left out."""
    sizes = lengths([case for case, _, _ in pairs])
    named: dict[str, Callable[[Case], str | None]] = {
        "level": lambda case: case.level or NOT_KNOWN,
        "website": lambda case: case.website or NOT_KNOWN,
        "failure type": lambda case: (case.failure_type or NOT_KNOWN) if case.final is Verdict.FAILURE else None,
        "trajectory length": lambda case: _bucket(sizes.get(case.trajectory or 0), 0),
        "screenshots": lambda case: _bucket(sizes.get(case.trajectory or 0), 1),
    }
    return {group: _rows(pairs, named[group]) for group in GROUPS}


def _rows(pairs: Pairs, named: Callable[[Case], str | None]) -> list[Row]:
    counts = by(pairs, named)
    return [each for name in sorted(counts, key=_order) for each in both(name, counts[name])]


def _order(name: str) -> tuple[int, int, str]:
    """Levels and buckets as they grow, other names by the alphabet, what is not known at the end."""
    grown = [*LEVELS, *(bucket for _, bucket in BUCKETS)]
    return int(name == NOT_KNOWN), grown.index(name) if name in grown else len(grown), name


def level_order(level: str) -> tuple[int, int, str]:
    return _order(level)


def _bucket(size: tuple[int, int] | None, which: int) -> str:
    if size is None:
        return NOT_KNOWN
    return BUCKETS[bisect_right([start for start, _ in BUCKETS], size[which]) - 1][1]


# --- by case ---------------------------------------------------------------------------------------------------------


def differences(pairs: Pairs, said: Mapping[Key, Judged]) -> list[Difference]:
    """The cases where one of judge and people says success and the other does not, with the step that is cited."""
    told = {Said.SUCCESS: True, Said.NO_SUCCESS: False}
    found = [
        (case, said[case.key])
        for case, human, what in pairs
        if what in told and told[what] is not (human is Verdict.SUCCESS)
    ]
    steps = cited_steps([each.judgment for _, each in found if each.judgment is not None])
    return [Difference(case, replace(each, step=steps.get(each.judgment or 0))) for case, each in found]


# --- how steady, how dear --------------------------------------------------------------------------------------------


def flips(said: Iterable[Judged]) -> Measure:
    """Of the cases with two or more verdicts of one run, those whose verdicts differ; unscored ones are no verdicts."""
    repeated = [[verdict for verdict in each.repeated if verdict is not None] for each in said]
    several = [verdicts for verdicts in repeated if len(verdicts) > 1]
    if not several:
        return Measure.missing("no case was judged more than once")
    return wilson(sum(len(set(verdicts)) > 1 for verdicts in several), len(several))


def costs(said: Iterable[Judged]) -> Costs:
    known = [each for each in said if each.tokens is not None or each.cost is not None]
    tokens = [each.tokens for each in known if each.tokens is not None]
    dollars = [each.cost for each in known if each.cost is not None]
    return Costs(
        judgments=len(known),
        tokens=fmean(tokens) if tokens else None,
        cost=fmean(dollars) if dollars else None,
        total_cost=math.fsum(dollars) if dollars else None,
    )


# --- calibration -----------------------------------------------------------------------------------------------------


def calibration(pairs: Pairs, said: Mapping[Key, Judged]) -> list[Bin]:
    """How often people say success where the judge's score is so high; nothing for a judge that gives no scores.

    Scores from 0 to 1 have ten equal bins; others a bin for each value, or ten of about as many cases where there are
    many values. Empty bins are left out.
    """
    scored = [
        (found.score, human is Verdict.SUCCESS)
        for case, human, _ in pairs
        if (found := said.get(case.key)) is not None and found.score is not None and found.verdict is not None
    ]
    if not scored:
        return []
    edges = _edges(sorted(score for score, _ in scored))
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


def _binned(
    scored: Sequence[tuple[float, bool]], edges: Sequence[tuple[float, float]]
) -> list[tuple[float, float, list[tuple[float, bool]]]]:
    starts = [low for low, _ in edges]
    inside: list[list[tuple[float, bool]]] = [[] for _ in edges]
    for one in scored:
        inside[bisect_right(starts, one[0]) - 1].append(one)
    return [(low, high, found) for (low, high), found in zip(edges, inside, strict=True)]


def _bin(low: float, high: float, inside: Sequence[tuple[float, bool]]) -> Bin:
    return Bin(low, high, fmean(score for score, _ in inside), wilson(sum(good for _, good in inside), len(inside)))
