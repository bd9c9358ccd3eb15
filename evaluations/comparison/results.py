"""Results of a comparison as plain values and as JSON. No figure is computed here.

In JSON, agreement is also given as accuracy. Undefined values are null, with the reason in ``undefined``. Rates are
fractions; under `Rules.PUBLISHED` those of rows and averages are percentages, without intervals. Figures that published
tables do not have (flips, key points, calibration, pairs of judges) are the same under all rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Annotated, Any

from annotation.records import Verdict
from evaluations.cases import Case, Rules
from evaluations.encoding import fields_to_json
from evaluations.measures import JUDGE_MEASURES
from evaluations.statistics import AlternativeTest, Confusion, Measure

Key = tuple[str, str] | int  # of a case, as returned by `Case.key`
ACCURACY = "accuracy"  # another name of agreement
CELLS = ("tp", "fp", "tn", "fn")
STATUS_NOT_STATED = "Decided cases with a verdict that the judge's reply does not state."
GROUPS = ("level", "website", "failure type", "trajectory length", "screenshots")


class Label2(StrEnum):
    """Ways to count cases with the human verdict 2, not executable; both are always shown."""

    EXCLUDED = "excluded"
    NOT_SUCCESS = "not_success"


WHAT_BECOMES = "How human label 2 is counted."
ALTERNATIVE = "Alternative annotator test, on success or not; missing without labels of people that the judge scored."
FAMILY_OF_JUDGES = (
    "p with Holm's correction for all pairs of compared judges, also those not listed, under the same rule."
)
NOT_CORRECTED = Measure.missing("not corrected")


@dataclass(frozen=True, slots=True)
class Judged:
    """One judge's judgment of one case: its newest run's first repetition, or the imported judgment.

    ``verdict`` None is unscored, or with ``error`` never answered. ``repeated`` are the verdicts of all repetitions of
    that run, and ``spent`` the tokens and US dollars of each, None if not recorded. ``step`` is the first step that it
    cites as proof, loaded only for differences. ``status_not_stated`` is as in `Judgment`.
    """

    judgment: int | None  # primary key
    verdict: Verdict | None
    error: bool = False
    score: float | None = None
    repeated: tuple[Verdict | None, ...] = ()
    spent: tuple[tuple[int | None, float | None], ...] = ()
    step: int | None = None
    status_not_stated: bool = False


class Answer(Enum):
    """The part of a judgment that a row needs; label 2 of a judge is not a success."""

    SUCCESS = True
    NO_SUCCESS = False
    UNSCORED = "unscored"
    ERROR = "error"
    NOTHING = "nothing"

    __hash__ = object.__hash__  # faster: the hash of an Enum hashes the name, and tens of thousands are counted

    @classmethod
    def of(cls, told: Judged | None) -> Answer:
        if told is None:
            return cls.NOTHING
        if told.verdict is not None:
            return cls.SUCCESS if told.verdict is Verdict.SUCCESS else cls.NO_SUCCESS
        return cls.ERROR if told.error else cls.UNSCORED


Pairs = Sequence[tuple[Case, Verdict, Answer]]  # decided cases with final verdict and judgment


@dataclass(frozen=True, slots=True)
class Row:
    """A judge (or an annotator) against the final human verdicts of some cases, as success or not.

    ``name`` is the agent, or the level, website ... of a breakdown. ``n`` cases are compared, a success being positive;
    a judge's label 2 is not a success. Cases left out are counted: ``excluded`` (human verdict 2, under that rule),
    ``unscored``, ``errors``, and ``unjudged`` (the judge was never asked). ``measures`` has the names of
    `JUDGE_MEASURES` as keys.
    """

    name: str
    human_label_2: Annotated[Label2, WHAT_BECOMES]
    n: int
    excluded: Annotated[int, "Left out because the human verdict is 2."]
    unscored: Annotated[int, "The judge stated no usable verdict."]
    errors: Annotated[int, "The judge was called without success."]
    unjudged: Annotated[int, "The judge was never called."]
    confusion: Confusion
    measures: Mapping[str, Measure]

    def as_json(self, heading: str, rules: Rules) -> dict[str, Any]:
        intervals = {
            name: [each.low, each.high]
            for name, each in self.measures.items()
            if each.low is not None and each.high is not None
        }
        return {
            heading: self.name,
            **fields_to_json(self, without=("name", "confusion", "measures")),
            **{name: getattr(self.confusion, name) for name in CELLS},
            **_measures_json(self.measures, rules),
            "intervals": _with_accuracy(intervals),
        }


@dataclass(frozen=True, slots=True)
class Average:
    """The plain mean over agents of all defined values; ``gap_size`` is the mean of the absolute gaps.

    ``agents`` have at least one compared case. ``values`` has the names of `JUDGE_MEASURES` as keys; the ``n`` of each
    value counts the agents for which it is defined.
    """

    human_label_2: Annotated[Label2, WHAT_BECOMES]
    agents: int
    values: Mapping[str, Measure]
    gap_size: Measure

    @property
    def fewer(self) -> dict[str, int]:
        """Return the measures that are defined only for some of the agents, with the number of agents."""
        return {name: each.n for name, each in self.values.items() if 0 < each.n < self.agents}

    def as_json(self, rules: Rules) -> dict[str, Any]:
        return {
            **fields_to_json(self, without=("values", "gap_size")),
            **_measures_json({**self.values, "gap_size": self.gap_size}, rules),
            "resting_on": _with_accuracy(self.fewer),
        }


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of all repetitions: mean tokens, and mean and total US dollars, of the judgments that record them."""

    judgments: int
    with_tokens: int
    with_cost: int
    tokens: float | None
    cost: float | None
    total_cost: float | None


