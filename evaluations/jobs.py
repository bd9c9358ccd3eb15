"""Celery jobs: thin wrappers that are safe to run twice."""

from __future__ import annotations

from celery import shared_task

from annotation import arrivals
from annotation.models import Submission
from evaluations import anchoring, sending
from evaluations.auditing import uploads
from evaluations.evidence import standing
from evaluations.models import BundleUpload, Delivery


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


@shared_task
def resume_bundles() -> None:
    """Queue again bundles, both ways, without a message or a worker: the database decides, not the broker."""
    for pk in arrivals.find_waiting(BundleUpload):
        open_bundle.delay(pk)
    for pk in arrivals.find_waiting(Delivery):
        create_delivery.delay(pk)


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
