"""What a comparison comes to, as plain values and as JSON. Nothing is computed here.

In JSON agreement is given as accuracy too. Undefined values are null, with the reason in ``undefined``. Rates are
fractions; under `Rules.PUBLISHED` those of rows and averages are percentages, with no intervals. What published tables
do not have (flips, key points, calibration, two judges beside each other) stays as it is under any rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum, StrEnum
from typing import Any

from annotation.records import Verdict
from evaluations.cases import Case, Rules
from evaluations.comparison.measures import MEASURES, percent
from evaluations.statistics import Confusion, Measure

Key = tuple[str, str] | int  # of a case, as `Case.key` has it
ACCURACY = "accuracy"  # another name of agreement
CELLS = ("tp", "fp", "tn", "fn")
COUNTS = ("n", "excluded", "unscored", "errors", "unjudged")
GROUPS = ("level", "website", "failure type", "trajectory length", "screenshots")


class Label2(StrEnum):
    """What becomes of cases whose human verdict is 2, not executable; both are always shown."""

    EXCLUDED = "excluded"
    NOT_SUCCESS = "not_success"


@dataclass(frozen=True, slots=True)
class Judged:
    """What one judge says of one case: its newest run's first repetition, or the imported judgment.

    ``verdict`` None is unscored, or with ``error`` never answered. ``repeated`` are the verdicts of all repetitions of
    that run, and ``spent`` the tokens and US dollars of each, None where it does not say. ``step`` is the first step
    that it cites as proof, read for differences only. ``status_not_stated`` as in `Judgment`.
    """

    judgment: int | None  # primary key
    verdict: Verdict | None
    error: bool = False
    score: float | None = None
    repeated: tuple[Verdict | None, ...] = ()
    spent: tuple[tuple[int | None, float | None], ...] = ()
    step: int | None = None
    status_not_stated: bool = False


class Said(Enum):
    """What was said of a case, as far as a row needs it; label 2 of a judge is no success."""

    SUCCESS = True
    NO_SUCCESS = False
    UNSCORED = "unscored"
    ERROR = "error"
    NOTHING = "nothing"

    __hash__ = object.__hash__  # that of an Enum hashes the name, and these are counted by the ten thousand

    @classmethod
    def by(cls, told: Judged | None) -> Said:
        if told is None:
            return cls.NOTHING
        if told.verdict is not None:
            return cls.SUCCESS if told.verdict is Verdict.SUCCESS else cls.NO_SUCCESS
        return cls.ERROR if told.error else cls.UNSCORED


Pairs = Sequence[tuple[Case, Verdict, Said]]  # the decided cases, with the final verdict and what was said


@dataclass(frozen=True, slots=True)
class Row:
    """A judge (or an annotator) against the final human verdicts of some cases, as success or not.

    ``name`` is the agent, or the level, website ... of a breakdown. ``n`` cases are compared, a success being
    positive; a judge's label 2 is no success. ``agreement`` is also called accuracy. Left out and counted:
    ``excluded`` (human verdict 2, under that rule), ``unscored``, ``errors``, and ``unjudged``, that the judge was
    never asked about. ``success_rate_gap`` is judge minus human: positive means that the judge is too kind.
    """

    name: str
    human_label_2: Label2
    n: int
    excluded: int
    unscored: int
    errors: int
    unjudged: int
    confusion: Confusion
    agreement: Measure
    precision: Measure
    recall: Measure
    f1: Measure
    specificity: Measure
    npv: Measure
    false_positive_rate: Measure
    kappa: Measure
    success_rate_human: Measure
    success_rate_judge: Measure
    success_rate_gap: Measure

    def as_json(self, heading: str, rules: Rules) -> dict[str, Any]:
        """``heading`` is the key of the name."""
        measures = {name: getattr(self, name) for name in MEASURES}
        intervals = {
            name: [each.low, each.high]
            for name, each in measures.items()
            if each.low is not None and each.high is not None
        }
        return {
            heading: self.name,
            "human_label_2": self.human_label_2.value,
            **{name: getattr(self, name) for name in COUNTS},
            **{name: getattr(self.confusion, name) for name in CELLS},
            **_with_accuracy({name: _shown(name, each.value, rules) for name, each in measures.items()}),
            "intervals": _with_accuracy(intervals),
            "undefined": _with_accuracy({name: each.undefined for name, each in measures.items() if each.undefined}),
        }


@dataclass(frozen=True, slots=True)
class Average:
    """The plain mean over agents of what is defined for each; ``gap_size`` is the mean of the gaps without sign.

    ``agents`` have a case that could be compared. ``values`` are by the names of `measures.MEASURES`; ``n`` of one
    counts the agents for which it is defined.
    """

    human_label_2: Label2
    agents: int
    values: Mapping[str, Measure]
    gap_size: Measure

    @property
    def fewer(self) -> dict[str, int]:
        """The measures that rest on some of the agents only, with how many."""
        return {name: each.n for name, each in self.values.items() if 0 < each.n < self.agents}

    def as_json(self, rules: Rules) -> dict[str, Any]:
        values = {**self.values, "gap_size": self.gap_size}
        return {
            "human_label_2": self.human_label_2.value,
            "agents": self.agents,
            **_with_accuracy({name: _shown(name, each.value, rules) for name, each in values.items()}),
            "resting_on": _with_accuracy(self.fewer),
            "undefined": _with_accuracy({name: each.undefined for name, each in values.items() if each.undefined}),
        }


@dataclass(frozen=True, slots=True)
class Costs:
    """What the judgments took, all repetitions among them; None where no judgment says so.

    ``tokens`` is the mean of those ``with_tokens``, ``cost`` the mean and ``total_cost`` the sum in US dollars of those
    ``with_cost``.
    """

    judgments: int
    with_tokens: int
    tokens: float | None
    with_cost: int
    cost: float | None
    total_cost: float | None


@dataclass(frozen=True, slots=True)
class KeyPoints:
    """Key points that people and the judge both decided, on the cases with a final verdict."""

    agreement: Measure
    kappa: Measure
    table: tuple[tuple[int, int], ...]  # [human unmet, met][judge unmet, met]

    def as_json(self) -> dict[str, Any]:
        table = [list(line) for line in self.table]
        return {"agreement": self.agreement.as_json(), "kappa": self.kappa.as_json(), "table": table}


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases whose judge score lies from ``low`` to ``high``: the mean score, and how many people call a success.

    All bins but the last leave ``high`` out, where it is more than ``low``. Label 2 is no success.
    """

    low: float
    high: float
    score: float
    success: Measure

    def as_json(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "score": self.score, "success": self.success.as_json()}


