"""One benchmark, the key points of its tasks, and the import of a checked package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, checked_uploads, jobs, operations, workflow
from annotation.api.base import Request, View
from annotation.api.serializers import BenchmarkSerializer, UploadSerializer
from annotation.api.submissions import DeletionFilters
from annotation.api_tokens import Scope
from annotation.models import Benchmark, KeyPoint, Person, Task


def _describe(benchmark: Any) -> dict[str, Any]:
    benchmark.task_count = benchmark.tasks.values("external_id").distinct().count()
    return dict(BenchmarkSerializer(benchmark).data)


class BenchmarkDetail(View):
    """One benchmark."""

    scopes = {"GET": Scope.READ, "DELETE": Scope.ADMIN}
    tag = "Benchmarks"
    operation_ids = {"GET": "get_benchmark", "DELETE": "delete_benchmark"}
    serializer_class = BenchmarkSerializer

    def get(self, request: Request, slug: str) -> Response:
        self.chosen()
        return Response(_describe(access.benchmark_for(request.user, slug)))

    @extend_schema(parameters=[DeletionFilters], responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Delete a benchmark that never had a submission."""
        found = access.benchmark_for(request.user, slug)
        self.filters = DeletionFilters
        workflow.delete_benchmark(request.user, found, self.chosen()["name"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class BenchmarkArchive(View):
    """Archive a benchmark with all its submissions, of which the caller must be a maintainer."""

    scopes = {"POST": Scope.WRITE}
    tag = "Benchmarks"
    operation_ids = {"POST": "archive_benchmark"}
    serializer_class = BenchmarkSerializer
    act: Callable[[Person, Benchmark], Any] = staticmethod(workflow.archive_benchmark)

    @extend_schema(request=None, responses={200: BenchmarkSerializer})
    def post(self, request: Request, slug: str) -> Response:
        found = access.benchmark_for(request.user, slug)
        type(self).act(request.user, found)
        return Response(_describe(found))


class BenchmarkRestore(BenchmarkArchive):
    """Restore an archived benchmark, with the submissions that were archived with it."""

    operation_ids = {"POST": "restore_benchmark"}
    act = staticmethod(workflow.restore_benchmark)


# --- key points -------------------------------------------------------------------------------------------------------


class KeyPointSerializer(serializers.ModelSerializer):
    """A key point; a proposal until ``accepted_at``."""

    class Meta:
        model = KeyPoint
        fields = ["id", "text", "accepted_at", "retired_at"]


class NewKeyPointsSerializer(serializers.Serializer):
    key_points = serializers.ListField(child=serializers.CharField(max_length=500), max_length=100)


class KeyPoints(View):
    """The key points and proposals of a task, in its newest version."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Benchmarks"
    operation_ids = {"GET": "list_key_points", "POST": "add_key_points"}
    serializer_class = KeyPointSerializer
    pagination_class = None  # type: ignore[assignment]

    def task(self) -> Task:
        benchmark = access.benchmark_for(self.request.user, self.kwargs["slug"])
        found = benchmark.tasks.filter(external_id=self.kwargs["external_id"]).order_by("-version").first()
        if found is None:
            raise Http404("No such task.")
        return found

    @extend_schema(responses=KeyPointSerializer(many=True))
    def get(self, request: Request, slug: str, external_id: str) -> Response:
        """List the key points, also retired ones. People who annotate the benchmark see no proposals."""
        task = self.task()
        self.chosen()
        found = operations.find_key_points(request.user, task).order_by("position", "pk")
        return Response(KeyPointSerializer(found, many=True).data)

    @extend_schema(request=NewKeyPointsSerializer, responses={201: KeyPointSerializer(many=True)})
    def post(self, request: Request, slug: str, external_id: str) -> Response:
        """Add the key points that the task lacks, and return those. Every new label must cover them."""
        made = operations.add_key_points(self.task(), self.given(NewKeyPointsSerializer)["key_points"])
        return Response(KeyPointSerializer(made, many=True).data, status.HTTP_201_CREATED)


class KeyPointAccept(View):
    """Accept a proposal: every new label of the task must cover it."""

    scopes = {"POST": Scope.WRITE}
    tag = "Benchmarks"
    operation_ids = {"POST": "accept_key_point"}
    serializer_class = KeyPointSerializer
    act: Callable[[KeyPoint], None] = staticmethod(operations.accept_key_point)

    @extend_schema(request=None, responses={200: KeyPointSerializer})
    def post(self, request: Request, pk: int) -> Response:
        found = operations.find_key_point(request.user, pk)
        type(self).act(found)
        found.refresh_from_db()
        return Response(KeyPointSerializer(found).data)


class KeyPointRetire(KeyPointAccept):
    """Retire a key point or a proposal. Findings that refer to it stay."""

    operation_ids = {"POST": "retire_key_point"}
    act = staticmethod(operations.retire_key_point)


# --- uploads ----------------------------------------------------------------------------------------------------------


class CheckedUpload(View):
    """Import a package that was only checked."""

    scopes = {"POST": Scope.WRITE}
    tag = "Uploads"
    operation_ids = {"POST": "import_checked_upload"}
    serializer_class = UploadSerializer

    @extend_schema(request=None, responses={202: UploadSerializer})
    def post(self, request: Request, pk: Any) -> Response:
        """Import the file of a check without another upload; 409 if it is not stored any more. Twice imports once."""
        access.require_creator(request.user)
        found = access.upload_for(request.user, pk)
        if not checked_uploads.start_import(found, jobs.import_upload.delay) and found.dry_run:
            found.refresh_from_db()
            if found.dry_run:  # not started by somebody else in this moment
                raise workflow.Conflict("The checked file is no longer stored. Upload it again.")
        return Response(UploadSerializer(access.upload_for(request.user, pk)).data, status.HTTP_202_ACCEPTED)
