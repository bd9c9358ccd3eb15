"""Celery jobs: each finds its rows, calls one function of a lower floor, and can be run twice without harm."""

from __future__ import annotations

import logging
import re
import tempfile
from datetime import timedelta
from pathlib import Path

from celery import shared_task
from django.core.files.storage import default_storage
from django.db import InterfaceError, OperationalError
from django.db.models import Q
from django.utils import timezone

from annotation import changes, ingest, screenshots, workflow
from annotation.models import Screenshot, Submission, Upload
from annotation.records import ImportReport, Problem

logger = logging.getLogger(__name__)
SUFFIX = re.compile(r"\.[a-z]{1,10}")  # of the uploaded file: some formats are told by it
SILENT = timedelta(minutes=2)  # an import that has not reported for so long has lost its worker


@shared_task
def import_upload(upload_id: str) -> None:
    """Read an uploaded package; exactly one worker takes it, and a worker that died is followed by another."""
    now = timezone.now()
    stale = Q(started_at__isnull=True) | Q(heartbeat_at__lt=now - SILENT)
    taken = Upload.objects.filter(stale, pk=upload_id, finished_at__isnull=True).update(
        started_at=now, heartbeat_at=now
    )
    if taken:
        _import(Upload.objects.select_related("benchmark", "uploaded_by").get(pk=upload_id))


def _import(upload: Upload) -> None:
    def progress(done: int, total: int) -> None:
        Upload.objects.filter(pk=upload.pk).update(done=done, total=total, heartbeat_at=timezone.now())

    try:
        report, made = _read(upload, progress)
    except (ingest.ImportStopped, *screenshots.STORE_ERRORS) as failure:
        error = failure if isinstance(failure, ingest.ImportStopped) else ingest.stopped(failure)
        report, made = _refusal("import_stopped", f"{error} Upload the package again."), []
    except (OperationalError, InterfaceError):
        # The database was away for a moment: the row stays unfinished, and `resume_uploads` begins again.
        raise
    except Exception:
        # Our own mistake: it is in the log, and the upload ends instead of failing again every few minutes.
        logger.exception("The import of upload %s failed", upload.pk)
        report, made = _refusal("import_failed", "The import failed on our side and kept nothing."), []
    ingest.finish_upload(upload, report, made[0] if made else None)
    _forget(upload.stored_as)
    for submission in made:
        prepare_pictures.delay(submission.pk)


def _read(upload: Upload, progress: ingest.Progress) -> tuple[ImportReport, list[Submission]]:
    with tempfile.TemporaryDirectory() as folder:
        suffix = Path(upload.file_name).suffix.lower()
        package = Path(folder) / f"package{suffix if SUFFIX.fullmatch(suffix) else '.zip'}"
        _fetch(upload.stored_as, package)
        return ingest.import_all(
            package,
            benchmark=upload.benchmark,
            agent_name=upload.agent_name,
            maintainer=upload.uploaded_by,
            keep_valid=upload.keep_valid,
            dry_run=upload.dry_run,
            progress=progress,
        )


def _refusal(code: str, message: str) -> ImportReport:
    report = ImportReport()
    report.reject(ingest.PACKAGE, Problem(code, message))
    return report


def _fetch(name: str, target: Path) -> None:
    with default_storage.open(name) as source, target.open("wb") as copy:
        for chunk in source.chunks():
            copy.write(chunk)


def _forget(name: str) -> None:
    """A package that cannot be deleted costs room; its import is finished all the same."""
    try:
        default_storage.delete(name)
    except screenshots.STORE_ERRORS as error:
        logger.warning("The package %s could not be deleted: %s", name, error)


@shared_task
def prepare_pictures(submission_id: int) -> None:
    """Make the pictures of a new submission, and compare neighbours, before anybody waits for them."""
    shown = Screenshot.objects.filter(steps__trajectory__submission=submission_id).distinct()
    for screenshot in shown.order_by("pk").iterator():
        screenshots.prepare(screenshot)
    changes.make(submission_id)


@shared_task
def resume_uploads() -> None:
    """Queue again what has no message or has lost its worker: the rows are the truth, not the broker."""
    waiting = Q(started_at__isnull=True, created_at__lt=timezone.now() - timedelta(minutes=1))
    silent = Q(started_at__isnull=False, heartbeat_at__lt=timezone.now() - SILENT)
    for pk in Upload.objects.filter(waiting | silent, finished_at__isnull=True).values_list("pk", flat=True):
        import_upload.delay(str(pk))


@shared_task
def return_leases() -> None:
    """Give expired slots back even when nobody asks for work."""
    for submission in Submission.objects.filter(frozen_at__isnull=True):
        workflow.return_expired_leases(submission)


@shared_task
def prune_images() -> None:
    """Once a day, give back the room that stopped imports have taken."""
    screenshots.prune(timedelta(days=1))
