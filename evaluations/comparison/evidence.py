"""Evidence of judgments: the cited step, findings about key points, decisions after the network evidence was opened.

Evidence is large, so only the required columns of the required judgments are loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import Count, Max, Min, Q, QuerySet

from annotation.models import Adjudication, AdjudicationFinding, KeyPointFinding, Label, Membership
from annotation.models.events import Event
from annotation.models.states import current_labels
from annotation.records import Finding
from evaluations.cases import Case
from evaluations.comparison.results import Judged, Key, KeyPoints
from evaluations.statistics import Measure, clusters_of, kappa_with_interval, wilson
from judges.disclosure import SEEN
from judges.ensembles import find_members
from judges.models import Judge, Judgment

AT_ONCE = 10_000  # judgments in one query: databases limit the parameters
DECIDED: dict[str | None, bool] = {Finding.MET.value: True, Finding.UNMET.value: False}
Findings = dict[int | None, dict[str, bool]]  # the result of `findings`
NONE_SHARED = "people and the judge have decided no key point that both know"


def cited_steps(judgments: Collection[int]) -> dict[int, int]:
    """Return the first step that each judgment cites, by its primary key; judgments that cite none are left out.

    That is the most relevant screenshot among those used for the verdict (the first, if several are equally relevant),
    or else the first step named as proof of a key point.
    """
    found: dict[int, int] = {}
    for pk, steps, points in load_evidence(judgments, "evidence__steps", "evidence__key_points"):
        relevant = _most_relevant(steps or ())
        step = _first_named(points or ()) if relevant is None else relevant
        if step is not None:
            found[pk] = step
    return found


def load_evidence(judgments: Collection[int], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the primary key of each judgment with these columns, or keys of its evidence."""
    wanted = list(judgments)
    for start in range(0, len(wanted), AT_ONCE):
        rows = Judgment.objects.filter(pk__in=wanted[start : start + AT_ONCE]).order_by()
        yield from rows.values_list("pk", *columns).iterator()


def _most_relevant(steps: Sequence[Mapping[str, Any]]) -> int | None:
    kept = [(-(step.get("relevance") or 0), step["step"]) for step in steps if step.get("kept")]
    return min(kept)[1] if kept else None


def _first_named(points: Sequence[Mapping[str, Any]]) -> int | None:
    return next((step for point in points for step in point.get("steps") or ()), None)


# --- key points ------------------------------------------------------------------------------------------------------


def key_points(cases: Sequence[Case], said: Mapping[Key, Judged], people: Findings | None = None) -> KeyPoints:
    """Compare the key points that both people and the judge call met or unmet, on cases with a final verdict.

    The finding of people is that of the adjudication, or else the one that all labels share. Key points match if their
    texts are equal ignoring white space and case; key points that the judge invented are left out. ``people`` is the
    result of `findings`, if the caller has it already.
    """
    told = {
        found.judgment: case
        for case in cases
        if is_reviewed(case) and (found := said.get(case.key)) is not None and found.judgment is not None
    }
    people = findings(cases) if people is None and told else people or {}
    found_of: list[tuple[str, int]] = []
    for judgment, points in load_evidence([pk for pk in told if pk is not None], "evidence__key_points"):
        case = told[judgment]
        by_text = people.get(case.trajectory, {})
        decided = _decided(points or ()).items()
        found_of += [(case.task_id, 2 * by_text[text] + met) for text, met in decided if text in by_text]
    return _tabulated(found_of)


def findings(cases: Sequence[Case]) -> Findings:
    """Return whether each accepted key point is met, by trajectory and `plain` text; undecided ones are left out."""
    labels = {case.trajectory: len(case.labels) for case in cases if is_reviewed(case)}
    submissions = {case.submission for case in cases if is_reviewed(case)}
    found: dict[int | None, dict[str, bool]] = {trajectory: {} for trajectory in labels}
    for trajectory, text, finding, number in _shared_by_labels(submissions):
        if number == labels.get(trajectory):
            _note(found[trajectory], text, finding)
    for trajectory, text, finding in _of_adjudications(submissions):
        if trajectory in found:
            _note(found[trajectory], text, finding)
    return found


@lru_cache(maxsize=100_000)  # the labels and judgments of a task repeat the same few texts
def plain(text: str) -> str:
    """Return the text of a key point without differences in white space and case."""
    return " ".join(text.split()).casefold()


def is_reviewed(case: Case) -> bool:
    """Return False for a case only linked to a trajectory: findings of a review in progress must stay hidden."""
    return case.state is not None and case.final is not None


