"""Compare one judge with people, and all judges of some cases with people and with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evaluations.cases import Case, Rules
from evaluations.comparison import breakdowns
from evaluations.comparison.attempts import ATTEMPTS, Attempts, attempts
from evaluations.comparison.evidence import count_decided_after_evidence, findings, key_points
from evaluations.comparison.judgments import find_judgments
from evaluations.comparison.leave_one_out import alternative_test, ceiling_left_out
from evaluations.comparison.places import agent_pairs
from evaluations.comparison.process import compare_process
from evaluations.comparison.results import (
    AgentPair,
    Comparison,
    Difference,
    Judged,
    Key,
    KeyPoints,
    Label2,
    Row,
    Standing,
    Versus,
)
from evaluations.comparison.rows import (
    ALL_AGENTS,
    averages,
    build_rows,
    by_task,
    ceiling,
    count_by_name,
    count_together,
    pair_cases,
    round_row,
    several_agents,
)
from evaluations.comparison.standings import ranking, standings, versus
from evaluations.encoding import fields_to_json, to_json
from evaluations.human_error import HUMAN_ERROR, HumanError, human_error
from evaluations.naming import natural
from evaluations.statistics import Measure, wilson
from evaluations.statistics.alternative import EPSILON
from judges.models import Judge

NOT_ASKED = "not asked for"
AGENT_PAIRS = "Every two agents on the same tasks, at most 100 under each rule for label 2, the smallest p first."


def compare(
    judge: Judge,
    cases: Sequence[Case],
    scope: str,
    *,
    benchmark: str,
    rules: Rules = Rules.DEFAULT,
    details: bool = True,
    said: Mapping[Key, Judged] | None = None,
    epsilon: float = EPSILON,
) -> Comparison:
    """Compare one judge with the final verdicts of these cases; ``benchmark`` is a slug.

    Without ``details``, groups, key points, calibration and differences stay empty, and only judgments are loaded. That
    is for lists of many judges. ``said`` is the result of `find_judgments`, if the caller has it already. ``epsilon``
    is that of the alternative annotator test.
    """
    said = find_judgments(judge, cases, benchmark=benchmark) if said is None else said
    pairs = pair_cases(cases, said)
    agents = count_by_name(pairs, lambda case: case.agent_name)
    rows = [each for agent in sorted(agents, key=natural) for each in build_rows(agent, agents[agent])]
    clusters = by_task(pairs, lambda _: ALL_AGENTS) if several_agents(cases) else {}
    groups = breakdowns.groups(pairs) if details else {}
    people = findings(cases) if details and said else {}
    none = KeyPoints(Measure.missing(NOT_ASKED), Measure.missing(NOT_ASKED), ((0, 0), (0, 0)))
    return Comparison(
        scope=scope,
        benchmark=benchmark,
        judge=str(judge),
        fingerprint=judge.fingerprint,
        rules=rules,
        undecided=sum(case.final is None and bool(case.labels) for case in cases),
        rows=_apply_rules(rows, rules),
        overall=_apply_rules(build_rows(ALL_AGENTS, count_together(pairs), clusters), rules),
        averages=averages(rows, rules),
        groups={name: _apply_rules(found, rules) for name, found in groups.items()},
        flips=breakdowns.flips(said, cases),
        costs=breakdowns.costs(said.values()),
        key_points=key_points(cases, said, people) if details else none,
        calibration=breakdowns.calibration(pairs, said) if details else [],
        differences=breakdowns.differences(pairs, said) if details else [],
        decided_after_network_evidence=count_decided_after_evidence(judge, cases, said),
        status_not_stated=sum(case.final is not None and _is_without_status(said.get(case.key)) for case in cases),
        process=compare_process(judge, cases, said, people) if details else None,
        scores=breakdowns.score_quality(pairs, said) if details else [],
        alternative_test=alternative_test(cases, said, epsilon=epsilon) if details else None,
    )


def _is_without_status(told: Judged | None) -> bool:
    return told is not None and told.status_not_stated


def _apply_rules(rows: Sequence[Row], rules: Rules) -> list[Row]:
    return [round_row(each) for each in rows] if rules is Rules.PUBLISHED else list(rows)


def differences(judge: Judge, cases: Sequence[Case], *, benchmark: str) -> list[Difference]:
    """Return only the differences of `compare`: the cases where the judge and people differ, with the cited step."""
    said = find_judgments(judge, cases, benchmark=benchmark)
    return breakdowns.differences(pair_cases(cases, said), said)


@dataclass(frozen=True, slots=True)
class Judging:
    """A judge in a list: its comparison without the details, and its ranking of the agents.

    ``tau`` is Kendall's tau of the agents' success rates by people and by the judge on the same cases.
    """

    name: str
    comparison: Comparison
    tau: Mapping[Label2, Measure]

    def covered(self, rule: Label2) -> Measure:
        """Return the share of decided cases under this rule that it has scored: a full count, so no interval."""
        row = next(row for row in self.comparison.overall if row.human_label_2 is rule)
        found = wilson(row.n, row.n + row.unscored + row.errors + row.unjudged)
        return replace(found, low=None, high=None)

    def as_json(self) -> dict[str, Any]:
        """Return the rows of the comparison, without the values that all judges share and the missing details."""
        told = self.comparison.as_json()
        kept = ("judge", "fingerprint", "rows", "overall", "average", "flips", "costs", "status_not_stated")
        return {name: told[name] for name in kept} | {
            "coverage": to_json({rule: self.covered(rule) for rule in Label2}),
            "tau": to_json(self.tau),
        }


@dataclass(frozen=True, slots=True)
class Judges:
    """All judges of a benchmark, as `compare --json` prints them without a judge."""

    benchmark: str  # the slug
    scope: Annotated[str, "Description of the cases."]
    rules: Rules
    undecided: Annotated[int, "Cases with labels and without a final verdict."]
    judges: list[Judging]
    people: list[Row]  # result of `ceiling`
    versus: Annotated[list[Versus], "Pairs of the ten judges with the highest agreement."]
    agents: Annotated[list[Standing], "Success rates by people, highest first."]
    attempts: Annotated[list[Attempts], ATTEMPTS]
    people_left_out: list[Row]  # result of `ceiling_left_out`
    human_error: Annotated[list[HumanError], HUMAN_ERROR]
    agent_pairs: Annotated[list[AgentPair], AGENT_PAIRS]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the API, which `compare --json` without a judge also prints."""
        return fields_to_json(self, without=("people", "people_left_out")) | {
            "ceiling": ceiling_json(self.people, self.rules),
            LEFT_OUT: ceiling_json(self.people_left_out, self.rules),
        }


