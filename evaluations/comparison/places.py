"""Places of agents on a leaderboard, as ranges: two agents get different places only if people show them to differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.results import AgentPair, Label2
from evaluations.naming import natural
from evaluations.statistics import holm, mcnemar, paired_difference
from evaluations.statistics.tally import Integers

LEVEL = 0.05
MOST_PAIRS = 100  # listed under each rule


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
    agents, won, lost = _count_tasks(cases, rule)
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


def _count_tasks(cases: Sequence[Case], rule: Label2) -> tuple[dict[str, int], Integers, Integers]:
    """Return the number of each decided agent, and (a, t): 1 where it succeeds at a task, and where it does not."""
    excluded = {Verdict.NOT_EXECUTABLE} if rule is Label2.EXCLUDED else set()
    decided = [case for case in cases if case.final is not None and case.final not in excluded]
    agents = {name: number for number, name in enumerate(dict.fromkeys(case.agent_name for case in decided))}
    tasks = {task: number for number, task in enumerate(dict.fromkeys(map(task_of, decided)))}
    won, lost = np.zeros((2, len(agents), len(tasks)), np.int64)
    for case in decided:
        (won if case.final is Verdict.SUCCESS else lost)[agents[case.agent_name], tasks[task_of(case)]] = 1
    return agents, won, lost


def agent_pairs(cases: Sequence[Case]) -> list[AgentPair]:
    """Return every two agents on the tasks that people decided for both, under both rules for label 2.

    The pairs with the smallest p come first, at most `MOST_PAIRS` under each rule. p is corrected for all pairs of
    agents with a common decided task, however many are listed.
    """
    return [pair for rule in Label2 for pair in pairs_under(cases, rule, MOST_PAIRS)]


def pairs_under(cases: Sequence[Case], rule: Label2, most: int | None = None) -> list[AgentPair]:
    """Return the pairs of `agent_pairs` under one rule, all of them or only ``most``."""
    agents, won, lost = _count_tasks(cases, rule)
    names = list(agents)
    tables = np.stack([won @ won.T, won @ lost.T, (won @ lost.T).T, lost @ lost.T], axis=-1).tolist()
    pairs = [
        (first, second, tables[first][second])
        for first, second in combinations(sorted(range(len(names)), key=lambda at: natural(names[at])), 2)
        if sum(tables[first][second])
    ]
    tests = [mcnemar(cells[1], cells[2]) for _, _, cells in pairs]
    corrected = holm([test.p for test in tests])
    order = sorted(range(len(pairs)), key=lambda at: 2.0 if tests[at].p.value is None else tests[at].p.value or 0.0)
    found = []
    for at in order[:most]:
        first, second, cells = pairs[at]
        test, difference = tests[at], paired_difference(*cells)
        pair = names[first], names[second]
        both, first_only, second_only, neither = cells
        counts = sum(cells), both, first_only, second_only, neither
        found.append(AgentPair(*pair, rule, *counts, difference, test.p, test.exact, corrected[at], len(pairs)))
    return found


def task_of(case: Case) -> tuple[str, int]:
    """Return the task and its version; imported labels have none and count for the first."""
    return case.task_id, case.task_version or 1
