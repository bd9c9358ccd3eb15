"""Store the package of a successful check for some hours, so that it can be imported without another upload."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from annotation import arrivals, clock, screenshots, upload_parts
from annotation.models import Upload


def _stored_for() -> timedelta:
    return timedelta(hours=settings.CHECKED_PACKAGE_HOURS)


def is_importable(upload: Upload) -> bool:
    """Return whether the upload was only checked, and the check found something to import."""
    return upload.dry_run and bool((upload.report or {}).get("accepted"))


def find_expiry(upload: Upload) -> datetime | None:
    """Return until when the checked package can be imported; None if it cannot, or not any more."""
    if upload.finished_at is None or not upload.stored_as or not is_importable(upload):
        return None
    expires_at = upload.finished_at + _stored_for()
    return expires_at if expires_at > clock.now() and _has_file(upload) else None


def _has_file(upload: Upload) -> bool:
    """Return whether the package is stored: earlier versions deleted it after the check, and left its name."""
    try:
        return upload_parts.exists(upload.stored_as)
    except screenshots.STORE_ERRORS:
        return True  # unknown: the import will tell


def start_import(upload: Upload, send: Callable[[str], Any]) -> bool:
    """Queue the checked package for its import, and return True; False if it is too late or has already begun.

    The row of the check becomes the row of the import, by one conditional update: however often and by however many
    people it is called, the package is imported once.
    """
    if find_expiry(upload) is None:
        return False
    checked = Upload.objects.filter(pk=upload.pk, dry_run=True, finished_at__gt=clock.now() - _stored_for())
    with transaction.atomic():
        # `tries` continues: a worker that lost the row during the check must not match it again.
        is_first = checked.exclude(stored_as="").update(
            dry_run=False,
            started_at=None,
            finished_at=None,
            heartbeat_at=clock.now(),
            done=0,
            total=None,
            report=None,
            preview=None,
        )
        if is_first:
            transaction.on_commit(lambda: send(str(upload.pk)), robust=True)
    return bool(is_first)


def forget_expired() -> None:
    """Delete the packages of checks that nobody imported in time, and old records of finished uploads."""
    expired = Upload.objects.filter(dry_run=True, finished_at__lte=clock.now() - _stored_for()).exclude(stored_as="")
    for pk, name in expired.values_list("pk", "stored_as"):
        if expired.filter(pk=pk).update(stored_as=""):
            arrivals.delete_file(name)
    if settings.UPLOAD_DAYS:
        finished = Upload.objects.filter(finished_at__lt=clock.now() - timedelta(days=settings.UPLOAD_DAYS))
        finished.exclude(Q(dry_run=True) & ~Q(stored_as="")).delete()
