"""Results of the agreement of people. Texts in `Annotated` appear in the API."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, get_args

from annotation.records import Verdict
from evaluations.cases import Rules
from evaluations.encoding import fields_to_json, to_json
from evaluations.human_error import HUMAN_ERROR, HumanError
from evaluations.statistics import Measure

Table = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
# Version of the formulas, so that a stored report can be checked with its own formulas. 2: the interval of
# ``expected_missed`` is for a finite population.
FIGURES_VERSION = 2
SPECIFIC = "specific_agreement"  # a key of `Group`


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Shares of the complete cases: all labels the same, more than half of them, no verdict with more than half."""

    unanimous: Measure
    majority: Measure
    split: Measure


@dataclass(frozen=True, slots=True)
class SpecificAgreement:
    """If one label of a case is of this kind, how often another label of it is too (Cicchetti and Feinstein)."""

    positive: Annotated[Measure, "Success."]
    negative: Annotated[Measure, "Not a success: failure or not executable."]


@dataclass(frozen=True, slots=True)
class Group:
    """The agreement within some cases."""

    # Groups by failure type depend on the content of labels, so only raw agreement and outcomes are defined.
    name: str
    n_items: Annotated[int, "Cases with a label."]
    n_complete: Annotated[int, "Cases with all required labels, or two imported ones."]
    n_pairable: Annotated[int, "Cases with two labels or more: coefficients are computed from them."]
    raw_agreement: Measure
    coefficients: dict[str, Measure]  # keys are the names in `measures.COEFFICIENTS`
    per_label: Annotated[dict[Verdict, Measure], "Alpha of each verdict against the others."]
    outcomes: Outcomes
    specific_agreement: SpecificAgreement

    def as_json(self) -> dict[str, Any]:
        """Return counts and figures; ``undefined`` has, by key, the reason for everything without a value."""
        named = {"raw_agreement": self.raw_agreement} | self.coefficients
        named |= {f"per_label.{verdict.value}": each for verdict, each in self.per_label.items()}
        for part in ("outcomes", SPECIFIC):
            found = getattr(self, part)
            named |= {f"{part}.{each.name}": getattr(found, each.name) for each in fields(found)}
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
    table: Annotated[Table, "Rows: verdict of the first, 0 to 2; columns: of the second."]

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
    seconds: Annotated[float | None, "Median active time per label."]
    agreement: Annotated[Measure, "With the final verdicts."]
    overturned: Annotated[
        Measure, "Of the labels whose case was adjudicated, those with another verdict than the decision."
    ]
    competence: Measure
    trust: Measure
    confusion: Annotated[Table, "Rows: their verdict, 0 to 2; columns: the final verdict."]


@dataclass(frozen=True, slots=True)
class ChangedOf:
    """Cases decided differently from the majority of labels, by the reason for the adjudication."""

    # The first reason that applies: the labels differ; drawn for a spot check; only flagged.
    disputes: Measure
    drawn: Measure
    flagged: Measure


REASONS = tuple(each.name for each in fields(ChangedOf))


@dataclass(frozen=True, slots=True)
class Adjudications:
    """Changes by QA."""

    adjudicated: int
    disputes: int
    unanimous: int
    drawn: Annotated[int, "Spot checks that were drawn."]
    unchecked: Annotated[int, "Unanimous cases without a spot check."]
    unknown: Annotated[int, "Of the unchecked, those from draws without a blind spot check."]
    changed: Annotated[
        Measure, "Decided differently from the majority of labels."
    ]  # among adjudicated cases with such a majority
    changed_of: ChangedOf
    missed: Annotated[Measure, "Drawn spot checks that contradicted unanimous labels."]  # among those judged blind
    expected_missed: Annotated[
        Measure, "A number of cases: the rate of each draw times its unchecked cases, without the unknown ones."
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
class ProcessPair:
    """Two annotators on the steps of the trajectories that both labelled."""

    first: str
    second: str
    steps: int
    raw_agreement: Measure
    alpha: Measure
    kappa: Annotated[Measure, "Cohen's."]


@dataclass(frozen=True, slots=True)
class ProcessAgreement:
    """Agreement on process labels, step by step: right, wrong, unnecessary or side effect."""

    trajectories: Annotated[int, "Trajectories with a label, of submissions that ask for process labels."]
    steps: Annotated[int, "Steps with labels of two annotators or more."]
    marked: Annotated[int, "Of these, steps that at least one annotator marked."]
    labels: Annotated[dict[str, int], "Labels of these steps by kind; unmarked steps are right."]
    unanimous: Annotated[Measure, "Share of these steps to which all annotators give the same label."]
    raw_agreement: Annotated[Measure, "How often two labels of a step agree."]
    alpha: Annotated[Measure, "Krippendorff's, for the four kinds of labels."]
    pairs: Annotated[list[ProcessPair], "Every two annotators, those with the most steps first; at most 500."]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of people on blind labels, as printed by `agreement --json`."""

    scope: Annotated[str, "Description of the cases."]
    rules: Rules
    overall: Group
    groups: dict[str, list[Group]]  # by the names of GROUPS
    pairs: list[Pair]  # pairs with a common case, most cases first; at most `people.MOST_PAIRS`
    annotators: list[Annotator]
    adjudications: Annotated[Adjudications | None, "Null for imported labels."]
    undecided: Annotated[int, "Cases with labels and without a final verdict."]
    # Labels of any annotators; its kappa is the one in published tables.
    first_against_second: Annotated[Pair | None, "First against second listed imported label."] = None
    pairs_left_out: Annotated[int, "Pairs beyond the first 500."] = 0
    informed: Annotated[Informed | None, "Null if no annotator was shown judgments."] = None
    process: Annotated[ProcessAgreement | None, "Missing if no submission asks for process labels."] = None
    human_error: Annotated[list[HumanError], HUMAN_ERROR] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the overall figures at the top level, with everything else; rates are fractions, intervals 95%."""
        overall = self.overall.as_json()
        del overall["name"]
        without = ("overall",) if self.process is not None else ("overall", "process")
        return {"figures_version": FIGURES_VERSION, **overall, **fields_to_json(self, without=without)}


def _raw_json(raw: Measure) -> dict[str, Any]:
    """Return raw agreement as a plain number, as scripts expect it, with its interval in separate keys."""
    interval = None if raw.low is None else [raw.low, raw.high]
    return {"raw_agreement": raw.value, "raw_agreement_interval": interval}
