"""Agreement of annotators on process labels: the items are the steps of the trajectories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from annotation.process_labels import CATEGORIES, RIGHT, label_steps
from evaluations.agreement.measuring import FEWER_RESAMPLES, RESAMPLES, SEED, hits_of_tasks
from evaluations.agreement.people import MOST_PAIRS
from evaluations.agreement.results import ProcessAgreement, ProcessPair
from evaluations.cases import Case, Process
from evaluations.naming import natural
from evaluations.statistics import (
    Measure,
    Tally,
    clusters_of,
    kappa_with_interval,
    krippendorff_alpha,
    raw_agreement,
    wilson,
    with_interval,
)

CODES = {label: number for number, label in enumerate(CATEGORIES)}


class Item(NamedTuple):
    """A step with its labels, as numbers of `CATEGORIES`. Steps of one task are alike, so tasks are resampled."""

    task_id: str
    labels: tuple[int, ...]


def agree_on_process(cases: Sequence[Case]) -> ProcessAgreement | None:
    """Return the agreement on the steps of cases whose submission asks for process labels; None without any."""
    asked = [(case.task_id, case.process) for case in cases if case.process is not None]
    if not asked:
        return None
    items = [item for task_id, process in asked for item in _items(task_id, process, _names(process))]
    compared = [item for item in items if len(item.labels) > 1]
    given = Counter(label for item in compared for label in item.labels)
    raw, alpha = _measure(items, RESAMPLES)
    return ProcessAgreement(
        trajectories=sum(bool(process.said) for _, process in asked),
        steps=len(compared),
        marked=sum(any(label != CODES[RIGHT] for label in item.labels) for item in compared),
        labels={label: given[code] for label, code in CODES.items()},
        unanimous=_count_unanimous(compared),
        raw_agreement=raw,
        alpha=alpha,
        pairs=_pairs(asked),
    )


def _names(process: Process) -> list[str]:
    return [name for name, _ in process.said]


def _items(task_id: str, process: Process, names: Sequence[str]) -> list[Item]:
    """Return the steps with the labels of the named annotators; a mark of an unknown kind is no label."""
    said = [label_steps(marks, process.steps) for name, marks in process.said if name in names]
    labels = zip(*said, strict=True)
    return [Item(task_id, tuple([CODES[label] for label in each if label in CODES])) for each in labels]


def _measure(items: Sequence[Item], resamples: int) -> tuple[Measure, Measure]:
    tally = Tally.of_labels((item.labels for item in items), len(CATEGORIES))
    clusters = tally.clusters(items)
    raw, alpha = (
        with_interval(tally, formula, clusters, resamples=resamples, seed=SEED)
        for formula in (raw_agreement, krippendorff_alpha)
    )
    return raw, alpha


def _count_unanimous(compared: Sequence[Item]) -> Measure:
    if not compared:
        return Measure(None, 0, hits=0, undefined="no step has two labels")
    same = [(item.task_id, len(set(item.labels)) == 1) for item in compared]
    return wilson(sum(is_so for _, is_so in same), len(same), hits_of_tasks(same))


def _pairs(asked: Sequence[tuple[str, Process]]) -> list[ProcessPair]:
    """Return every two annotators who labelled a trajectory both, those with the most steps first."""
    shared: dict[tuple[str, str], list[Item]] = {}
    for task_id, process in asked:
        for pair in combinations(sorted(_names(process), key=natural), 2):
            shared.setdefault(pair, []).extend(_items(task_id, process, pair))
    most = sorted(shared, key=lambda pair: (-len(shared[pair]), natural(pair[0]), natural(pair[1])))
    measured = [(pair, *_measure(shared[pair], FEWER_RESAMPLES), _kappa(shared[pair])) for pair in most[:MOST_PAIRS]]
    return [ProcessPair(*pair, raw.n, raw, alpha, kappa) for pair, raw, alpha, kappa in measured]


def _kappa(items: Sequence[Item]) -> Measure:
    kinds = len(CATEGORIES)
    cells = [(item.task_id, kinds * item.labels[0] + item.labels[1]) for item in items if len(item.labels) == 2]
    clusters = clusters_of(cells, kinds**2)
    table = clusters.sum(axis=0).reshape(kinds, kinds)
    return kappa_with_interval(table, clusters, resamples=FEWER_RESAMPLES, seed=SEED)
