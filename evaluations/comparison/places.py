"""Places of agents on a leaderboard, as ranges: two agents get different places only if people show them to differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.results import Label2
from evaluations.statistics import mcnemar

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """From ``first`` to ``last``: agents that are not shown to differ share places."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def places(cases: Sequence[Case], rule: Label2) -> dict[str, Place]:
    """Return the place of each agent that people have decided, under that rule for label 2.

    An agent is better than another if it alone succeeds on more of the tasks that people decided for both, and p of
    `mcnemar` is below `LEVEL`. ``first`` is 1 plus the number of better agents, ``last`` the number of agents without
    those that it is better than. Pairs are not corrected for their number.
    """
    excluded = {Verdict.NOT_EXECUTABLE} if rule is Label2.EXCLUDED else set()
    decided = [case for case in cases if case.final is not None and case.final not in excluded]
    agents = {name: number for number, name in enumerate(dict.fromkeys(case.agent_name for case in decided))}
    tasks = {task: number for number, task in enumerate(dict.fromkeys(map(task_of, decided)))}
    won, lost = np.zeros((2, len(agents), len(tasks)), np.int64)
    for case in decided:
        (won if case.final is Verdict.SUCCESS else lost)[agents[case.agent_name], tasks[task_of(case)]] = 1
    alone = won @ lost.T  # (a, a): on how many tasks the first succeeds and the second does not
    better = np.zeros(alone.shape, bool)
    for first, second in np.argwhere(alone > alone.T):
        # Not the interval of the paired difference: with few tasks it is above 0 too soon, this test is exact.
        p = mcnemar(int(alone[first, second]), int(alone[second, first])).p.value
        better[first, second] = p is not None and p < LEVEL
    return {
        name: Place(1 + int(better[:, number].sum()), len(agents) - int(better[number].sum()))
        for name, number in agents.items()
    }


def task_of(case: Case) -> tuple[str, int]:
    """Return the task and its version; imported labels have none and count for the first."""
    return case.task_id, case.task_version or 1
