"""The agreement within groups of cases."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from annotation.records import Verdict
from evaluations.agreement.measuring import FEWER_RESAMPLES, RESAMPLES, SEED, pooled
from evaluations.agreement.results import Group, Outcomes, SpecificAgreement
from evaluations.cases import Case
from evaluations.measures import COEFFICIENTS
from evaluations.naming import NOT_KNOWN, Order, failure_type_order, level_order, natural
from evaluations.statistics import (
    Coefficient,
    Measure,
    Tally,
    alpha_of_label,
    clusters_of,
    raw_agreement,
    specific_agreement,
    wilson,
    with_interval,
)

MOST_INTERVALS = 50  # groups of a kind that get intervals, the largest first: a benchmark can have 2,000 websites
SELECTED = "chosen by what was said: a correction for chance would mislead"
SELECTED_SPECIFIC = "these cases were chosen by their labels, so agreement on one kind of label would mislead"


def _failure_types(case: Case) -> set[str]:
    """Return the failure types of the blind labels, possibly several. The decision is not blind and does not count."""
    return {code for label in case.labels for code in label.failure_types}


def _known_first(name: str) -> Order:
    return name == NOT_KNOWN, natural(name)


# For each kind, the function that returns the groups of a case, and the order of the groups.
KINDS: dict[str, tuple[Callable[[Case], Iterable[str]], Callable[[str], Order]]] = {
    "agent": (lambda case: (case.agent_name,), natural),
    "level": (lambda case: (case.level or NOT_KNOWN,), level_order),
    "website": (lambda case: (case.website or NOT_KNOWN,), _known_first),
    "failure type": (_failure_types, failure_type_order),
}
GROUPS = tuple(KINDS)
CHOSEN_BY_LABELS = ("failure type",)  # kinds whose groups depend on the content of labels


class Shape(NamedTuple):
    """The part of a case that the figures of its group depend on. A group of thousands has a few dozen shapes."""

    verdicts: tuple[Verdict, ...]
    complete: bool

    @classmethod
    def of(cls, case: Case) -> Shape:
        return cls(tuple([label.verdict for label in case.labels]), case.complete)

    @property
    def outcome(self) -> str:
        """Return the name of a field of `Outcomes`."""
        most = max(map(self.verdicts.count, self.verdicts))
        if most == len(self.verdicts):
            return "unanimous"
        return "majority" if 2 * most > len(self.verdicts) else "split"


Member = tuple[Case, Shape]
OUTCOMES = tuple(each.name for each in fields(Outcomes))


def overall_and_groups(cases: Iterable[Case]) -> tuple[Group, dict[str, list[Group]]]:
    shapes: dict[Shape, Shape] = {}  # equal shapes share one object
    members = [(case, shapes.setdefault(shape := Shape.of(case), shape)) for case in cases]
    overall = _group("all", _Measured(members, RESAMPLES), label_intervals=True)
    return overall, {kind: _groups(kind, members) for kind in KINDS}


def _groups(kind: str, shaped: Iterable[Member]) -> list[Group]:
    names, order = KINDS[kind]
    members: dict[str, list[Member]] = defaultdict(list)
    for member in shaped:
        for name in names(member[0]):
            members[name].append(member)
    largest = set(sorted(members, key=lambda name: (-len(members[name]), order(name)))[:MOST_INTERVALS])
    corrected = kind not in CHOSEN_BY_LABELS
    alike: dict[Any, Group] = {}  # many of the small groups have the same labels
    found = []
    for name in sorted(members, key=order):
        if name in largest:
            found.append(_group(name, _Measured(members[name], FEWER_RESAMPLES, corrected=corrected)))
            continue
        key = frozenset(Counter(shape for _, shape in members[name]).items())
        if key not in alike:
            alike[key] = _group(name, _Measured(members[name], 0, corrected=corrected))
        found.append(replace(alike[key], name=name))
    return found


class _Measured:
    """Measures of some cases, without intervals if ``resamples`` is 0; with several agents, tasks are resampled."""

    def __init__(self, members: Sequence[Member], resamples: int, *, corrected: bool = True) -> None:
        self.members, self.resamples, self.corrected = members, resamples, corrected
        self.tally = Tally.of_labels(shape.verdicts for _, shape in members)
        self.pooled = bool(resamples) and pooled([case for case, _ in members])
        verdicts = ((case.task_id, shape.verdicts) for case, shape in members)
        self.clusters = self.tally.clusters(verdicts) if self.pooled else None

    def plain(self, coefficient: Coefficient) -> Measure:
        return coefficient(self.tally) if self.corrected else Measure.missing(SELECTED, self.tally.pairable)

    def full(self, coefficient: Coefficient) -> Measure:
        if not self.resamples or not self.corrected:
            return self.plain(coefficient)
        return self._with_interval(coefficient)

    def raw(self) -> Measure:
        return self._with_interval(raw_agreement) if self.resamples else raw_agreement(self.tally)

    def specific(self, others: bool) -> Measure:
        """Return the specific agreement on success, or on ``others``; chosen labels would decide it."""
        if not self.corrected:
            return Measure.missing(SELECTED_SPECIFIC, self.tally.pairable)
        return self.full(specific_agreement(Verdict.SUCCESS, others=others))

    def _with_interval(self, coefficient: Coefficient) -> Measure:
        return with_interval(self.tally, coefficient, self.clusters, resamples=self.resamples, seed=SEED)

    def outcomes(self) -> Outcomes:
        complete = Counter(shape for _, shape in self.members if shape.complete)
        of_shape = {shape: shape.outcome for shape in complete}
        counts: Counter[str] = Counter()
        for shape, times in complete.items():
            counts[of_shape[shape]] += times
        shares = {name: wilson(counts[name], counts.total()) for name in OUTCOMES}
        if not self.resamples:
            return Outcomes(**{name: replace(found, low=None, high=None) for name, found in shares.items()})
        if not self.pooled or not complete:
            return Outcomes(**shares)
        tasks = [(case.task_id, OUTCOMES.index(of_shape[shape])) for case, shape in self.members if shape.complete]
        cells = clusters_of(tasks, len(OUTCOMES))
        others = cells.sum(axis=1, keepdims=True) - cells
        return Outcomes(
            *(
                wilson(counts[name], len(tasks), np.stack([cells[:, place], others[:, place]], axis=1))
                for place, name in enumerate(OUTCOMES)
            )
        )


def _group(name: str, measured: _Measured, *, label_intervals: bool = False) -> Group:
    of_label = measured.full if label_intervals else measured.plain
    complete = sum(shape.complete for _, shape in measured.members)
    return Group(
        name=name,
        n_items=measured.tally.items,
        n_complete=complete,
        n_pairable=measured.tally.pairable,
        raw_agreement=measured.raw(),
        coefficients={name: measured.full(each.formula) for name, each in COEFFICIENTS.items()},
        per_label={verdict: of_label(alpha_of_label(verdict)) for verdict in Verdict},
        outcomes=measured.outcomes(),
        specific_agreement=SpecificAgreement(*(measured.specific(others) for others in (False, True))),
    )
