"""One judge beside people, from every side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluations.cases import Case, Rules
from evaluations.comparison import breakdowns, published
from evaluations.comparison.clusters import by_task, several_agents
from evaluations.comparison.evidence import key_points
from evaluations.comparison.judgments import find_judgments
from evaluations.comparison.network_evidence import count_decided_after_evidence
from evaluations.comparison.results import Comparison, Difference, Judged, Key, KeyPoints, Row
from evaluations.comparison.rows import ALL_AGENTS, averages, build_rows, count_by_name, count_together, pair_cases
from evaluations.naming import natural
from evaluations.statistics import Measure
from judges.models import Judge

NOT_ASKED = "not asked for"


def compare(
    judge: Judge,
    cases: Sequence[Case],
    scope: str,
    *,
    benchmark: str,
    rules: Rules = Rules.DEFAULT,
    details: bool = True,
    said: Mapping[Key, Judged] | None = None,
) -> Comparison:
    """One judge against the final verdicts of these cases; ``benchmark`` is a slug.

    Without ``details`` nothing is read but the judgments: groups, key points, calibration and differences stay empty.
    That is for lists of many judges. ``said`` is what `judged` found, where the caller needs it more than once.
    """
    said = find_judgments(judge, cases, benchmark=benchmark) if said is None else said
    pairs = pair_cases(cases, said)
    agents = count_by_name(pairs, lambda case: case.agent_name)
    rows = [each for agent in sorted(agents, key=natural) for each in build_rows(agent, agents[agent])]
    clusters = by_task(pairs, lambda _: ALL_AGENTS) if several_agents(cases) else {}
    groups = breakdowns.groups(pairs) if details else {}
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
        key_points=key_points(cases, said) if details else none,
        calibration=breakdowns.calibration(pairs, said) if details else [],
        differences=breakdowns.differences(pairs, said) if details else [],
        decided_after_network_evidence=count_decided_after_evidence(judge, cases, said),
        status_not_stated=sum(case.final is not None and _is_without_status(said.get(case.key)) for case in cases),
    )


def _is_without_status(told: Judged | None) -> bool:
    return told is not None and told.status_not_stated


def _apply_rules(rows: Sequence[Row], rules: Rules) -> list[Row]:
    return [published.round_row(each) for each in rows] if rules is Rules.PUBLISHED else list(rows)


def differences(judge: Judge, cases: Sequence[Case], *, benchmark: str) -> list[Difference]:
    """Those of `compare` alone: where the judge and people differ, with the step that it cites."""
    said = find_judgments(judge, cases, benchmark=benchmark)
    return breakdowns.differences(pair_cases(cases, said), said)
