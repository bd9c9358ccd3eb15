"""A package on its way in, the same from the page and from the API; see `arrivals`."""

from __future__ import annotations

from typing import Any

from annotation import arrivals, jobs
from annotation.models import Benchmark, Upload


def receive(
    person: Any, *, benchmark: Benchmark, agent: str, file: Any, keep_valid: bool = False, dry_run: bool = False
) -> Upload:
    """Store a package, and have it imported once the row is there; raises as `arrivals.receive`."""
    upload = Upload(uploaded_by=person, benchmark=benchmark, agent_name=agent, keep_valid=keep_valid, dry_run=dry_run)
    arrivals.receive(upload, file, jobs.import_upload.delay)
    return upload
