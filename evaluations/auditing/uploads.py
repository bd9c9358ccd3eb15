"""Uploaded evidence bundles: receive, cancel, and process them into audits; see `annotation.arrivals`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied

from annotation import access, arrivals, clock
from annotation.models import Person
from annotation.workflow import Conflict
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.auditing.reference_data import decode_reference_data, encode_reference_data
from evaluations.models import Audit, BundleUpload
from evaluations.verifier.checking import Given
from evaluations.verifier.findings import Finding
from judges.working.call_log import make_storable

RETENTION = timedelta(days=30)  # how long refusals with their reasons can be read


def receive(person: Person, file: Any, given: Given, send: Callable[[str], Any]) -> BundleUpload:
    """Store a bundle, and queue it for opening when its row is saved; raises as `arrivals.receive`."""
    access.require_creator(person)
    upload = BundleUpload(uploaded_by=person, given=encode_reference_data(given))
    arrivals.receive(upload, file, send)
    return upload


def cancel(upload: BundleUpload) -> None:
    """Delete an upload and its file; an audit that already exists stays.

    Conflict if it has finished since it was loaded, because the person has not seen the outcome.
    """
    if not arrivals.cancel(upload):
        raise Conflict("It has just finished. Reload the page to see the outcome.")


def process_upload(upload: BundleUpload) -> None:
    """Open an upload that `arrivals.claim` returned, save the outcome, and delete the file.

    Raises OperationalError and InterfaceError if the database was unavailable: then the row stays in the queue.
    """
    with suppress(arrivals.ArrivalLost):
        try:
            with arrivals.supervise(upload):
                _open(upload)
        except arrivals.ArrivalFailed as ended:
            _finish(upload, refused=str(ended))
        arrivals.delete_file(upload.stored_as)


def _open(upload: BundleUpload) -> None:
    try:
        with arrivals.open_as_file(upload, upload.suffix) as path:
            open_bundle(
                path,
                upload.uploaded_by,
                decode_reference_data(upload.given),
                file_name=upload.file_name,
                progress=arrivals.make_progress_saver(upload),
                on_opened=partial(_finish, upload),
            )
    except AuditRefused as refused:
        _finish(upload, refused=str(refused), findings=refused.findings)
    except PermissionDenied as error:
        _finish(upload, refused=str(error))


def _finish(
    upload: BundleUpload, audit: Audit | None = None, refused: str = "", findings: Sequence[Finding] = ()
) -> None:
    stated = make_storable([each.as_json() for each in findings])
    again = audit is not None and audit.checks.count() > 1
    arrivals.finish(upload, audit=audit, again=again, refused=make_storable(refused), findings=stated, given="")


def forget_old() -> None:
    """Delete uploads that finished a month ago, and files without a waiting upload."""
    BundleUpload.objects.filter(finished_at__lt=clock.now() - RETENTION).delete()
    arrivals.delete_unneeded_files(BundleUpload)
