"""Celery jobs: each finds its rows, calls one function of a lower layer, and can be run twice without harm."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from kombu.exceptions import OperationalError as BrokerUnavailable

from annotation import (
    arrivals,
    chain_checks,
    changes,
    checked_uploads,
    clock,
    ingest,
    mail,
    outbox,
    parked,
    reminders,
    resumable,
    screenshots,
    sign_ins,
    store_checks,
    webhooks,
    workflow,
)
from annotation.formats.archive import Package
from annotation.formats.printable import counted
from annotation.models import MessageKind, Screenshot, Submission, Upload
from annotation.previews import make_preview
from annotation.records import PACKAGE, ImportReport, Problem

BROKER_ERRORS = (BrokerUnavailable, OSError)  # of a message that could not be sent
CHECK_SECONDS = 30.0  # that one job spends on the check of the store
SUFFIX = re.compile(r"\.[a-z]{1,10}")  # of the uploaded file: some formats are recognised by it


@shared_task
def import_upload(upload_id: str) -> None:
    """Import an uploaded package in exactly one worker; if that dies, another one takes it."""
    taken = arrivals.claim(Upload, upload_id)
    if taken is not None:
        with suppress(arrivals.ArrivalLost):
            _import(taken)


def _import(upload: Upload) -> None:
    try:
        with arrivals.supervise(upload):
            report, made, preview = _read(upload)
    except arrivals.ArrivalFailed as ended:
        report, made, preview = ImportReport(), [], None
        report.reject(PACKAGE, Problem(ended.code, str(ended)))
    # If this worker has lost the row, its submission stays; the next worker reports that it was imported before.
    upload.report = report.with_conversion()
    with transaction.atomic():
        arrivals.finish(upload, report=upload.report, preview=preview, submission=made[0] if made else None)
        _write_end(upload, report, made)
        upload.submission = made[0] if made else None
        outbox.write_upload(upload)
    if not checked_uploads.is_importable(upload):
        arrivals.delete_file(upload.stored_as)
    for submission in made:
        prepare_pictures.delay(submission.pk)


def _read(upload: Upload) -> tuple[ImportReport, list[Submission], dict[str, Any] | None]:
    """Return the report, the submissions, and the preview of a check."""
    previews: list[dict[str, Any]] = []

    def show_first(package: Package, checked: ingest.Checked) -> None:
        if upload.dry_run:
            previews.append(make_preview(package, checked))

    suffix = Path(upload.file_name).suffix.lower()
    with arrivals.open_as_file(upload, suffix if SUFFIX.fullmatch(suffix) else ".zip") as package:
        report, made = ingest.import_all(
            package,
            benchmark=upload.benchmark,
            agent_name=upload.agent_name,
            maintainer=upload.uploaded_by,
            keep_valid=upload.keep_valid,
            dry_run=upload.dry_run,
            protocol_version=upload.protocol_version,
            process_labels=upload.process_labels,
            create_tasks=upload.create_tasks,
            progress=arrivals.make_progress_saver(upload),
            show_first=show_first,
        )
    return report, made, previews[0] if previews else None


def _write_end(upload: Upload, report: ImportReport, made: list[Submission]) -> None:
    accepted, rejected = counted(len(report.accepted), "trajectory", "trajectories"), len(report.rejected)
    if upload.dry_run:
        subject, text = "Check finished", f"Your package was checked: {accepted} without problems, {rejected} rejected."
    elif made:
        subject, text = "Import finished", f"Submission {made[0].pk} was imported: {accepted}, {rejected} rejected."
    else:
        subject, text = "Import failed", "Nothing was imported. The report has the reasons."
    link = reverse("upload-status", args=[upload.pk])
    mail.write_end_of_job(upload.uploaded_by, MessageKind.IMPORT, upload.created_at, subject, text, link)


@shared_task
def prepare_pictures(submission_id: int) -> None:
    """Create the renditions of a new submission, and compare neighbouring screenshots, before they are requested."""
    shown = Screenshot.objects.filter(steps__trajectory__submission=submission_id).distinct()
    for screenshot in shown.order_by("pk").iterator():
        with suppress(screenshots.DamagedFile):  # the trajectory page shows this
            screenshots.prepare(screenshot)
    changes.compare_all(submission_id)


@shared_task
def resume_uploads() -> None:
    """Queue uploads again that have no message or have lost their worker: the rows decide, not the broker."""
    for pk in arrivals.find_waiting(Upload):
        import_upload.delay(pk)
    checked_uploads.forget_expired()
    resumable.forget_expired()


@shared_task
def submit_parked() -> None:
    parked.submit_due()


@shared_task
def return_leases() -> None:
    for submission in Submission.objects.filter(frozen_at__isnull=True, archived_at__isnull=True):
        workflow.return_expired_leases(submission)


@shared_task
def prune_images() -> None:
    """Once a day, delete the files of stopped imports; an error of one step does not prevent the other."""
    try:
        screenshots.prune(timedelta(days=1))
    finally:
        arrivals.delete_unneeded_files(Upload, Q(dry_run=True))  # checks that `forget_expired` has not ended
        resumable.delete_unneeded_parts()


@shared_task
def check_store() -> None:
    """Every few minutes, do a part of the weekly pass over all stored files. A worker does other jobs in between."""
    store_checks.proceed_weekly(settings.STORE_CHECK_BYTES_PER_SECOND, CHECK_SECONDS)


@shared_task
def check_chains() -> None:
    """Every few minutes, verify long chains that were never checked in full, or not for a day."""
    chain_checks.check_due(CHECK_SECONDS)


@shared_task
def forget_sign_ins() -> None:
    sign_ins.forget_sign_ins()


@shared_task
def send_messages() -> None:
    """Send the messages that are due: the rows decide, so a lost job costs ten seconds."""
    mail.send_due()


@shared_task
def queue_webhooks() -> None:
    """Call a worker that reaches the internet, if any delivery is due; otherwise its queue would grow without one."""
    if webhooks.find_due().exists():
        send_webhooks.apply_async(expires=10)


@shared_task
def send_webhooks() -> None:
    webhooks.send_due()


@shared_task
def write_messages() -> None:
    """Once an hour, write about work that waits; an error of one part does not prevent the other."""
    try:
        reminders.write_about_submissions()
    finally:
        reminders.remind_all()


@shared_task
def write_password_links(accounts: list[int]) -> None:
    """Write links for forgotten passwords. A job, so that the request takes as long for names without an account."""
    mail.write_password_links(accounts)


@shared_task
def forget_messages() -> None:
    mail.forget_old()
    webhooks.forget_old()


@shared_task
def forget_drafts() -> None:
    if settings.DRAFT_DAYS:
        workflow.delete_old_drafts(clock.now() - timedelta(days=settings.DRAFT_DAYS))
