"""Exports for the scripts of maintainers."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access, store_checks
from annotation.access import Role
from annotation.api.base import Request, View
from annotation.api.serializers import ProblemSerializer
from annotation.api_tokens import Scope
from annotation.problem_details import Refused
from evaluations import exports_v2
from evaluations.download import download, prepare_download
from evaluations.exports import ExportFormat, ExportRefused, missing_for_export


class ExportCheckSerializer(serializers.Serializer):
    """``missing`` keeps every export from being complete, ``unconvertible`` that of trajectories-v2 only."""

    complete = serializers.BooleanField()
    missing = ProblemSerializer(many=True)
    unconvertible = ProblemSerializer(many=True)
    warnings = ProblemSerializer(many=True, help_text="Gaps that trajectories-v2 will show.")


class ExportFilters(serializers.Serializer):
    partial = serializers.BooleanField(  # type: ignore[assignment]
        required=False, help_text="Take what is final so far; the file says so."
    )


class AnyFile(JSONRenderer):
    """Whatever type the caller accepts, since a file is what it is; errors are JSON all the same."""

    media_type = "*/*"


class ExportCheck(View):
    """Everything that is missing for an export."""

    scopes = {"GET": Scope.READ}
    serializer_class = ExportCheckSerializer

    def get(self, request: Request, pk: int) -> Response:
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        self.chosen()
        missing = missing_for_export(submission)
        unconvertible, warnings = exports_v2.survey(submission)
        unconvertible += store_checks.find_known_damage(submission)
        answer = {
            "complete": not missing,
            "missing": [problem.as_json() for problem in missing],
            "unconvertible": [problem.as_json() for problem in unconvertible],
            "warnings": [problem.as_json() for problem in warnings],
        }
        return Response(answer)


class ExportFile(View):
    """A submission as a file."""

    scopes = {"GET": Scope.READ}
    renderer_classes = [JSONRenderer, AnyFile]
    serializer_class = ExportFilters
    filters = ExportFilters

    @extend_schema(
        parameters=[
            OpenApiParameter("export_format", str, OpenApiParameter.PATH, enum=[f.value for f in ExportFormat])
        ],
        responses={
            (200, "application/json"): OpenApiTypes.ANY,
            (200, "application/jsonl"): OpenApiTypes.STR,
            (200, "application/zip"): OpenApiTypes.BINARY,
        },
    )
    def get(self, request: Request, pk: int, export_format: str) -> Any:
        """Download an export. 409 with every reason while something is missing, unless ``partial`` is set."""
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        if export_format not in list(ExportFormat):
            raise Http404("There is no such export.")
        partial = self.chosen().get("partial", False)
        try:
            return download(prepare_download(submission, ExportFormat(export_format), partial=partial))
        except ExportRefused as refused:
            raise Refused("The export was refused.", refused.problems, status.HTTP_409_CONFLICT) from refused


class Nowhere(APIView):
    """An address that the API does not have, answered with problem details like every other error."""

    http_method_names = ["get", "post", "put", "patch", "delete", "head"]
    scopes = dict.fromkeys(["GET", "POST", "PUT", "PATCH", "DELETE"], Scope.READ)
    schema = None

    def get(self, request: Request, rest: str) -> Response:
        raise Http404("This address does not exist in the API. Check its spelling.")

    post = put = patch = delete = head = get
