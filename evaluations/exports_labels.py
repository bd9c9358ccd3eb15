"""What people said, as files: the published list of human labels, and JSON Lines with every label and its reasons.

Their JSON Schemas are schemas/human-label.schema.json and schemas/labels.schema.json (for each line).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from annotation.models import Adjudication, Flag, InformedRevision, Label, Report, Submission, Trajectory
from annotation.models.states import FINAL, final_verdict, with_state
from annotation.records import Problem

FORMAT = "webverdict-labels-v1"
AT_ONCE = 50  # trajectories in memory with their labels


def human_label(submission: Submission, missing: Sequence[Problem]) -> Iterator[bytes]:
    """One object a task with the final verdict as "0", "1" or "2", in the order of the submission.

    A partial export has the tasks with a final verdict only, and is an object that says so, because a bare list
    has no place for it.
    """
    key = f"{submission.agent.name}_human_label"
    labels = [
        {
            "task_id": trajectory.task.external_id,
            "confirmed_task": trajectory.task.text,
            key: str(int(verdict)),
        }
        for trajectory in _final(submission).select_related("task")
        if (verdict := final_verdict(trajectory)) is not None
    ]
    document = {"partial": True, "missing": _as_json(missing), "labels": labels} if missing else labels
    yield json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n"


def label_lines(submission: Submission, missing: Sequence[Problem]) -> Iterator[bytes]:
    """A header, then for every trajectory with a final verdict its labels, flags, reports and adjudications with all
    revisions, and what annotators said after seeing judges (informed). People are pseudonyms, times are UTC."""
    people = dict(submission.memberships.values_list("person_id", "pseudonym"))
    yield _line(_header(submission, missing))
    for trajectory in _with_decisions(_final(submission)).iterator(chunk_size=AT_ONCE):
        task_id = {"task_id": trajectory.task.external_id}
        labels = [label for assignment in trajectory.assignments.all() for label in assignment.labels.all()]
        labels.sort(key=lambda label: (label.assignment.slot, label.revision))
        for label in labels:
            yield _line({"type": "label"} | task_id | _label(label, people))
        for label in labels:
            if (informed := getattr(label, "informed", None)) is not None:
                yield _line({"type": "informed"} | task_id | _informed(informed, people))
        for flag in trajectory.flags.all():
            yield _line({"type": "flag"} | task_id | _flag(flag, people))
        for report in trajectory.reports.all():
            yield _line({"type": "report"} | task_id | _report(report, people))
        for adjudication in trajectory.adjudications.all():
            yield _line({"type": "adjudication"} | task_id | _adjudication(adjudication, people))


def _final(submission: Submission) -> QuerySet[Any]:
    final = [state.value for state in FINAL]
    return with_state(Trajectory.objects.filter(submission=submission)).filter(state__in=final).order_by("position")


def _with_decisions(trajectories: QuerySet[Any]) -> QuerySet[Any]:
    decided = Adjudication.objects.filter(decided_at__isnull=False).order_by("revision")
    return trajectories.select_related("task").prefetch_related(
        "assignments__labels__findings__key_point",
        "assignments__labels__attempt",
        "assignments__labels__informed",
        Prefetch("flags", Flag.objects.order_by("flagged_at", "pk")),
        Prefetch("reports", Report.objects.order_by("reported_at", "pk")),
        Prefetch("adjudications", decided),
        "adjudications__findings__key_point",
    )


def _header(submission: Submission, missing: Sequence[Problem]) -> dict[str, Any]:
    return {
        "type": "header",
        "format": FORMAT,
        "benchmark": submission.benchmark.stated_slug,
        "agent": submission.agent.name,
        "attempt": submission.attempt,
        "protocol_version": submission.protocol_version,
        "required_labels": submission.required_labels,
        "frozen_at": _time(submission.frozen_at),
        "trajectories": submission.trajectories.count(),
        "final": _final(submission).count(),
        "partial": bool(missing),
        "missing": _as_json(missing),
    }


def _label(label: Label, people: dict[int, str]) -> dict[str, Any]:
    return {
        "annotator": people[label.assignment.annotator_id],
        "slot": label.assignment.slot,
        **_decision(label),
        "attempt": _attempt(label),
        "created_at": _time(label.created_at),
    }


def _informed(informed: InformedRevision, people: dict[int, str]) -> dict[str, Any]:
    """It follows a blind label and replaces nothing; nulls where the annotator looked and has not decided."""
    label, decided = informed.label, informed.decided_at is not None
    return {
        "annotator": people[label.assignment.annotator_id],
        "slot": label.assignment.slot,
        "follows_revision": label.revision,
        "judgments": [{name: one[name] for name in ("judge", "fingerprint", "verdict")} for one in informed.judgments],
        "shown_at": _time(informed.shown_at),
        "verdict": informed.verdict,
        "changed": informed.changed if decided else None,
        "reason": informed.reason or None,
        "decided_at": _time(informed.decided_at),
    }


def _adjudication(adjudication: Adjudication, people: dict[int, str]) -> dict[str, Any]:
    return {
        "adjudicator": people[adjudication.adjudicator_id],
        "blind": adjudication.blind,
        "criterion": adjudication.criterion or None,
        **_decision(adjudication),
        "opened_at": _time(adjudication.opened_at),
        "decided_at": _time(adjudication.decided_at),
    }


def _flag(flag: Flag, people: dict[int, str]) -> dict[str, Any]:
    return {"annotator": people[flag.annotator_id], "note": flag.note, "flagged_at": _time(flag.flagged_at)}


def _report(report: Report, people: dict[int, str]) -> dict[str, Any]:
    return {
        "reporter": people[report.reporter_id],
        "kind": report.kind,
        "note": report.note,
        "reported_at": _time(report.reported_at),
        "settled_at": _time(report.settled_at),
        "answer": report.answer or None,
    }


def _attempt(label: Label) -> dict[str, Any] | None:
    """Only version 2 of the protocol asks for one; ``steps`` is null where the annotator could not do the task."""
    attempt = getattr(label, "attempt", None)
    if attempt is None:
        return None
    return {"steps": attempt.steps, "notes": attempt.notes, "link": attempt.link or None, "path": attempt.path}


def _decision(decision: Label | Adjudication) -> dict[str, Any]:
    """What both have in common; null is "does not apply", and "not measured" for active_seconds and steps_seen."""
    return {
        "revision": decision.revision,
        "revision_reason": decision.revision_reason or None,
        "verdict": decision.verdict,
        "failure_step": decision.failure_step,
        "failure_type": decision.failure_type or None,
        "further_failure_types": decision.further_failure_types,
        "cause": decision.cause or None,
        "reasoning": decision.reasoning,
        "exception_reason": decision.exception_reason or None,
        "findings": [
            {"key_point": finding.key_point.text, "finding": finding.finding, "step": finding.step}
            for finding in decision.findings.all()
        ],
        "evidence_missing": decision.evidence_missing,
        "active_seconds": decision.active_seconds,
        "steps_seen": decision.steps_seen,
    }


def _time(value: datetime | None) -> str | None:
    return value.astimezone(UTC).isoformat(timespec="microseconds") if value is not None else None


def _as_json(missing: Sequence[Problem]) -> list[dict[str, str]]:
    return [problem.as_json() for problem in missing]


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
