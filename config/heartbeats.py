"""Signs of life of workers and scheduler, and the outcome of jobs, in the cache that all processes share.

The main process of a worker sends heartbeats even while all its jobs are long. The scheduler sends one whenever it has
queued a job, every few seconds. A heartbeat that cannot be stored is omitted: the broker is down then.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from celery import bootsteps, signals
from django.conf import settings
from django.core.cache import caches

from config.versions import VERSION

INTERVAL = 5.0  # seconds between two heartbeats of a worker
SILENCE = 20.0  # seconds without a heartbeat until a process counts as dead
MAIL = "webverdict-mail"
# The processes by the name of their heartbeat: the queue of a worker.
PROCESSES = {"webverdict": "worker", "webverdict-judges": "judge worker", MAIL: "mail worker", "beat": "scheduler"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    at: datetime
    version: str

    @property
    def is_recent(self) -> bool:
        return (datetime.now(UTC) - self.at).total_seconds() < SILENCE


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """Since the cache was last emptied: when a job last succeeded and failed, and how often it failed."""

    succeeded_at: datetime | None
    failed_at: datetime | None
    failures: int


def find_processes() -> dict[str, str]:
    """Return the part of `PROCESSES` that this instance needs: the mail worker only if it sends e-mail."""
    return {name: process for name, process in PROCESSES.items() if name != MAIL or settings.EMAIL_HOST}


def load_heartbeats() -> dict[str, Heartbeat]:
    """Return the last heartbeat of each process by its name in `find_processes`; raise the error of the cache."""
    stored = caches["shared"].get_many([f"alive:{name}" for name in find_processes()])
    return {key.removeprefix("alive:"): Heartbeat(_as_time(at), version) for key, (at, version) in stored.items()}


def load_outcomes(jobs: list[str]) -> dict[str, JobOutcome]:
    """Return the outcome of each of these jobs; raise the error of the cache."""
    stored = caches["shared"].get_many(
        [f"{kind}:{job}" for job in jobs for kind in ("succeeded", "failed", "failures")]
    )
    times = {key: _as_time(value) for key, value in stored.items() if not key.startswith("failures:")}
    return {
        job: JobOutcome(times.get(f"succeeded:{job}"), times.get(f"failed:{job}"), stored.get(f"failures:{job}", 0))
        for job in jobs
    }


def send_heartbeats(names: list[str]) -> None:
    _store({f"alive:{name}": (time.time(), VERSION) for name in names})


def _as_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _store(values: dict[str, Any], count: str = "") -> None:
    try:
        caches["shared"].set_many(values)
        if count and not caches["shared"].add(count, 1):
            caches["shared"].incr(count)
    except Exception as error:  # noqa: BLE001,RUF100 - whatever a client raises, work must go on
        log.warning("The shared cache does not take %s: %s", ", ".join(values), error)


class WorkerHeartbeat(bootsteps.StartStopStep):
    """Part of a Celery worker: its main loop, which also takes messages, sends the heartbeats of its queues."""

    requires = ("celery.worker.components:Timer",)

    def start(self, worker: Any) -> None:
        queues = list(worker.app.amqp.queues.consume_from)
        send_heartbeats(queues)
        self.timer = worker.timer.call_repeatedly(INTERVAL, send_heartbeats, (queues,))

    def stop(self, worker: Any) -> None:
        self.timer.cancel()


@signals.beat_init.connect
def _start_in_scheduler(**_: Any) -> None:
    send_heartbeats(["beat"])
    signals.after_task_publish.connect(_job_queued, weak=False)


def _job_queued(**_: Any) -> None:
    send_heartbeats(["beat"])


@signals.task_success.connect
def _job_succeeded(sender: Any, **_: Any) -> None:
    _store({f"succeeded:{sender.name}": time.time()})


@signals.task_failure.connect
def _job_failed(sender: Any, **_: Any) -> None:
    _store({f"failed:{sender.name}": time.time()}, count=f"failures:{sender.name}")
