"""What is found about the agreement of people, and how it is written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.records import Verdict
from evaluations.cases import Rules
from evaluations.statistics import Measure

Table = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
# Version of the formulas, so that a stored report can be checked with its own formulas. 2: the interval of
# ``expected_missed`` is for a finite population.
FIGURES_VERSION = 2
JUDGES = ("agree", "disagree", "divided", "no verdict")  # relation of the shown judgments to the label
REASONS = ("disputes", "drawn", "flagged")  # why an adjudicator looks at a case, the first one that applies


@dataclass(frozen=True, slots=True)
class Group:
    """The agreement within some cases, ``name`` being the agent, level, website or failure type they share.

    ``items`` have a label, ``complete`` all that are asked for, ``pairable`` two or more; the coefficients rest on the
    pairable. ``label_alpha`` is Krippendorff's alpha of each verdict against the other two, with an interval for all
    cases together only. ``unanimous``, ``majority`` (more than half say the same, not all) and ``split`` (no verdict
    has more than half) are shares of the complete. A group by failure type is chosen by what labels say, so nothing
    but its raw agreement and its shares is defined.
    """

    name: str
    items: int
    complete: int
    pairable: int
    raw_agreement: Measure
    alpha: Measure
    ac1: Measure
    fleiss_kappa: Measure
    label_alpha: dict[Verdict, Measure]
    unanimous: Measure
    majority: Measure
    split: Measure

    def as_json(self) -> dict[str, Any]:
        """Counts and figures; ``undefined`` has the reason for everything without a value, by its name here."""
        coefficients = {"alpha": self.alpha, "ac1": self.ac1, "fleiss_kappa": self.fleiss_kappa}
        per_label = {str(int(verdict)): measure for verdict, measure in self.label_alpha.items()}
        outcomes = {"unanimous": self.unanimous, "majority": self.majority, "split": self.split}
        named = {"raw_agreement": self.raw_agreement} | coefficients
        named |= {f"per_label.{label}": measure for label, measure in per_label.items()}
        named |= {f"outcomes.{name}": measure for name, measure in outcomes.items()}
        return {
            "n_items": self.items,
            "n_complete": self.complete,
            "n_pairable": self.pairable,
            **_raw_json(self.raw_agreement),
            **_measures_json(coefficients),
            "per_label": _measures_json(per_label),
            "outcomes": _measures_json(outcomes),
            "undefined": {name: measure.undefined for name, measure in named.items() if measure.value is None},
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two annotators on the ``raw_agreement.n`` cases that both labelled; ``table[a][b]`` counts their verdicts."""

    first: str
    second: str
    raw_agreement: Measure
    kappa: Measure
    alpha: Measure
    table: Table

    def as_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "second": self.second,
            "n": self.raw_agreement.n,
            **_raw_json(self.raw_agreement),
            **_measures_json({"kappa": self.kappa, "alpha": self.alpha}),
            "table": [list(row) for row in self.table],
        }


@dataclass(frozen=True, slots=True)
class Annotator:
    """One annotator against the final verdicts; ``confusion[said][final]`` counts.

    Only reviewed cases count there: labels made elsewhere are their own final verdict. ``overturned``: an adjudicator
    decided otherwise, of those labels whose case was adjudicated. ``seconds`` is the median activity for a label.
    ``competence`` (Dawid and Skene) and ``trust`` (MACE) are estimated from the labels alone: hints for QA, never a
    label.
    """

    name: str
    labels: int
    agreement: Measure
    confusion: Table
    overturned: Measure
    seconds: float | None
    competence: Measure
    trust: Measure

    def as_json(self) -> dict[str, Any]:
        measures = {"agreement": self.agreement, "overturned": self.overturned}
        hints = {"competence": self.competence, "trust": self.trust}
        counts = {"name": self.name, "labels": self.labels, "seconds": self.seconds}
        return counts | _measures_json(measures | hints) | {"confusion": [list(row) for row in self.confusion]}


