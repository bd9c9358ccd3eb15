"""An export as an answer that streams, for the pages and the API alike."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from annotation.models import Submission
from annotation.records import Problem
from evaluations.exports import Export, ExportFormat, ExportRefused, prepare


def prepare_download(submission: Submission, export_format: ExportFormat, *, partial: bool) -> Export:
    """The export for a maintainer; ExportRefused with every reason.

    Before the freeze even a partial one has neither labels nor final verdicts: a maintainer who knows them could
    influence who still works, and the verdict of a unanimous trajectory is the label of each annotator.
    """
    export = prepare(submission, export_format, partial=partial)
    if export_format is not ExportFormat.TRAJECTORIES_V2 and submission.frozen_at is None:
        says = "Labels can be downloaded once the submission is frozen: until then people work independently of them."
        raise ExportRefused([Problem("labels_blind", says), *export.missing])
    return export


def download(export: Export) -> StreamingHttpResponse:
    """The file as an attachment, piece by piece."""
    response = StreamingHttpResponse(export.chunks(), content_type=export.media_type)
    response["Content-Disposition"] = str(content_disposition_header(True, export.file_name))
    response["Cache-Control"] = "private, no-store"
    return response
