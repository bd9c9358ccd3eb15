"""Benchmarks, their tasks, and packages for import."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Exists, OuterRef, Prefetch, QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from annotation import access, arrivals, jobs
from annotation.api.base import Listing, Request, View, imported, report_stopped_import
from annotation.api.serializers import BenchmarkSerializer, ReportSerializer, TaskSerializer, UploadSerializer
from annotation.api_tokens import Scope
from annotation.catalogue import import_labels, import_task_file
from annotation.forms import check_label_file_size, check_package_size, check_task_file_size
from annotation.models import Benchmark, KeyPoint, Task, Upload

LONGEST_SLUG = Benchmark._meta.get_field("slug").max_length or 0


class Benchmarks(Listing):
    """The benchmarks that the caller may read."""

    scopes = {"GET": Scope.READ}
    tag = "Benchmarks"
    operation_ids = {"GET": "list_benchmarks"}
    serializer_class = BenchmarkSerializer

    def get_queryset(self) -> QuerySet[Benchmark]:
        access.require_maintainer(self.request.user)
        self.chosen()
        benchmarks = access.benchmarks_for(self.request.user).filter(archived_at=None)
        return benchmarks.annotate(task_count=Count("tasks__external_id", distinct=True)).order_by("slug")


class TaskFilters(serializers.Serializer):
    level = serializers.CharField(required=False, help_text="The level exactly as in the task file.")
    website = serializers.CharField(
        required=False, help_text="A part of the website's address, in upper or lower case."
    )


class TaskFile(serializers.Serializer):
    file = serializers.FileField(validators=[check_task_file_size], help_text="A JSON list of tasks.")
    name = serializers.CharField(required=False, max_length=200, help_text="The benchmark's name if it is new.")


class Tasks(Listing):
    """The tasks of a benchmark, each in its latest version."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Benchmarks"
    operation_ids = {"GET": "list_tasks", "POST": "import_tasks"}
    serializer_class = TaskSerializer
    filters = TaskFilters
    parser_classes = [MultiPartParser]

    def get_queryset(self) -> QuerySet[Task]:
        access.require_maintainer(self.request.user)
        benchmark, chosen = access.benchmark_for(self.request.user, self.kwargs["slug"]), self.chosen()
        later = Task.objects.filter(
            benchmark=OuterRef("benchmark"), external_id=OuterRef("external_id"), version__gt=OuterRef("version")
        )
        tasks = Task.objects.filter(~Exists(later), benchmark=benchmark)
        if "level" in chosen:
            tasks = tasks.filter(level=chosen["level"])
        if "website" in chosen:
            tasks = tasks.filter(website__icontains=chosen["website"])
        points = KeyPoint.objects.filter(accepted_at__isnull=False, retired_at__isnull=True)
        return tasks.prefetch_related(Prefetch("key_points", points, to_attr="stated")).order_by("pk")

    @extend_schema(request={"multipart/form-data": TaskFile}, responses={200: ReportSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Import a task file. A changed task becomes a new version; a new benchmark is created."""
        access.require_maintainer(request.user)
        if Benchmark.objects.filter(slug=slug).exists():
            access.benchmark_for(request.user, slug)
        else:
            access.require_creator(request.user)
            if len(slug) > LONGEST_SLUG:
                raise serializers.ValidationError({"slug": f"A slug has at most {LONGEST_SLUG} characters."})
        given = TaskFile(data=request.data)
        given.is_valid(raise_exception=True)
        file, name = given.validated_data["file"], given.validated_data.get("name", "")
        report = import_task_file(file, benchmark_slug=slug, benchmark_name=name)
        return imported(report, "The task file was rejected; nothing was changed.")


class LabelFile(serializers.Serializer):
    file = serializers.FileField(
        validators=[check_label_file_size], help_text="CSV with the columns annotator, task_id, agent, label."
    )


class ImportedLabels(View):
    """Imported labels, for research."""

    scopes = {"POST": Scope.WRITE}
    tag = "Benchmarks"
    operation_ids = {"POST": "import_labels"}
    serializer_class = LabelFile
    parser_classes = [MultiPartParser]

    @extend_schema(request={"multipart/form-data": LabelFile}, responses={200: ReportSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Import a label file, all or nothing. Existing labels do not change."""
        access.require_maintainer(request.user)
        benchmark = access.benchmark_for(request.user, slug)
        given = LabelFile(data=request.data)
        given.is_valid(raise_exception=True)
        file = given.validated_data["file"]
        report = import_labels(file.read(), file.name, benchmark=benchmark)
        return imported(report, "The label file was rejected; nothing was imported.")


class PackageSerializer(serializers.Serializer):
    benchmark = serializers.SlugRelatedField(slug_field="slug", queryset=Benchmark.objects.all())
    agent = serializers.CharField(source="agent_name", max_length=200, help_text="The name used in exports.")
    file = serializers.FileField(
        max_length=255,
        validators=[check_package_size],
        help_text="A zip with one folder for each task id, or another format of docs/formats.md.",
    )
    keep_valid = serializers.BooleanField(default=False, help_text="Import the valid trajectories and list the others.")
    dry_run = serializers.BooleanField(default=False, help_text="Check and report; import nothing.")
    protocol_version = serializers.ChoiceField(
        choices=[1, 2], default=1, help_text="2: annotators do each task themselves first, then judge."
    )
    process_labels = serializers.BooleanField(
        default=False, help_text="Let annotators mark steps as wrong, unnecessary or a side effect."
    )
    create_tasks = serializers.BooleanField(
        default=False, help_text="Create the tasks that the benchmark lacks, from the texts in logs."
    )


class Uploads(View):
    """Send a package for import."""

    scopes = {"POST": Scope.WRITE}
    tag = "Uploads"
    operation_ids = {"POST": "upload_package"}
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
        with report_stopped_import("file"):
            arrivals.receive(upload, file, jobs.import_upload.delay)
        where = request.build_absolute_uri(reverse("api-upload", args=[upload.pk]))
        return Response(UploadSerializer(upload).data, status.HTTP_202_ACCEPTED, headers={"Location": where})


class UploadStatus(View):
    """The progress of an upload, and its report when it is finished."""

    scopes = {"GET": Scope.READ}
    tag = "Uploads"
    operation_ids = {"GET": "get_upload"}
    serializer_class = UploadSerializer

    def get(self, request: Request, pk: Any) -> Response:
        self.chosen()
        return Response(UploadSerializer(access.upload_for(request.user, pk)).data)