def compare_judges(
    judges: Sequence[Judge], cases: Sequence[Case], scope: str, *, benchmark: str, rules: Rules = Rules.DEFAULT
) -> Judges:
    """Compare these judges over these cases; the judgments are loaded once. ``benchmark`` is a slug."""
    said = {judge.pk: find_judgments(judge, cases, benchmark=benchmark) for judge in judges}
    found = []
    for judge in judges:
        told = said[judge.pk]
        pairs = pair_cases(cases, told)
        compared = compare(judge, cases, scope, benchmark=benchmark, rules=rules, details=False, said=told)
        found.append(Judging(str(judge), compared, {rule: ranking(pairs, rule) for rule in Label2}))
    return Judges(
        scope=scope,
        benchmark=benchmark,
        rules=rules,
        undecided=sum(case.final is None and bool(case.labels) for case in cases),
        judges=found,
        people=ceiling(cases, rules),
        versus=versus(judges, cases, benchmark=benchmark, said=said),
        agents=standings(cases),
        attempts=attempts(cases, judges, benchmark=benchmark, said=said),
        people_left_out=ceiling_left_out(cases, rules),
        human_error=human_error(cases),
        agent_pairs=agent_pairs(cases),
    )


# --- JSON ------------------------------------------------------------------------------------------------------------


LEFT_OUT = "ceiling_leave_one_out"


@dataclass(frozen=True, slots=True)
class People:
    """The figures of people beside a judge: both ceilings, and their errors."""

    ceiling: list[Row]
    left_out: list[Row]
    errors: list[HumanError]

    @classmethod
    def of(cls, cases: Sequence[Case], rules: Rules = Rules.DEFAULT) -> People:
        return cls(ceiling(cases, rules), ceiling_left_out(cases, rules), human_error(cases))


def with_ceiling(found: Comparison, people: People) -> dict[str, Any]:
    return found.as_json() | {
        "ceiling": ceiling_json(people.ceiling, found.rules),
        LEFT_OUT: ceiling_json(people.left_out, found.rules),
        "human_error": to_json(people.errors),
    }


def ceiling_json(people: Sequence[Row], rules: Rules) -> list[dict[str, Any]]:
    return [row.as_json("annotator", rules) for row in people]
