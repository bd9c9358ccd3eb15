"""Figures of the whole instance from the database, with a fixed number of queries and without any verdict.

Independence: a figure must not change with what a label says. So labels are only counted, and trajectories with all
labels are one figure, whether their labels agree or not, are flagged, or wait for a draw or an adjudicator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Count, F, Max, OuterRef, Q, QuerySet, Subquery, Sum, Value, When

from annotation import clock
from annotation.models import (
    Adjudication,
    Assignment,
    ChainCheck,
    Label,
    StoreCheck,
    Trajectory,
    Upload,
    Webhook,
    WebhookDelivery,
)
from annotation.models.plans import find_to_label
from annotation.store_checks import find_last_finished
from evaluations.models import Anchor, BundleUpload, Delivery
from judges.models import JudgeRun, ModelCall

# Problems of this server, and not of the package.
OWN_FAULTS = ("import_failed", "import_stopped", "import_given_up")
OWN_FAULT = Q(report__rejected__0__problems__0__code__in=OWN_FAULTS)
OPEN = Q(
    submission__frozen_at=None, submission__archived_at=None, submission__audited=False, submission__practice=False
)

Counts = dict[tuple[str, ...], int]


def count_leases() -> Counts:
    held = Assignment.objects.filter(lease_expires_at__isnull=False)
    expired = Q(lease_expires_at__lt=clock.now())
    found = held.aggregate(held=Count("pk", filter=~expired), expired=Count("pk", filter=expired))
    return {(state,): number for state, number in found.items()}


def count_decisions() -> Counts:
    """Return the number of labels and of decided adjudications by kind and state of their submission.

    Adjudications of open submissions are left out: whoever watches their number learns that their label was disputed.
    """
    labels = _count_by_state(Label.objects.order_by(), "assignment__trajectory__submission")
    closed = Q(trajectory__submission__frozen_at__isnull=False) | Q(trajectory__submission__audited=True)
    decided = Adjudication.objects.filter(closed, decided_at__isnull=False).order_by()
    decisions = _count_by_state(decided, "trajectory__submission")
    return {("label", *key): number for key, number in labels.items()} | {
        ("adjudication", *key): number for key, number in decisions.items() if key != ("open",)
    }


def count_trajectories() -> Counts:
    """Return the trajectories of open submissions: in review, or labelled, which means that they have all labels."""
    submitted = Assignment.objects.filter(trajectory=OuterRef("pk"), lease_expires_at=None).order_by()
    labels = Subquery(submitted.values("trajectory").annotate(n=Count("pk")).values("n"))
    complete = Q(labels__gte=F("submission__required_labels"))
    rows = find_to_label(Trajectory.objects.filter(OPEN)).order_by().annotate(labels=labels)
    rows = rows.annotate(group=_first_of({"labelled": complete}, "in review"))
    return _count(rows, ("in review", "labelled"))


def count_jobs() -> Counts:
    """Return the number of uploads, bundles and deliveries by kind and state."""
    begun = {"waiting": Q(started_at=None), "running": Q(finished_at=None)}
    states = ("waiting", "running", "finished", "rejected", "failed")
    found: Counts = {}
    for kind, rows, outcomes in (
        ("upload", Upload.objects, {"failed": OWN_FAULT, "rejected": Q(submission=None, dry_run=False)}),
        ("bundle", BundleUpload.objects, {"rejected": ~Q(refused="")}),
        ("delivery", Delivery.objects, {"rejected": ~Q(problems=[])}),
    ):
        counted = _count(rows.order_by().annotate(group=_first_of({**begun, **outcomes}, "finished")), states)
        found |= {(kind, *key): number for key, number in counted.items()}
    return found


def count_runs() -> Counts:
    """Return the number of judge runs by `JudgeRun.state`."""
    states = {
        "cancelled": Q(cancelled_at__isnull=False),
        "finished": Q(finished_at__isnull=False),
        "paused": Q(paused_at__isnull=False),
        "stopped": ~Q(stopped=""),
        "waiting": Q(started_at=None),
    }
    return _count(JudgeRun.objects.order_by().annotate(group=_first_of(states, "running")), (*states, "running"))


def count_webhooks() -> Counts:
    """Return the number of webhooks by whether the last attempt to send a message to them failed.

    Messages are not counted: their number tells of disputes.
    """
    sent = WebhookDelivery.objects.filter(webhook=OuterRef("pk"), attempted_at__isnull=False).order_by("-attempted_at")
    states = {"off": Q(disabled_at__isnull=False), "failing": Q(last_error__gt="")}
    rows = Webhook.objects.order_by().annotate(last_error=Subquery(sent.values("error")[:1]))
    return _count(rows.annotate(group=_first_of(states, "working")), (*states, "working"))


def sum_calls() -> tuple[Counts, float]:
    """Return the stored calls of models by whether a stored reply answered them, and the cost in US dollars."""
    found = ModelCall.objects.order_by().aggregate(
        all=Count("pk"), hits=Count("pk", filter=Q(hit=True)), cost=Sum("cost", filter=Q(hit=False))
    )
    return {("no",): found["all"] - found["hits"], ("yes",): found["hits"]}, float(found["cost"] or 0)


@dataclass(frozen=True, slots=True)
class Checks:
    """Times are None before the first check. ``broken`` counts chains, ``problems`` stored files."""

    chains_at: datetime | None
    broken: int
    store_at: datetime | None
    problems: int
    anchored_at: datetime | None
    anchor_errors: int


def load_checks() -> Checks:
    chains = ChainCheck.objects.aggregate(at=Max("checked_at"), broken=Count("pk", filter=Q(broken__isnull=False)))
    store: StoreCheck | None = find_last_finished()
    anchors = Anchor.objects.order_by().aggregate(
        at=Max("published_at", filter=Q(error="")), errors=Count("pk", filter=~Q(error=""))
    )
    return Checks(
        chains["at"],
        chains["broken"],
        store.finished_at if store else None,
        len(store.problems) if store else 0,
        anchors["at"],
        anchors["errors"],
    )


def _first_of(states: dict[str, Any], otherwise: str) -> Case:
    whens = [When(condition, then=Value(name)) for name, condition in states.items()]
    return Case(*whens, default=Value(otherwise), output_field=CharField())


def _count(rows: QuerySet[Any], states: Iterable[str]) -> Counts:
    """Return the number of rows in each of the ``states``, with 0 where there is none."""
    found = dict(rows.values_list("group").annotate(n=Count("pk")))
    return {(state,): found.get(state, 0) for state in states}


def _count_by_state(rows: QuerySet[Any], submission: str) -> Counts:
    audited, frozen = Q(**{f"{submission}__audited": True}), Q(**{f"{submission}__frozen_at__isnull": False})
    return _count(
        rows.annotate(group=_first_of({"audited": audited, "frozen": frozen}, "open")), ("open", "frozen", "audited")
    )
