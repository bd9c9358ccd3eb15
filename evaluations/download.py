"""Streaming responses with an export or an evidence bundle, for the pages and the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from annotation.models import Submission
from annotation.records import Problem
from evaluations.attestation import MEDIA_TYPES, attest_evidence
from evaluations.evidence import writing
from evaluations.evidence.writing import Evidence
from evaluations.exports import Export, ExportFormat, ExportRefused, file_name, missing_for_export, prepare
from evaluations.publication import results
from evaluations.publication.options import Options, ResultFormat

File = Export | results.Result
Response = TypeVar("Response", bound=HttpResponseBase)

BLIND = "Labels can be downloaded once the submission is frozen, because people work independently until then."


def find_format(name: str) -> ExportFormat | ResultFormat | None:
    """Return the format of that name; None if there is none."""
    for formats in (ExportFormat, ResultFormat):
        if name in list(formats):
            return formats(name)
    return None


def prepare_download(submission: Submission, export_format: ExportFormat | ResultFormat, **options: Any) -> File:
    """Return the export for a maintainer; ExportRefused with every reason. ``options`` are fields of `Options`.

    Before the freeze, labels and final verdicts are refused, even partially. A maintainer who knows them could
    influence people still at work, and the verdict of a unanimous trajectory reveals each annotator's label.
    """
    if isinstance(export_format, ResultFormat):
        return results.prepare(submission, export_format, Options(**options))
    export = prepare(submission, export_format, partial=options.get("partial", False))
    if export_format is not ExportFormat.TRAJECTORIES_V2 and submission.frozen_at is None:
        raise ExportRefused([Problem("labels_blind", BLIND), *export.missing])
    return export


def prepare_evidence(submission: Submission, **options: Any) -> Evidence:
    """Return the bundle for a maintainer; ExportRefused with every reason, and always before the freeze.

    ``options`` are those of `writing.prepare`.
    """
    if submission.frozen_at is None and not submission.practice:
        raise ExportRefused([Problem("labels_blind", BLIND), *missing_for_export(submission)])
    return writing.prepare(submission, **options)


def download_evidence(evidence: Evidence) -> StreamingHttpResponse:
    """Return the bundle as an attachment of known size. If a file is lost, the stream stops: the zip is invalid."""
    response = _attachment(evidence.chunks(), writing.MEDIA_TYPE, evidence.file_name)
    response["Content-Length"] = str(evidence.size)
    return response


def download_attestation(evidence: Evidence) -> HttpResponse:
    """Return the attestation of the bundle that `download_evidence` gives; ExportRefused if a check of it fails."""
    return attach_attestation(attest_evidence(evidence), evidence.submission, "evidence")


def attach_attestation(envelope: bytes, submission: Submission, what: str) -> HttpResponse:
    """Return an envelope as an attachment, such as ``shops.Agent-1.evidence.intoto.json``; ``what`` is a key of
    `MEDIA_TYPES`."""
    name = file_name(submission, what, "intoto.json", partial=False)
    return _set_headers(HttpResponse(envelope, content_type=MEDIA_TYPES[what]), name)


def download(export: File) -> StreamingHttpResponse:
    return _attachment(export.chunks(), export.media_type, export.file_name)


def _attachment(chunks: Iterator[bytes], media_type: str, name: str) -> StreamingHttpResponse:
    return _set_headers(StreamingHttpResponse(chunks, content_type=media_type), name)


def _set_headers(response: Response, name: str) -> Response:
    response["Content-Disposition"] = str(content_disposition_header(True, name))
    response["Cache-Control"] = "private, no-store"
    return response
