"""Figures over the attempts of an agent, by people and by each judge: mean, spread, pass@k and pass^k.

An attempt is a submission: imported labels name none and are left out. The figures are those of the runner of Mind2Web
2, except for tasks missing from some attempt and missing verdicts: neither counts as a failure.
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
from evaluations.statistics import Measure, Spread, all_of_k, any_of_k, pass_at_k, score_spread, success_spread
from judges.models import Judge

MOST_K = 10  # above, only the number of attempts is listed: every k has intervals
ATTEMPTS = "For agents with several attempts, by people and each judge."


class Outcome(NamedTuple):
    success: bool
    score: float | None


@dataclass(frozen=True, slots=True)
class OfK:
    """For k of the attempts, drawn at random: the chance that any of them succeeds, and that all do, over tasks."""

    k: int
    pass_at_k: Measure
    pass_hat_k: Measure


@dataclass(frozen=True, slots=True)
class Attempts:
    """Two or more attempts of an agent, by people or by a judge; missing verdicts do not count as failures."""

    # Scores are those of the tasks with a score in every attempt.
    agent: Annotated[str, "The agent's name without the number of the attempt."]
    by: str
    judged: Annotated[bool, "By a judge."]
    numbers: tuple[int, ...]  # attempts in which ``by`` has at least one verdict
    tasks: Annotated[int, "Tasks with a verdict in every attempt: all figures are about these."]
    not_in_all: Annotated[int, "Tasks that are missing from some attempt."]  # or occur in one more than once
    without_verdict: Annotated[int, "Tasks of every attempt that lack a verdict in some."]
    success: Spread
    mean_score: Spread
    pass_at_k: Measure
    pass_hat_k: Annotated[Measure, "pass^k: the share of the tasks in which all of the k attempts succeeded."]
    by_k: list[OfK]

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
    """Return figures of every agent with two or more attempts among the cases: by people, then by each of the judges.

    People or a judge with verdicts in fewer than two attempts have no figures. ``said`` is the result of
    `find_judgments` by primary key of the judge, if the caller has it already.
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
    """Return cases of submissions, by agents with several; linked imported labels have a submission but no state."""
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
    # An attempt can have two versions of a changed task: it is unknown which one corresponds to other attempts.
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
        pass_hat_k=all_of_k(successes, len(numbers)),
        by_k=[OfK(k, any_of_k(successes, k), all_of_k(successes, k)) for k in _listed(len(numbers))],
    )


def _listed(attempts: int) -> list[int]:
    return [*range(1, min(attempts, MOST_K) + 1), *([attempts] if attempts > MOST_K else [])]


def _scores(rows: Sequence[Sequence[Outcome]]) -> list[list[float]]:
    """Return the scores (k, n) of the tasks that have a score in every attempt."""
    columns = [[each.score for each in column] for column in zip(*rows, strict=True)]
    whole = [[score for score in column if score is not None] for column in columns if None not in column]
    return [[column[place] for column in whole] for place in range(len(rows))]
