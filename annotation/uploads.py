"""A package on its way in: kept, written down, and handed to a worker; the same from the page and from the API."""

from __future__ import annotations

from typing import Any

from django.core.files.storage import default_storage
from django.db import DatabaseError, transaction

from annotation import ingest, jobs, screenshots
from annotation.models import Benchmark, Upload


def receive(
    person: Any, *, benchmark: Benchmark, agent: str, file: Any, keep_valid: bool = False, dry_run: bool = False
) -> Upload:
    """Store a package under a name of our own and start its import once the row is there.

    Raises ingest.ImportStopped when the store is full or gone; then there is no row either.
    The row is the truth: with the broker away it waits until `jobs.resume_uploads` queues it again.
    """
    upload = Upload(
        uploaded_by=person,
        benchmark=benchmark,
        agent_name=agent,
        file_name=file.name[:255],
        keep_valid=keep_valid,
        dry_run=dry_run,
    )
    try:
        upload.stored_as = default_storage.save(f"uploads/{upload.pk}", file)
    except screenshots.STORE_ERRORS as error:
        raise ingest.stopped(error, "The package could not be stored") from error
    try:
        with transaction.atomic():
            upload.save(force_insert=True)
            # Robust: a message that could not be sent is logged, and the person still gets their page.
            transaction.on_commit(lambda: jobs.import_upload.delay(str(upload.pk)), robust=True)
    except DatabaseError:
        default_storage.delete(upload.stored_as)  # without its row nobody would ever find it
        raise
    return upload
