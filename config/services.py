"""State of the services that WebVerdict needs, found within seconds even if one of them is silent."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.core.cache import caches

from config import health
from config.celery import app
from config.heartbeats import Heartbeat, find_processes, load_heartbeats

LEAST_DISK = 1024**3  # bytes
NAMES = {"database": "database", "broker": "broker", "storage": "file store"}

log = logging.getLogger(__name__)
_failing: dict[str, float] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Service:
    """``since`` is when a failure was first seen or a process was last heard; None if it works or is unknown."""

    name: str
    ok: bool
    detail: str = ""
    since: datetime | None = None


def examine() -> list[Service]:
    """Return the state of database, broker, file store, disk, workers and scheduler, within some five seconds."""
    parts = health.examine()
    outcomes = {NAMES[name]: ("" if outcome == "ok" else outcome) for name, outcome in parts.items()}
    free = shutil.disk_usage(settings.DATA).free
    outcomes["disk"] = "" if free >= LEAST_DISK else f"only {free // 2**20:,} MB are free"
    since = _note_failures({name for name, problem in outcomes.items() if problem}, shared=parts["broker"] == "ok")
    services = [Service(name, not problem, problem, since.get(name)) for name, problem in outcomes.items()]
    return [*services, *_examine_processes(broker_works=parts["broker"] == "ok")]


def count_messages() -> dict[str, int]:
    """Return the number of waiting messages of each queue; raise the error of the broker."""
    with app.connection_for_read(connect_timeout=health.TIME_LIMIT) as broker:
        broker.ensure_connection(max_retries=1, timeout=health.TIME_LIMIT)
        queues = [name for name in find_processes() if name != "beat"]
        return {queue: broker.default_channel._size(queue) for queue in queues}


def _examine_processes(*, broker_works: bool) -> list[Service]:
    processes = find_processes()
    if not broker_works:  # it also has the heartbeats, or none can be sent
        return [Service(name, False, "unknown, as the broker does not work") for name in processes.values()]
    try:
        heard = load_heartbeats()
    except Exception as error:  # noqa: BLE001,RUF100 - whatever a client raises
        log.warning("No heartbeat could be read: %s", error)
        return [Service(name, False, "unknown, as heartbeats cannot be read") for name in processes.values()]
    return [_examine_process(name, heard.get(key)) for key, name in processes.items()]


def _examine_process(name: str, last: Heartbeat | None) -> Service:
    if last is None:
        return Service(name, False, "no heartbeat yet")
    return Service(name, True, last.version) if last.is_recent else Service(name, False, "no heartbeat", last.at)


def _note_failures(failing: set[str], *, shared: bool) -> dict[str, datetime]:
    """Return since when each of the failing services fails, as far as a process has seen it.

    The times are in the cache for all processes. While it does not work, each process has its own.
    """
    known = _read_failing() if shared else None
    with _lock:
        now = time.time()
        noted = {name: min(now, _failing.get(name, now), (known or {}).get(name, now)) for name in failing}
        _failing.clear()
        _failing.update(noted)
    if known is not None and known != noted:
        _write_failing(noted)
    return {name: datetime.fromtimestamp(at, UTC) for name, at in noted.items()}


def _read_failing() -> dict[str, float] | None:
    try:
        return dict(caches["shared"].get("failing", {}))
    except Exception:  # noqa: BLE001,RUF100 - whatever a client raises: the times of this process remain
        return None


def _write_failing(noted: dict[str, float]) -> None:
    try:
        caches["shared"].set("failing", noted)
    except Exception as error:  # noqa: BLE001,RUF100 - whatever a client raises
        log.warning("The shared cache does not take the times of failures: %s", error)
