"""Submissions on their way in: send a package, then ask for its report."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, jobs
from annotation.api.ground import View
from annotation.api.serializers import UploadSerializer
from annotation.models import Benchmark, Upload


class PackageSerializer(serializers.Serializer):
    benchmark = serializers.SlugRelatedField(slug_field="slug", queryset=Benchmark.objects.all())
    agent = serializers.CharField(max_length=200, help_text="As the exports shall name it.")
    file = serializers.FileField(max_length=255, help_text="A zip with one folder for every task id.")
    keep_valid = serializers.BooleanField(default=False, help_text="Take the good trajectories and list the rest.")
    dry_run = serializers.BooleanField(default=False, help_text="Check and report, store nothing.")

    def validate_file(self, file: Any) -> Any:
        limit = settings.WEBVERDICT_MAX_UPLOAD_BYTES
        if file.size > limit:
            raise serializers.ValidationError(f"The file has {file.size:,} bytes; at most {limit:,} are accepted.")
        return file


class Uploads(View):
    """Send a package for import."""

    serializer_class = PackageSerializer
    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": PackageSerializer},
        responses={202: UploadSerializer},
        parameters=[OpenApiParameter("Location", str, OpenApiParameter.HEADER, response=[202])],
    )
    def post(self, request: Request) -> Response:
        """Take a package; the answer names the address under which its report will be."""
        access.require_creator(request.user)
        given = PackageSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        upload = receive(request.user, **given.validated_data)
        where = request.build_absolute_uri(reverse("api-upload", args=[upload.pk]))
        return Response(UploadSerializer(upload).data, status.HTTP_202_ACCEPTED, headers={"Location": where})


class UploadStatus(View):
    """How far an upload is, and its report when it is finished."""

    serializer_class = UploadSerializer

    def get(self, request: Request, pk: Any) -> Response:
        self.chosen()
        return Response(UploadSerializer(access.upload_for(request.user, pk)).data)


def receive(
    person: Any, *, benchmark: Benchmark, agent: str, file: Any, keep_valid: bool = False, dry_run: bool = False
) -> Upload:
    """Store a package under a name of our own and start its import once the row is there."""
    upload = Upload(
        uploaded_by=person,
        benchmark=benchmark,
        agent_name=agent,
        file_name=file.name,
        keep_valid=keep_valid,
        dry_run=dry_run,
    )
    upload.stored_as = default_storage.save(f"uploads/{upload.pk}", file)
    with transaction.atomic():
        upload.save(force_insert=True)
        # Robust: with the broker away the row stays, and the housekeeping queues it again.
        transaction.on_commit(lambda: jobs.import_upload.delay(str(upload.pk)), robust=True)
    return upload
