"""Facts of rows: the content whose digest is stored in the event of the row."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from django.db.models import prefetch_related_objects

from annotation.label_fields import ADJUDICATION_FIELDS, ATTEMPT_FIELDS, LABEL_FIELDS
from annotation.models import (
    Adjudication,
    Benchmark,
    HumanAttempt,
    InformedRevision,
    KeyPoint,
    Label,
    SamplePlan,
    SpotCheckDraw,
    Task,
)
from annotation.models.events import instant

_TERMS = ("goal", "judge", "labels", "estimand", "rule")
_MEASURES = ("active_seconds", "steps_seen")


def _decision_facts(decision: Label | Adjudication) -> dict[str, Any]:
    prefetch_related_objects([decision], "findings")  # no query if they are already fetched
    declared = ADJUDICATION_FIELDS if isinstance(decision, Adjudication) else LABEL_FIELDS
    given = {name: (getattr(decision, name), field.always_recorded) for name, field in declared.items()}
    measures = {name: getattr(decision, name) for name in _MEASURES}
    # Other fields count only with a value, so that rows older than their columns keep the same digest.
    facts = {name: value for name, (value, always) in given.items() if always or value not in (None, "", [])}
    return (
        facts
        | {name: value for name, value in measures.items() if value is not None}
        | {
            "verdict": int(decision.verdict or 0),
            "revision": decision.revision,
            "revision_reason": decision.revision_reason,
            "findings": [[f.key_point.text, str(f.finding), f.step] for f in decision.findings.all()],
        }
    )


def label_facts(label: Label) -> dict[str, Any]:
    assignment = label.assignment
    facts = _decision_facts(label) | {
        "task_id": assignment.trajectory.task.external_id,
        "slot": assignment.slot,
        "at": instant(label.created_at),
    }
    if label.submitted_at is not None:
        facts["submitted_at"] = instant(label.submitted_at)
    if assignment.trajectory.submission.asks_attempt:
        attempt = getattr(label, "attempt", None)  # no query if it is already fetched
        facts["attempt"] = attempt and _attempt_facts(attempt)
    return facts


def _attempt_facts(attempt: HumanAttempt) -> dict[str, Any]:
    facts = {name: getattr(attempt, name) for name in ATTEMPT_FIELDS}
    if attempt.seconds is None:
        del facts["seconds"]  # newer than attempts without it, which keep their digest
    return facts


def adjudication_facts(adjudication: Adjudication) -> dict[str, Any]:
    return _decision_facts(adjudication) | {
        "task_id": adjudication.trajectory.task.external_id,
        "blind": adjudication.blind,
        "at": instant(adjudication.decided_at),
    }


def shown_facts(informed: InformedRevision) -> dict[str, Any]:
    """Return the judgments shown to an annotator, with label and time, for the digest in the event."""
    label = informed.label
    return {
        "task_id": label.assignment.trajectory.task.external_id,
        "slot": label.assignment.slot,
        "revision": label.revision,
        "judgments": informed.judgments,
        "at": instant(informed.shown_at),
    }


def informed_facts(informed: InformedRevision) -> dict[str, Any]:
    return {
        "shown": shown_facts(informed),
        "verdict": int(informed.verdict or 0),
        "reason": informed.reason,
        "at": instant(informed.decided_at),
    }


def draw_facts(draw: SpotCheckDraw) -> dict[str, Any]:
    return {
        "number": draw.number,
        "seed": draw.seed,
        "rate": draw.rate,
        "population": draw.population,
        "drawn": draw.drawn,
    }


def plan_facts(plan: SamplePlan) -> dict[str, Any]:
    """Return a plan with its items, sorted by task: task, stratum, judge's verdict, probability and position."""
    columns = ("trajectory__task__external_id", "stratum", "judged", "probability", "position")
    facts = {name: getattr(plan, name) for name in (*_TERMS, "secret", "seed")}
    return facts | {"items": sorted(map(list, plan.items.values_list(*columns)))}


def plan_terms(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the part of `plan_facts` that was chosen; seed, probabilities and positions follow from it."""
    return {name: facts[name] for name in _TERMS} | {"items": [item[:3] for item in facts["items"]]}


def catalogue_facts(benchmark: Benchmark, until: datetime) -> list[dict[str, Any]]:
    """Return all versions of all tasks with their accepted key points, as they were at ``until``.

    Sorted by task id and version, key points by position. A later retirement does not count. The event of a freeze
    stores the digest of the list.
    """
    points = KeyPoint.objects.filter(task__benchmark=benchmark, accepted_at__lte=until).order_by("position", "pk")
    of_task: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for task, position, text, accepted_at, retired_at in points.values_list(
        "task", "position", "text", "accepted_at", "retired_at"
    ):
        retired = retired_at if retired_at is not None and retired_at <= until else None
        point = {
            "position": position,
            "text": text,
            "accepted_at": instant(accepted_at),
            "retired_at": instant(retired),
        }
        of_task[task].append(point)
    tasks = [
        {
            "task_id": task.external_id,
            "version": task.version,
            "text": task.text,
            "website": task.website,
            "reference_length": task.reference_length,
            "level": task.level,
            "key_points": of_task[task.pk],
        }
        for task in Task.objects.filter(benchmark=benchmark, created_at__lte=until)
    ]
    return sorted(tasks, key=lambda task: (task["task_id"], task["version"]))
