"""Whether the rows of a submission are what its events say."""

from __future__ import annotations

from annotation.models import Adjudication, Event, Label, SpotCheckDraw, Submission
from annotation.models.events import digest, first_broken
from annotation.records import Problem
from annotation.workflow.facts import adjudication_facts, draw_facts, label_facts


def problems(submission: Submission) -> list[Problem]:
    """Every way in which chain and rows disagree; a changed row is both unknown to the events and missing to them."""
    events = list(Event.objects.filter(submission=submission))
    broken = first_broken(events)
    found = [Problem("chain_broken", f"Event {broken.sequence} does not fit its chain.")] if broken else []
    for kind, present in _digests(submission).items():
        recorded = {event.payload[kind] for event in events if kind in event.payload}
        found += [
            Problem(f"{kind}_not_in_events", f"{what} differs from what its event recorded.")
            for value, what in present.items()
            if value not in recorded
        ]
        if recorded - set(present):
            found.append(Problem(f"{kind}_missing", f"An event records a {kind} that is not there any more."))
    return found


def _digests(submission: Submission) -> dict[str, dict[str, str]]:
    """By kind of row: what the digest of each should be found in the events, and how to name it."""
    labels = Label.objects.filter(assignment__trajectory__submission=submission).select_related(
        "assignment__trajectory__task"
    )
    adjudications = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False)
    draws = SpotCheckDraw.objects.filter(submission=submission)
    return {
        "label": {digest(label_facts(row)): f"Label {row} of {row.assignment}" for row in labels},
        "adjudication": {
            digest(adjudication_facts(row)): str(row) for row in adjudications.select_related("trajectory__task")
        },
        "draw": {digest(draw_facts(row)): f"Spot-check {row}" for row in draws},
    }
