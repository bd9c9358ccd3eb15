"""API endpoints with the active hours of annotators."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from annotation import access, active_hours
from annotation.access import Role
from annotation.active_hours import Span
from annotation.api.base import Request, View
from annotation.api.serializers import HoursSerializer
from annotation.api_tokens import Scope

ROWS = extend_schema(responses=HoursSerializer(many=True))


class SpanFilters(serializers.Serializer):
    first = serializers.DateField(required=False, help_text="The first day, in UTC.")
    last = serializers.DateField(required=False, help_text="The last day, in UTC.")
    daily = serializers.BooleanField(required=False, help_text="One row for each day with a label.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "first" in attrs and "last" in attrs and attrs["first"] > attrs["last"]:
            raise serializers.ValidationError({"first": "The first day is after the last. Swap them."})
        return attrs


class Hours(View):
    scopes = {"GET": Scope.READ}
    serializer_class = HoursSerializer
    pagination_class = None  # type: ignore[assignment]
    filters = SpanFilters

    def span(self) -> Span:
        return Span(**self.chosen())


class SubmissionHours(Hours):
    """Labels and active hours of each annotator of a submission, for its maintainers."""

    tag = "Submissions"
    operation_ids = {"GET": "list_submission_hours"}

    @ROWS
    def get(self, request: Request, pk: int) -> Response:
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        return Response(active_hours.measure_submissions([found], self.span()))


class BenchmarkHours(Hours):
    """Labels and active hours of each annotator of each submission of a benchmark that the caller maintains."""

    tag = "Benchmarks"
    operation_ids = {"GET": "list_benchmark_hours"}

    @ROWS
    def get(self, request: Request, slug: str) -> Response:
        found = access.benchmark_for(request.user, slug)
        maintained = access.submissions_maintained_by(request.user).filter(benchmark=found)
        return Response(active_hours.measure_submissions(maintained, self.span()))


class OwnHours(Hours):
    """The caller's own labels and active hours in each submission."""

    tag = "Account"
    operation_ids = {"GET": "list_own_hours"}

    @ROWS
    def get(self, request: Request) -> Response:
        return Response(active_hours.measure_own(request.user, self.span()))