@dataclass(frozen=True, slots=True)
class Difference:
    """A case where judge and people differ. ``step`` is the step that the judge cites, None for none."""

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
    """``rate``: how often two repetitions on a case differ; ``differing`` of its ``rate.n`` cases are not all alike."""

    rate: Measure
    differing: int

    def as_json(self) -> dict[str, Any]:
        hits = {} if self.rate.value is None else {"hits": self.differing}
        return self.rate.as_json() | hits


@dataclass(frozen=True, slots=True)
class Comparison:
    """One judge against people. ``undecided`` cases have labels and no final verdict.

    ``rows`` has every agent twice, once under each rule for label 2; ``overall`` pools all agents. ``flips`` is
    of the cases with two or more repetitions. ``groups`` are breakdowns over all
    agents, by the names of GROUPS, under both rules. ``benchmark`` is a slug. Under `Rules.PUBLISHED` the rates of rows
    and averages are rounded as in published tables, have no interval, and are 0 where their denominator is; still they
    are fractions. ``flips``, ``key_points`` and ``calibration`` are neither rounded nor without intervals.
    ``after_evidence`` counts cases that were decided by somebody who had opened what the judge goes by.
    ``status_not_stated`` counts decided cases with a verdict that the judge's reply does not state.
    """

    scope: str
    benchmark: str
    judge: str
    fingerprint: str
    rules: Rules
    undecided: int
    rows: list[Row]
    overall: list[Row]
    averages: list[Average]
    groups: dict[str, list[Row]]
    flips: Flips
    costs: Costs
    key_points: KeyPoints
    calibration: list[Bin]
    differences: list[Difference]
    after_evidence: int = 0
    status_not_stated: int = 0

    def as_json(self) -> dict[str, Any]:
        """As `compare --json` prints it and the API answers."""
        rules = self.rules
        return {
            "benchmark": self.benchmark,
            "scope": self.scope,
            "judge": self.judge,
            "fingerprint": self.fingerprint,
            "rules": rules.value,
            "undecided": self.undecided,
            "decided_after_network_evidence": self.after_evidence,
            "status_not_stated": self.status_not_stated,
            "rows": [each.as_json("agent", rules) for each in self.rows],
            "overall": [each.as_json("agent", rules) for each in self.overall],
            "average": _averages(self.averages, rules),
            "groups": {name: [each.as_json("name", rules) for each in rows] for name, rows in self.groups.items()},
            "flips": self.flips.as_json(),
            "costs": asdict(self.costs),
            "key_points": self.key_points.as_json(),
            "calibration": [each.as_json() for each in self.calibration],
            "differences": [each.as_json() for each in self.differences],
        }


def _with_accuracy(values: Mapping[str, Any]) -> dict[str, Any]:
    named = {ACCURACY: values["agreement"]} if "agreement" in values else {}
    return {**values, **named}


def _shown(name: str, value: float | None, rules: Rules) -> float | None:
    return percent(name, value) if rules is Rules.PUBLISHED and value is not None else value


def _averages(averages: Sequence[Average], rules: Rules) -> dict[str, Any]:
    """The averages under the first rule, and beside them those under each other one by its name."""
    first, *others = [each.as_json(rules) for each in averages]
    return first | {each["human_label_2"]: each for each in others}


@dataclass(frozen=True, slots=True)
class Versus:
    """Two judges on the cases that both have scored and people have decided, under one rule for label 2.

    ``first_only`` and ``second_only`` count where only that one agrees with people. ``p`` is McNemar's, exact for few
    cases. With ``by_task`` it is from a test that swaps the two task by task, ``permutations`` times unless ``exact``.
    ``difference`` is the first one's agreement minus the second's.
    """

    first: str
    second: str
    human_label_2: Label2
    n: int
    both: int
    first_only: int
    second_only: int
    neither: int
    p: Measure
    exact: bool
    difference: Measure
    same: Measure  # how often the two say the same
    by_task: bool = False
    permutations: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent's success rate. ``by`` is "people", or with ``judged`` the name of the judge that speaks for them.

    ``n`` cases have a verdict of theirs, ``undecided`` ones have none. ``over_all`` counts label 2 as no success,
    ``without_2`` leaves it out; ``levels`` gives both by level.
    """

    agent: str
    by: str
    n: int
    undecided: int
    not_executable: int
    over_all: Measure
    without_2: Measure
    levels: dict[str, tuple[Measure, Measure]]
    judged: bool = False
