"""Success rates of agents by people and by judges, and comparisons between judges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.judgments import find_judgments
from evaluations.comparison.results import Answer, Judged, Key, Label2, Pairs, Rates, Standing, Versus
from evaluations.comparison.rows import PEOPLE, count_cells, several_agents
from evaluations.naming import NOT_KNOWN, level_order, natural
from evaluations.statistics import Measure, holm, paired_difference, paired_test, ranking_by_task, wilson
from evaluations.statistics.tally import Integers
from judges.models import Judge

MOST_JUDGES = 10  # that are compared with each other: 45 pairs
Verdicts = Sequence[tuple[str, Verdict]]  # level and verdict of the cases that have one


def standings(cases: Sequence[Case], judge: Judge | None = None, *, benchmark: str = "") -> list[Standing]:
    """Return every agent's success rate, the highest first; ``judge`` is used for agents without a final verdict.

    Agents rated by the judge come after all agents rated by people, because the rates are not comparable. Agents
    without any verdict come last.
    """
    by_agent = _by_agent(cases)
    open_ones = [case for own in by_agent.values() if not _decided(own) for case in own]
    said = find_judgments(judge, open_ones, benchmark=benchmark) if judge is not None else {}
    found = [_standing(agent, own, said, str(judge)) for agent, own in by_agent.items()]
    return sorted(found, key=_best_first)


def _by_agent(cases: Iterable[Case]) -> dict[str, list[Case]]:
    agents: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        agents[case.agent_name].append(case)
    return agents


def _decided(cases: Iterable[Case]) -> list[tuple[str, Verdict]]:
    return [(case.level or NOT_KNOWN, case.final) for case in cases if case.final is not None]


def _scored(cases: Iterable[Case], said: Mapping[Key, Judged]) -> list[tuple[str, Verdict]]:
    told = [(case.level or NOT_KNOWN, said[case.key].verdict) for case in cases if case.key in said]
    return [(level, verdict) for level, verdict in told if verdict is not None]


def _standing(agent: str, cases: Sequence[Case], said: Mapping[Key, Judged], judge: str) -> Standing:
    by_people, by_judge = _decided(cases), _scored(cases, said)
    verdicts = by_people or by_judge
    rates = _rates(verdicts)
    levels = sorted({case.level or NOT_KNOWN for case in cases}, key=level_order)
    return Standing(
        agent=agent,
        by=judge if by_judge else PEOPLE,
        judged=bool(by_judge),
        n=len(verdicts),
        undecided=len(cases) - len(verdicts),
        not_executable=sum(verdict is Verdict.NOT_EXECUTABLE for _, verdict in verdicts),
        over_all=rates.over_all,
        without_2=rates.without_2,
        levels={name: _rates([one for one in verdicts if one[0] == name]) for name in levels},
    )


def _rates(verdicts: Verdicts) -> Rates:
    successes = sum(verdict is Verdict.SUCCESS for _, verdict in verdicts)
    executable = sum(verdict is not Verdict.NOT_EXECUTABLE for _, verdict in verdicts)
    return Rates(wilson(successes, len(verdicts)), wilson(successes, executable))


def _best_first(standing: Standing) -> tuple[Any, ...]:
    rate = standing.over_all.value
    return rate is None, standing.judged, -(rate or 0), natural(standing.agent)


def ranking(pairs: Pairs, rule: Label2) -> Measure:
    """Return Kendall's tau-b of the agents' success rates by people and by a judge, from the result of `pair_cases`.

    Both rates of an agent cover the same cases: decided by people and scored by the judge, under that rule for label 2.
    Agents without such cases are left out. The interval draws tasks.
    """
    scored = [
        (case, human is Verdict.SUCCESS, said is Answer.SUCCESS)
        for case, human, said in pairs
        if said in (Answer.SUCCESS, Answer.NO_SUCCESS)
        and not (rule is Label2.EXCLUDED and human is Verdict.NOT_EXECUTABLE)
    ]
    agents = {name: number for number, name in enumerate(sorted({case.agent_name for case, _, _ in scored}))}
    tasks = {name: number for number, name in enumerate(sorted({case.task_id for case, _, _ in scored}))}
    people, judge, cases = np.zeros((3, len(tasks), len(agents)), np.int64)
    for case, by_people, by_judge in scored:
        place = tasks[case.task_id], agents[case.agent_name]
        people[place] += by_people
        judge[place] += by_judge
        cases[place] += 1
    return ranking_by_task(people, judge, cases)


# --- pairs of judges -------------------------------------------------------------------------------------------------

RIGHT, WRONG, SILENT = 0, 1, -1


@dataclass(frozen=True, slots=True)
class _Marked:
    """A judge, with one mark for each decided case (n,): same as people, different, or not scored."""

    judge: str
    marks: Integers

    @property
    def rate(self) -> float:
        scored = np.count_nonzero(self.marks != SILENT)
        return np.count_nonzero(self.marks == RIGHT) / scored if scored else 0.0


def versus(
    judges: Sequence[Judge],
    cases: Sequence[Case],
    *,
    benchmark: str = "",
    said: Mapping[int, Mapping[Key, Judged]] | None = None,
) -> list[Versus]:
    """Compare every two of these judges, on whether they say success where people do, under both rules.

    The judge with the highest agreement comes first, and only pairs of the first `MOST_JUDGES` are listed. Holm's
    correction is for all pairs of ``judges``, since the same cases choose the listed ones. ``said`` is the result
    of `find_judgments` by primary key of the judge, if the caller has it already.
    """
    if said is None:
        said = {judge.pk: find_judgments(judge, cases, benchmark=benchmark) for judge in judges}
    decided = [case for case in cases if case.final is not None]
    numbers: dict[Hashable, int] = {}
    shared = several_agents(decided)
    tasks = np.array([numbers.setdefault(c.task_id if shared else c.key, len(numbers)) for c in decided], np.int64)
    executable = np.array([case.final is not Verdict.NOT_EXECUTABLE for case in decided], bool)
    marked = [_Marked(str(judge), _marks(decided, said[judge.pk])) for judge in judges]
    best = sorted(marked, key=lambda each: (-each.rate, natural(each.judge)))[:MOST_JUDGES]
    rules = ((Label2.EXCLUDED, executable), (Label2.NOT_SUCCESS, np.ones_like(executable)))
    found = [
        _versus(first, second, rule, tasks, kept) for first, second in combinations(best, 2) for rule, kept in rules
    ]
    pairs = comb(len(judges), 2)
    families = {rule: iter(holm([each.p for each in found if each.human_label_2 is rule], pairs)) for rule in Label2}
    return [replace(each, p_holm=next(families[each.human_label_2])) for each in found]


def _marks(decided: Sequence[Case], said: Mapping[Key, Judged]) -> Integers:
    found = []
    for case in decided:
        told = said.get(case.key)
        if told is None or told.verdict is None:
            found.append(SILENT)
        else:
            right = (told.verdict is Verdict.SUCCESS) is (case.final is Verdict.SUCCESS)
            found.append(RIGHT if right else WRONG)
    return np.array(found, np.int64)


def _versus(first: _Marked, second: _Marked, rule: Label2, tasks: Integers, kept: NDArray[np.bool_]) -> Versus:
    """Compare on the ``kept`` (n,) cases that both have scored; equal ``tasks`` (n,) mean dependent cases."""
    shared = kept & (first.marks != SILENT) & (second.marks != SILENT)
    clusters, _ = count_cells(tasks[shared], (2 * first.marks + second.marks)[shared], 4)
    both, first_only, second_only, neither = clusters.sum(axis=0).tolist()
    same = np.stack([clusters[:, [0, 3]].sum(axis=1), clusters[:, [1, 2]].sum(axis=1)], axis=1)
    test = paired_test(clusters[:, [1, 2]])
    return Versus(
        first=first.judge,
        second=second.judge,
        human_label_2=rule,
        n=int(clusters.sum()),
        both=both,
        first_only=first_only,
        second_only=second_only,
        neither=neither,
        p=test.p,
        exact=test.exact,
        difference=paired_difference(both, first_only, second_only, neither, clusters=clusters),
        same=wilson(both + neither, int(clusters.sum()), same),  # verdicts are binary: two wrong judges agree
        by_task=test.by_task,
        permutations=test.permutations,
    )
