"""Compare a judge with people: steps, first failure, process scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluations.cases import Case
from evaluations.comparison.evidence import Findings, is_reviewed, load_evidence
from evaluations.comparison.results import Judged, Key, ProcessComparison, ScoreAgreement
from evaluations.statistics import (
    Measure,
    clusters_of,
    kappa_with_interval,
    mean_of_items,
    pearson,
    spearman,
    wilson,
)
from judges.models import Judge
from judges.scorers.detail_values import dicts, mapping, whole
from judges.scorers.verifier.model import MOST_PENALTIES
from judges.scorers.verifier.outcome import NAME as VERIFIER

FAULTS = frozenset({"wrong", "side_effect"})  # an unnecessary step is a detour, for which no judge takes points
PARTS = ("first_failure", "penalties", "critical_point")
NOT_STATED = "no trajectory has process labels of people and a judgment that states faults"
NO_SCORES = "no trajectory has both scores"
Cells = list[tuple[str, int]]  # the task of each item, and 2 if people name a fault, plus 1 if the judge does


class Faults(NamedTuple):
    """The faults that a judgment states: ``first`` is the step of the first one, None if it has none or no step."""

    fails: bool
    first: int | None
    steps: frozenset[int]


def compare_process(
    judge: Judge, cases: Sequence[Case], said: Mapping[Key, Judged], people: Findings
) -> ProcessComparison | None:
    """Compare on trajectories with a final verdict; None if people and judge have neither steps nor scores in common.

    ``people`` is the result of `evidence.findings`.
    A trajectory with an undecided step before its first fault is left out where first failures are compared.
    """
    judged = [
        (case, found)
        for case in cases
        if is_reviewed(case) and (found := said.get(case.key)) is not None and found.verdict is not None
    ]
    stated: dict[int | None, Faults] = dict(_load_faults(judge, [found for _, found in judged]))
    by_steps, steps, failures, gaps = _Pairs(), Cells(), Cells(), list[tuple[str, int]]()
    trajectories = 0
    for case, found in judged:
        labels = case.process.final() if case.process is not None else []
        known = [label in FAULTS for label in labels if label is not None]
        if known and found.score is not None:
            by_steps.add(case.task_id, found.score, 1 - sum(known) / len(known))
        if known and (faults := stated.get(found.judgment)) is not None:
            trajectories += 1
            steps += [
                (case.task_id, 2 * (label in FAULTS) + (at in faults.steps))
                for at, label in enumerate(labels)
                if label is not None
            ]
            first = next((at for at, label in enumerate(labels) if label is None or label in FAULTS), None)
            if first is None or labels[first] is not None:
                failures.append((case.task_id, 2 * (first is not None) + faults.fails))
                gaps += [] if first is None or faults.first is None else [(case.task_id, abs(first - faults.first))]
    by_points = _pair_key_points(judged, people)
    if not (trajectories or by_points.tasks or by_steps.tasks):
        return None
    step_agreement, step_kappa, step_table = _agree(steps)
    failure_agreement, failure_kappa, _ = _agree(failures)
    return ProcessComparison(
        trajectories=trajectories,
        step_agreement=step_agreement,
        step_kappa=step_kappa,
        step_table=step_table,
        failure_agreement=failure_agreement,
        failure_kappa=failure_kappa,
        same_first=_share([(task, gap == 0) for task, gap in gaps]),
        near_first=_share([(task, gap <= 1) for task, gap in gaps]),
        by_key_points=by_points.correlate(),
        by_steps=by_steps.correlate(),
    )


def _load_faults(judge: Judge, judged: Sequence[Judged]) -> Iterator[tuple[int, Faults]]:
    if judge.scorer != VERIFIER:
        return
    wanted = [found.judgment for found in judged if found.judgment is not None]
    for pk, *parts in load_evidence(wanted, *(f"evidence__details__{name}" for name in PARTS)):
        if isinstance(parts[0], dict):
            yield pk, _read_faults(*parts)


def _read_faults(first: dict[str, Any], penalties: Any, critical: Any) -> Faults:
    """Return the faults; judgments from a bundle can contain anything."""
    fails = first.get("category") != "none"
    step = whole(first.get("step")) if fails else None
    told = [step, whole(mapping(critical).get("step"))]
    told += [whole(one.get("step")) for one in dicts(penalties, MOST_PENALTIES)]
    return Faults(fails, step, frozenset(one for one in told if one is not None))


# --- steps ------------------------------------------------------------------------------------------------------------


def _agree(cells: Cells) -> tuple[Measure, Measure, tuple[tuple[int, int], ...]]:
    """Return agreement, Cohen's kappa and the table; items of a task depend on each other, so intervals draw tasks."""
    if not cells:
        return Measure.missing(NOT_STATED), Measure.missing(NOT_STATED), ((0, 0), (0, 0))
    tasks = clusters_of(cells, 4)
    neither, judge_only, people_only, both = tasks.sum(axis=0).tolist()
    table = ((neither, judge_only), (people_only, both))
    same = np.stack([tasks[:, [0, 3]].sum(axis=1), tasks[:, [1, 2]].sum(axis=1)], axis=1)
    return wilson(neither + both, len(cells), same), kappa_with_interval(table, tasks), table


def _share(found: Sequence[tuple[str, bool]]) -> Measure:
    if not found:
        return Measure(None, 0, hits=0, undefined="people and the judge name no first failure of the same trajectory")
    return wilson(
        sum(hit for _, hit in found), len(found), clusters_of([(task, 0 if hit else 1) for task, hit in found], 2)
    )


# --- scores -----------------------------------------------------------------------------------------------------------


class _Pairs:
    """Scores of the judge and of people, with the task of each trajectory."""

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.judge: list[float] = []
        self.people: list[float] = []

    def add(self, task: str, judge: float, people: float) -> None:
        self.tasks.append(task)
        self.judge.append(judge)
        self.people.append(people)

    def correlate(self) -> ScoreAgreement:
        return ScoreAgreement(
            pearson(self.judge, self.people, self.tasks),
            spearman(self.judge, self.people, self.tasks),
            self._measure_difference(),
        )

    def _measure_difference(self) -> Measure:
        n = len(self.tasks)
        if not n:
            return Measure.missing(NO_SCORES)
        if not all(0 <= score <= 1 for score in self.judge):
            return Measure.missing("the judge has scores outside 0 to 1", n)
        each = np.abs(np.subtract(self.judge, self.people))
        return mean_of_items(Measure(float(each.mean()), n), each.tolist(), self.tasks)


def _pair_key_points(judged: Sequence[tuple[Case, Judged]], people: Findings) -> _Pairs:
    """Return the judge's scores with the shares of key points met, without those that people left undecided."""
    pairs = _Pairs()
    for case, found in judged:
        if found.score is not None and (points := people.get(case.trajectory)):
            pairs.add(case.task_id, found.score, sum(points.values()) / len(points))
    return pairs
