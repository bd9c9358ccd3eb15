"""The verbs of the informed second stage: an annotator looks at what judges say, and keeps or changes their verdict.

Nothing here touches the blind label, which states, final verdicts, agreement and exports go on with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

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

# True whether there are none, imported ones or others that this person may not know of: it does not tell which.
NOTHING_TO_SHOW = (
    "There is no judgment to show you yet. Only judgments from judge runs of this submission are shown, imported ones "
    "are not."
)
STANDS = "You have been shown what judges say about this trajectory. From then on your blind label stays as it is."


def show_judgments(person: Person, trajectory: Trajectory, judgments: Sequence[Mapping[str, Any]]) -> InformedRevision:
    """Record that the person is shown ``judgments`` (see `InformedRevision`); their label is not revised any more.

    Looking again changes nothing and returns what was shown the first time.
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
        made = InformedRevision.objects.create(label=label, judgments=[*judgments], shown_at=timezone.now())
        _record(member, "judgments_shown", made, shown=digest(shown_facts(made)))
        return made


def keep_verdict(person: Person, trajectory: Trajectory, reason: str = "") -> InformedRevision:
    """Say that the blind verdict is the right one, now that the judges' evidence is known."""
    return _decide(person, trajectory, None, check_note(reason))


def change_verdict(person: Person, trajectory: Trajectory, verdict: Verdict, reason: str) -> InformedRevision:
    """Say that another verdict is the right one, and why; the blind one stays where it is."""
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
            raise Conflict("Look at what the judges say first.")
        if informed.decided_at is not None:
            raise Conflict("You have decided already whether to keep your verdict.")
        if verdict is not None and verdict == label.verdict:
            raise Incomplete([Problem("verdict_unchanged", "This is your verdict already: keep it.", "verdict")])
        informed.label = label
        informed.verdict = label.verdict if verdict is None else verdict
        informed.reason, informed.decided_at = reason, timezone.now()
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
    """The event says whose label, and nothing of what was decided but its digest."""
    label = of.label
    record_for(member, kind, label.assignment.trajectory, slot=label.assignment.slot, **payload)
