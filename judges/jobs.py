"""Celery jobs of judge runs: thin, and safe to run twice."""

from __future__ import annotations

import signal
import uuid

from celery import shared_task

from judges.working import leases, worker

SLICE = 600.0  # seconds; then the job is sent again, so that a worker can be stopped and others get their turn
STOPS = (signal.SIGTERM, signal.SIGQUIT)  # what Celery sends to a job whose worker is told to quit


@shared_task
def work_on(run_pk: int) -> None:
    """Judge items of a run for a while, and send a message for the rest."""
    if worker.work(run_pk, uuid.uuid4().hex, seconds=SLICE, stop_at=STOPS):
        work_on.delay(run_pk)


@shared_task
def resume_runs() -> None:
    """Call workers for runs that have work and no worker: a message may be lost, rows are not."""
    leases.finish_settled_runs()
    for run_pk in leases.claim_idle_runs():
        work_on.delay(run_pk)


def call_workers(run_pk: int, items: int) -> None:
    """Send a message for each worker that so many items need; a worker without work ends at once.

    Raises what the broker raises at the first message that cannot be sent.
    """
    for _ in range(leases.count_workers_for(items)):
        work_on.delay(run_pk)
