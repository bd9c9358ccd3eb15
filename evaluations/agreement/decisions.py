"""Figures of adjudications and spot checks, and opinions of annotators after seeing judgments."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from annotation.models.states import State
from annotation.records import Verdict
from evaluations.agreement.measuring import hits_of_tasks, made_elsewhere, rate, share, table
from evaluations.agreement.results import (
    JUDGES,
    REASONS,
    Adjudications,
    ChangedOf,
    Informed,
    InformedCounts,
    Opinion,
    Relation,
)
from evaluations.cases import BlindLabel, Case, InformedOpinion
from evaluations.statistics import Measure, Sample, hits_left, wilson

NEVER_BLIND = "no drawn spot check was judged blind"


def adjudications(cases: Iterable[Case]) -> Adjudications | None:
    """Return the figures of QA, or None if nothing was reviewed here."""
    reviewed = [case for case in cases if not made_elsewhere(case)]
    if not reviewed:
        return None
    adjudicated = [case for case in reviewed if case.adjudicated is not None]
    checked = [case for case in reviewed if _is_checked_blind(case)]
    draws = _draws(reviewed)
    unknown = sum(draw.unchecked for draw in draws if not draw.checked)
    return Adjudications(
        adjudicated=len(adjudicated),
        disputes=sum(case.complete and not case.unanimous for case in reviewed),
        unanimous=sum(case.unanimous for case in reviewed),
        changed=_changed(adjudicated),
        changed_of=ChangedOf(*(_changed([e for e in adjudicated if _reason(e) == reason]) for reason in REASONS)),
        drawn=sum(case.drawn is True for case in reviewed),
        # Each draw is a simple random sample of trajectories, so cases of a task need not be kept together.
        missed=rate(sum(map(_is_missed, checked)), len(checked), NEVER_BLIND),
        unchecked=sum(draw.unchecked for draw in draws),
        unknown=unknown,
        expected_missed=_expected(draws),
    )


def _changed(adjudicated: Sequence[Case]) -> Measure:
    with_majority = [(case, most) for case in adjudicated if (most := _majority(case)) is not None]
    return share(
        [(case, most is not case.adjudicated) for case, most in with_majority],
        "no case with a majority was adjudicated" if adjudicated else "no such case was adjudicated",
    )


def _majority(case: Case) -> Verdict | None:
    [(verdict, times)] = Counter(label.verdict for label in case.labels).most_common(1)
    return verdict if 2 * times > len(case.labels) else None


def _reason(case: Case) -> str:
    """Return why an adjudicator had to decide the case; "" if a maintainer asked for the adjudication."""
    if not case.unanimous:
        return "disputes"
    if case.drawn:
        return "drawn"
    return "flagged" if case.flagged else ""


# --- unchecked cases -------------------------------------------------------------------------------------------------


class _Draw:
    def __init__(self) -> None:
        self.checked = self.missed = self.unchecked = 0

    def add(self, case: Case) -> None:
        self.unchecked += case.state is State.UNANIMOUS
        if _is_checked_blind(case):
            self.checked += 1
            self.missed += _is_missed(case)


def _is_checked_blind(case: Case) -> bool:
    """Return whether it was drawn at random and adjudicated without seeing a label."""
    return case.drawn is True and case.unanimous and case.adjudicated_blind is not None


def _is_missed(case: Case) -> bool:
    return case.labels[0].verdict is not case.adjudicated_blind


def _draws(reviewed: Iterable[Case]) -> list[_Draw]:
    """Return one draw for each submission and draw number, because their rates and people differ."""
    found: dict[tuple[int | None, int | None], _Draw] = defaultdict(_Draw)
    for case in reviewed:
        found[case.submission, case.draw].add(case)
    return list(found.values())


def _expected(draws: Sequence[_Draw]) -> Measure:
    """Return the sum over draws of rate times number of unchecked cases, with the interval of `hits_left`.

    A draw without a blind check has no rate. It is left out, and counted in `Adjudications.unknown`.
    """
    known = [draw for draw in draws if draw.checked]
    number = sum(draw.unchecked for draw in known)
    if not known or (not number and any(draw.unchecked for draw in draws)):
        return Measure.missing(NEVER_BLIND)
    return hits_left([Sample(draw.unchecked, draw.missed, draw.checked) for draw in known])


# --- opinions after seeing judgments ----------------------------------------------------------------------------------

UNDECIDED = "nobody has decided"

Shown = tuple[Case, BlindLabel, InformedOpinion]


def count_opinions(cases: Iterable[Case]) -> Informed | None:
    """Count the opinions; None if no annotator was shown judgments."""
    shown = [(case, said, said.informed) for case in cases for said in case.labels if said.informed is not None]
    if not shown:
        return None
    groups = {judges: [each for each in shown if _compare(each[1], each[2]) == judges] for judges in JUDGES}
    counts = [_count_group(judges, found) for judges, found in groups.items() if found]
    return Informed([_count_group("all", shown), *counts], _list_opinions(shown))


def _compare(said: BlindLabel, opinion: InformedOpinion) -> Relation:
    """Return the element of `JUDGES` for the relation of the judges' verdicts to the label."""
    if not opinion.judges:
        return "no verdict"
    same = [verdict is said.verdict for verdict in opinion.judges]
    return "agree" if all(same) else "divided" if any(same) else "disagree"


def _count_group(judges: Relation, shown: Sequence[Shown]) -> InformedCounts:
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
