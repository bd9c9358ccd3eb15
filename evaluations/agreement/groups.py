"""The agreement within groups of cases."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from annotation.protocol import FAILURE_TYPES
from annotation.records import Verdict
from evaluations.agreement.measuring import FEWER_RESAMPLES, RESAMPLES, SEED, natural
from evaluations.agreement.results import Group
from evaluations.cases import Case
from evaluations.statistics import (
    Coefficient,
    Measure,
    Tally,
    alpha_of_label,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    label_alpha,
    raw_agreement,
    wilson,
    with_interval,
)


def _in_order(known: Sequence[str]) -> Callable[[str], tuple[Any, ...]]:
    """The known names in their order, then any others."""
    return lambda name: (known.index(name) if name in known else len(known), natural(name))


def _failure_types(case: Case) -> set[str]:
    """What at least one label, or the decision, names; several for one case."""
    named = {code for label in case.labels for code in label.failure_types}
    return named | ({case.failure_type} if case.failure_type else set())


# What groups the cases, and the order of the groups.
KINDS: dict[str, tuple[Callable[[Case], Iterable[str]], Callable[[str], tuple[Any, ...]]]] = {
    "agent": (lambda case: (case.agent,), natural),
    "level": (lambda case: (case.level,), _in_order(("easy", "medium", "hard"))),
    "website": (lambda case: (case.website,), natural),
    "failure type": (_failure_types, _in_order([term.code for term in FAILURE_TYPES])),
}
GROUPS = tuple(KINDS)


class Shape(NamedTuple):
    """What of a case its group depends on: a group of thousands has a few dozen shapes."""

    verdicts: tuple[Verdict, ...]
    complete: bool

    @classmethod
    def of(cls, case: Case) -> Shape:
        return cls(tuple([label.verdict for label in case.labels]), case.complete)

    @property
    def outcome(self) -> str:
        """`Group` says what the words mean."""
        different = len(set(self.verdicts))
        if different == 1:
            return "unanimous"
        return "split" if different == len(self.verdicts) else "majority"


def everything(cases: Iterable[Case]) -> Group:
    """All cases as one group."""
    return _group("all", Counter(map(Shape.of, cases)), RESAMPLES, label_intervals=True)


def groups(cases: Sequence[Case]) -> dict[str, list[Group]]:
    """The groups of every kind, by the names of `GROUPS`."""
    shaped = [(case, Shape.of(case)) for case in cases]
    return {kind: _groups(shaped, *by) for kind, by in KINDS.items()}


def _groups(
    cases: Iterable[tuple[Case, Shape]], names: Callable[[Case], Iterable[str]], order: Callable[[str], tuple[Any, ...]]
) -> list[Group]:
    members: dict[str, list[Shape]] = defaultdict(list)
    for case, shape in cases:
        for name in names(case):
            members[name].append(shape)
    return [_group(name, Counter(members[name]), FEWER_RESAMPLES) for name in sorted(members, key=order)]


def _group(name: str, shapes: Counter[Shape], resamples: int, *, label_intervals: bool = False) -> Group:
    tally = Tally.of_labels(shape.verdicts for shape in shapes.elements())

    def measured(coefficient: Coefficient) -> Measure:
        return with_interval(tally, coefficient, resamples=resamples, seed=SEED)

    outcomes: Counter[str] = Counter()
    for shape, times in shapes.items():
        outcomes[shape.outcome] += times * shape.complete
    complete = outcomes.total()
    return Group(
        name=name,
        items=tally.items,
        complete=complete,
        pairable=tally.pairable,
        raw_agreement=measured(raw_agreement),
        alpha=measured(krippendorff_alpha),
        ac1=measured(gwet_ac1),
        fleiss_kappa=measured(fleiss_kappa),
        label_alpha={
            verdict: measured(alpha_of_label(verdict)) if label_intervals else label_alpha(tally, verdict)
            for verdict in Verdict
        },
        unanimous=wilson(outcomes["unanimous"], complete),
        majority=wilson(outcomes["majority"], complete),
        split=wilson(outcomes["split"], complete),
    )
