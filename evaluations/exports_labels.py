"""Labels as files: the published list of human labels, and JSON Lines with every label and its reasons.

Their JSON Schemas are schemas/human-label.schema.json and schemas/labels.schema.json (for each line).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from annotation.label_fields import ATTEMPT_FIELDS, CONTENT_ORDER, LABEL_FIELDS
from annotation.models import (
    Adjudication,
    AdjudicationFinding,
    Flag,
    KeyPointFinding,
    Label,
    Report,
    Submission,
    Trajectory,
)
from annotation.models.states import FINAL, final_verdict, with_state
from annotation.records import Problem

FORMAT = "webverdict-labels-v1"
AT_ONCE = 500  # trajectories in memory with their labels
DECISION_COLUMNS = (
    "pk",
    "revision",
    "revision_reason",
    *LABEL_FIELDS,
    "active_seconds",
    "steps_seen",
)
LABEL_COLUMNS = (
    *DECISION_COLUMNS,
    "created_at",
    "assignment__annotator",
    "assignment__slot",
    *(f"attempt__{name}" for name in ("pk", *ATTEMPT_FIELDS)),
    *(f"informed__{name}" for name in ("judgments", "shown_at", "verdict", "reason", "decided_at")),
)
ADJUDICATION_COLUMNS = (*DECISION_COLUMNS, "adjudicator", "blind", "criterion", "opened_at", "decided_at")
FINDING_COLUMNS = ("key_point__text", "finding", "step")
REPORT_COLUMNS = ("reporter", "kind", "note", "reported_at", "settled_at", "answer")

encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Rows = dict[int, list[Any]]  # named tuples of a query, by a key


def human_label(submission: Submission, missing: Sequence[Problem]) -> Iterator[bytes]:
    """Yield one object for each task with the final verdict as "0", "1" or "2", in the order of the submission.

    A partial export has only the tasks with a final verdict. It is an object that says so, because a list cannot.
    """
    key = f"{submission.agent.name}_human_label"
    columns = ("state", "decided", "lowest", "task__external_id", "task__text")
    labels = [
        {
            "task_id": trajectory.task__external_id,
            "confirmed_task": trajectory.task__text,
            key: str(int(verdict)),
        }
        for trajectory in _final(submission).values_list(*columns, named=True).iterator()
        if (verdict := final_verdict(trajectory)) is not None
    ]
    document = {"partial": True, "missing": _as_json(missing), "labels": labels} if missing else labels
    yield json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n"


def label_lines(submission: Submission, missing: Sequence[Problem]) -> Iterator[bytes]:
    """Yield a header, then for every trajectory with a final verdict its labels, flags, reports and adjudications with
    all revisions, and informed opinions of annotators. People are pseudonyms, times are UTC.

    Each batch of trajectories takes six queries.
    """
    yield _line(_header(submission, missing))
    for batch in _batches(submission):
        yield b"".join(map(_line, batch))


def records(submission: Submission) -> Iterator[dict[str, Any]]:
    """Yield the lines of `label_lines` after the header, as dictionaries."""
    for batch in _batches(submission):
        yield from batch


def _batches(submission: Submission) -> Iterator[Iterator[dict[str, Any]]]:
    people = dict(submission.memberships.values_list("person_id", "pseudonym"))
    hidden = () if submission.process_labels else ("process",)  # files without process labels stay as they were
    columns = ("pk", "task__external_id", "task__version", "task__text")
    trajectories = _final(submission).values_list(*columns, named=True).iterator(chunk_size=AT_ONCE)
    while batch := list(islice(trajectories, AT_ONCE)):
        yield _batch_records(batch, people, hidden)


def _batch_records(
    trajectories: Sequence[Any], people: dict[int, str], hidden: Sequence[str]
) -> Iterator[dict[str, Any]]:
    rows = _load_records([trajectory.pk for trajectory in trajectories])
    for trajectory in trajectories:
        task = {"task_id": trajectory.task__external_id}
        version = {"task_version": trajectory.task__version, "task_digest": text_digest(trajectory.task__text)}
        labels = rows.labels[trajectory.pk]
        for label in labels:
            findings = rows.label_findings[label.pk]
            fields = _without(_label(label, findings, people), hidden)
            yield {"type": "label"} | task | fields | version
        for label in labels:
            if label.informed__shown_at is not None:
                yield {"type": "informed"} | task | _informed(label, people) | version
        for flag in rows.flags[trajectory.pk]:
            yield {"type": "flag"} | task | _flag(flag, people) | version
        for report in rows.reports[trajectory.pk]:
            yield {"type": "report"} | task | _report(report, people) | version
        for adjudication in rows.adjudications[trajectory.pk]:
            findings = rows.adjudication_findings[adjudication.pk]
            fields = _without(_adjudication(adjudication, findings, people), hidden)
            yield {"type": "adjudication"} | task | fields | version


def _without(fields: dict[str, Any], hidden: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in hidden}


@dataclass(frozen=True, slots=True)
class _Records:
    """Rows of some trajectories in the order of the file: by trajectory, findings by their label or adjudication."""

    labels: Rows
    label_findings: Rows
    flags: Rows
    reports: Rows
    adjudications: Rows
    adjudication_findings: Rows


def _load_records(trajectories: Sequence[int]) -> _Records:
    labels = Label.objects.filter(assignment__trajectory__in=trajectories).order_by("assignment__slot", "revision")
    label_findings = KeyPointFinding.objects.filter(label__assignment__trajectory__in=trajectories)
    flags = Flag.objects.filter(trajectory__in=trajectories).order_by("flagged_at", "pk")
    reports = Report.objects.filter(trajectory__in=trajectories).order_by("reported_at", "pk")
    adjudications = Adjudication.objects.filter(trajectory__in=trajectories, decided_at__isnull=False)
    adjudication_findings = AdjudicationFinding.objects.filter(
        adjudication__trajectory__in=trajectories, adjudication__decided_at__isnull=False
    )
    return _Records(
        labels=_load_grouped(labels, "assignment__trajectory", *LABEL_COLUMNS),
        label_findings=_load_grouped(label_findings, "label", *FINDING_COLUMNS),
        flags=_load_grouped(flags, "trajectory", "annotator", "note", "flagged_at"),
        reports=_load_grouped(reports, "trajectory", *REPORT_COLUMNS),
        adjudications=_load_grouped(adjudications.order_by("revision"), "trajectory", *ADJUDICATION_COLUMNS),
        adjudication_findings=_load_grouped(adjudication_findings, "adjudication", *FINDING_COLUMNS),
    )


def _load_grouped(rows: QuerySet[Any], key: str, *columns: str) -> Rows:
    """Return named tuples of the columns instead of model instances, by the value of ``key``."""
    grouped: Rows = defaultdict(list)
    for row in rows.values_list(key, *columns, named=True):
        grouped[row[0]].append(row)
    return grouped


def text_digest(text: str) -> str:
    """Return the SHA-256 of a task's text in UTF-8, which identifies the version."""
    return hashlib.sha256(text.encode()).hexdigest()


