"""The state of a trajectory, derived from its rows by the database; it is stored nowhere."""

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

from annotation.models.reviews import Adjudication, Assignment, Flag, Label, Reopening, SpotCheck
from annotation.models.trajectories import Trajectory
from annotation.records import Verdict


class State(StrEnum):
    """Where a trajectory stands in the protocol, in the order in which the rules are asked."""

    IN_REVIEW = "in review"  # labels are missing
    REOPENED = "reopened"  # a maintainer asked for a new adjudication
    ADJUDICATED = "adjudicated"  # final
    DISPUTE = "dispute"  # the labels differ
    FLAGGED = "flagged"  # unanimous, and an annotator asked for a look
    SPOT_CHECK = "spot check"  # unanimous, and drawn
    UNANIMOUS = "unanimous"  # final: unanimous, and not drawn
    AGREED = "agreed"  # unanimous, waiting for the draw


FINAL = (State.ADJUDICATED, State.UNANIMOUS)
TO_ADJUDICATE = (State.DISPUTE, State.FLAGGED, State.SPOT_CHECK, State.REOPENED)


def current_labels() -> QuerySet[Label]:
    """The latest revision of every label."""
    later = Label.objects.filter(assignment=OuterRef("assignment"), revision__gt=OuterRef("revision"))
    return Label.objects.filter(~Exists(later))


def with_state(trajectories: QuerySet[Trajectory]) -> QuerySet[Any]:
    """Add `label_count`, `lowest`, `highest`, `held_count`, `flagged`, `decided`, `adjudicating` and `state`."""
    here = Q(trajectory=OuterRef("pk"))
    per_trajectory = (
        current_labels().filter(assignment__trajectory=OuterRef("pk")).order_by().values("assignment__trajectory")
    )
    decided = Adjudication.objects.filter(here, decided_at__isnull=False).order_by("-revision")
    held = Assignment.objects.filter(here).order_by().values("trajectory").annotate(n=Count("pk")).values("n")
    return trajectories.annotate(
        label_count=Coalesce(Subquery(per_trajectory.annotate(n=Count("pk")).values("n")), 0),
        held_count=Coalesce(Subquery(held), 0),
        lowest=Subquery(per_trajectory.annotate(v=Min("verdict")).values("v")),
        highest=Subquery(per_trajectory.annotate(v=Max("verdict")).values("v")),
        flagged=Exists(Flag.objects.filter(here)),
        selected=Subquery(SpotCheck.objects.filter(here).values("selected")),
        decided=Subquery(decided.values("verdict")[:1]),
        adjudicating=Exists(Adjudication.objects.filter(here, decided_at__isnull=True)),
        reopened_at=Subquery(Reopening.objects.filter(here).order_by("-reopened_at").values("reopened_at")[:1]),
        decided_at=Subquery(decided.values("decided_at")[:1]),
    ).annotate(state=_state())


def _state() -> Case:
    return Case(
        When(label_count__lt=F("submission__required_labels"), then=Value(State.IN_REVIEW.value)),
        When(reopened_at__gt=F("decided_at"), then=Value(State.REOPENED.value)),
        When(reopened_at__isnull=False, decided_at__isnull=True, then=Value(State.REOPENED.value)),
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
    """The deciding verdict of a trajectory from `with_state`; None while it is not final.

    Unanimous and not drawn: that label. Anything else: the adjudication. A majority is never final by itself.
    """
    if annotated.state == State.ADJUDICATED:
        return Verdict(annotated.decided)
    return Verdict(annotated.lowest) if annotated.state == State.UNANIMOUS else None
