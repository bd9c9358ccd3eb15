"""Opinions of annotators on their own labels after they saw judgments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from evaluations.agreement.measuring import hits_of_tasks, table
from evaluations.agreement.results import JUDGES, Informed, InformedCounts, Opinion, Relation
from evaluations.cases import BlindLabel, Case, InformedOpinion
from evaluations.statistics import Measure, wilson

UNDECIDED = "nobody has decided"

Shown = tuple[Case, BlindLabel, InformedOpinion]


def count_opinions(cases: Iterable[Case]) -> Informed | None:
    """Count the opinions; None if no annotator was shown judgments."""
    shown = [(case, said, said.informed) for case in cases for said in case.labels if said.informed is not None]
    if not shown:
        return None
    groups = {judges: [each for each in shown if _compare(each[1], each[2]) == judges] for judges in JUDGES}
    counts = [_count(judges, found) for judges, found in groups.items() if found]
    return Informed([_count("all", shown), *counts], _list_opinions(shown))


def _compare(said: BlindLabel, opinion: InformedOpinion) -> Relation:
    """Return the element of `JUDGES` for the relation of the judges' verdicts to the label."""
    if not opinion.judges:
        return "no verdict"
    same = [verdict is said.verdict for verdict in opinion.judges]
    return "agree" if all(same) else "divided" if any(same) else "disagree"


def _count(judges: Relation, shown: Sequence[Shown]) -> InformedCounts:
    decided = [(case, said.verdict, opinion.verdict) for case, said, opinion in shown if opinion.verdict is not None]
    moves = table(Counter((blind, informed) for _, blind, informed in decided))
    if not decided:
        return InformedCounts(judges, len(shown), 0, 0, Measure(None, 0, hits=0, undefined=UNDECIDED), moves)
    # Opinions on one task depend on each other, also those of several people on one trajectory.
    changes = [(case.task_id, blind is not informed) for case, blind, informed in decided]
    hits, n = sum(change for _, change in changes), len(changes)
    return InformedCounts(judges, len(shown), n, n - hits, wilson(hits, n, hits_of_tasks(changes)), moves)


def _list_opinions(shown: Iterable[Shown]) -> list[Opinion]:
    return [
        Opinion(
            case.task_id,
            case.agent_name,
            said.annotator,
            said.verdict,
            opinion.judges,
            opinion.verdict,
            opinion.reason,
            case.task_version,
        )
        for case, said, opinion in shown
        if opinion.verdict is not None
    ]
