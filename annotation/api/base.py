"""Base of the API: pagination, checked filters, error schemas, and responses to imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.utils.cache import patch_cache_control
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from rest_framework import request as rest_request
from rest_framework import serializers
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.metadata import SimpleMetadata
from rest_framework.pagination import PageNumberPagination
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from annotation.api.serializers import ProblemDetailsSerializer
from annotation.api_tokens import Scope
from annotation.ingest import ImportStopped
from annotation.models import Person
from annotation.problem_details import MEDIA_TYPE, Refused
from annotation.records import ImportReport, Problem

MOST_PER_PAGE = 200
ERRORS = {"400", "401", "403", "404", "409"}
# Descriptions of path parameters; ``id`` by the part of the address before it.
PATH_PARAMETERS = {
    "attachment": "Number of an attachment of the trajectory.",
    "delivery_pk": "Id of a message of the webhook.",
    "digest": "SHA-256 of the prompt set.",
    "expected": "Kind of expectation: network_checks or rubric.",
    "export_format": "Format of the export.",
    "external_id": "Id of the task in its benchmark.",
    "key": "Public id of the entry.",
    "item": "Number of a trajectory of the practice set.",
    "kind": "Size of the image: thumbnail, display, or full for every pixel.",
    "number": "Number of the version, from 0.",
    "part": "File to download: labels, trajectories or evidence.",
    "pseudonym": "Pseudonym of the member, such as A1.",
    "slug": "Short name of the benchmark.",
    "step": "Number of the step, from 0.",
}


class Request(rest_request.Request):
    """An API request. Views receive only requests of people who are signed in."""

    user: Person


@contextmanager
def report_stopped_import(where: str) -> Iterator[None]:
    """Report a full or unresponsive store with its status and Retry-After; ``where`` is the field of the file."""
    try:
        yield
    except ImportStopped as error:
        stopped = Problem("import_stopped", str(error), where)
        raise Refused(str(error), [stopped], error.outage.status, error.outage.retry_after) from error


class Pages(PageNumberPagination):
    """Pagination with ``page`` from 1 and ``page_size`` from 1 to 200; an invalid size is an error."""

    page_size_query_param = "page_size"
    max_page_size = MOST_PER_PAGE

    def get_page_size(self, request: rest_request.Request) -> int | None:
        field = serializers.IntegerField(min_value=1, max_value=MOST_PER_PAGE)
        given = request.query_params.get("page_size")
        try:
            return self.page_size if given is None else int(field.run_validation(given))
        except serializers.ValidationError as error:
            raise serializers.ValidationError({"page_size": error.detail}) from error

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        size = {"type": "integer", "minimum": 1, "maximum": MOST_PER_PAGE, "default": self.page_size}
        page = {"type": "integer", "minimum": 1, "default": 1}
        return [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in (("page", page), ("page_size", size))
        ]


class ProblemSchema(AutoSchema):
    """Schema in which every operation may return problem details; ``filters`` of a view are its GET parameters."""

    def get_override_parameters(self) -> list[Any]:
        filters = getattr(self.view, "filters", None)
        return [filters] if filters is not None and self.method == "GET" else []

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                parameter.setdefault("description", self._describe(parameter["name"]))
        scope: Scope | None = self.view.scopes[self.method]  # type: ignore[attr-defined]
        return operation | ({"x-token-scope": scope.value} if scope else {})

    def _describe(self, name: str) -> str:
        if name != "id":
            return PATH_PARAMETERS[name]
        kind = self.path.partition("/{id}")[0].rpartition("/")[2].removesuffix("s").replace("-", " ")
        return f"Number of the {kind}." if "uploads" not in self.path else "Id of the upload."

    def get_operation_id(self) -> str:
        return str(self.view.operation_ids[self.method])  # type: ignore[attr-defined]

    def get_tags(self) -> list[str]:
        return [self.view.tag]  # type: ignore[attr-defined]

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies = super()._get_response_bodies(direction)
        for code in sorted(ERRORS):
            bodies.setdefault(
                code, self._get_response_for_code(ProblemDetailsSerializer, code, [MEDIA_TYPE], direction)
            )
        return bodies


class Metadata(SimpleMetadata):
    """The response to OPTIONS. Unlike the framework's, it needs no object to describe a PUT."""

    def determine_actions(self, request: Any, view: Any) -> dict[str, Any]:
        methods = {"PUT", "POST"} & set(view.allowed_methods)
        return {method: self.get_serializer_info(view.get_serializer()) for method in sorted(methods)}


class CachedSchemaGenerator(SchemaGenerator):
    """Generator of the whole schema, once in a process: it depends only on the code, and takes half a second."""

    _schema: ClassVar[dict[str, Any] | None] = None

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        if not public:
            return super().get_schema(request, public)
        if self._schema is None:
            type(self)._schema = super().get_schema(None, public)
        return self._schema


class View(GenericAPIView):
    """A view of the API. ``filters`` declares the query parameters; any other one is rejected, not ignored.

    ``scopes`` declares the scope that a token needs for each method. A view without it accepts no token. ``tag`` and
    ``operation_ids`` (that of each method's operation) describe it in the schema.
    """

    request: Request
    scopes: Mapping[str, Scope | None] = {}
    tag: str
    operation_ids: Mapping[str, str]
    metadata_class = Metadata
    schema = ProblemSchema()
    pagination_class = Pages
    filters: type[serializers.Serializer] | None = None
    streams_body = False

    def initial(self, request: rest_request.Request, *args: Any, **kwargs: Any) -> None:
        """Reject a large body that would be in memory as a whole; the files of a form are written to disk."""
        super().initial(request, *args, **kwargs)
        length = int(request.META.get("CONTENT_LENGTH") or 0)
        is_streamed = self.streams_body or str(request.content_type).startswith("multipart/")
        if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE and not is_streamed:
            raise RequestDataTooBig

    def finalize_response(self, *args: Any, **kwargs: Any) -> Any:
        """Forbid caching, because responses contain labels and tokens."""
        response = super().finalize_response(*args, **kwargs)
        patch_cache_control(response, private=True, no_store=True)
        return response

    def chosen(self) -> dict[str, Any]:
        """Return the given query parameters, checked and converted. Raises ValidationError."""
        given = self.request.query_params.dict()
        for name in ("page", "page_size") if self.paginator is not None else ():
            given.pop(name, None)
        filters = (self.filters or serializers.Serializer)(data=given)
        unknown = sorted(set(given) - set(filters.fields))
        if unknown:
            raise serializers.ValidationError(dict.fromkeys(unknown, "This query parameter does not exist."))
        filters.is_valid(raise_exception=True)
        return dict(filters.validated_data)

    def given(self, serializer: type[serializers.BaseSerializer] | None = None) -> Any:
        """Return the body of the request, checked and converted. Raises ValidationError."""
        body = (serializer or self.get_serializer_class())(data=self.request.data)
        body.is_valid(raise_exception=True)
        return body.validated_data


class Listing(View, ListAPIView):
    """A list in pages."""

    request: Request


class AnyFile(JSONRenderer):
    """A file of any type, whatever the caller accepts; errors are JSON."""

    media_type = "*/*"


class FileView(View):
    """A view that returns a file."""

    renderer_classes = [JSONRenderer, AnyFile]


def imported(report: ImportReport, refusal: str) -> Response:
    """Return the report of an import that is all or nothing. Raises Refused with every problem."""
    problems = [problem for found in report.rejected.values() for problem in found]
    if problems:
        raise Refused(refusal, problems)
    return Response(report.as_json())
