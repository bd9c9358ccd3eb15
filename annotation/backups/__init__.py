"""Backups of the instance: a folder with dated snapshots of the database, and every stored file once.

objects/<first two digits>/<SHA-256>    the stored files of all snapshots, by content
snapshots/<time>/database               the dump
snapshots/<time>/manifest.json          `manifest.Manifest`, written last: without it there is no backup
"""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction

from annotation.models import Event
from annotation.models.events import append
from annotation.models.people import lock_with_operators

FINISHED = "backup_finished"
TRIES = 5


def last_backup() -> datetime | None:
    """Return when the last complete backup was finished; None before the first one."""
    made = Event.objects.filter(submission__isnull=True, kind=FINISHED).order_by("-sequence")
    return made.values_list("at", flat=True).first()


def record_backup(snapshot: str, sha256: str) -> None:
    """Record a complete backup, with the SHA-256 of its dump, in the chain of the instance."""
    for attempt in range(TRIES):  # without operators, nothing can be locked: of two events at once, one is rejected
        try:
            with transaction.atomic():
                lock_with_operators(None)
                append(None, FINISHED, snapshot=snapshot, sha256=sha256)
        except IntegrityError:
            if attempt == TRIES - 1:
                raise
        else:
            return