def _final(submission: Submission) -> QuerySet[Any]:
    final = [state.value for state in FINAL]
    return with_state(Trajectory.objects.filter(submission=submission)).filter(state__in=final).order_by("position")


def _header(submission: Submission, missing: Sequence[Problem]) -> dict[str, Any]:
    return {
        "type": "header",
        "format": FORMAT,
        "benchmark": submission.benchmark.stated_slug,
        "agent": submission.agent.name,
        "attempt": submission.attempt,
        "protocol_version": submission.protocol_version,
        "required_labels": submission.required_labels,
        **({"process_labels": True} if submission.process_labels else {}),
        "frozen_at": _time(submission.frozen_at),
        "trajectories": submission.trajectories.count(),
        "final": _final(submission).count(),
        "partial": bool(missing),
        "missing": _as_json(missing),
    }


def _label(label: Any, findings: Sequence[Any], people: dict[int, str]) -> dict[str, Any]:
    return {
        "annotator": people[label.assignment__annotator],
        "slot": label.assignment__slot,
        **_decision(label, findings),
        "attempt": _attempt(label),
        "created_at": _time(label.created_at),
    }


def _informed(label: Any, people: dict[int, str]) -> dict[str, Any]:
    """Return the informed opinion that follows a blind label; nulls if the annotator looked but did not decide."""
    decided = label.informed__decided_at is not None
    names = ("judge", "fingerprint", "verdict")
    return {
        "annotator": people[label.assignment__annotator],
        "slot": label.assignment__slot,
        "follows_revision": label.revision,
        "judgments": [{name: judgment[name] for name in names} for judgment in label.informed__judgments],
        "shown_at": _time(label.informed__shown_at),
        "verdict": label.informed__verdict,
        "changed": label.informed__verdict != label.verdict if decided else None,
        "reason": label.informed__reason or None,
        "decided_at": _time(label.informed__decided_at),
    }


def _adjudication(adjudication: Any, findings: Sequence[Any], people: dict[int, str]) -> dict[str, Any]:
    return {
        "adjudicator": people[adjudication.adjudicator],
        "blind": adjudication.blind,
        "criterion": adjudication.criterion or None,
        **_decision(adjudication, findings),
        "opened_at": _time(adjudication.opened_at),
        "decided_at": _time(adjudication.decided_at),
    }


def _flag(flag: Any, people: dict[int, str]) -> dict[str, Any]:
    return {"annotator": people[flag.annotator], "note": flag.note, "flagged_at": _time(flag.flagged_at)}


def _report(report: Any, people: dict[int, str]) -> dict[str, Any]:
    return {
        "reporter": people[report.reporter],
        "kind": report.kind,
        "note": report.note,
        "reported_at": _time(report.reported_at),
        "settled_at": _time(report.settled_at),
        "answer": report.answer or None,
    }


def _attempt(label: Any) -> dict[str, Any] | None:
    """Return the annotator's own attempt (protocol version 2 only); ``steps`` is null if they could not do the task."""
    if label.attempt__pk is None:
        return None
    return {
        "steps": label.attempt__steps,
        "notes": label.attempt__notes,
        "link": label.attempt__link or None,
        "path": label.attempt__path,
        "seconds": label.attempt__seconds,
    }


def _decision(decision: Any, findings: Sequence[Any]) -> dict[str, Any]:
    """Return fields of labels and adjudications; null: does not apply, or not measured (active_seconds, steps_seen)."""
    fields = {name: getattr(decision, name) for name in LABEL_FIELDS} | {
        "findings": [
            {"key_point": finding.key_point__text, "finding": finding.finding, "step": finding.step}
            for finding in findings
        ]
    }
    return {
        "revision": decision.revision,
        "revision_reason": decision.revision_reason or None,
        **{name: None if fields[name] == "" else fields[name] for name in CONTENT_ORDER if name in fields},
        "active_seconds": decision.active_seconds,
        "steps_seen": decision.steps_seen,
    }


def _time(value: datetime | None) -> str | None:
    return value.astimezone(UTC).isoformat(timespec="microseconds") if value is not None else None


def _as_json(missing: Sequence[Problem]) -> list[dict[str, str]]:
    return [problem.as_json() for problem in missing]


def _line(value: dict[str, Any]) -> bytes:
    return encode_json(value).encode() + b"\n"
