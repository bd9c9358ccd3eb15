"""How good the agents are, by people and by judges; and judges against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.breakdowns import NOT_KNOWN, level_order
from evaluations.comparison.judged import judged
from evaluations.comparison.results import Judged, Key, Standing, Versus
from evaluations.comparison.rows import PEOPLE
from evaluations.statistics import Measure, kendall_tau, mcnemar, paired_difference, wilson
from judges.models import Judge

Verdicts = Sequence[tuple[str, Verdict]]  # level and verdict of the cases that have one


def standings(cases: Sequence[Case], judge: Judge | None = None, *, benchmark: str = "") -> list[Standing]:
    """Every agent's success rate, the highest first; ``judge`` speaks for agents without a final verdict."""
    by_agent = _by_agent(cases)
    open_ones = [case for own in by_agent.values() if not _decided(own) for case in own]
    said = judged(judge, open_ones, benchmark=benchmark) if judge is not None else {}
    found = [_standing(agent, own, said, str(judge)) for agent, own in by_agent.items()]
    return sorted(found, key=_best_first)


def _by_agent(cases: Iterable[Case]) -> dict[str, list[Case]]:
    agents: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        agents[case.agent].append(case)
    return agents


def _decided(cases: Iterable[Case]) -> list[tuple[str, Verdict]]:
    return [(case.level or NOT_KNOWN, case.final) for case in cases if case.final is not None]


def _scored(cases: Iterable[Case], said: Mapping[Key, Judged]) -> list[tuple[str, Verdict]]:
    told = [(case.level or NOT_KNOWN, said[case.key].verdict) for case in cases if case.key in said]
    return [(level, verdict) for level, verdict in told if verdict is not None]


def _standing(agent: str, cases: Sequence[Case], said: Mapping[Key, Judged], judge: str) -> Standing:
    by_people, by_judge = _decided(cases), _scored(cases, said)
    verdicts = by_people or by_judge
    over_all, without_2 = _rates(verdicts)
    levels = sorted({case.level or NOT_KNOWN for case in cases}, key=level_order)
    return Standing(
        agent=agent,
        by=judge if by_judge else PEOPLE,
        n=len(verdicts),
        undecided=len(cases) - len(verdicts),
        not_executable=sum(verdict is Verdict.NOT_EXECUTABLE for _, verdict in verdicts),
        over_all=over_all,
        without_2=without_2,
        levels={name: _rates([one for one in verdicts if one[0] == name]) for name in levels},
    )


def _rates(verdicts: Verdicts) -> tuple[Measure, Measure]:
    """Over all, and without label 2."""
    successes = sum(verdict is Verdict.SUCCESS for _, verdict in verdicts)
    executable = sum(verdict is not Verdict.NOT_EXECUTABLE for _, verdict in verdicts)
    return wilson(successes, len(verdicts)), wilson(successes, executable)


def _best_first(standing: Standing) -> tuple[float, str]:
    rate = standing.over_all.value
    return (1.0 if rate is None else -rate), standing.agent


def ranking(
    standings: Sequence[Standing],
    judge: Judge,
    cases: Sequence[Case],
    *,
    benchmark: str = "",
    said: Mapping[Key, Judged] | None = None,
) -> Measure:
    """Kendall's tau-b of the agents' success rates by people and by the judge.

    People's are those of ``standings``, over all; the judge's are over the decided cases that it has scored. Agents
    without either are left out. ``said`` is what `judged` found, where the caller has it already.
    """
    said = judged(judge, cases, benchmark=benchmark) if said is None else said
    decided = _by_agent(case for case in cases if case.final is not None)
    pairs = []
    for standing in standings:
        people, theirs = standing.over_all.value, _rates(_scored(decided.get(standing.agent, ()), said))[0].value
        if people is not None and theirs is not None:  # the judge's are none where it speaks for people above
            pairs.append((people, theirs))
    return kendall_tau([people for people, _ in pairs], [theirs for _, theirs in pairs])


# --- judge against judge ---------------------------------------------------------------------------------------------


def versus(
    judges: Sequence[Judge],
    cases: Sequence[Case],
    *,
    benchmark: str = "",
    said: Mapping[int, Mapping[Key, Judged]] | None = None,
) -> list[Versus]:
    """Every two of these judges against each other, on whether they say success where people do.

    ``said`` is what `judged` found, by the primary key of the judge, where the caller has it already.
    """
    found = {judge.pk: judged(judge, cases, benchmark=benchmark) for judge in judges} if said is None else said
    right = {judge.pk: _right(cases, found[judge.pk]) for judge in judges}
    return [_versus(first, second, right[first.pk], right[second.pk]) for first, second in combinations(judges, 2)]


def _right(cases: Iterable[Case], said: Mapping[Key, Judged]) -> dict[Key, bool]:
    """By case, whether the judge says what people decided; the cases that both have a verdict for."""
    return {
        case.key: (told.verdict is Verdict.SUCCESS) is (case.final is Verdict.SUCCESS)
        for case in cases
        if case.final is not None and (told := said.get(case.key)) is not None and told.verdict is not None
    }


def _versus(first: Judge, second: Judge, right: Mapping[Key, bool], others: Mapping[Key, bool]) -> Versus:
    shared = [(right[key], others[key]) for key in right.keys() & others.keys()]
    cells = [shared.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))]
    both, first_only, second_only, neither = cells
    test = mcnemar(first_only, second_only)
    return Versus(
        first=str(first),
        second=str(second),
        n=len(shared),
        both=both,
        first_only=first_only,
        second_only=second_only,
        neither=neither,
        p=test.p,
        exact=test.exact,
        difference=paired_difference(both, first_only, second_only, neither),
        same=wilson(both + neither, len(shared)),  # of two verdicts each, who is wrong with another says the same
    )
