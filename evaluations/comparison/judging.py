"""Every judge of some cases beside people and beside each other: the page of judges, its command and its API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evaluations.cases import Case, Rules
from evaluations.comparison.attempts import Attempts, attempts
from evaluations.comparison.comparing import compare
from evaluations.comparison.judged import judged
from evaluations.comparison.results import Comparison, Label2, Row, Standing, Versus
from evaluations.comparison.rows import ceiling, paired
from evaluations.comparison.standings import ranking, standings, versus
from evaluations.statistics import Measure, wilson
from judges.models import Judge


@dataclass(frozen=True, slots=True)
class Judging:
    """A judge among others: its comparison without the details, and how it ranks the agents.

    ``tau`` is Kendall's, of the agents' success rates by people and by the judge on the same cases.
    """

    name: str
    comparison: Comparison
    tau: Mapping[Label2, Measure]

    def covered(self, rule: Label2) -> Measure:
        """Of the decided cases that count under this rule those that it has scored; a count of them all, no sample."""
        row = next(row for row in self.comparison.overall if row.human_label_2 is rule)
        found = wilson(row.n, row.n + row.unscored + row.errors + row.unjudged)
        return replace(found, low=None, high=None)

    def as_json(self) -> dict[str, Any]:
        """Its rows as a comparison has them, without what is the same for all judges and what is left out here."""
        told = self.comparison.as_json()
        kept = ("judge", "fingerprint", "rows", "overall", "average", "flips", "costs", "status_not_stated")
        return {name: told[name] for name in kept} | {
            "coverage": {rule.value: self.covered(rule).as_json() for rule in Label2},
            "tau": {rule.value: each.as_json() for rule, each in self.tau.items()},
        }


@dataclass(frozen=True, slots=True)
class Judges:
    """All judges of some cases. ``people`` are the rows of `ceiling`; ``agents`` stand as people decided.

    ``attempts`` are of the agents that have several, by people and by each judge.
    """

    scope: str
    benchmark: str
    rules: Rules
    undecided: int
    judges: list[Judging]
    people: list[Row]
    versus: list[Versus]
    agents: list[Standing]
    attempts: list[Attempts]

    def as_json(self) -> dict[str, Any]:
        """As `compare --json` prints it without a judge, and the API answers."""
        return {
            "benchmark": self.benchmark,
            "scope": self.scope,
            "rules": self.rules.value,
            "undecided": self.undecided,
            "judges": [each.as_json() for each in self.judges],
            "ceiling": ceiling_json(self.people, self.rules),
            "versus": [versus_json(each) for each in self.versus],
            "agents": [standing_json(each) for each in self.agents],
            "attempts": [each.as_json() for each in self.attempts],
        }


def judging(
    judges: Sequence[Judge], cases: Sequence[Case], scope: str, *, benchmark: str, rules: Rules = Rules.DEFAULT
) -> Judges:
    """These judges over these cases; what a judge says is read once for everything. ``benchmark`` is a slug."""
    said = {judge.pk: judged(judge, cases, benchmark=benchmark) for judge in judges}
    found = []
    for judge in judges:
        told = said[judge.pk]
        pairs = paired(cases, told)
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
    )


# --- JSON ------------------------------------------------------------------------------------------------------------


def with_ceiling(found: Comparison, people: Sequence[Row]) -> dict[str, Any]:
    """A comparison as JSON with the human ceiling of the same cases beside it."""
    return found.as_json() | {"ceiling": ceiling_json(people, found.rules)}


def ceiling_json(people: Sequence[Row], rules: Rules) -> list[dict[str, Any]]:
    return [row.as_json("annotator", rules) for row in people]


def versus_json(found: Versus) -> dict[str, Any]:
    measures = {"p": found.p, "difference": found.difference, "same": found.same}
    return asdict(found) | {name: measure.as_json() for name, measure in measures.items()}


def standing_json(standing: Standing) -> dict[str, Any]:
    return {
        "agent": standing.agent,
        "by": standing.by,
        "judged": standing.judged,
        "n": standing.n,
        "undecided": standing.undecided,
        "not_executable": standing.not_executable,
        "over_all": standing.over_all.as_json(),
        "without_2": standing.without_2.as_json(),
        "levels": {
            level: {"over_all": over_all.as_json(), "without_2": without_2.as_json()}
            for level, (over_all, without_2) in standing.levels.items()
        },
    }
