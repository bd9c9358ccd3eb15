"""The agreement of people. Texts in `Annotated` are those of the API."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args

from annotation.records import Verdict
from evaluations.cases import Rules
from evaluations.encoding import fields_to_json, to_json
from evaluations.statistics import Measure

Table = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
# Version of the formulas, so that a stored report can be checked with its own formulas. 2: the interval of
# ``expected_missed`` is for a finite population.
FIGURES_VERSION = 2


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Shares of the complete cases: all labels the same, more than half of them, no verdict with more than half."""

    unanimous: Measure
    majority: Measure
    split: Measure


@dataclass(frozen=True, slots=True)
class Group:
    """The agreement within some cases."""

    # A group by failure type is chosen by what labels say, so only its raw agreement and outcomes are defined.
    name: str
    n_items: Annotated[int, "Cases with a label."]
    n_complete: Annotated[int, "Cases with all labels that are asked for, or two made elsewhere."]
    n_pairable: Annotated[int, "Cases with two labels or more: coefficients rest on them."]
    raw_agreement: Measure
    coefficients: dict[str, Measure]  # by the names of `measures.COEFFICIENTS`
    per_label: Annotated[dict[Verdict, Measure], "Alpha of each verdict against the others."]
    outcomes: Outcomes

    def as_json(self) -> dict[str, Any]:
        """Counts and figures; ``undefined`` has the reason for everything without a value, by its name here."""
        named = {"raw_agreement": self.raw_agreement} | self.coefficients
        named |= {f"per_label.{verdict.value}": each for verdict, each in self.per_label.items()}
        named |= {f"outcomes.{each.name}": getattr(self.outcomes, each.name) for each in fields(self.outcomes)}
        return {
            **fields_to_json(self, without=("raw_agreement", "coefficients")),
            **_raw_json(self.raw_agreement),
            **to_json(self.coefficients),
            "undefined": {name: measure.undefined for name, measure in named.items() if measure.value is None},
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two annotators on the ``n`` cases that both labelled."""

    first: str
    second: str
    raw_agreement: Measure
    kappa: Annotated[Measure, "Cohen's."]
    alpha: Measure
    table: Annotated[Table, "Rows: what the first said, 0 to 2; columns: the second."]

    @property
    def n(self) -> int:
        return self.raw_agreement.n

    def as_json(self) -> dict[str, Any]:
        raw = {"n": self.n} | _raw_json(self.raw_agreement)
        return raw | fields_to_json(self, without=("raw_agreement",))


@dataclass(frozen=True, slots=True)
class Annotator:
    """One annotator, by pseudonym; competence (Dawid and Skene) and trust (MACE) are hints for QA, never a label."""

    # Only reviewed cases count in ``agreement`` and ``confusion``: imported labels are their own final verdict.
    name: str
    labels: int
    seconds: Annotated[float | None, "Median active time for a label."]
    agreement: Annotated[Measure, "With the final verdicts."]
    overturned: Annotated[Measure, "Of the labels whose case was adjudicated, those decided otherwise."]
    competence: Measure
    trust: Measure
    confusion: Annotated[Table, "Rows: what they said, 0 to 2; columns: the final verdict."]


@dataclass(frozen=True, slots=True)
class ChangedOf:
    """Cases that were decided otherwise than most labels said, by why an adjudicator looked at them."""

    # The first reason that applies: the labels differ; drawn for a spot check; only flagged.
    disputes: Measure
    drawn: Measure
    flagged: Measure


REASONS = tuple(each.name for each in fields(ChangedOf))


@dataclass(frozen=True, slots=True)
class Adjudications:
    """What QA changed."""

    adjudicated: int
    disputes: int
    unanimous: int
    drawn: Annotated[int, "Spot checks that were drawn."]
    unchecked: Annotated[int, "Unanimous cases that nobody looked at again."]
    unknown: Annotated[int, "Of the unchecked, those of draws in which no spot check was judged blind."]
    changed: Annotated[Measure, "Decided otherwise than most labels said."]  # of the adjudicated with such a majority
    changed_of: ChangedOf
    missed: Annotated[Measure, "Drawn spot checks that contradicted unanimous labels."]  # of those judged blind
    expected_missed: Annotated[
        Measure, "A number of cases: the rate of each draw times its unchecked, without the unknown."
    ]


Relation = Literal["all", "agree", "disagree", "divided", "no verdict"]  # relation of the shown judgments to the label
JUDGES: tuple[Relation, ...] = get_args(Relation)[1:]


@dataclass(frozen=True, slots=True)
class InformedCounts:
    """Labels whose annotator was shown judgments: all, or those with one relation to the judgments."""

    judges: Relation
    shown: int
    decided: int
    kept: int
    changed: Annotated[Measure, "Share of the annotators who decided."]
    table: Annotated[Table, "Rows: the blind label, 0 to 2; columns: the opinion after seeing judgments."]


@dataclass(frozen=True, slots=True)
class Opinion:
    """One annotator's decision after seeing judgments."""

    task_id: str
    agent: str
    annotator: Annotated[str, "The pseudonym."]
    blind: Verdict
    judges: tuple[Verdict, ...]
    informed: Verdict
    reason: str
    task_version: int | None


@dataclass(frozen=True, slots=True)
class Informed:
    """Opinions of annotators on their own labels after seeing judgments."""

    groups: list[InformedCounts]
    opinions: list[Opinion]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far people agree on blind labels, the same as `agreement --json` prints."""

    scope: Annotated[str, "Which cases these are, in words."]
    rules: Rules
    overall: Group
    groups: dict[str, list[Group]]  # by the names of GROUPS
    pairs: list[Pair]  # with a common case, most cases first; at most `people.MOST_PAIRS`
    annotators: list[Annotator]
    adjudications: Annotated[Adjudications | None, "Null for labels made elsewhere."]
    undecided: Annotated[int, "Cases with labels and without a final verdict."]
    # Whoever gave them; its kappa is that of published tables.
    first_against_second: Annotated[Pair | None, "First against second listed imported labels."] = None
    pairs_left_out: Annotated[int, "Pairs beyond the first 500."] = 0
    informed: Annotated[Informed | None, "Null if no annotator was shown judgments."] = None

    def as_json(self) -> dict[str, Any]:
        """The overall figures beside everything else; rates are fractions, intervals 95 %."""
        overall = self.overall.as_json()
        del overall["name"]
        return {"figures_version": FIGURES_VERSION, **overall, **fields_to_json(self, without=("overall",))}


def _raw_json(raw: Measure) -> dict[str, Any]:
    """Raw agreement as a plain number, as scripts expect it, with its interval beside it."""
    interval = None if raw.low is None else [raw.low, raw.high]
    return {"raw_agreement": raw.value, "raw_agreement_interval": interval}
