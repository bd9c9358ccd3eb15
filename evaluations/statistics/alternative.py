"""The alternative annotator test: may a judge stand in for one of the annotators?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import atan, pi, sqrt
from typing import Annotated, NamedTuple

import numpy as np

from evaluations.statistics.correcting import benjamini_yekutieli
from evaluations.statistics.intervals import by_cluster, wilson
from evaluations.statistics.measure import Measure
from evaluations.statistics.tally import Floats, Integers

EPSILON = 0.15
LEVEL = 0.05
FEWEST_ANNOTATORS = 3
FEWEST_ITEMS = 30
PASSES_FROM = 0.5


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """An item with the judge's label and those of people, by annotator; items of one ``task`` are alike."""

    task: Hashable
    judge: int
    labels: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AgainstAnnotator:
    """The judge against one annotator, on the items that the annotator and others labelled."""

    annotator: str
    judge: Annotated[Measure, "How often the judge agrees with the others at least as well as the annotator."]
    person: Annotated[Measure, "How often the annotator agrees with the others at least as well as the judge."]
    p: Annotated[Measure, "One-sided t test that the judge is worse by epsilon or more."]
    p_corrected: Annotated[Measure, "Benjamini and Yekutieli, over the tested annotators."]
    wins: Annotated[bool | None, "The corrected p is below the level; null without one."]


@dataclass(frozen=True, slots=True)
class AlternativeTest:
    """The result of the alternative annotator test: ``passed`` is null if ``missing`` says what is missing."""

    epsilon: Annotated[float, "How much less often than the annotator the judge may be as close to the others."]
    level: Annotated[float, "Of the tests, after the correction."]
    annotators: list[AgainstAnnotator]
    winning_rate: Annotated[Measure, "Share of the tested annotators against whom the judge wins."]
    advantage: Annotated[Measure, "Mean over the tested annotators of how often the judge is as close."]
    passed: Annotated[bool | None, "The winning rate is 0.5 or more."]
    missing: str


class _Duel(NamedTuple):
    """One item of an annotator: its task, and whether the judge, and the person, is at least as close to the others."""

    task: Hashable
    judge: bool
    person: bool


def alternative_annotator_test(
    items: Iterable[LabelledItem], *, epsilon: float = EPSILON, level: float = LEVEL
) -> AlternativeTest:
    """Test whether a judge represents the annotators at least as well as one of them does.

    Annotator j is left out in turn. On each of the n_j items that j and someone else labelled, S is the share of the
    other annotators with the same label, for the judge and for j. rho_j is the share of items with S(judge) >= S(j),
    and d_i is [S(j) >= S(judge)] - [S(judge) >= S(j)], so that its mean is the advantage of j over that of the judge.
    The judge wins against j if mean d < ``epsilon``, by a one-sided t test whose p values are corrected over the
    annotators with `benjamini_yekutieli`, at the ``level``. ``winning_rate`` (omega) is the share of the tested
    annotators against whom it wins, ``advantage`` (rho) the mean of their rho_j; it passes with omega >= 0.5.

    epsilon, 0 to 1, is what a judge may be worse and still pay: the paper proposes 0.2 for experts, 0.15 for skilled
    annotators, 0.1 for crowd workers. Items of a task depend on each other, so the standard error is that of the task
    totals (degrees of freedom: tasks minus 1); with one item each this is the usual one. If all tasks have the same
    mean of d there is none. Then p is 1 if that mean is above 0, else (1 - epsilon)^tasks: with a mean of epsilon, a
    task has a mean above 0 at least that often. Where every d is -1 it is ((1 - epsilon) / 2)^tasks: with P(d = -1) = q
    the mean of d is at most 1 - 2q, so a mean of epsilon or more needs q <= (1 - epsilon) / 2.

    Undefined with fewer than `FEWEST_ANNOTATORS` annotators who each have `FEWEST_ITEMS` items of as many tasks.
    Source: Calderon, Reichart and Dror (2025), The Alternative Annotator Test for LLM-as-a-Judge, arXiv:2501.10970;
    for tasks Cameron and Miller (2015), Journal of Human Resources 50, 317-372.
    """
    if not 0 <= epsilon <= 1 or not 0 < level < 1:
        raise ValueError("Epsilon is from 0 to 1, and the level between 0 and 1.")
    duels: dict[str, list[_Duel]] = {}
    for item in items:
        for annotator, duel in _duels(item):
            duels.setdefault(annotator, []).append(duel)
    names = sorted(duels)
    tested = [name for name in names if len({duel.task for duel in duels[name]}) >= FEWEST_ITEMS]
    p_of = dict(zip(tested, (_test(duels[name], epsilon) for name in tested), strict=True))
    corrected = dict(zip(tested, benjamini_yekutieli([p_of[name] for name in tested]), strict=True))
    found = [_against(name, duels[name], p_of.get(name), corrected.get(name), level) for name in names]
    missing = _missing(len(names), len(tested))
    if missing:
        none = Measure.missing("too few annotators or tasks")
        return AlternativeTest(epsilon, level, found, none, none, None, missing)
    wins = sum(each.wins is True for each in found)
    rate = Measure(wins / len(tested), len(tested), wins)
    advantage = _advantage([duels[name] for name in tested])
    return AlternativeTest(epsilon, level, found, rate, advantage, rate.value >= PASSES_FROM, "")  # type: ignore[operator]


