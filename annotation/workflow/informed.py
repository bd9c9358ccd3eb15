"""Transitions of the second stage: an annotator views judgments, and keeps or changes their verdict.

The blind label never changes here: states, final verdicts, agreement and exports continue to use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotation import clock
from annotation.models import Assignment, InformedRevision, Label, Membership, Person, Submission, Trajectory
from annotation.models.events import digest
from annotation.records import Problem, Verdict
from annotation.workflow.facts import informed_facts, shown_facts
from annotation.workflow.guards import (
    Conflict,
    Incomplete,
    Role,
    check_note,
    lock_trajectory,
    record_for,
    require_member,
    require_reason,
    require_unfrozen,
)

# Same text for no judgments, imported ones, and ones that the person may not know of: it must not reveal which.
NOTHING_TO_SHOW = (
    "There are no judgments to show. Only judgments from judge runs of this submission are shown, not imported ones or "
    "those of ensembles."
)
STANDS = "You have been shown the judgments of this trajectory. Your blind label can no longer change."


def show_judgments(person: Person, trajectory: Trajectory, judgments: Sequence[Mapping[str, Any]]) -> InformedRevision:
    """Record that the person is shown ``judgments`` (see `InformedRevision`); they can no longer revise the label.

    A second call changes nothing and returns the record of the first.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        label = _own_label(person, row)
        seen = InformedRevision.objects.filter(label=label).first()
        if seen is not None:
            return seen
        _require_open(submission)
        if not judgments:
            raise Conflict(NOTHING_TO_SHOW)
        made = InformedRevision.objects.create(label=label, judgments=[*judgments], shown_at=clock.now())
        _record(member, "judgments_shown", made, shown=digest(shown_facts(made)))
        return made


def keep_verdict(person: Person, trajectory: Trajectory, reason: str = "") -> InformedRevision:
    """Record that the annotator keeps the blind verdict after viewing the judgments."""
    return _decide(person, trajectory, None, check_note(reason))


def change_verdict(person: Person, trajectory: Trajectory, verdict: Verdict, reason: str) -> InformedRevision:
    """Record another verdict and its reason; the blind verdict does not change."""
    return _decide(person, trajectory, verdict, require_reason(reason, "another verdict"))


def has_looked(assignment: Assignment) -> bool:
    return InformedRevision.objects.filter(label__assignment=assignment).exists()


def _decide(person: Person, trajectory: Trajectory, verdict: Verdict | None, reason: str) -> InformedRevision:
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ANNOTATOR)
        label = _own_label(person, row)
        _require_open(submission)
        informed = InformedRevision.objects.filter(label=label).first()
        if informed is None:
            raise Conflict("View the judgments first.")
        if informed.decided_at is not None:
            raise Conflict("You have already decided whether to keep your verdict.")
        if verdict is not None and verdict == label.verdict:
            raise Incomplete(
                [Problem("verdict_unchanged", "This is already your verdict: choose to keep it.", "verdict")]
            )
        informed.label = label
        informed.verdict = label.verdict if verdict is None else verdict
        informed.reason, informed.decided_at = reason, clock.now()
        informed.save(update_fields=["verdict", "reason", "decided_at"])
        _record(member, "informed_decided", informed, informed=digest(informed_facts(informed)))
        return informed


def _require_open(submission: Submission) -> None:
    require_unfrozen(submission)
    if not submission.second_stage:
        raise Conflict("This submission has no informed second stage.")


def _own_label(person: Person, trajectory: Trajectory) -> Label:
    labels = Label.objects.filter(assignment__trajectory=trajectory, assignment__annotator=person)
    label = labels.select_related("assignment").order_by("-revision").first()
    if label is None:
        raise Conflict("Submit your own label first.")
    label.assignment.trajectory = trajectory
    return label


def _record(member: Membership, kind: str, of: InformedRevision, /, **payload: str) -> None:
    """Append an event that names the label; of its content it has only the digest."""
    label = of.label
    record_for(member, kind, label.assignment.trajectory, slot=label.assignment.slot, **payload)