@dataclass(frozen=True, slots=True)
class Adjudications:
    """What QA changed. ``changed``: decided otherwise than most labels said, of the adjudicated with such a majority.

    ``changed_of`` has the same for each of `REASONS`: disputes, unanimous cases that were drawn, and unanimous ones
    that were only flagged. ``disputes`` have all their labels, and not all the same. ``missed``: of the randomly drawn
    spot checks that were judged blind, those where the adjudicator contradicted the unanimous labels. ``unchecked``
    unanimous cases were final without a look. ``expected_missed`` is the expected number of them that an adjudicator
    would have decided otherwise: the rate of each draw times the unchecked of that draw, summed. ``unknown`` of the
    unchecked are left out of it, since no spot check of their draw was judged blind.
    """

    adjudicated: int
    disputes: int
    changed: Measure
    drawn: int
    missed: Measure
    unchecked: int
    expected_missed: Measure
    unanimous: int
    unknown: int
    changed_of: dict[str, Measure]

    def as_json(self) -> dict[str, Any]:
        names = ("adjudicated", "disputes", "unanimous", "drawn", "unchecked", "unknown")
        counts = {name: getattr(self, name) for name in names}
        measures = {"changed": self.changed, "missed": self.missed, "expected_missed": self.expected_missed}
        return counts | _measures_json(measures) | {"changed_of": _measures_json(self.changed_of)}


@dataclass(frozen=True, slots=True)
class InformedCounts:
    """Labels whose annotator was ``shown`` judgments, for one relation to the label (one of `JUDGES`, or "all").

    ``changed`` is the share of the annotators who decided; ``table[blind][informed]`` counts their verdicts.
    """

    judges: str
    shown: int
    changed: Measure
    table: Table

    @property
    def kept(self) -> int:
        return self.changed.n - (self.changed.hits or 0)

    def as_json(self) -> dict[str, Any]:
        counts = {"judges": self.judges, "shown": self.shown, "decided": self.changed.n, "kept": self.kept}
        return counts | {"changed": self.changed.as_json(), "table": [list(row) for row in self.table]}


@dataclass(frozen=True, slots=True)
class Opinion:
    """One annotator's decision after seeing the verdicts of ``judges`` about a trajectory."""

    task_id: str
    agent: str
    annotator: str
    blind: Verdict
    judges: tuple[Verdict, ...]
    informed: Verdict
    reason: str
    task_version: int | None

    def as_json(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "agent": self.agent,
            "annotator": self.annotator,
            "blind": int(self.blind),
            "judges": [int(verdict) for verdict in self.judges],
            "informed": int(self.informed),
            "reason": self.reason,
            "task_version": self.task_version,
        }


@dataclass(frozen=True, slots=True)
class Informed:
    """Opinions after seeing judgments: ``groups`` are all labels, then one group for each of `JUDGES`."""

    groups: list[InformedCounts]
    opinions: list[Opinion]

    def as_json(self) -> dict[str, Any]:
        return {
            "groups": [group.as_json() for group in self.groups],
            "opinions": [opinion.as_json() for opinion in self.opinions],
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """Everything about one set of cases. ``scope`` says in words which; ``undecided`` have labels and no verdict.

    ``pairs`` are those with a common case, most cases first, and at most `people.MOST_PAIRS`; ``pairs_left_out``
    counts the rest. ``listed_pair`` is the first listed label against the second listed one of labels made elsewhere,
    whoever gave them: the kappa of published tables.
    """

    scope: str
    rules: Rules
    overall: Group
    groups: dict[str, list[Group]]  # by the names of GROUPS
    pairs: list[Pair]
    annotators: list[Annotator]
    adjudications: Adjudications | None  # None for labels made elsewhere
    undecided: int
    listed_pair: Pair | None = None
    pairs_left_out: int = 0
    informed: Informed | None = None  # None if no annotator was shown judgments

    def as_json(self) -> dict[str, Any]:
        """The overall figures, then everything else; rates are fractions, intervals 95 %."""
        groups = {
            kind: [{"name": group.name} | group.as_json() for group in groups] for kind, groups in self.groups.items()
        }
        return {
            "scope": self.scope,
            "rules": self.rules.value,
            "figures_version": FIGURES_VERSION,
            **self.overall.as_json(),
            "undecided": self.undecided,
            "pairs": [pair.as_json() for pair in self.pairs],
            "pairs_left_out": self.pairs_left_out,
            "first_against_second": None if self.listed_pair is None else self.listed_pair.as_json(),
            "groups": groups,
            "annotators": [annotator.as_json() for annotator in self.annotators],
            "adjudications": None if self.adjudications is None else self.adjudications.as_json(),
            "informed": None if self.informed is None else self.informed.as_json(),
        }


def _measures_json(measures: Mapping[str, Measure]) -> dict[str, Any]:
    return {name: measure.as_json() for name, measure in measures.items()}


def _raw_json(raw: Measure) -> dict[str, Any]:
    """Raw agreement as a plain number, as scripts expect it, with its interval beside it."""
    interval = None if raw.low is None else [raw.low, raw.high]
    return {"raw_agreement": raw.value, "raw_agreement_interval": interval}
