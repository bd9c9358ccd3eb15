"""Celery jobs: thin wrappers that are safe to run twice."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import shared_task
from django.db import transaction

from annotation import arrivals
from annotation import jobs as annotation_jobs
from annotation.models import Submission
from evaluations import anchoring, sending
from evaluations.auditing import uploads
from evaluations.evidence import standing
from evaluations.judge_alignment import looks, steps
from evaluations.models import BundleUpload, Delivery
from evaluations.registry import entries
from judges.models import JudgeRun


@shared_task
def publish_anchors() -> None:
    """Publish the heads of chains that have changed; failures are saved with their reason, and retried next time."""
    anchoring.publish()


@shared_task
def compute_standing(submission_id: int) -> None:
    submission = Submission.objects.select_related("agent", "benchmark").filter(pk=submission_id).first()
    if submission is not None:
        standing.compute(submission)


@shared_task
def open_bundle(upload_id: str) -> None:
    """Open an uploaded evidence bundle; only one worker takes it, and another one if that worker dies."""
    taken = arrivals.claim(BundleUpload, upload_id)
    if taken is not None:
        uploads.process_upload(taken)
        entries.record_checks(upload_id)


@shared_task
def import_entry(upload_id: str) -> None:
    """Import the trajectories of an entry, and record its checks."""
    annotation_jobs.import_upload(upload_id)
    entries.record_checks(upload_id)


def choose_for_entry(*, is_package: bool) -> Callable[[str], Any]:
    """Return what sends the key of an entry's file to a worker."""
    send: Callable[[str], Any] = import_entry.delay if is_package else open_bundle.delay
    return send


@shared_task
def record_checks(upload_id: str) -> None:
    entries.record_checks(upload_id)


@shared_task
def resume_bundles() -> None:
    """Queue bundles, checks of entries, alignments and looks again if they have no message or worker.

    The database decides, not the broker.
    """
    for pk in arrivals.find_waiting(BundleUpload):
        open_bundle.delay(pk)
    for pk in entries.find_unchecked():
        record_checks.delay(pk)
    for pk in arrivals.find_waiting(Delivery):
        create_delivery.delay(pk)
    for alignment in steps.find_idle():
        advance_alignment.delay(alignment)
    for look in looks.find_waiting():
        evaluate_look.delay(look)


@shared_task
def forget_bundles() -> None:
    """Delete old records of bundles and deliveries, and files that no record needs. Runs once a day."""
    try:
        uploads.forget_old()
    finally:
        sending.forget_old()


@shared_task
def create_delivery(delivery_id: str) -> None:
    """Create the files for sending; only one worker takes the request, and another one if that worker dies."""
    taken = arrivals.claim(Delivery, delivery_id)
    if taken is not None:
        sending.process(taken)


@shared_task
def advance_alignment(alignment_pk: int) -> None:
    """Take the steps of an alignment until it waits for a run, or ends."""
    worker = uuid.uuid4().hex
    while steps.take_step(alignment_pk, worker) is steps.Step.MORE:
        pass


@shared_task
def evaluate_look(look_pk: int) -> None:
    looks.evaluate_waiting(look_pk)


def continue_alignment(sender: Any, run: JudgeRun, **_: Any) -> None:
    """Queue the alignment or the look that waits for a run; the scheduler does so too, if the message is lost."""
    if (alignment := steps.find_alignment(run)) is not None:
        transaction.on_commit(partial(advance_alignment.delay, alignment), robust=True)
    for look in looks.find_waiting(run):
        transaction.on_commit(partial(evaluate_look.delay, look), robust=True)


def queue_look(look_pk: int) -> None:
    """Queue a look at a test split after the commit; without a broker, the scheduler queues it later."""
    transaction.on_commit(partial(evaluate_look.delay, look_pk), robust=True)