@dataclass(frozen=True, slots=True)
class KeyPoints:
    """Key points that people and the judge both call met or unmet."""

    agreement: Measure
    kappa: Measure
    table: Annotated[tuple[tuple[int, int], ...], "Rows: unmet and met by people; columns: by the judge."]


@dataclass(frozen=True, slots=True)
class ScoreAgreement:
    """The judge's scores and people's process scores of the same trajectories; intervals draw tasks."""

    pearson: Measure
    spearman: Measure
    difference: Annotated[Measure, "Mean absolute difference of both scores, which are 0 to 1."]

    @property
    def n(self) -> int:
        return self.pearson.n


@dataclass(frozen=True, slots=True)
class ProcessComparison:
    """A judge against people on the way to the outcome: steps, the first failure, and process scores.

    A step is a fault for people if its final label is wrong or side effect; an unnecessary step is none. It is a fault
    for the judge if it is the first failure, violates a critical point or has a penalty. Only rubric verifiers state
    these steps.
    """

    trajectories: Annotated[int, "Trajectories with final process labels and a judgment that states faults."]
    step_agreement: Annotated[Measure, "How often both say the same of a step with a final label."]
    step_kappa: Annotated[Measure, "Cohen's, for fault or no fault."]
    step_table: Annotated[tuple[tuple[int, int], ...], "Rows: no fault and fault by people; columns: by the judge."]
    failure_agreement: Annotated[Measure, "How often both say the same of whether a trajectory has a failure."]
    failure_kappa: Annotated[Measure, "Cohen's, for failure or none."]
    same_first: Annotated[Measure, "If both name a first failure: how often it is the same step."]
    near_first: Annotated[Measure, "If both name a first failure: how often it is at most one step away."]
    by_key_points: Annotated[ScoreAgreement, "People's score: the share of decided key points that are met."]
    by_steps: Annotated[ScoreAgreement, "People's score: the share of steps with a final label that are no fault."]


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases with a judge's score from ``low`` to ``high``: the mean score, and how often people say success."""

    # ``high`` belongs to the last bin only, unless it equals ``low``. Label 2 is not a success.
    low: float
    high: float
    score: float
    success: Measure


@dataclass(frozen=True, slots=True)
class ScoreQuality:
    """The judge's scores against success by people, on the ``n`` scored cases; intervals draw tasks."""

    human_label_2: Annotated[Label2, WHAT_BECOMES]
    n: int
    brier: Annotated[Measure, "Brier score: mean squared difference of the score and success (1) or not (0)."]
    auc: Annotated[Measure, "Area under the ROC curve: how often a success has a higher score than another case."]


@dataclass(frozen=True, slots=True)
class Difference:
    """A case where judge and people differ. ``step`` is the step that the judge cites, or None."""

    case: Case
    judged: Judged

    def as_json(self) -> dict[str, Any]:
        case, judged = self.case, self.judged
        return {
            "task_id": case.task_id,
            "agent": case.agent_name,
            "trajectory": case.trajectory,
            "human": None if case.final is None else int(case.final),
            "judge": None if judged.verdict is None else int(judged.verdict),
            "step": judged.step,
            "judgment": judged.judgment,
            "task_version": case.task_version,
        }


@dataclass(frozen=True, slots=True)
class Flips:
    """``rate``: how often two repetitions of a case differ; ``differing`` of ``rate.n`` cases have unequal verdicts."""

    rate: Measure
    differing: int

    def as_json(self) -> dict[str, Any]:
        hits = {} if self.rate.value is None else {"hits": self.differing}
        return self.rate.as_json() | hits


