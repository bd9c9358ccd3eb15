"""Several attempts of one agent at the same tasks: figures of each one, mean and spread, pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from statistics import fmean, pstdev
from typing import Any

from evaluations.statistics.intervals import mean_of_items, wilson
from evaluations.statistics.measure import Measure

NO_SCORES = "no scores"


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure of each of k attempts, their ``mean`` and ``deviation``; every ``n`` counts tasks.

    The interval of the mean draws tasks, each with all of its attempts; the deviation has no interval.
    """

    each: tuple[Measure, ...]
    mean: Measure
    deviation: Measure

    def as_json(self) -> dict[str, Any]:
        return {"mean": self.mean.as_json(), "deviation": self.deviation.as_json()}


def success_spread(successes: Sequence[Sequence[bool]]) -> Spread:
    """Success rates of attempts (k, n): of attempt a, the sum over tasks of s_at / n, with Wilson's interval."""
    _require_same_tasks(successes)
    found = spread([wilson(sum(row), len(row)) for row in successes])
    times = [sum(column) for column in zip(*successes, strict=True)]
    drawn = wilson(sum(times), len(successes) * len(times), [(hits, len(successes) - hits) for hits in times])
    return replace(found, mean=replace(found.mean, low=drawn.low, high=drawn.high))


def score_spread(scores: Sequence[Sequence[float]]) -> Spread:
    """Mean scores of attempts (k, n), in the unit of the scores: of attempt a, the sum over tasks of x_at / n."""
    _require_same_tasks(scores)
    found = spread([Measure(fmean(row), len(row)) if row else Measure.missing(NO_SCORES) for row in scores])
    return replace(found, mean=mean_of_items(found.mean, [fmean(column) for column in zip(*scores, strict=True)]))


def spread(each: Sequence[Measure]) -> Spread:
    """The figures f_a of k attempts, their mean m = sum f_a / k and population standard deviation.

    The deviation is sqrt(sum (f_a - m)^2 / k), with k and not k - 1: it describes these attempts and estimates nothing.
    Both are undefined where a figure is. Source: the runner of Mind2Web 2 (mean and population deviation over runs);
    Gou et al. (2025), Mind2Web 2: Evaluating Agentic Search with Agent-as-a-Judge.
    """
    if not each:
        raise ValueError("There is no attempt.")
    tasks = min(figure.n for figure in each)
    values = [figure.value for figure in each if figure.value is not None]
    if len(values) < len(each):
        none = Measure.missing(next(figure.undefined for figure in each if figure.undefined), tasks)
        return Spread(tuple(each), none, none)
    return Spread(tuple(each), Measure(fmean(values), tasks), Measure(pstdev(values), tasks))


def pass_at_k(successes: Sequence[Sequence[bool]]) -> Measure:
    """The share of n tasks in which any of k attempts (k, n) succeeded, with Wilson's interval over tasks.

    sum over tasks of max_a s_at / n: from the best attempt's success rate to 1. Undefined for n = 0; ValueError for
    k = 0 and where attempts have different numbers of tasks. Source: the runner of Mind2Web 2 (pass@k: any run
    succeeded), which for k attempts of k is the estimator of Chen et al. (2021), arXiv:2107.03374.
    """
    _require_same_tasks(successes)
    return wilson(sum(map(any, zip(*successes, strict=True))), len(successes[0]))


def any_of_k(successes: Sequence[Sequence[bool]], k: int) -> Measure:
    """pass@k: the probability that any of ``k`` attempts drawn from the n (n, t) succeeds, averaged over t tasks.

    sum over tasks of 1 - C(n - c, k) / C(n, k), divided by t, with c successes of a task: unbiased. From 0 to 1.
    Undefined without tasks; ValueError for k that is not from 1 to n. The interval draws tasks; where all tasks have 0,
    or all 1, and for k = n it is Wilson's. Source: Chen et al. (2021), arXiv:2107.03374.
    """
    return _over_tasks(successes, k, lambda n, c: 1 - comb(n - c, k) / comb(n, k))


def all_of_k(successes: Sequence[Sequence[bool]], k: int) -> Measure:
    """pass^k: the probability that all of ``k`` attempts drawn from the n (n, t) succeed, averaged over t tasks.

    sum over tasks of C(c, k) / C(n, k), divided by t, with c successes of a task: unbiased. From 0 to 1, and never
    above pass@k; for k = 1 both are the mean success rate. Undefined cases and interval as for `any_of_k`.
    Source: Yao et al. (2024), tau-bench, arXiv:2406.12045.
    """
    return _over_tasks(successes, k, lambda n, c: comb(c, k) / comb(n, k))


def _over_tasks(successes: Sequence[Sequence[bool]], k: int, chance: Callable[[int, int], float]) -> Measure:
    _require_same_tasks(successes)
    attempts = len(successes)
    if not 1 <= k <= attempts:
        raise ValueError(f"k is {k}, and there are {attempts} attempts.")
    values = [chance(attempts, sum(column)) for column in zip(*successes, strict=True)]
    if set(values) <= {0.0, 1.0}:
        return wilson(int(sum(values)), len(values))
    return mean_of_items(Measure(fmean(values), len(values)), values)


def _require_same_tasks(rows: Sequence[Sequence[object]]) -> None:
    if len({len(row) for row in rows}) != 1:
        raise ValueError("Attempts are of the same tasks, and there is one at least.")