def _note(found: dict[str, bool], text: str, finding: str) -> None:
    """Save a finding; an unclear finding of the adjudication removes the one that the labels share."""
    if finding in DECIDED:
        found[plain(text)] = DECIDED[finding]
    else:
        found.pop(plain(text), None)


def _in_use(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.filter(key_point__accepted_at__isnull=False, key_point__retired_at__isnull=True)


def _shared_by_labels(submissions: Collection[int | None]) -> Iterator[tuple[int, str, str, int]]:
    """Yield trajectory, text, finding and number of labels with it, if all findings of current labels agree."""
    chosen = Q(assignment__trajectory__submission__in=submissions)
    revised = Label.objects.filter(chosen, revision__gt=1)
    rows = _in_use(KeyPointFinding.objects.filter(label__assignment__trajectory__submission__in=submissions))
    if revised.exists():
        rows = rows.filter(label__in=current_labels().filter(chosen))
    grouped = rows.order_by().values_list("label__assignment__trajectory", "key_point__text")
    counted = grouped.annotate(Min("finding"), Max("finding"), Count("pk"), first=Min("key_point")).order_by("first")
    for trajectory, text, low, high, number, _ in counted:
        if low == high:
            yield trajectory, text, low, number


def _of_adjudications(submissions: Collection[int | None]) -> Iterator[tuple[int, str, str]]:
    """Yield trajectory, text and finding of the last decision of each trajectory."""
    rows = _in_use(AdjudicationFinding.objects.filter(adjudication__trajectory__submission__in=submissions))
    columns = ("adjudication__trajectory", "adjudication__revision", "key_point__text", "finding")
    decided = rows.filter(adjudication__decided_at__isnull=False).order_by("-adjudication__revision", "key_point_id")
    last: dict[int, int] = {}
    for trajectory, revision, text, finding in decided.values_list(*columns):
        if last.setdefault(trajectory, revision) == revision:
            yield trajectory, text, finding


def _decided(points: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Return the met and unmet findings of a judgment, by `plain` text; of equal texts the first."""
    found: dict[str, bool] = {}
    for point in points:
        if (finding := point.get("finding")) in DECIDED:
            found.setdefault(plain(point["text"]), DECIDED[finding])
    return found


def _tabulated(found: Sequence[tuple[str, int]]) -> KeyPoints:
    """Count key points from their tasks and cells; the cell is 2 if people say met, plus 1 if the judge does.

    Key points of a task depend on each other, within one trajectory and between agents: intervals draw tasks.
    """
    if not found:
        return KeyPoints(Measure.missing(NONE_SHARED), Measure.missing(NONE_SHARED), ((0, 0), (0, 0)))
    tasks = clusters_of(found, 4)
    both_unmet, judge_met, people_met, both_met = tasks.sum(axis=0).tolist()
    table = ((both_unmet, judge_met), (people_met, both_met))
    same = np.stack([tasks[:, [0, 3]].sum(axis=1), tasks[:, [1, 2]].sum(axis=1)], axis=1)
    return KeyPoints(wilson(both_unmet + both_met, len(found), same), kappa_with_interval(table, tasks), table)


# --- decisions after the network evidence -----------------------------------------------------------------------------


def count_decided_after_evidence(judge: Judge, cases: Iterable[Case], said: Mapping[Key, Judged]) -> int:
    """Count the scored cases decided by an adjudicator who had opened the network evidence.

    0 for judges whose findings that evidence does not show; an ensemble is one whose findings it shows if a member is,
    or if its members are unknown. The last decision counts.
    """
    members = find_members(judge)
    if members is not None and not any(one.kind and one.kind.shown_as_evidence for one in (judge, *members)):
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
    people = Membership.objects.filter(submission__in=submissions).values_list("submission", "person", "pseudonym")
    called = {(submission, person): pseudonym for submission, person, pseudonym in people}
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
    """Find the first time of opening, by submission, pseudonym and task id.

    An event from a bundle names no account, has trajectory numbers of the submitting instance, and its payload is not
    validated. Events without a task id are skipped.
    """
    events = Event.objects.filter(submission__in=submissions, kind=SEEN).order_by("-at")
    found = {}
    for submission, pseudonym, payload, at in events.values_list("submission", "actor_pseudonym", "payload", "at"):
        task_id = payload.get("task_id") if isinstance(payload, dict) else None
        if submission is not None and isinstance(task_id, str):
            found[submission, pseudonym, task_id] = at  # descending order: the first time is written last
    return found
