"""`/metrics` for Prometheus: requests of this web server, services, and figures of the instance.

See docs/decisions/0033-metrics-of-all-processes.md. The answer comes within ten seconds: what a service that is down or
silent would tell is left out, and `webverdict_complete` is 0.
"""

from __future__ import annotations

import hmac
import logging
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

import django
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from config import figures, heartbeats, request_counts, services
from config.celery import app
from config.versions import VERSION

# This library decides at its import how it counts: `request_counts` must come before.
# isort: split
from prometheus_client import CollectorRegistry, exposition, multiprocess
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

TIME_LIMIT = 4.0  # seconds for the figures of the database; the services take up to five before
CHALLENGE = {"WWW-Authenticate": "Bearer"}

log = logging.getLogger(__name__)
_pool = ThreadPoolExecutor(1, thread_name_prefix="metrics")
_lock = Lock()
_running: Future[list[Metric]] | None = None


class MetricsMiddleware:
    """Answer `/metrics` before all others, since Prometheus uses an address, plain HTTP and no host name of ours."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info != "/metrics" or not settings.METRICS_TOKEN:
            return self.get_response(request)
        expected = f"Bearer {settings.METRICS_TOKEN}".encode()
        if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected):
            return HttpResponse(
                "Send the token METRICS_TOKEN as Authorization: Bearer.\n", status=401, headers=CHALLENGE
            )
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        return HttpResponse(write_metrics(), content_type=exposition.CONTENT_TYPE_LATEST)


def write_metrics() -> bytes:
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, request_counts.FOLDER)
    registry.register(_Instance())
    return exposition.generate_latest(registry)


class _Instance:
    """A collector of prometheus_client."""

    def collect(self) -> Iterator[Metric]:
        works = {service.name: service.ok for service in services.examine()}
        yield _gauge("up", "Whether a service works.", ("service",), {(name,): ok for name, ok in works.items()})
        yield from _collect_machine()
        found = [
            _try(_collect_shared) if works["broker"] else None,
            _try(_collect_rows_in_time) if works["database"] else None,
        ]
        for families in found:
            yield from families or []
        yield _gauge("complete", "Whether no figure is left out.", (), {(): None not in found})


def _try(collect: Callable[[], list[Metric]]) -> list[Metric] | None:
    try:
        return collect()
    except Exception as error:  # noqa: BLE001,RUF100 - whatever a client raises, the other figures are useful
        log.warning("Metrics are incomplete: %s failed: %r", collect.__name__, error)
        return None


def _collect_machine() -> list[Metric]:
    versions = (VERSION, platform.python_version(), django.__version__, connection.vendor)
    disk = shutil.disk_usage(settings.DATA)
    return [
        _gauge("info", "Versions.", ("version", "python", "django", "database"), {versions: 1}),
        _gauge("disk_free_bytes", "Free bytes on the disk of the data folder.", (), {(): disk.free}),
        _gauge("disk_size_bytes", "Size of the disk of the data folder, in bytes.", (), {(): disk.total}),
    ]


def _collect_shared() -> list[Metric]:
    """Collect what is in the broker and the shared cache."""
    app.loader.import_default_modules()
    jobs = sorted(name for name in app.tasks if not name.startswith("celery."))
    outcomes = heartbeats.load_outcomes(jobs)
    failures = CounterMetricFamily("webverdict_job_failures", "Jobs that ended with an error.", labels=("job",))
    for job, outcome in outcomes.items():
        failures.add_metric((job,), outcome.failures)
    return [
        _gauge("queue_messages", "Messages that wait for a worker.", ("queue",), _by_name(services.count_messages())),
        _gauge(
            "heartbeat_timestamp_seconds",
            "Time of the last heartbeat of a process.",
            ("process",),
            {(heartbeats.PROCESSES[key],): beat.at.timestamp() for key, beat in heartbeats.load_heartbeats().items()},
        ),
        _gauge(
            "job_success_timestamp_seconds",
            "Time of the last success of a job.",
            ("job",),
            {(job,): outcome.succeeded_at for job, outcome in outcomes.items()},
        ),
        failures,
    ]


def _collect_rows_in_time() -> list[Metric]:
    """Return `_collect_rows`; simultaneous requests share one thread. Raises TimeoutError after `TIME_LIMIT`."""
    global _running  # noqa: PLW0603 - under the lock
    with _lock:
        if _running is None or _running.done():
            _running = _pool.submit(_collect_rows)
        running = _running
    return running.result(TIME_LIMIT)


def _collect_rows() -> list[Metric]:
    try:
        calls, cost = figures.sum_calls()
        checks = figures.load_checks()
        return [
            _gauge("leases", "Trajectories reserved for annotators.", ("state",), figures.count_leases()),
            _gauge("trajectories", "Trajectories of open submissions.", ("state",), figures.count_trajectories()),
            _gauge("decisions", "Labels and adjudications.", ("kind", "submission"), figures.count_decisions()),
            _gauge("jobs", "Uploads, bundles and deliveries.", ("kind", "state"), figures.count_jobs()),
            _gauge("webhooks", "Webhooks of maintainers.", ("state",), figures.count_webhooks()),
            _gauge("judge_runs", "Judge runs.", ("state",), figures.count_runs()),
            _gauge("judge_calls", "Stored calls of models.", ("cached",), calls),
            _gauge("judge_cost_dollars", "Cost of these calls in US dollars.", (), {(): cost}),
            _gauge("chain_check_timestamp_seconds", "Time of the last full check.", (), {(): checks.chains_at}),
            _gauge("broken_chains", "Event chains that failed their check.", (), {(): checks.broken}),
            _gauge("store_check_timestamp_seconds", "End of the last check of files.", (), {(): checks.store_at}),
            _gauge("store_problems", "Damaged or missing files in that check.", (), {(): checks.problems}),
            _gauge("anchor_timestamp_seconds", "Time of the last published chain head.", (), {(): checks.anchored_at}),
            _gauge("anchor_errors", "Chain heads that could not be published.", (), {(): checks.anchor_errors}),
            _gauge("backup_timestamp_seconds", "Time of the last backup.", (), {(): find_last_backup()}),
        ]
    finally:
        connection.close()  # only this thread uses it


def find_last_backup() -> datetime | None:
    """Return the time of the last backup; None without one, or if this version cannot make any."""
    if find_spec("annotation.backups") is None:
        return None
    found: datetime | None = import_module("annotation.backups").last_backup()
    return found


def _by_name(values: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    return {(name,): value for name, value in values.items()}


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], Any]) -> Metric:
    """Return a metric; ``values`` by the values of its labels are numbers, times, or None to leave one out."""
    family = GaugeMetricFamily(f"webverdict_{name}", text, labels=labels)
    for key, value in values.items():
        if value is not None:
            family.add_metric(key, value.timestamp() if isinstance(value, datetime) else float(value))
    return family
