"""Verdicts of two versions of a judge on the same cases: the paired change, and whether it wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.statistics import Confusion, Measure, clusters_of, paired_difference, paired_test
from evaluations.statistics.paired import CELLS, kappa_change
from evaluations.statistics.tally import Integers
from judges.models import AlignmentVersion, Judgment, Part

MEASURES = ("kappa", "false_positive_rate", "false_negative_rate")
EPSILON = 1e-9
LEVEL = 0.05
RESAMPLES = 10_000  # the level of 20 rounds leaves 12 of them on each side
FALSE_POSITIVES = ([2], [1])  # cells in which only the first judge has one, and only the second
ERRORS = ([2, 5], [1, 6])  # the same of errors of both kinds


@dataclass(frozen=True, slots=True)
class Change:
    """The figures of two judges on ``n`` cases that both scored, and the changes with 95% intervals by task.

    ``unscored`` counts the cases without a verdict of the first and of the second judge.
    """

    n: int
    unscored: tuple[int, int]
    before: Mapping[str, Measure]
    after: Mapping[str, Measure]
    change: Mapping[str, Measure]
    cells: Integers  # (t, 8), of each task as in `kappa_change`

    def as_json(self) -> dict[str, Any]:
        shown = {
            name: {kind: getattr(self, kind)[name].as_json() for kind in ("before", "after", "change")}
            for name in MEASURES
        }
        return {"n": self.n, "unscored": {"before": self.unscored[0], "after": self.unscored[1]}, **shown}


def load_verdicts(version: AlignmentVersion, part: Part) -> dict[int, int | None]:
    """Return the verdict of each trajectory that the version has judged in this part."""
    runs = version.runs.filter(part=part, replaced=False).values("run")
    made = Judgment.objects.filter(item__run__in=runs)
    return dict(made.values_list("trajectory", "verdict"))


def compare(found: Sequence[Case], first: Mapping[Any, int | None], second: Mapping[Any, int | None]) -> Change:
    """Compare two judges by their verdicts of each trajectory; every verdict but success counts as no success."""
    rows = [(case, first.get(case.trajectory), second.get(case.trajectory)) for case in found]
    scored = [
        (case.task_id, case.final is Verdict.SUCCESS, before == Verdict.SUCCESS, after == Verdict.SUCCESS)
        for case, before, after in rows
        if before is not None and after is not None
    ]
    found_cells = [(task, 4 * so + 2 * one + two) for task, so, one, two in scored]
    cells = clusters_of(found_cells, CELLS) if scored else np.zeros((0, CELLS), np.int64)
    failures = [(task, one, two) for task, so, one, two in scored if not so]
    successes = [(task, not one, not two) for task, so, one, two in scored if so]
    return Change(
        n=len(scored),
        unscored=(sum(one is None for _, one, _ in rows), sum(two is None for *_, two in rows)),
        before=_measure([(task, so, one) for task, so, one, _ in scored]),
        after=_measure([(task, so, two) for task, so, _, two in scored]),
        change={
            "kappa": kappa_change(cells),
            "false_positive_rate": _compare_errors(failures),
            "false_negative_rate": _compare_errors(successes),
        },
        cells=cells,
    )


def _measure(said: Sequence[tuple[str, bool, bool]]) -> dict[str, Measure]:
    """Return the measures of one judge from task, verdict of people and verdict of the judge."""
    place = {(True, True): 0, (False, True): 1, (False, False): 2, (True, False): 3}
    tasks = clusters_of(((task, place[so, judged]) for task, so, judged in said), 4).tolist() if said else []
    tp, fp, tn, fn = (sum(row[at] for row in tasks) for at in range(4))
    found = Confusion(tp, fp, tn, fn, clusters=tuple(map(tuple, tasks)) or None)
    # The false negative rate is the false positive rate with the two classes exchanged.
    turned = Confusion(tn, fn, tp, fp, clusters=tuple((row[2], row[3], row[0], row[1]) for row in tasks) or None)
    missed = turned.false_positive_rate
    if missed.value is None:
        missed = Measure.missing("no case is a success")
    return {"kappa": found.kappa, "false_positive_rate": found.false_positive_rate, "false_negative_rate": missed}


def _compare_errors(said: Sequence[tuple[str, bool, bool]]) -> Measure:
    """Return the error rate of the second judge minus that of the first, from task and whether each errs."""
    place = {(True, True): 0, (False, True): 1, (True, False): 2, (False, False): 3}
    if not said:
        return paired_difference(0, 0, 0, 0)
    tasks = clusters_of(((task, place[one, two]) for task, one, two in said), 4)
    return paired_difference(*tasks.sum(axis=0).tolist(), clusters=tasks)


def compute_level(rounds: int) -> float:
    """Return the level of each version of an alignment of so many rounds: Bonferroni's, `LEVEL` / rounds."""
    return LEVEL / rounds


def count_least_tasks(rounds: int) -> int:
    """Return the fewest development tasks with which a version can win: the least k with 2 / 2^k < level."""
    exact = 1 - log2(compute_level(rounds))
    return max(ceil(exact), int(exact) + 1)


def decide(change: Change, level: float = LEVEL) -> tuple[bool, str]:
    """Return whether the second judge replaces the first, and why, from the development split.

    It does if the interval of 1 - ``level`` of the change in kappa, drawn by task, is above 0; where all resamples
    are alike and there is none, if kappa rises and p of `paired_test` of errors by task is below ``level``. With the
    same kappa it does if that of false positives is, and they are fewer. It must not leave more cases unscored.
    """
    kappa = kappa_change(change.cells, resamples=RESAMPLES, level=level)
    if change.unscored[1] > change.unscored[0]:
        return False, f"It leaves {change.unscored[1]} cases unscored instead of {change.unscored[0]}."
    if kappa.value is None:
        return False, f"The change in kappa is undefined: {kappa.undefined}."
    if abs(kappa.value) < EPSILON:
        if _has_fewer(change, FALSE_POSITIVES, level):
            return True, f"Kappa is the same, with fewer false positives (p < {level:.2g})."
        return False, "Kappa is the same, and there are not clearly fewer false positives."
    if kappa.low is None:
        won = kappa.value > 0 and _has_fewer(change, ERRORS, level)
        side = "below" if won else "not below"
        return won, f"Kappa changes by {kappa.value:+.2f} (paired test by task: p is {side} {level:.2g})."
    changes = (
        f"Kappa changes by {kappa.value:+.2f} ({100 * (1 - level):.4g}% interval {kappa.low:+.2f} to {kappa.high:+.2f})"
    )
    if kappa.low > 0:
        return True, f"{changes}."
    return False, f"{changes}, which may be noise." if kappa.value > 0 else f"{changes}."


def _has_fewer(change: Change, places: tuple[list[int], list[int]], level: float) -> bool:
    counts = np.stack([change.cells[:, each].sum(axis=1) for each in places], axis=1)
    p, (first, second) = paired_test(counts).p.value, counts.sum(axis=0)
    return bool(first > second and p is not None and p < level)
