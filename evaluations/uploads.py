"""Evidence bundles on their way in, the same from the page and from the API; see `annotation.arrivals`."""

from __future__ import annotations

from typing import Any

from annotation import access, arrivals
from annotation.workflow import Conflict
from evaluations import jobs
from evaluations.auditing.reference_data import encode_reference_data
from evaluations.models import BundleUpload
from evaluations.verifier.checking import Given


def receive(person: Any, file: Any, given: Given) -> BundleUpload:
    """Store a bundle, and have it opened once the row is there; raises as `arrivals.receive`."""
    access.require_creator(person)
    upload = BundleUpload(uploaded_by=person, given=encode_reference_data(given))
    arrivals.receive(upload, file, jobs.open_bundle.delay)
    return upload


def cancel(upload: BundleUpload) -> None:
    """Remove an upload with its file, so that no audit is made of it any more; one that was made stays.

    Conflict when it was finished since it was fetched: who cancels does not know of the outcome.
    """
    if not arrivals.cancel(upload):
        raise Conflict("It ended at this moment: look at what came of it.")
