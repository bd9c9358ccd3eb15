"""Import labels and adjudications, and the records that they depend on, from a bundle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from annotation.label_fields import ADJUDICATION_FIELDS
from annotation.models import (
    Adjudication,
    AdjudicationFinding,
    Assignment,
    HumanAttempt,
    InformedRevision,
    KeyPoint,
    KeyPointFinding,
    Label,
    Trajectory,
)
from annotation.records import Finding, Verdict
from evaluations.auditing.import_context import BATCH, ImportContext, parse_time
from evaluations.verifier.documents import Document

COLUMNS = (*ADJUDICATION_FIELDS, "active_seconds", "steps_seen", "revision", "revision_reason")
LabelKey = tuple[str, int, int]  # task id, slot, revision


def write_labels(context: ImportContext, lines: list[Document]) -> dict[LabelKey, Label]:
    """Create every revision with its slot, findings and own attempt; return the created labels."""
    assignments = _assignments(context, lines)
    labels: dict[LabelKey, Label] = {}
    for line in lines:
        facts, key = line["facts"], _key(line["facts"])
        assignment = assignments.get((key[0], key[1]))
        place = f"label of {key[0]} by {line['annotator']}, revision {key[2]}"
        problem = _find_problem(context, facts)
        if assignment is None or context.people.get(line["annotator"]) != assignment.annotator:
            problem = "its slot does not exist"
        elif key in labels:
            problem = "it occurs twice"
        if context.rejections.accept(place, problem):
            submitted = parse_time(facts["submitted_at"]) if "submitted_at" in facts else None
            labels[key] = Label(
                assignment=assignment,
                created_at=parse_time(facts["at"]),
                submitted_at=submitted,
                **_columns(facts),
            )
    Label.objects.bulk_create(labels.values(), batch_size=BATCH)
    _write_parts(context, lines, labels)
    return labels


def write_adjudications(context: ImportContext, lines: list[Document]) -> None:
    """Create the adjudications with their findings. ``labels``, ``majority`` and ``changed`` of a line are derived."""
    made: dict[tuple[str, int], tuple[Document, Adjudication]] = {}
    for line in lines:
        facts = line["facts"]
        key = (facts["task_id"], facts["revision"])
        problem = context.unknown(facts["task_id"], line["adjudicator"]) or _find_problem(context, facts)
        problem = "it occurs twice" if key in made else problem
        if context.rejections.accept(f"adjudication {facts['revision']} of {facts['task_id']}", problem):
            adjudication = Adjudication(
                trajectory=context.trajectories[facts["task_id"]],
                adjudicator=context.people[line["adjudicator"]],
                blind=facts["blind"],
                opened_at=parse_time(line["opened_at"]),
                decided_at=parse_time(facts["at"]),
                **_columns(facts),
            )
            made[key] = (facts, adjudication)
    Adjudication.objects.bulk_create((row for _, row in made.values()), batch_size=BATCH)
    AdjudicationFinding.objects.bulk_create(
        (
            AdjudicationFinding(adjudication=row, key_point=point, finding=finding, step=step)
            for facts, row in made.values()
            for point, finding, step in _findings(context, facts)
        ),
        batch_size=BATCH,
    )


def write_informed(context: ImportContext, lines: list[Document], labels: dict[LabelKey, Label]) -> None:
    made: dict[LabelKey, InformedRevision] = {}
    for line in lines:
        shown, opinion = line["shown"], line["informed"]
        key = _key(shown)
        problem = "its label does not exist" if key not in labels else "it occurs twice" if key in made else None
        if opinion is not None and opinion["verdict"] not in list(Verdict):
            problem = "its verdict is not 0, 1 or 2"
        if context.rejections.accept(f"informed revision of {key[0]} in slot {key[1]}", problem):
            made[key] = InformedRevision(
                label=labels[key],
                judgments=shown["judgments"],
                shown_at=parse_time(shown["at"]),
                verdict=opinion["verdict"] if opinion else None,
                reason=opinion["reason"] if opinion else "",
                decided_at=parse_time(opinion["at"]) if opinion else None,
            )
    InformedRevision.objects.bulk_create(made.values(), batch_size=BATCH)


def _key(facts: Document) -> LabelKey:
    return facts["task_id"], facts["slot"], facts["revision"]


# --- slots -----------------------------------------------------------------------------------------------------------


def _assignments(context: ImportContext, lines: list[Document]) -> dict[tuple[str, int], Assignment]:
    """Create the slots, by task and number; the database decrements the open slots of the trajectory."""
    assignments: dict[tuple[str, int], Assignment] = {}
    people: set[tuple[str, str]] = set()
    taken: Counter[str] = Counter()
    for line in lines:
        task_id, slot, annotator = line["facts"]["task_id"], line["facts"]["slot"], line["annotator"]
        if (task_id, slot) in assignments:
            continue
        problem = context.unknown(task_id, annotator)
        if (task_id, annotator) in people:
            problem = "the annotator has another slot of the trajectory"
        elif slot < 1 or taken[task_id] >= context.submission.required_labels:
            problem = "the trajectory does not have this slot"
        if context.rejections.accept(f"slot {slot} of {task_id}", problem):
            people.add((task_id, annotator))
            taken[task_id] += 1
            assignments[task_id, slot] = Assignment(
                trajectory=context.trajectories[task_id],
                annotator=context.people[annotator],
                slot=slot,
                claimed_at=parse_time(line["claimed_at"]),
            )
    Assignment.objects.bulk_create(assignments.values(), batch_size=BATCH)
    return assignments


# --- decisions -------------------------------------------------------------------------------------------------------


def _find_problem(context: ImportContext, facts: Document) -> str | None:
    """Return why the database would refuse a decision, by the same rules as its constraints and triggers."""
    verdict, step = facts["verdict"], facts["failure_step"]
    steps = context.steps.get(facts["task_id"], set())
    if verdict not in list(Verdict):
        return "its verdict is not 0, 1 or 2"
    if not facts["reasoning"]:
        return "it has no reasoning"
    if verdict == Verdict.FAILURE and not facts["failure_type"]:
        return "it is a failure without a type"
    if verdict == Verdict.NOT_EXECUTABLE and not facts["cause"]:
        return "it has no cause"
    if (verdict == Verdict.FAILURE and step is None and steps) or (step is not None and step not in steps):
        return "the trajectory does not have its failure step"
    revised = facts["revision"] > 1 and not facts["revision_reason"] and "slot" in facts
    return "it is a revision without a reason" if revised else None


def _columns(facts: Document) -> dict[str, Any]:
    return {name: facts[name] for name in COLUMNS if name in facts}


def _write_parts(context: ImportContext, lines: list[Document], labels: dict[LabelKey, Label]) -> None:
    facts_of = {key: line["facts"] for line in reversed(lines) if (key := _key(line["facts"])) in labels}
    KeyPointFinding.objects.bulk_create(
        (
            KeyPointFinding(label=label, key_point=point, finding=finding, step=step)
            for key, label in labels.items()
            for point, finding, step in _findings(context, facts_of[key])
        ),
        batch_size=BATCH,
    )
    HumanAttempt.objects.bulk_create(
        (
            HumanAttempt(label=label, **facts_of[key]["attempt"])
            for key, label in labels.items()
            if facts_of[key].get("attempt")
            and context.rejections.accept(
                f"own attempt of {key[0]} in slot {key[1]}",
                None if facts_of[key]["attempt"]["notes"] else "it has no notes",
            )
        ),
        batch_size=BATCH,
    )


def _findings(context: ImportContext, facts: Document) -> Iterator[tuple[KeyPoint, str, int | None]]:
    """Yield the findings of each key point, by the wording that was in use at that time."""
    seen: set[int] = set()
    trajectory = context.trajectories[facts["task_id"]]
    for text, finding, step in facts["findings"]:
        point = _key_point(context, trajectory, text, parse_time(facts["at"]), seen)
        problem = "the task does not have this key point" if point is None else None
        if finding not in list(Finding):
            problem = "it is not met, unmet or unclear"
        if context.rejections.accept(f"finding of {facts['task_id']}: {text[:60]}", problem) and point is not None:
            seen.add(point.pk)
            yield point, finding, step


def _key_point(context: ImportContext, trajectory: Trajectory, text: str, at: Any, seen: set[int]) -> KeyPoint | None:
    """Return the key point with that wording: of several, the one in use at that time; None without any."""
    same = [
        point for point in context.key_points.get(trajectory.task_id, []) if point.text == text and point.pk not in seen
    ]
    then = [p for p in same if (p.accepted_at or at) <= at and (p.retired_at is None or at <= p.retired_at)]
    return next(iter([*then, *same]), None)
