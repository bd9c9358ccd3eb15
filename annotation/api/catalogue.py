"""Benchmarks and their tasks."""

from __future__ import annotations

from django.db.models import Count, Exists, OuterRef, Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from annotation import access
from annotation.api.base import Listing, Request, View, imported
from annotation.api.serializers import BenchmarkSerializer, ReportSerializer, TaskSerializer
from annotation.api_tokens import Scope
from annotation.catalogue import import_labels, import_task_file
from annotation.forms import check_label_file_size, check_task_file_size
from annotation.models import Benchmark, KeyPoint, Task

LONGEST_SLUG = Benchmark._meta.get_field("slug").max_length or 0


class Benchmarks(Listing):
    """The benchmarks that the caller may read."""

    scopes = {"GET": Scope.READ}
    serializer_class = BenchmarkSerializer

    def get_queryset(self) -> QuerySet[Benchmark]:
        access.require_maintainer(self.request.user)
        self.chosen()
        benchmarks = access.benchmarks_for(self.request.user)
        return benchmarks.annotate(task_count=Count("tasks__external_id", distinct=True)).order_by("slug")


class TaskFilters(serializers.Serializer):
    level = serializers.CharField(required=False, help_text="The level exactly as the task file has it.")
    website = serializers.CharField(required=False, help_text="A part of the address, upper or lower case.")


class TaskFile(serializers.Serializer):
    file = serializers.FileField(validators=[check_task_file_size], help_text="A JSON list of tasks.")
    name = serializers.CharField(required=False, max_length=200, help_text="The benchmark's name when it is new.")


class Tasks(Listing):
    """The tasks of a benchmark, each in its latest version."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
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
        return imported(report, "The task file was refused; nothing was changed.")


class LabelFile(serializers.Serializer):
    file = serializers.FileField(
        validators=[check_label_file_size], help_text="CSV with the columns annotator, task_id, agent, label."
    )


class ImportedLabels(View):
    """Imported labels, for research."""

    scopes = {"POST": Scope.WRITE}
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
        return imported(report, "The label file was refused; nothing was imported.")
