"""Packages in parts: the protocol tus 1.0.0 (https://tus.io/protocols/resumable-upload)."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import http_date
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import request as rest_request
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, jobs, resumable
from annotation.api.base import Request, View
from annotation.api.catalogue import PackageSerializer
from annotation.api.serializers import ProblemDetailsSerializer
from annotation.api_tokens import Scope
from annotation.models import ResumableUpload
from annotation.problem_details import CHECKSUM_DIFFERS, MEDIA_TYPE, Refused, problem
from annotation.records import Problem

VERSION = "1.0.0"
BODY_TYPE = "application/offset+octet-stream"
LONGEST_METADATA = 8000  # characters; the limit of gunicorn for a header


def _header(name: str, about: str, *, kind: Any = str, response: list[int] | None = None, required: bool = True) -> Any:
    place = {"response": response} if response else {"required": required}
    return OpenApiParameter(name, kind, OpenApiParameter.HEADER, description=about, **place)


def _problems(*codes: int) -> dict[Any, Any]:
    return {(code, MEDIA_TYPE): ProblemDetailsSerializer for code in codes}


RESUMABLE = _header("Tus-Resumable", f"The version of the protocol: {VERSION}.")
EXPIRES = "When the upload is deleted if nothing is added."
METADATA = "Fields of the upload as `name base64`, separated by commas: benchmark, agent, filename, and the options."


class MetadataSerializer(PackageSerializer):
    """Upload-Metadata: the fields of `POST /uploads`, with ``filename`` instead of the file."""

    file = None  # type: ignore[assignment]
    filename = serializers.CharField(source="file_name", max_length=255)


class ResumableUploadSerializer(serializers.ModelSerializer):
    """An upload in parts; ``report``: address of the report, once complete."""

    report = serializers.SerializerMethodField()

    class Meta:
        model = ResumableUpload
        fields = ["id", "file_name", "offset", "length", "expires_at", "report"]

    def get_report(self, upload: ResumableUpload) -> str:
        return reverse("api-upload", args=[upload.pk])


class TusView(View):
    """Base of the two addresses: versions, and methods in a header."""

    tag = "Uploads"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method == "POST":
            request.method = request.headers.get("X-HTTP-Method-Override", "POST").upper()
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: rest_request.Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        is_free = request.method in ("GET", "OPTIONS")
        if request.headers.get("Tus-Resumable", VERSION if is_free else "") != VERSION:
            message = f"Send the header Tus-Resumable: {VERSION}."
            raise Refused(message, [Problem("protocol_version", message)], status.HTTP_412_PRECONDITION_FAILED)
        access.require_creator(self.request.user)

    def finalize_response(self, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(*args, **kwargs)
        response["Tus-Resumable"] = response["Tus-Version"] = VERSION
        return response

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        headers = {
            "Tus-Extension": "creation,checksum,expiration,termination",
            "Tus-Max-Size": str(settings.MAX_RESUMABLE_BYTES),
            "Tus-Checksum-Algorithm": "sha256",
        }
        return Response(status=status.HTTP_204_NO_CONTENT, headers=headers)


class ResumableUploads(TusView):
    """Start an upload in parts."""

    scopes = {"POST": Scope.WRITE}
    operation_ids = {"POST": "start_resumable_upload", "OPTIONS": "describe_resumable_uploads"}
    serializer_class = ResumableUploadSerializer

    @extend_schema(
        request=None,
        responses={201: ResumableUploadSerializer, **_problems(412, 413, 507)},
        parameters=[
            RESUMABLE,
            _header("Upload-Length", "Size of the file in bytes.", kind=int),
            _header("Upload-Metadata", METADATA),
            _header("Location", "Where to send the parts.", response=[201]),
            _header("Upload-Expires", EXPIRES, response=[201]),
        ],
    )
    def post(self, request: Request) -> Response:
        """Start an upload (tus 1.0.0). Fields, size, quota and disk space are checked before any byte is sent.

        OPTIONS names extensions and the largest size.
        """
        metadata = request.headers.get("Upload-Metadata", "")
        given = MetadataSerializer(data=_parse_metadata(metadata))
        given.is_valid(raise_exception=True)
        length = _read_number(request, "Upload-Length", least=1)
        upload = ResumableUpload(**given.validated_data, uploaded_by=request.user, metadata=metadata, length=length)
        resumable.create(upload)
        where = request.build_absolute_uri(reverse("api-resumable-upload", args=[upload.pk]))
        headers = {"Location": where, **_state(upload)}
        return Response(ResumableUploadSerializer(upload).data, status.HTTP_201_CREATED, headers=headers)


class ResumableUploadParts(TusView):
    """One upload in parts."""

    scopes = {"GET": Scope.WRITE, "PATCH": Scope.WRITE, "DELETE": Scope.WRITE}
    operation_ids = {
        "GET": "get_resumable_upload",
        "PATCH": "append_to_resumable_upload",
        "DELETE": "cancel_resumable_upload",
    }
    serializer_class = ResumableUploadSerializer
    streams_body = True

    @extend_schema(
        parameters=[
            _header("Upload-Offset", "Bytes that the server has.", kind=int, response=[200]),
            _header("Upload-Length", "Size of the file in bytes.", kind=int, response=[200]),
            _header("Upload-Expires", EXPIRES, response=[200]),
        ]
    )
    def get(self, request: Request, pk: Any) -> Response:
        """Return how much has arrived. HEAD returns the same headers, as tus requires."""
        self.chosen()
        upload = access.resumable_upload_for(request.user, pk)
        metadata = {"Upload-Metadata": upload.metadata} if upload.metadata else {}
        return Response(ResumableUploadSerializer(upload).data, headers=_state(upload) | metadata)

    @extend_schema(
        request={BODY_TYPE: OpenApiTypes.BINARY},
        responses={204: None, **_problems(411, 412, 413, 415, CHECKSUM_DIFFERS, 503, 507)},
        parameters=[
            RESUMABLE,
            _header("Upload-Offset", "Where this part begins: the offset that the server has.", kind=int),
            _header("Upload-Checksum", "`sha256` and the digest in base64.", required=False),
            _header("Upload-Offset", "Bytes that the server has.", kind=int, response=[204]),
            _header("Upload-Expires", EXPIRES, response=[204]),
        ],
    )
    def patch(self, request: Request, pk: Any) -> Response:
        """Add the next part. With the last byte, the import starts, and `GET /uploads/{id}` shows its progress."""
        upload = access.resumable_upload_for(request.user, pk)
        if request.content_type != BODY_TYPE:
            return problem(status.HTTP_415_UNSUPPORTED_MEDIA_TYPE, f"Send parts with Content-Type: {BODY_TYPE}.")
        if not request.META.get("CONTENT_LENGTH"):
            return problem(status.HTTP_411_LENGTH_REQUIRED, "Send parts with the header Content-Length.")
        size, offset = int(request.META["CONTENT_LENGTH"]), _read_number(request, "Upload-Offset")
        if not size:
            raise serializers.ValidationError({"Content-Length": "A part has at least one byte."})
        resumable.append(upload, offset, size, request._request.read, _read_checksum(request), jobs.import_upload.delay)
        return Response(status=status.HTTP_204_NO_CONTENT, headers=_state(upload))

    @extend_schema(parameters=[RESUMABLE], responses={204: None, **_problems(412)})
    def delete(self, request: Request, pk: Any) -> Response:
        """Cancel an unfinished upload. 409 if it is complete."""
        resumable.cancel(access.resumable_upload_for(request.user, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _state(upload: ResumableUpload) -> dict[str, str]:
    return {
        "Upload-Offset": str(upload.offset),
        "Upload-Length": str(upload.length),
        "Upload-Expires": http_date(upload.expires_at.timestamp()),
    }


def _parse_metadata(header: str) -> dict[str, str]:
    try:
        if len(header) > LONGEST_METADATA:
            raise ValueError
        pairs = (entry.strip().partition(" ") for entry in header.split(",") if entry.strip())
        return {key: base64.b64decode(value, validate=True).decode() for key, _, value in pairs}
    except ValueError as error:
        message = "Send Upload-Metadata as names, each with a space and its value in base64, separated by commas."
        raise Refused(message, [Problem("metadata_malformed", message, "Upload-Metadata")]) from error


def _read_number(request: Request, name: str, least: int = 0) -> int:
    field = serializers.IntegerField(min_value=least, max_value=2**63 - 1)
    try:
        return int(field.run_validation(request.headers.get(name)))
    except serializers.ValidationError as error:
        raise serializers.ValidationError({name: error.detail}) from error


def _read_checksum(request: Request) -> bytes | None:
    given = request.headers.get("Upload-Checksum")
    if given is None:
        return None
    algorithm, _, value = given.partition(" ")
    try:
        digest = base64.b64decode(value, validate=True)
    except binascii.Error:
        digest = b""
    if algorithm != "sha256" or len(digest) != 32:
        message = "Send Upload-Checksum as sha256, a space, and the digest in base64."
        raise serializers.ValidationError({"Upload-Checksum": message})
    return digest
