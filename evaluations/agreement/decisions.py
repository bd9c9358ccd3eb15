"""What QA changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from annotation.models.states import State
from annotation.records import Verdict
from evaluations.agreement.measuring import made_elsewhere, rate
from evaluations.agreement.results import Adjudications
from evaluations.cases import Case
from evaluations.statistics import Measure


def adjudications(cases: Iterable[Case]) -> Adjudications | None:
    """None where nothing was reviewed here."""
    reviewed = [case for case in cases if not made_elsewhere(case)]
    if not reviewed:
        return None
    with_majority = [
        (most, case.adjudicated)
        for case in reviewed
        if case.adjudicated is not None and (most := _majority(case)) is not None
    ]
    checked = [case for case in reviewed if case.drawn and case.unanimous and case.adjudicated_blind is not None]
    missed = rate(
        sum(case.labels[0].verdict is not case.adjudicated_blind for case in checked),
        len(checked),
        "no drawn spot check was judged blind",
    )
    unchecked = sum(case.state is State.UNANIMOUS for case in reviewed)
    return Adjudications(
        adjudicated=sum(case.adjudicated is not None for case in reviewed),
        disputes=sum(case.complete and not case.unanimous for case in reviewed),
        changed=rate(
            sum(most is not decided for most, decided in with_majority),
            len(with_majority),
            "no case with a majority was adjudicated",
        ),
        drawn=sum(case.drawn is True for case in reviewed),
        missed=missed,
        unchecked=unchecked,
        expected_missed=_times(missed, unchecked),
    )


def _majority(case: Case) -> Verdict | None:
    """What more than half of the labels say."""
    [(verdict, times)] = Counter(label.verdict for label in case.labels).most_common(1)
    return verdict if 2 * times > len(case.labels) else None


def _times(share: Measure, number: int) -> Measure:
    """The rate and its interval as numbers of cases."""
    if share.value is None or share.low is None or share.high is None:
        return Measure.missing(share.undefined, share.n)
    return Measure(share.value * number, share.n, low=share.low * number, high=share.high * number)
