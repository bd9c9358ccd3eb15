"""Check rows against the event log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from annotation.models import (
    Adjudication,
    Event,
    Flag,
    HumanAttempt,
    InformedRevision,
    Label,
    Reopening,
    SamplePlan,
    SampleStop,
    SpotCheckDraw,
    Submission,
)
from annotation.models.events import digest, first_broken
from annotation.records import Problem
from annotation.workflow.facts import (
    adjudication_facts,
    draw_facts,
    informed_facts,
    label_facts,
    plan_facts,
    shown_facts,
)

AT_ONCE = 2000  # rows whose findings are read in one query: databases limit the parameters
OF_A_SLOT = ("label_submitted", "judgments_shown", "informed_decided")


def problems(submission: Submission) -> list[Problem]:
    """Return all differences between rows and events; a changed row gives two: not in events, and missing.

    Covers the data that decides a final verdict: labels and their annotators, adjudications, draws and their
    trajectories, flags, reopenings. Covers the second stage too, because it is exported. Known answers decide
    nothing and are not compared. The number of queries grows by one for every `AT_ONCE` labels or adjudications.
    """
    events = list(Event.objects.filter(submission=submission))
    broken = first_broken(events)
    found = (
        [Problem("chain_broken", f"The hash of event {broken.sequence} does not match the chain.")] if broken else []
    )
    for kind, present in _collect_digests(submission).items():
        recorded = {event.payload[kind] for event in events if kind in event.payload}
        found += [
            Problem(f"{kind}_not_in_events", f"{what} differs from its event.")
            for value, what in present.items()
            if value not in recorded
        ]
        if recorded - set(present):
            found.append(Problem(f"{kind}_missing", f"An event records a {kind} that no longer exists."))
    names = dict(submission.memberships.values_list("person_id", "pseudonym"))
    found += _compare_counts(submission, events, names) + _check_stop(submission, events)
    return found + _check_draws(submission) + _check_attempts(submission)


def _collect_digests(submission: Submission) -> dict[str, dict[str, str]]:
    """Return, by kind of row, the digest that the events must have for each row, with the row's description."""
    labels = Label.objects.filter(assignment__trajectory__submission=submission).select_related(
        "assignment__trajectory__task", "assignment__trajectory__submission__agent", "attempt"
    )
    labels = labels.defer("assignment__trajectory__submission__import_report")
    adjudications = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False)
    adjudications = adjudications.select_related("trajectory__task", "trajectory__submission__agent")
    adjudications = adjudications.defer("trajectory__submission__import_report")
    draws = SpotCheckDraw.objects.filter(submission=submission)
    informed = list(_load_informed(submission).select_related("label__assignment__trajectory__task"))
    return {
        "label": {
            digest(label_facts(row)): f"Label {row} of {row.assignment}"
            for row in labels.prefetch_related("findings").iterator(AT_ONCE)
        },
        "adjudication": {
            digest(adjudication_facts(row)): str(row)
            for row in adjudications.prefetch_related("findings").iterator(AT_ONCE)
        },
        "draw": {digest(draw_facts(row)): f"Spot-check {row}" for row in draws},
        "plan": {
            digest(plan_facts(row)): "The sample plan" for row in SamplePlan.objects.filter(submission=submission)
        },
        "shown": {digest(shown_facts(row)): f"The disclosure for the {row}" for row in informed},
        "informed": {digest(informed_facts(row)): f"The {row}" for row in informed if row.decided_at is not None},
    }


def _load_informed(submission: Submission) -> QuerySet[InformedRevision]:
    return InformedRevision.objects.filter(label__assignment__trajectory__submission=submission)


def _compare_counts(submission: Submission, events: list[Event], names: dict[int, str]) -> list[Problem]:
    """Compare rows and events: how often each person labelled, flagged, decided and reopened each task."""
    labels = Label.objects.filter(assignment__trajectory__submission=submission, revision=1)
    labelled = labels.values_list(
        "assignment__annotator", "assignment__trajectory__task__external_id", "assignment__slot"
    )
    flagged = Flag.objects.filter(trajectory__submission=submission)
    reopened = Reopening.objects.filter(trajectory__submission=submission)
    decided = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False)
    informed = _load_informed(submission)
    of_task, of_label = "trajectory__task__external_id", "label__assignment__"
    looked = (f"{of_label}annotator", f"{of_label}{of_task}", f"{of_label}slot")
    rows = {
        "label_submitted": labelled,
        "flagged": flagged.values_list("annotator", of_task),
        "adjudication_decided": decided.values_list("adjudicator", of_task),
        "reopened": reopened.values_list("reopened_by", of_task),
        "judgments_shown": informed.values_list(*looked),
        "informed_decided": informed.filter(decided_at__isnull=False).values_list(*looked),
    }
    return [problem for kind, pairs in rows.items() for problem in _find_differences(kind, pairs, events, names)]


def _find_differences(
    kind: str, pairs: Iterable[tuple[Any, ...]], events: list[Event], names: dict[int, str]
) -> list[Problem]:
    # With the slot of a label: otherwise two annotators of one trajectory could be swapped unnoticed.
    keys = ("task_id", "slot") if kind in OF_A_SLOT else ("task_id",)
    present = Counter((names.get(person, "somebody else"), *what) for person, *what in pairs)
    recorded = Counter((e.actor_pseudonym, *(e.payload[key] for key in keys)) for e in events if e.kind == kind)
    return [
        Problem(f"{kind}_differs", f"{task}: rows and events differ on {kind} by {who}.")
        for who, task, *_ in sorted((present - recorded) + (recorded - present))
    ]


def _check_stop(submission: Submission, events: list[Event]) -> list[Problem]:
    stated = list(SampleStop.objects.filter(plan__submission=submission).values_list("labelled", flat=True))
    if stated == [event.payload["labelled"] for event in events if event.kind == "sampling_stopped"]:
        return []
    return [Problem("sampling_stopped_differs", "Rows and events differ on where labelling of the sample stopped.")]


def _check_attempts(submission: Submission) -> list[Problem]:
    """Report human attempts if the protocol does not ask for them: no event covers them."""
    made = HumanAttempt.objects.filter(label__assignment__trajectory__submission=submission)
    if submission.asks_attempt or not made.exists():
        return []
    return [Problem("attempt_not_asked", "A label has an own attempt, which this protocol version does not allow.")]


def _check_draws(submission: Submission) -> list[Problem]:
    found = []
    for draw in SpotCheckDraw.objects.filter(submission=submission):
        members = list(draw.members.values_list("trajectory__task__external_id", "selected"))
        drawn = sorted(task for task, selected in members if selected)
        if sorted(task for task, _ in members) != draw.population or drawn != draw.drawn:
            found.append(
                Problem("draw_members_differ", f"Draw {draw.number} drew other trajectories than it recorded.")
            )
    return found
