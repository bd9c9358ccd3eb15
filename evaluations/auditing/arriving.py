"""An uploaded evidence bundle becomes an audit, or is refused; see `annotation.arrivals` for how workers take it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from django.core.exceptions import PermissionDenied
from django.utils import timezone

from annotation import arrivals
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.auditing.knowing import given_of
from evaluations.models import Audit, BundleUpload
from evaluations.verifier.findings import Finding
from judges.working.ledger import storable

KEPT = timedelta(days=30)  # what was refused, and why, can be read for so long


def open_taken(upload: BundleUpload) -> None:
    """Open what `arrivals.take` gave, and write down what came of it; the file is deleted then.

    Raises OperationalError and InterfaceError when the database was away: then the row waits to be taken again.
    """
    with suppress(arrivals.Lost):
        try:
            with arrivals.working(upload):
                _open(upload)
        except arrivals.Ended as ended:
            _finish(upload, refused=str(ended))
        arrivals.delete_file(upload.stored_as)


def _open(upload: BundleUpload) -> None:
    try:
        with arrivals.as_file(upload, upload.suffix) as path:
            open_bundle(
                path,
                upload.uploaded_by,
                given_of(upload.given),
                file_name=upload.file_name,
                progress=arrivals.progress(upload),
                made=partial(_finish, upload),
            )
    except AuditRefused as refused:
        _finish(upload, refused=str(refused), findings=refused.findings)
    except PermissionDenied as error:
        _finish(upload, refused=str(error))


def _finish(
    upload: BundleUpload, audit: Audit | None = None, refused: str = "", findings: Sequence[Finding] = ()
) -> None:
    stated = storable([each.as_json() for each in findings])
    again = audit is not None and audit.checks.count() > 1
    arrivals.finish(upload, audit=audit, again=again, refused=storable(refused), findings=stated, given="")


def forget_old() -> None:
    """Delete uploads that were finished a month ago, and files that belong to none that waits."""
    BundleUpload.objects.filter(finished_at__lt=timezone.now() - KEPT).delete()
    arrivals.forget_files(BundleUpload)
