"""The state of a trajectory, which the database derives from its rows. No decision uses a stored state."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from annotation.models.plans import is_left_out
from annotation.models.reviews import Adjudication, Flag, Label, Reopening, SpotCheck
from annotation.models.trajectories import Trajectory
from annotation.records import Verdict


class State(StrEnum):
    """State of a trajectory in the protocol, in the order in which the rules are checked."""

    IN_REVIEW = "in review"  # labels are missing
    REOPENED = "reopened"  # a maintainer asked for a new adjudication
    ADJUDICATED = "adjudicated"  # final
    DISPUTE = "dispute"  # the labels differ
    FLAGGED = "flagged"  # unanimous, and an annotator flagged it
    SPOT_CHECK = "spot check"  # unanimous, and drawn
    UNANIMOUS = "unanimous"  # final: unanimous, and not drawn
    AGREED = "agreed"  # unanimous, waiting for the draw
    NOT_DRAWN = "not drawn"  # a sample plan left it out, so nobody labels it; last, because snapshots store the order


FINAL = (State.ADJUDICATED, State.UNANIMOUS)
TO_ADJUDICATE = (State.DISPUTE, State.FLAGGED, State.SPOT_CHECK, State.REOPENED)


def current_labels() -> QuerySet[Label]:
    later = Label.objects.filter(assignment=OuterRef("assignment"), revision__gt=OuterRef("revision"))
    return Label.objects.filter(~Exists(later))


def with_state(trajectories: QuerySet[Trajectory]) -> QuerySet[Any]:
    """Add `label_count`, `lowest`, `highest`, `flagged`, `selected`, `decided`, `adjudicating` and `state`."""
    here = Q(trajectory=OuterRef("pk"))
    per_trajectory = (
        current_labels().filter(assignment__trajectory=OuterRef("pk")).order_by().values("assignment__trajectory")
    )
    decided = Adjudication.objects.filter(here, decided_at__isnull=False).order_by("-revision")
    return trajectories.annotate(
        label_count=Coalesce(Subquery(per_trajectory.annotate(n=Count("pk")).values("n")), 0),
        lowest=Subquery(per_trajectory.annotate(v=Min("verdict")).values("v")),
        highest=Subquery(per_trajectory.annotate(v=Max("verdict")).values("v")),
        flagged=Exists(Flag.objects.filter(here)),
        selected=Subquery(SpotCheck.objects.filter(here).values("selected")),
        decided=Subquery(decided.values("verdict")[:1]),
        adjudicating=Exists(Adjudication.objects.filter(here, decided_at__isnull=True)),
        # The numbers of the adjudication that was requested and of the last one that was decided.
        asked_for=Coalesce(Subquery(Reopening.objects.filter(here).order_by("-revision").values("revision")[:1]), 0),
        answered=Coalesce(Subquery(decided.values("revision")[:1]), 0),
    ).annotate(state=_state())


def with_waiting(trajectories: QuerySet[Trajectory]) -> QuerySet[Any]:
    """Add the columns of `with_state`, and those by which the adjudicators' queue is sorted.

    `different` counts the different verdicts of the labels; `opened_by` is the key of the adjudicator who opened it at
    `opened_at` and put it off until `put_off_until`. `labelled_at` and `reopened_at` are the last times, `flagged_at`
    is the first. Null for none.
    """
    here = Q(trajectory=OuterRef("pk"))
    current = current_labels().filter(assignment__trajectory=OuterRef("pk")).order_by()
    verdicts = current.values("assignment__trajectory").annotate(n=Count("verdict", distinct=True)).values("n")
    labels = Label.objects.filter(assignment__trajectory=OuterRef("pk")).order_by("-created_at")
    undecided = Adjudication.objects.filter(here, decided_at__isnull=True)
    return with_state(trajectories).annotate(
        different=Subquery(verdicts),
        labelled_at=Subquery(labels.values("created_at")[:1]),
        flagged_at=Subquery(Flag.objects.filter(here).order_by("flagged_at").values("flagged_at")[:1]),
        drawn_at=Subquery(SpotCheck.objects.filter(here, selected=True).values("draw__drawn_at")[:1]),
        reopened_at=Subquery(Reopening.objects.filter(here).order_by("-revision").values("reopened_at")[:1]),
        opened_by=Subquery(undecided.values("adjudicator")[:1]),
        opened_at=Subquery(undecided.values("opened_at")[:1]),
        put_off_until=Subquery(undecided.values("put_off_until")[:1]),
    )


def _state() -> Case:
    return Case(
        # Only a trajectory without an open slot needs the second query.
        When(Q(open_slots=0, label_count=0) & Q(is_left_out()), then=Value(State.NOT_DRAWN.value)),
        When(label_count__lt=F("submission__required_labels"), then=Value(State.IN_REVIEW.value)),
        When(asked_for__gt=F("answered"), then=Value(State.REOPENED.value)),
        When(decided__isnull=False, then=Value(State.ADJUDICATED.value)),
        When(lowest__lt=F("highest"), then=Value(State.DISPUTE.value)),
        When(flagged=True, then=Value(State.FLAGGED.value)),
        When(selected=True, then=Value(State.SPOT_CHECK.value)),
        When(selected=False, then=Value(State.UNANIMOUS.value)),
        default=Value(State.AGREED.value),
        output_field=CharField(),
    )


def state_of(trajectory: Trajectory) -> State:
    return State(with_state(Trajectory.objects.filter(pk=trajectory.pk)).values_list("state", flat=True).get())


def final_verdict(annotated: Any) -> Verdict | None:
    """Return the final verdict of a trajectory from `with_state`; None while it is not final.

    It is the unanimous label if the trajectory was not drawn, and otherwise the adjudication, never a majority alone.
    """
    if annotated.state == State.ADJUDICATED:
        return Verdict(annotated.decided)
    return Verdict(annotated.lowest) if annotated.state == State.UNANIMOUS else None
