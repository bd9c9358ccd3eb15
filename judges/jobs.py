"""Celery jobs of judge runs: thin, and safe to run twice."""

from __future__ import annotations

import signal
import uuid

from celery import shared_task

from judges.working import batches, leases, worker

SLICE = 600.0  # seconds; then the job is queued again, so that a worker can stop and other jobs can run
STOPS = (signal.SIGTERM, signal.SIGQUIT)  # Celery sends these to a job when its worker must quit


@shared_task
def work_on(run_pk: int) -> None:
    """Judge items of a run for SLICE seconds; queue the job again if items remain."""
    if worker.work(run_pk, uuid.uuid4().hex, seconds=SLICE, stop_at=STOPS):
        work_on.delay(run_pk)


@shared_task
def resume_runs() -> None:
    """Queue jobs for runs that have work but no worker: a queued message can be lost, a database row cannot."""
    leases.finish_settled_runs()
    for run_pk in [*leases.claim_idle_runs(), *batches.claim_due_runs()]:
        work_on.delay(run_pk)


def call_workers(run_pk: int, items: int, *, alone: bool = False) -> None:
    """Queue one job for each worker that ``items`` items need; a job without work ends immediately.

    Raises the broker's error at the first job that cannot be queued.
    """
    for _ in range(leases.count_workers_for(items, alone=alone)):
        work_on.delay(run_pk)
