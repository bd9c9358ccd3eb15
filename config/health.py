"""Probes: /healthz reports that the process is alive, /readyz that it can work.

A middleware before all others answers them, since the probe of a load balancer uses an address, plain HTTP and a host
name that is not allowed. Neither answer contains an address, a host name or a message of a part.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import signing
from django.core.files.storage import default_storage
from django.db import connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse

from config.celery import app
from config.client_address import client_address

SALT = "config.doctor"
TIME_LIMIT = 3.0  # seconds for each part; parts are checked at the same time

log = logging.getLogger(__name__)


class HealthMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info == "/healthz":
            return JsonResponse({"status": "alive"} | _answer_doctor(request))
        if request.path_info == "/readyz":
            return _ready()
        return self.get_response(request)


def _answer_doctor(request: HttpRequest) -> dict[str, Any]:
    """Return what this server sees of a client that proves with our secret key that it is `doctor`."""
    question = request.headers.get("X-WebVerdict-Doctor", "")
    try:
        signing.loads(question, salt=SALT, max_age=60)
    except signing.BadSignature:
        return {}
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    return {"client": client_address(request), "forwarded": forwarded, "secure": request.is_secure()}


def check_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()  # only this thread uses it


def check_broker() -> None:
    with app.connection_for_write(connect_timeout=TIME_LIMIT) as broker:
        broker.ensure_connection(max_retries=1, timeout=TIME_LIMIT)


def check_storage() -> None:
    if settings.S3_BUCKET:
        default_storage.exists("readyz")
    else:
        folder = Path(settings.MEDIA_ROOT)
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError("The image folder is not writable.")


CHECKS: dict[str, Callable[[], None]] = {
    "database": check_database,
    "broker": check_broker,
    "storage": check_storage,
}


@dataclass(frozen=True, slots=True)
class Check:
    """A running check of one part, and its start by the monotonic clock."""

    future: Future[None]
    started: float


_pool = ThreadPoolExecutor(len(CHECKS), thread_name_prefix="readyz")
_lock = threading.Lock()
_checks: dict[str, Check] = {}


def examine() -> dict[str, str]:
    """Return "ok", "failed" or "no answer in time" for each part, within `TIME_LIMIT` seconds."""
    checks = {name: _start_or_join(name) for name in CHECKS}
    return {name: _outcome(name, check) for name, check in checks.items()}


def _ready() -> JsonResponse:
    parts = examine()
    ready = all(outcome == "ok" for outcome in parts.values())
    return JsonResponse({"status": "ready" if ready else "not ready", "parts": parts}, status=200 if ready else 503)


def _start_or_join(name: str) -> Check:
    """Start a check unless one is running, so that probes of a part that hangs share one thread and one time-out."""
    with _lock:
        check = _checks.get(name)
        if check is None or check.future.done():
            check = _checks[name] = Check(_pool.submit(CHECKS[name]), time.monotonic())
        return check


def _outcome(name: str, check: Check) -> str:
    try:
        check.future.result(timeout=max(0.0, check.started + TIME_LIMIT - time.monotonic()))
    except TimeoutError:
        log.warning("readyz: %s did not answer within %.0f s", name, TIME_LIMIT)
        return "no answer in time"
    except Exception as error:  # noqa: BLE001,RUF100 - whatever a client raises, this part does not work
        log.warning("readyz: %s failed: %s", name, error)
        return "failed"
    return "ok"
