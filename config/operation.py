"""The page *Operation*: what an operator has to see at once, even if a service is down or silent."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from annotation import access, store_checks
from annotation.models import Upload, WebhookDelivery
from annotation.views.answers import Request, page
from config import figures, services
from config.celery import app
from config.heartbeats import JobOutcome, load_outcomes
from config.metrics import find_last_backup
from config.versions import VERSION
from evaluations.models import BundleUpload, Delivery
from judges.models import JudgeRun

MOST_PLACES = 200
MOST_FAILED = 20
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FailedJob:
    at: datetime
    kind: str
    name: str
    reason: str
    address: str


@page
def operator(request: Request) -> HttpResponse:
    access.require_superuser(request.user)
    examined = services.examine()
    broker_works = all(service.ok for service in examined if service.name == "broker")
    disk = shutil.disk_usage(settings.DATA)
    context = {
        "services": examined,
        "versions": {
            "WebVerdict": VERSION,
            "Python": platform.python_version(),
            "Django": django.__version__,
            "Database": connection.vendor,
        },
        "queues": _load(services.count_messages) if broker_works else None,
        "jobs": _load(load_periodic_jobs) if broker_works else None,
        "failed": find_failed_jobs(),
        "disk": disk,
        "checks": figures.load_checks(),
        "anchors": any((settings.ANCHOR_FILE, settings.ANCHOR_WEBHOOK, settings.ANCHOR_TIME_STAMP)),
        "backup": find_last_backup(),
        **_describe_store_check(),
    }
    return render(request, "annotation/operator.html", context)


def _load(read: Callable[[], Result]) -> Result | None:
    try:
        return read()
    except Exception:  # noqa: BLE001,RUF100 - whatever a client raises, the page shows the rest
        return None


def load_periodic_jobs() -> list[tuple[str, JobOutcome]]:
    names = sorted({entry["task"] for entry in app.conf.beat_schedule.values()})
    outcomes = load_outcomes(names)
    return [(name.rpartition(".")[2].replace("_", " "), outcomes[name]) for name in names]


def find_failed_jobs() -> list[FailedJob]:
    """Return the last uploads, bundles, deliveries, judge runs and webhook messages that failed, the newest first."""
    found: list[FailedJob] = []
    uploads = Upload.objects.filter(figures.OWN_FAULT, finished_at__isnull=False).order_by("-finished_at")
    for upload in uploads[:MOST_FAILED]:
        problem = (upload.report or {})["rejected"][0]["problems"][0]
        address = reverse("upload-status", args=[upload.pk])
        found.append(FailedJob(_end(upload), "upload", upload.file_name, problem.get("message", ""), address))
    bundles = BundleUpload.objects.filter(~Q(refused=""), finished_at__isnull=False).order_by("-finished_at")
    for bundle in bundles[:MOST_FAILED]:
        address = reverse("bundle-upload", args=[bundle.pk])
        found.append(FailedJob(_end(bundle), "bundle", bundle.file_name, bundle.refused, address))
    deliveries = Delivery.objects.filter(~Q(problems=[]), finished_at__isnull=False).select_related("submission__agent")
    for delivery in deliveries.order_by("-finished_at")[:MOST_FAILED]:
        address = reverse("send", args=[delivery.submission_id])
        reason = delivery.problems[0].get("message", "")
        found.append(FailedJob(_end(delivery), "delivery", str(delivery.submission), reason, address))
    runs = JudgeRun.objects.filter(~Q(stopped=""), finished_at=None, cancelled_at=None).select_related("judge")
    for run in runs.order_by("-pk")[:MOST_FAILED]:
        at = run.called_at or run.started_at or run.created_at
        found.append(FailedJob(at, "judge run", str(run), run.stopped, reverse("judge-run", args=[run.pk])))
    hooks = WebhookDelivery.objects.filter(~Q(error=""), attempted_at__isnull=False).select_related("webhook")
    for sent in hooks.order_by("-attempted_at")[:MOST_FAILED]:
        host = urlsplit(sent.webhook.url).hostname or ""
        found.append(FailedJob(sent.attempted_at or sent.created_at, "webhook", host, sent.error, ""))
    return sorted(found, key=lambda job: job.at, reverse=True)[:MOST_FAILED]


def _end(job: Any) -> datetime:
    ended: datetime = job.finished_at
    return ended


def _describe_store_check() -> dict[str, Any]:
    last = store_checks.find_last_finished()
    problems = last.problems[:MOST_PLACES] if last else []
    places = store_checks.places_of([each["sha256"] for each in problems])
    return {
        "last": last,
        "running": store_checks.unfinished(),
        "rows": [(each, places.get(each["sha256"], [])) for each in problems],
        "more": max(len(last.problems) - MOST_PLACES, 0) if last else 0,
    }
