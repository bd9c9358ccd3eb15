"""Documents of labels with their reasons, and of all other records that a verdict depends on.

Facts are those of `annotation.workflow.facts`, whose digests are in the events. ``people`` is the pseudonym of each
member by primary key: documents contain nothing else about a person. Queries grow by
one for every `AT_ONCE` rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

from django.db.models import Model, QuerySet

from annotation.models import (
    Adjudication,
    Flag,
    InformedRevision,
    Label,
    Membership,
    Redaction,
    Release,
    Reopening,
    Report,
    SamplePlan,
    SampleStop,
    SpotCheckDraw,
    Submission,
    Trajectory,
)
from annotation.models.events import instant
from annotation.models.plans import find_to_label
from annotation.models.states import State, current_labels, final_verdict, with_state
from annotation.workflow.facts import (
    adjudication_facts,
    draw_facts,
    informed_facts,
    label_facts,
    plan_facts,
    shown_facts,
)
from annotation.workflow.sampling import read_earlier
from evaluations.naming import natural
from evaluations.verifier.documents import Document

AT_ONCE = 2000  # rows whose findings are read in one query: databases limit the parameters
Pseudonyms = dict[int, str]
PARTS = (Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR, Membership.Role.MAINTAINER)
COLUMNS: dict[type, tuple[str, ...]] = {  # columns that a bundle copies; `auditing.history` reads them
    Flag: ("task_id", "annotator", "note", "flagged_at"),
    Report: ("task_id", "reporter", "kind", "note", "reported_at", "settled_at", "settled_by", "answer"),
    Release: ("task_id", "annotator", "reason", "released_at", "lifted_at"),
    Reopening: ("task_id", "reopened_by", "reason", "revision", "reopened_at"),
    Redaction: ("original", "revision", "boxes", "reason", "redacted", "size", "redacted_by", "redacted_at"),
}
ORDER: dict[type, tuple[str, ...]] = {
    Flag: ("trajectory__position", "flagged_at", "pk"),
    Report: ("trajectory__position", "reported_at", "pk"),
    Release: ("trajectory__position", "released_at", "pk"),
    Reopening: ("trajectory__position", "revision", "reopened_at", "pk"),
    Redaction: ("original", "revision"),
}
NULL_IF_EMPTY = ("answer", "redacted")
BY = {State.UNANIMOUS: "unanimous", State.ADJUDICATED: "adjudication"}


def members(submission: Submission) -> list[Document]:
    """Return all members of the review, by pseudonym: A2 before A10."""
    rows = submission.memberships.filter(role__in=PARTS)
    return [
        {
            "pseudonym": row.pseudonym,
            "role": str(row.role),
            "joined_at": instant(row.joined_at),
            "deactivated_at": instant(row.deactivated_at),
        }
        for row in sorted(rows, key=lambda row: natural(row.pseudonym))
    ]


def pseudonyms(submission: Submission) -> Pseudonyms:
    return dict(submission.memberships.values_list("person_id", "pseudonym"))


def labels(submission: Submission, people: Pseudonyms) -> list[Document]:
    rows = Label.objects.filter(assignment__trajectory__submission=submission)
    rows = rows.select_related("assignment__trajectory__task", "assignment__trajectory__submission", "attempt")
    rows = rows.defer("assignment__trajectory__submission__import_report")
    rows = rows.order_by("assignment__trajectory__position", "assignment__slot", "revision")
    return [
        {
            "annotator": people[row.assignment.annotator_id],
            "claimed_at": instant(row.assignment.claimed_at),
            "facts": label_facts(row),
        }
        for row in rows.prefetch_related("findings").iterator(AT_ONCE)
    ]


def informed(submission: Submission, people: Pseudonyms) -> list[Document]:
    rows = InformedRevision.objects.filter(label__assignment__trajectory__submission=submission)
    rows = rows.select_related("label__assignment__trajectory__task")
    return [
        {
            "annotator": people[row.label.assignment.annotator_id],
            "shown": shown_facts(row),
            "informed": informed_facts(row) if row.decided_at is not None else None,
        }
        for row in rows.order_by("label__assignment__trajectory__position", "label__assignment__slot")
    ]


def adjudications(submission: Submission, people: Pseudonyms) -> list[Document]:
    """Return the decided ones. Labels cannot change once one is opened, so the current labels were decided about."""
    said = _load_verdicts(submission, people)
    rows = _of(Adjudication, submission).filter(decided_at__isnull=False)
    rows = rows.select_related("trajectory__task").prefetch_related("findings")
    return [
        {
            "adjudicator": people[row.adjudicator_id],
            "opened_at": instant(row.opened_at),
            "facts": adjudication_facts(row),
            **_changed(said[row.trajectory_id], row.verdict),
        }
        for row in rows.order_by("trajectory__position", "revision").iterator(AT_ONCE)
    ]


def rows_as_they_are(model: type[Model], submission: Submission, people: Pseudonyms) -> list[Document]:
    """Return every row of a model of `COLUMNS`, in the order of `ORDER`."""
    if model is Redaction:
        rows = Redaction.objects.filter(submission=submission)
    else:
        rows = _of(model, submission).select_related("trajectory__task")
    return [_columns(row, people) for row in rows.order_by(*ORDER[model])]


def _columns(row: Any, people: Pseudonyms) -> Document:
    return {name: _column(row, name, people) for name in COLUMNS[type(row)]}


def _column(row: Any, name: str, people: Pseudonyms) -> Any:
    """Return a task by its id, a person by pseudonym, a time as text; null for an empty answer."""
    if name == "task_id":
        return row.trajectory.task.external_id
    if hasattr(row, f"{name}_id"):
        person = getattr(row, f"{name}_id")
        return None if person is None else people[person]
    value = getattr(row, name)
    if name in NULL_IF_EMPTY:
        return value or None
    return instant(value) if isinstance(value, datetime) else value


def draws(submission: Submission) -> list[Document]:
    rows = SpotCheckDraw.objects.filter(submission=submission).order_by("number")
    return [{"facts": draw_facts(row), "drawn_at": instant(row.drawn_at)} for row in rows]


def sample_plan(submission: Submission, people: Pseudonyms) -> tuple[Document | None, list[Document] | None]:
    """Return sample-plan.json and the lines of sample-items.jsonl, sorted by task; None without a plan."""
    plan = SamplePlan.objects.filter(submission=submission).first()
    if plan is None:
        return None, None
    facts = plan_facts(plan)
    columns = ("task_id", "stratum", "judged", "probability", "position")
    items = [dict(zip(columns, item, strict=True)) for item in facts.pop("items")]
    stated = facts | {"planned_by": people[plan.planned_by_id], "planned_at": instant(plan.planned_at)}
    if (earlier := read_earlier(submission)) is not None:
        stated["earlier"] = earlier
    if (stop := SampleStop.objects.filter(plan=plan).first()) is not None:
        by, at = people[stop.stopped_by_id], instant(stop.stopped_at)
        stated["stopped"] = {"labelled": stop.labelled, "stopped_by": by, "stopped_at": at}
    return stated, items


def final_verdicts(submission: Submission) -> list[Document]:
    """Return the verdicts of the trajectories that are to be labelled, in the order of the submission."""
    found = []
    rows = find_to_label(with_state(Trajectory.objects.filter(submission=submission).select_related("task")))
    for row in rows.order_by("position"):
        verdict = final_verdict(row)
        found.append(
            {
                "task_id": row.task.external_id,
                "state": row.state,
                "verdict": None if verdict is None else int(verdict),
                "by": BY.get(State(row.state)),
            }
        )
    return found


def _load_verdicts(submission: Submission, people: Pseudonyms) -> dict[int, dict[str, int]]:
    """Return the verdict of each annotator on each trajectory, by its primary key."""
    columns = ("assignment__trajectory", "assignment__annotator", "verdict")
    rows = current_labels().filter(assignment__trajectory__submission=submission)
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for trajectory, annotator, verdict in rows.order_by("assignment__slot").values_list(*columns):
        found[trajectory][people[annotator]] = verdict
    return found


def _changed(said: dict[str, int], verdict: int | None) -> Document:
    """Return the labels before an adjudication, and whether it differs from their majority."""
    most = [each for each, times in Counter(said.values()).items() if 2 * times > len(said)]
    majority = most[0] if most else None
    return {"labels": said, "majority": majority, "changed": None if majority is None else verdict != majority}


def _of(model: Any, submission: Submission) -> QuerySet[Any]:
    rows: QuerySet[Any] = model.objects.filter(trajectory__submission=submission)
    return rows
