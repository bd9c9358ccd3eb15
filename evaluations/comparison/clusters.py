"""Cases that hang together: those of one task, whichever agent attempted it, and several labels of one case.

Where agents are pooled a hard task is hard for all of them, so an interval that takes the cases as independent is too
narrow. Such intervals come from drawing tasks: a cluster has all that is counted of one task.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.results import Answer, Label2
from evaluations.statistics import Measure, clusters_of, wilson
from evaluations.statistics.tally import Integers

Clusters = tuple[tuple[int, int, int, int], ...]  # tp, fp, tn, fn of each task
CELLS = {  # by whether people, and what the judge, calls a success: the place in a cluster
    (True, Answer.SUCCESS): 0,
    (False, Answer.SUCCESS): 1,
    (False, Answer.NO_SUCCESS): 2,
    (True, Answer.NO_SUCCESS): 3,
}


def several_agents(cases: Iterable[Case]) -> bool:
    return len({case.agent_name for case in cases}) > 1


def by_task(
    pairs: Iterable[tuple[Case, Verdict, Answer]], named: Callable[[Case], str | None]
) -> dict[tuple[str, Label2], Clusters]:
    """The clusters of each name and rule; nothing for one in which every task stands once."""
    names: dict[str, int] = {}
    tasks: dict[str, int] = {}
    columns: tuple[list[int], ...] = ([], [], [])  # plain numbers: tuples would keep the garbage collector busy
    keep_group, keep_task, keep_cell = [column.append for column in columns]
    success, label_2 = Verdict.SUCCESS, Verdict.NOT_EXECUTABLE  # to look them up once, not for every case
    for case, human, said in pairs:
        cell, name = CELLS.get((human is success, said)), named(case)
        if cell is not None and name is not None:
            keep_group(names.setdefault(name, len(names)))
            keep_task(tasks.setdefault(case.task_id, len(tasks)))
            keep_cell(cell + (len(CELLS) if human is label_2 else 0))
    if not names:
        return {}
    group, task, cells = (np.array(column, np.int64) for column in columns)
    key, place, executable = group * len(tasks) + task, cells % len(CELLS), cells < len(CELLS)
    found: dict[tuple[str, Label2], Clusters] = {}
    for rule, kept in ((Label2.EXCLUDED, executable), (Label2.NOT_SUCCESS, np.ones_like(executable))):
        clusters, which = count_cells(key[kept], place[kept], len(CELLS))
        starts = np.searchsorted(which // len(tasks), range(len(names) + 1))
        for name, number in names.items():
            own = clusters[starts[number] : starts[number + 1]]
            if has_repeats(own):
                in_order = own[
                    np.lexsort(own.T[::-1])
                ].tolist()  # equal counts shall be equal clusters, whatever their tasks
                found[name, rule] = tuple(map(tuple, in_order))
    return found


def count_cells(keys: Integers, cells: Integers, width: int) -> tuple[Integers, Integers]:
    """(c, width): how often each cell stands beside each of the c different keys; and these keys, growing."""
    which, place = np.unique(keys, return_inverse=True)
    clusters = np.bincount(place * width + cells, minlength=width * len(which)).reshape(-1, width)
    return clusters.astype(np.int64), which


def has_repeats(clusters: Integers) -> bool:
    """Whether any cluster has more than one case: else they are as good as independent."""
    return bool(len(clusters)) and int(clusters.sum(axis=1).max()) > 1


def rate(told: Sequence[tuple[Hashable, bool]]) -> Measure:
    """How many of these are so, each with the task that it belongs to; drawn by task where one stands twice."""
    hits = sum(so for _, so in told)
    tasks = clusters_of(((task, 0 if so else 1) for task, so in told), 2) if told else None
    return wilson(hits, len(told), tasks)
