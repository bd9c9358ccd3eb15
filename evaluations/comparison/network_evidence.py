"""Decisions that were made after a look at what a judge goes by: there the judge and the people are not independent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from annotation.models import Adjudication, Membership
from annotation.models.events import Event
from evaluations.cases import Case
from evaluations.comparison.results import Judged, Key
from judges.disclosure import SEEN
from judges.models import Judge


def count_decided_after_evidence(judge: Judge, cases: Iterable[Case], said: Mapping[Key, Judged]) -> int:
    """How many cases that the judge has scored were decided by an adjudicator who had opened the network evidence.

    0 for judges whose findings that evidence does not show. The last decision counts.
    """
    if judge.kind is None or not judge.kind.shown_as_evidence:
        return 0
    scored = {
        case.trajectory: (case.submission, case.task_id)
        for case in cases
        if case.final is not None and case.key in said and said[case.key].verdict is not None
    }
    submissions = {pk for pk, _ in scored.values() if pk is not None}
    looks = _first_looks(submissions)
    if not looks:
        return 0
    members = Membership.objects.filter(submission__in=submissions).values_list("submission", "person", "pseudonym")
    called = {(submission, person): pseudonym for submission, person, pseudonym in members}
    decisions = Adjudication.objects.filter(trajectory__submission__in=submissions, decided_at__isnull=False)
    columns = ("trajectory", "adjudicator", "decided_at")
    last = {trajectory: (person, at) for trajectory, person, at in decisions.order_by("revision").values_list(*columns)}
    found = 0
    for trajectory, (submission, task_id) in scored.items():
        if submission is not None and trajectory in last:
            person, decided_at = last[trajectory]
            looked_at = looks.get((submission, called.get((submission, person), ""), task_id))
            found += looked_at is not None and decided_at is not None and looked_at < decided_at
    return found


def _first_looks(submissions: set[int]) -> dict[tuple[int, str, str], datetime]:
    """When somebody first looked, by submission, pseudonym and task id.

    An event that came in a bundle names no account, and the numbers of trajectories are those of its submitter; nor has
    anybody checked what is in it. One that names no task is passed over.
    """
    events = Event.objects.filter(submission__in=submissions, kind=SEEN).order_by("-at")
    found = {}
    for submission, pseudonym, payload, at in events.values_list("submission", "actor_pseudonym", "payload", "at"):
        task_id = payload.get("task_id") if isinstance(payload, dict) else None
        if submission is not None and isinstance(task_id, str):
            found[submission, pseudonym, task_id] = at  # the first look comes last, and stays
    return found
