"""Figures over the attempts of an agent, by people and by each judge: mean, spread and pass@k.

An attempt is a submission: labels made elsewhere name none and are left out. The figures are those of the runner of
Mind2Web 2, but for tasks that some attempt lacks and verdicts that are missing: neither is taken for a failure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.judgments import find_judgments
from evaluations.comparison.results import Judged, Key
from evaluations.comparison.rows import PEOPLE
from evaluations.encoding import fields_to_json
from evaluations.naming import natural
from evaluations.statistics import Measure, Spread, pass_at_k, score_spread, success_spread
from judges.models import Judge

ATTEMPTS = "Of agents with several attempts, by people and each judge."


class Outcome(NamedTuple):
    success: bool
    score: float | None


@dataclass(frozen=True, slots=True)
class Attempts:
    """Two or more attempts of an agent, by people or by a judge; nothing that is missing counts as a failure."""

    # Scores are those of the tasks that have one in every attempt.
    agent: Annotated[str, "Without the number of an attempt."]
    by: str
    judged: Annotated[bool, "By a judge."]
    numbers: tuple[int, ...]  # of the attempts in which ``by`` has a verdict of some case
    tasks: Annotated[int, "With a verdict in every attempt: all figures are of these."]
    not_in_all: Annotated[int, "Tasks that some attempt does not have."]  # or has more than once
    without_verdict: Annotated[int, "Tasks of every attempt without a verdict in some."]
    success: Spread
    mean_score: Spread
    pass_at_k: Measure

    def as_json(self) -> dict[str, Any]:
        figures = zip(self.numbers, self.success.each, self.mean_score.each, strict=True)
        return fields_to_json(self, without=("numbers",)) | {
            "attempts": [
                {"attempt": number, "success": success.as_json(), "mean_score": score.as_json()}
                for number, success, score in figures
            ]
        }


def attempts(
    cases: Sequence[Case],
    judges: Sequence[Judge] = (),
    *,
    benchmark: str = "",
    said: Mapping[int, Mapping[Key, Judged]] | None = None,
) -> list[Attempts]:
    """Of every agent with two or more attempts among the cases: by people, then by each of the judges.

    There is nothing where fewer than two attempts have a verdict of theirs. ``said`` is what `judged` found, by the
    primary key of the judge, where the caller has it already.
    """
    agents = _several(cases)
    if not agents:
        return []
    if said is None:
        own = [case for each in agents.values() for case in each]
        said = {judge.pk: find_judgments(judge, own, benchmark=benchmark) for judge in judges}
    told = [(str(judge), _scored(said[judge.pk])) for judge in judges]
    return [each for agent in sorted(agents, key=natural) for each in _of_agent(agent, agents[agent], told)]


def _several(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """The cases of submissions, by agents that have several; imported labels have a submission without a state."""
    agents: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.submission is not None and (case.state is not None or not case.labels):
            agents[case.agent].append(case)
    return {agent: own for agent, own in agents.items() if len({case.attempt for case in own}) > 1}


def _scored(said: Mapping[Key, Judged]) -> dict[Key, Outcome]:
    verdicts = {key: (told.verdict, told.score) for key, told in said.items()}
    return {key: Outcome(v is Verdict.SUCCESS, score) for key, (v, score) in verdicts.items() if v is not None}


def _of_agent(agent: str, cases: Sequence[Case], told: Iterable[tuple[str, dict[Key, Outcome]]]) -> Iterator[Attempts]:
    decided = {case.key: Outcome(case.final is Verdict.SUCCESS, None) for case in cases if case.final is not None}
    for place, (by, outcomes) in enumerate([(PEOPLE, decided), *told]):
        found = _attempts(agent, by, place > 0, cases, outcomes)
        if found is not None:
            yield found


def _attempts(
    agent: str, by: str, is_judge: bool, cases: Sequence[Case], outcomes: Mapping[Key, Outcome]
) -> Attempts | None:
    verdicts: dict[int, dict[str, Outcome]] = defaultdict(dict)
    for case in cases:
        if case.key in outcomes:
            verdicts[case.attempt][case.task_id] = outcomes[case.key]
    if len(verdicts) < 2:
        return None
    numbers = sorted(verdicts)
    # A task that changed can be in an attempt twice: which one the other attempts are to be set beside is not known.
    times = Counter((case.attempt, case.task_id) for case in cases)
    every = {task for number, task in times if number in verdicts}
    common = [task for task in sorted(every) if all(times[number, task] == 1 for number in numbers)]
    tasks = [task for task in common if all(task in verdicts[number] for number in numbers)]
    rows = [[verdicts[number][task] for task in tasks] for number in numbers]
    successes = [[each.success for each in row] for row in rows]
    return Attempts(
        agent=agent,
        by=by,
        judged=is_judge,
        numbers=tuple(numbers),
        tasks=len(tasks),
        not_in_all=len(every) - len(common),
        without_verdict=len(common) - len(tasks),
        success=success_spread(successes),
        mean_score=score_spread(_scores(rows)),
        pass_at_k=pass_at_k(successes),
    )


def _scores(rows: Sequence[Sequence[Outcome]]) -> list[list[float]]:
    """The scores (k, n) of the tasks that have one in every attempt."""
    columns = [[each.score for each in column] for column in zip(*rows, strict=True)]
    whole = [[score for score in column if score is not None] for column in columns if None not in column]
    return [[column[place] for column in whole] for place in range(len(rows))]
