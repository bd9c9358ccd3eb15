"""Decisions that were made after a look at what a judge goes by: there the judge and the people are not independent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from annotation.models import Adjudication
from annotation.models.events import Event
from evaluations.cases import Case
from evaluations.comparison.results import Judged, Key
from judges.models import Judge
from judges.network_evidence import SEEN
from judges.scorers.network_trace.judge import NAME


def decided_after_looking(judge: Judge, cases: Iterable[Case], said: Mapping[Key, Judged]) -> int:
    """How many cases that the judge has scored were decided by an adjudicator who had opened the network evidence.

    0 for judges of any other scorer than the one whose checks that evidence shows. The last decision counts.
    """
    if judge.scorer != NAME:
        return 0
    scored = {
        case.trajectory: case.submission
        for case in cases
        if case.final is not None and case.key in said and said[case.key].verdict is not None
    }
    submissions = {pk for pk in scored.values() if pk is not None}
    events = Event.objects.filter(submission__in=submissions, kind=SEEN).order_by("-at")
    rows = events.values_list("payload__trajectory", "actor", "at")  # the first look comes last, and stays
    looks = {(trajectory, actor): at for trajectory, actor, at in rows}
    if not looks:
        return 0
    decisions = Adjudication.objects.filter(trajectory__submission__in=submissions, decided_at__isnull=False)
    columns = ("trajectory", "adjudicator", "decided_at")
    last = {trajectory: (person, at) for trajectory, person, at in decisions.order_by("revision").values_list(*columns)}
    return sum(
        (trajectory, person) in looks and looks[trajectory, person] < at
        for trajectory, (person, at) in last.items()
        if trajectory in scored
    )
