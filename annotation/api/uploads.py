"""Submissions on their way in: send a package, then ask for its report."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from annotation import access, arrivals, jobs
from annotation.api.base import Request, View
from annotation.api.serializers import UploadSerializer
from annotation.api_tokens import Scope
from annotation.forms import check_package_size
from annotation.ingest import ImportStopped
from annotation.models import Benchmark, Upload
from annotation.problem_details import Refused
from annotation.records import Problem


class PackageSerializer(serializers.Serializer):
    benchmark = serializers.SlugRelatedField(slug_field="slug", queryset=Benchmark.objects.all())
    agent = serializers.CharField(source="agent_name", max_length=200, help_text="The name used in exports.")
    file = serializers.FileField(
        max_length=255,
        validators=[check_package_size],
        help_text="A zip with one folder for every task id, or other files as docs/formats.md has them.",
    )
    keep_valid = serializers.BooleanField(default=False, help_text="Import the valid trajectories and list the others.")
    dry_run = serializers.BooleanField(default=False, help_text="Check and report; store nothing.")


class Uploads(View):
    """Send a package for import."""

    scopes = {"POST": Scope.WRITE}
    serializer_class = PackageSerializer
    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": PackageSerializer},
        responses={202: UploadSerializer},
        parameters=[OpenApiParameter("Location", str, OpenApiParameter.HEADER, response=[202])],
    )
    def post(self, request: Request) -> Response:
        """Upload a package. The header Location has the address of its report."""
        access.require_creator(request.user)
        given = PackageSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        file = given.validated_data.pop("file")
        upload = Upload(**given.validated_data | {"uploaded_by": request.user})
        try:
            arrivals.receive(upload, file, jobs.import_upload.delay)
        except ImportStopped as error:
            stopped = Problem("import_stopped", str(error), "file")
            raise Refused(str(error), [stopped], error.outage.status, error.outage.retry_after) from error
        where = request.build_absolute_uri(reverse("api-upload", args=[upload.pk]))
        return Response(UploadSerializer(upload).data, status.HTTP_202_ACCEPTED, headers={"Location": where})


class UploadStatus(View):
    """The progress of an upload, and its report when it is finished."""

    scopes = {"GET": Scope.READ}
    serializer_class = UploadSerializer

    def get(self, request: Request, pk: Any) -> Response:
        self.chosen()
        return Response(UploadSerializer(access.upload_for(request.user, pk)).data)