@dataclass(frozen=True, slots=True)
class Comparison:
    """A judge against people, as `compare --judge --json` prints it. Every row exists under both rules for label 2."""

    # Under `Rules.PUBLISHED` the rates of rows and averages are rounded as in published tables, have no interval, and
    # are 0 if their denominator is 0. ``flips``, ``key_points`` and ``calibration`` do not change.
    benchmark: str  # the slug
    scope: Annotated[str, "Description of the cases."]
    judge: str
    fingerprint: str
    rules: Rules
    undecided: Annotated[int, "Cases with labels and without a final verdict."]
    rows: list[Row]  # every agent twice, once under each rule for label 2
    overall: list[Row]  # of all agents pooled
    averages: list[Average]
    groups: dict[str, list[Row]]  # by the names of GROUPS
    flips: Flips
    costs: Costs
    key_points: KeyPoints
    calibration: list[Bin]
    differences: list[Difference]
    decided_after_network_evidence: Annotated[
        int,
        (
            "Cases that an adjudicator decided after opening the network evidence, which judges of the scorer "
            "network-trace use too: for these cases the two are not independent. 0 for judges of other scorers."
        ),
    ] = 0
    status_not_stated: Annotated[int, STATUS_NOT_STATED] = 0
    process: Annotated[ProcessComparison | None, "Missing if the judge and people share no steps or scores."] = None
    scores: list[ScoreQuality] = field(default_factory=list)
    alternative_test: Annotated[AlternativeTest | None, ALTERNATIVE] = None

    def as_json(self) -> dict[str, Any]:
        rules = self.rules
        hidden = tuple(name for name in ("process", "alternative_test") if getattr(self, name) is None)
        return {
            **fields_to_json(self, without=("rows", "overall", "averages", "groups", *hidden)),
            "rows": [each.as_json("agent", rules) for each in self.rows],
            "overall": [each.as_json("agent", rules) for each in self.overall],
            "average": _averages(self.averages, rules),
            "groups": {name: [each.as_json("name", rules) for each in rows] for name, rows in self.groups.items()},
        }


def _with_accuracy(values: Mapping[str, Any]) -> dict[str, Any]:
    named = {ACCURACY: values["agreement"]} if "agreement" in values else {}
    return {**values, **named}


def _measures_json(measures: Mapping[str, Measure], rules: Rules) -> dict[str, Any]:
    values = {name: each.value for name, each in measures.items()}
    if rules is Rules.PUBLISHED:
        gap = JUDGE_MEASURES["success_rate_gap"]  # "gap_size" is rounded like this measure
        values = {name: v if v is None else JUDGE_MEASURES.get(name, gap).percent(v) for name, v in values.items()}
    undefined = {name: each.undefined for name, each in measures.items() if each.undefined}
    return {**_with_accuracy(values), "undefined": _with_accuracy(undefined)}


def _averages(averages: Sequence[Average], rules: Rules) -> dict[str, Any]:
    first, *others = [each.as_json(rules) for each in averages]
    return first | {each["human_label_2"]: each for each in others}


@dataclass(frozen=True, slots=True)
class Versus:
    """Two judges on the ``n`` cases that both have scored and people have decided."""

    first: str
    second: str
    human_label_2: Annotated[Label2, WHAT_BECOMES]
    n: int
    both: Annotated[int, "Both agree with people."]
    first_only: int
    second_only: int
    neither: int
    p: Annotated[Measure, "McNemar's test; with `by_task` a test that swaps the two judges task by task."]
    exact: Annotated[bool, "Every outcome was counted; otherwise by chi-square or `permutations`."]
    difference: Annotated[Measure, "Agreement of the first minus that of the second."]
    same: Annotated[Measure, "How often the two agree."]
    by_task: Annotated[bool, "Whole tasks were swapped, because a task counts more than once."] = False
    p_holm: Annotated[Measure, FAMILY_OF_JUDGES] = NOT_CORRECTED
    permutations: Annotated[int | None, "Number of drawn swaps; null without drawing."] = None


@dataclass(frozen=True, slots=True)
class AgentPair:
    """Two agents on the ``n`` tasks that people decided for both, in the same version."""

    first: str
    second: str
    human_label_2: Annotated[Label2, WHAT_BECOMES]
    n: int
    both: Annotated[int, "Both succeed."]
    first_only: int
    second_only: int
    neither: int
    difference: Annotated[Measure, "Success rate of the first minus that of the second."]
    p: Annotated[Measure, "McNemar's test."]
    exact: Annotated[bool, "Every outcome was counted; otherwise by chi-square."]
    p_holm: Annotated[Measure, "p with Holm's correction for all ``family`` pairs of agents under this rule."]
    family: Annotated[int, "Pairs of agents with a common decided task, also those that are not listed."]


@dataclass(frozen=True, slots=True)
class Rates:
    """A success rate that counts label 2 as failure, and one that excludes it."""

    over_all: Measure
    without_2: Measure

    def under(self, rule: Label2) -> Measure:
        return self.without_2 if rule is Label2.EXCLUDED else self.over_all


@dataclass(frozen=True, slots=True)
class Standing(Rates):
    """An agent's success rate over the ``n`` cases with a verdict; ``by`` is people, or the judge used instead."""

    agent: str
    by: str
    judged: Annotated[bool, "By a judge, because people have decided nothing."]
    n: int
    undecided: Annotated[int, "Cases without a verdict."]
    not_executable: int
    levels: dict[str, Rates]
