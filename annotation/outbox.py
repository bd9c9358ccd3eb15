"""Write messages to webhooks, in the transaction of what they report; docs/decisions/0038-webhooks.md has the reasons.

Messages have ids, slugs and addresses of the API: no verdict, no reason and no name of a person. A receiver reads the
rest with a token of the owner, so the rules of `access` decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.urls import reverse

from annotation import clock, progress
from annotation.models import (
    Submission,
    Trajectory,
    Upload,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from annotation.models.states import State, with_state
from annotation.webhook_access import is_entitled

# Kinds of events after which a submission may be ready to freeze.
FINISHING = ("adjudication_decided", "adjudication_left", "spot_checks_drawn", "sampling_stopped")
REPORTED = ("member_added", "label_submitted", "label_revised", "frozen", "judge_run_finished", *FINISHING)

Fact = tuple[WebhookEvent, str, dict[str, Any]]  # with the topic, and data beside those of the submission


def write(submission: Submission, kind: str, payload: Mapping[str, Any], trajectory: Trajectory | None = None) -> None:
    """Write the messages that follow from an event of this kind, which the caller has just appended."""
    if kind in REPORTED and getattr(submission, "has_webhooks", True):  # see `guards.lock_submission`
        with transaction.atomic(savepoint=False):
            _write(submission, kind, payload, trajectory)


def _write(submission: Submission, kind: str, payload: Mapping[str, Any], trajectory: Trajectory | None) -> None:
    webhooks = _lock(webhooks_of(submission, submission.benchmark_id))
    entitled = [webhook for webhook in webhooks if is_entitled(webhook, submission)]
    if not entitled:
        return
    shared = describe_submission(submission)
    for event, topic, data in _find_facts(submission, kind, payload, trajectory):
        for webhook in entitled:
            write_one(webhook, event, shared | data, submission, topic)


def write_upload(upload: Upload) -> None:
    """Report the end of an upload to the webhooks of the person who uploaded it."""
    owned = _lock(Webhook.objects.filter(benchmark=upload.benchmark_id, owner=upload.uploaded_by, disabled_at=None))
    data = {
        "upload": str(upload.pk),
        "benchmark": upload.benchmark.slug,
        "submission": upload.submission_id,
        "dry_run": upload.dry_run,
        "url": _link("api-upload", upload.pk),
    }
    for webhook in owned:
        if is_entitled(webhook):
            write_one(webhook, WebhookEvent.UPLOAD_FINISHED, data, None)


def write_one(
    webhook: Webhook, event: str, data: dict[str, Any], submission: Submission | None, topic: str = ""
) -> None:
    if webhook.events and event in WebhookEvent.values and event not in webhook.events:
        return
    now = clock.now()
    fields = {"submission": submission, "type": event, "data": data, "created_at": now, "due_at": now}
    if topic:
        WebhookDelivery.objects.get_or_create(webhook=webhook, topic=topic, defaults=fields)
    else:
        WebhookDelivery.objects.create(webhook=webhook, **fields)


def describe_submission(submission: Submission) -> dict[str, Any]:
    return {
        "submission": submission.pk,
        "benchmark": submission.benchmark.slug,
        "agent": submission.agent.name,
        "url": _link("api-submission", submission.pk),
    }


def webhooks_of(submission: Any, benchmark: Any) -> QuerySet[Webhook]:
    return Webhook.objects.filter(Q(submission=submission) | Q(benchmark=benchmark), disabled_at=None)


def _lock(wanted: QuerySet[Webhook]) -> list[Webhook]:
    """Return the webhooks, locked, so that none is deleted before the caller's transaction ends.

    The lock is shared: people who label at the same time do not wait for each other, whatever else they have locked.
    """
    wanted = wanted.select_related("owner", "submission", "benchmark").defer("submission__import_report")
    found = list(wanted.order_by("pk"))
    if found and connection.vendor == "postgresql":
        table = connection.ops.quote_name(Webhook._meta.db_table)
        with connection.cursor() as cursor:
            locking = f"SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"  # noqa: S608 - our table
            cursor.execute(locking, [[webhook.pk for webhook in found]])
            kept = {key for (key,) in cursor.fetchall()}
        found = [webhook for webhook in found if webhook.pk in kept]
    return found


def _find_facts(
    submission: Submission, kind: str, payload: Mapping[str, Any], trajectory: Trajectory | None
) -> Iterator[Fact]:
    if kind == "member_added":
        yield WebhookEvent.MEMBER_INVITED, "", {"member": payload["member"], "role": payload["role"]}
    elif kind == "frozen":
        yield WebhookEvent.FROZEN, "", {}
    elif kind == "judge_run_finished" and not payload["test"]:
        run = payload["run"]
        yield WebhookEvent.RUN_FINISHED, f"run/{run}", {"judge_run": run, "url": _link("api-judge-run", run)}
    elif kind in ("label_submitted", "label_revised") and trajectory is not None:
        yield from _find_states(submission, trajectory)
    elif kind in FINISHING and progress.count_states(submission).is_ready:
        yield WebhookEvent.READY, "", {}


def _find_states(submission: Submission, trajectory: Trajectory) -> Iterator[Fact]:
    """Report that all labels are there, and that they differ: each once for a trajectory."""
    row = with_state(Trajectory.objects.filter(pk=trajectory.pk)).values("state", "label_count").get()
    data = {
        "trajectory": trajectory.pk,
        "task_id": trajectory.task.external_id,
        "url": _link("api-trajectory", trajectory.pk),
    }
    if row["label_count"] >= submission.required_labels:
        yield WebhookEvent.LABELS_COMPLETE, f"labels/{trajectory.pk}", data
    if row["state"] == State.DISPUTE:
        yield WebhookEvent.DISPUTED, f"disputed/{trajectory.pk}", data


def _link(name: str, key: Any) -> str:
    return f"{settings.SITE_URL}{reverse(name, args=[key])}"