def _duels(item: LabelledItem) -> Iterator[tuple[str, _Duel]]:
    counts, others = Counter(item.labels.values()), len(item.labels) - 1
    if not others:
        return
    for annotator, label in item.labels.items():
        by_person = counts[label] - 1
        by_judge = counts[item.judge] - (item.judge == label)
        yield annotator, _Duel(item.task, by_judge >= by_person, by_person >= by_judge)


def _against(
    name: str, duels: Sequence[_Duel], p: Measure | None, corrected: Measure | None, level: float
) -> AgainstAnnotator:
    few = Measure.missing(f"fewer than {FEWEST_ITEMS} tasks that others labelled too", len(duels))
    tasks = _by_task(duels)
    rates = [
        wilson(hits, len(duels), np.stack([tasks[:, place], tasks[:, 2] - tasks[:, place]], axis=1))
        for place, hits in enumerate(tasks[:, :2].sum(axis=0).tolist())
    ]
    wins = None if corrected is None or corrected.value is None else corrected.value < level
    return AgainstAnnotator(name, rates[0], rates[1], p or few, corrected or few, wins)


def _by_task(duels: Sequence[_Duel]) -> Integers:
    """Return (t, 3): for each task the items where the judge, and where the person, is as close, and all items."""
    numbers: dict[Hashable, int] = {}
    tasks = np.array([numbers.setdefault(duel.task, len(numbers)) for duel in duels], np.int64)
    cells = np.array([(duel.judge, duel.person, 1) for duel in duels], np.int64)
    found = np.zeros((len(numbers), 3), np.int64)
    np.add.at(found, tasks, cells)
    return found


def _test(duels: Sequence[_Duel], epsilon: float) -> Measure:
    """Return p of the hypothesis that the mean of d is ``epsilon`` or more, against less."""
    tasks = _by_task(duels)
    n, count = len(duels), len(tasks)
    totals = tasks[:, 1] - tasks[:, 0]
    mean = float(totals.sum()) / n
    error = sqrt(count / (count - 1) * float(np.square(totals - mean * tasks[:, 2]).sum())) / n
    if error > 1e-12:
        return Measure(student_t_below((mean - epsilon) / error, count - 1), n)
    if mean == -1:
        return Measure(((1 - epsilon) / 2) ** count, n)
    return Measure((1 - epsilon) ** count if mean <= 0 else 1.0, n)


def student_t_below(t: float, df: int) -> float:
    """Return P(T <= t) of Student's t distribution with a whole number of degrees of freedom, from 1.

    By the finite sums in sin and cos of theta = atan(t / sqrt(df)). ValueError for df < 1.
    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    if df < 1:
        raise ValueError("Degrees of freedom are 1 or more.")
    theta = atan(t / sqrt(df))
    sine, cosine = t / sqrt(df + t * t), sqrt(df / (df + t * t))
    start = 2 if df % 2 else 1  # factors 2/3, 4/5 ... of odd, 1/2, 3/4 ... of even degrees
    steps = np.arange(start, df - 2, 2, dtype=float)
    series = float(np.concatenate([[1.0], np.cumprod(steps / (steps + 1) * cosine * cosine)]).sum())
    odd = 2 / pi * (theta + (sine * cosine * series if df > 1 else 0.0))
    between = odd if df % 2 else sine * series
    return min(max((1 + between) / 2, 0.0), 1.0)


def _advantage(duels: Sequence[Sequence[_Duel]]) -> Measure:
    """Return the mean of rho_j over annotators, with its interval from drawing tasks."""
    numbers: dict[Hashable, int] = {}
    for duel in (duel for own in duels for duel in own):
        numbers.setdefault(duel.task, len(numbers))
    cells = np.zeros((len(numbers), 2 * len(duels)), np.int64)  # of each annotator: hits, then items
    for place, own in enumerate(duels):
        for duel in own:
            cells[numbers[duel.task], 2 * place] += duel.judge
            cells[numbers[duel.task], 2 * place + 1] += 1

    def values(drawn: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Floats = (drawn[:, 0::2] / drawn[:, 1::2]).mean(axis=1)
        return result

    value = float(values(cells.sum(axis=0, keepdims=True).astype(float))[0])
    return by_cluster(Measure(value, sum(map(len, duels))), cells, values)


def _missing(annotators: int, tested: int) -> str:
    if tested >= FEWEST_ANNOTATORS:
        return ""
    need = f"needs {FEWEST_ANNOTATORS} annotators with {FEWEST_ITEMS} tasks each that the judge and others labelled too"
    return f"{need}; {tested} of {annotators} have them"
