"""An export or an evidence bundle as an answer that streams, for the pages and the API alike."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from annotation.models import Submission
from annotation.records import Problem
from evaluations.evidence import writing
from evaluations.evidence.writing import Evidence
from evaluations.exports import Export, ExportFormat, ExportRefused, missing_for_export, prepare

BLIND = "Labels can be downloaded once the submission is frozen: until then people work independently of them."


def prepare_download(submission: Submission, export_format: ExportFormat, *, partial: bool) -> Export:
    """The export for a maintainer; ExportRefused with every reason.

    Before the freeze even a partial one has neither labels nor final verdicts: a maintainer who knows them could
    influence who still works, and the verdict of a unanimous trajectory is the label of each annotator.
    """
    export = prepare(submission, export_format, partial=partial)
    if export_format is not ExportFormat.TRAJECTORIES_V2 and submission.frozen_at is None:
        raise ExportRefused([Problem("labels_blind", BLIND), *export.missing])
    return export


def prepare_evidence(
    submission: Submission, *, screenshots: str, judges: bool, partial: bool, accept_names: bool
) -> Evidence:
    """The bundle for a maintainer; ExportRefused with every reason, and before the freeze in any case."""
    if submission.frozen_at is None and not submission.practice:
        raise ExportRefused([Problem("labels_blind", BLIND), *missing_for_export(submission)])
    return writing.prepare(
        submission, screenshots=screenshots, judges=judges, partial=partial, accept_names=accept_names
    )


def download_evidence(evidence: Evidence) -> StreamingHttpResponse:
    """The bundle as an attachment of a known size. It breaks off where a file is lost: what came by then is no zip."""
    response = _attachment(evidence.chunks(), writing.MEDIA_TYPE, evidence.file_name)
    response["Content-Length"] = str(evidence.size)
    return response


def download(export: Export) -> StreamingHttpResponse:
    return _attachment(export.chunks(), export.media_type, export.file_name)


def _attachment(chunks: Iterator[bytes], media_type: str, file_name: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(chunks, content_type=media_type)
    response["Content-Disposition"] = str(content_disposition_header(True, file_name))
    response["Cache-Control"] = "private, no-store"
    return response
