"""API endpoints for expectations: read, write, withdraw and import network checks and rubrics."""

from __future__ import annotations

from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from annotation import access as people_access
from annotation.api.base import Listing, Request, View, imported
from annotation.api.serializers import ReportSerializer
from annotation.api_tokens import Scope
from annotation.forms import check_size
from annotation.models import Task
from judges import access, expectations, imports
from judges.expectations import LARGEST_FILE, LONGEST_WHY, Kind
from judges.models import Expectation


class ExpectationSerializer(serializers.ModelSerializer):
    """A version of a task's checks or rubric. Empty ``text``: withdrawn. ``written_by`` is null for a command."""

    task_id = serializers.CharField(source="task.external_id", read_only=True)
    task_version = serializers.IntegerField(source="task.version", read_only=True)
    written_by = serializers.SerializerMethodField()

    class Meta:
        model = Expectation
        fields = ["task_id", "task_version", "kind", "version", "text", "digest", "why", "written_by", "written_at"]

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_written_by(self, row: Expectation) -> str | None:
        return row.written_by.get_username() if row.written_by is not None else None


class NewTextSerializer(serializers.Serializer):
    """A new version. ``after`` is the version that was edited, 0 for none; 409 if there is a newer one."""

    text = serializers.CharField(trim_whitespace=False, help_text="YAML or JSON.")
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=LONGEST_WHY)
    after = serializers.IntegerField(required=False, min_value=0, default=None, allow_null=True)

    def validate_text(self, text: str) -> str:
        if not text.strip():
            raise serializers.ValidationError("The text is empty. To expect nothing any more, use DELETE.")
        return text


class ExpectationFilters(serializers.Serializer):
    kind = serializers.ChoiceField(choices=Kind.choices, required=False)
    task_id = serializers.CharField(required=False)


class WhichVersion(serializers.Serializer):
    version = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)


class WithdrawnVersion(serializers.Serializer):
    after = serializers.IntegerField(
        required=False,
        min_value=0,
        default=None,
        help_text="The version that was edited; 409 if there is a newer one.",
    )


class Expectations(Listing):
    """The newest checks and rubrics of the tasks of a benchmark, without withdrawn ones."""

    scopes = {"GET": Scope.READ}
    tag = "Expectations"
    operation_ids = {"GET": "list_expectations"}
    serializer_class = ExpectationSerializer
    filters = ExpectationFilters

    def get_queryset(self) -> QuerySet[Expectation]:
        if getattr(self, "swagger_fake_view", False):
            return Expectation.objects.none()
        people_access.require_maintainer(self.request.user)
        benchmark = access.find_benchmark(self.request.user, self.kwargs["slug"])
        chosen = self.chosen()
        same = Expectation.objects.filter(task=OuterRef("task"), kind=OuterRef("kind")).order_by("-version")
        found = Expectation.objects.filter(task__benchmark=benchmark, version=Subquery(same.values("version")[:1]))
        if "kind" in chosen:
            found = found.filter(kind=chosen["kind"])
        if "task_id" in chosen:
            found = found.filter(task__external_id=chosen["task_id"])
        return found.exclude(text="").select_related("task", "written_by").order_by("task_id", "kind")


class ExpectationDetail(View):
    """Expectations of the newest version of one task."""

    scopes = {"GET": Scope.READ, "PUT": Scope.WRITE, "DELETE": Scope.WRITE}
    tag = "Expectations"
    operation_ids = {"GET": "get_expectation", "PUT": "write_expectation", "DELETE": "withdraw_expectation"}
    serializer_class = ExpectationSerializer
    filters: type[serializers.Serializer] = WhichVersion

    def get(self, request: Request, slug: str, external_id: str, expected: str) -> Response:
        """Return the newest version, or the one given by ``version``."""
        task, kind = self._task(slug, external_id), _find_kind(expected)
        wanted = self.chosen().get("version")
        if wanted is None:
            found = expectations.find_current(task, kind)
        else:
            found = expectations.select_history(task, kind).filter(version=wanted).first()
        if found is None:
            raise Http404("This task has no expectations.")
        return Response(ExpectationSerializer(found).data)

    @extend_schema(request=NewTextSerializer, responses={200: ExpectationSerializer})
    def put(self, request: Request, slug: str, external_id: str, expected: str) -> Response:
        """Write a new version, unless the text is unchanged. 400 lists every problem with its line."""
        task, kind = self._task(slug, external_id), _find_kind(expected)
        given = NewTextSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        values = given.validated_data
        made = expectations.write(request.user, task, kind, values["text"], values["why"], after=values["after"])
        return Response(ExpectationSerializer(made).data)

    @extend_schema(parameters=[WithdrawnVersion], responses={200: ExpectationSerializer})
    def delete(self, request: Request, slug: str, external_id: str, expected: str) -> Response:
        """Withdraw the expectations with a new version without text. Earlier versions stay."""
        task, kind = self._task(slug, external_id), _find_kind(expected)
        self.filters = WithdrawnVersion
        made = expectations.withdraw(request.user, task, kind, after=self.chosen()["after"])
        return Response(ExpectationSerializer(made).data)

    def _task(self, slug: str, external_id: str) -> Task:
        people_access.require_maintainer(self.request.user)
        benchmark = access.find_benchmark(self.request.user, slug)
        found = benchmark.tasks.filter(external_id=external_id).order_by("-version").first()
        if found is None:
            raise Http404("No such task.")
        return found


def _find_kind(expected: str) -> Kind:
    if expected not in Kind.values:
        raise Http404(f"This kind of expectation does not exist. Known: {', '.join(Kind.values)}.")
    return Kind(expected)


class ExpectationsFile(serializers.Serializer):
    kind = serializers.ChoiceField(choices=Kind.choices)
    file = serializers.FileField(
        validators=[lambda file: check_size(file, LARGEST_FILE)],
        help_text="A zip with one <task_id>.yaml for each task, or YAML, JSON or JSON Lines of entries with task_id "
        "and checks, or rubric.",
    )
    dry_run = serializers.BooleanField(required=False, default=False, help_text="Check the file without importing it.")


class ExpectationsImport(View):
    """Checks or rubrics of many tasks."""

    scopes = {"POST": Scope.WRITE}
    tag = "Expectations"
    operation_ids = {"POST": "import_expectations"}
    serializer_class = ExpectationsFile
    parser_classes = [MultiPartParser]

    @extend_schema(request={"multipart/form-data": ExpectationsFile}, responses={200: ReportSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Import checks or rubrics of many tasks from a file, all or nothing."""
        people_access.require_maintainer(request.user)
        benchmark = access.find_benchmark(request.user, slug)
        given = ExpectationsFile(data=request.data)
        given.is_valid(raise_exception=True)
        values = given.validated_data
        report = expectations.import_file(
            request.user,
            benchmark,
            values["kind"],
            values["file"].read(),
            values["file"].name,
            dry_run=values["dry_run"],
        )
        return imported(report, "The file was rejected; nothing was imported.")


# --- imported judgments -----------------------------------------------------------------------------------------------


class JudgmentFile(serializers.Serializer):
    file = serializers.FileField(
        validators=[lambda file: check_size(file, imports.LARGEST_FILE)],
        help_text="JSON Lines or CSV with agent, task_id, verdict; or a WebJudge result file.",
    )
    judge = serializers.SlugField(max_length=imports.LONGEST_NAME, help_text="The judge's name.")
    agent = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="The agent, if the file does not name it.",
    )


class ImportedJudgments(View):
    """Imported judgments."""

    scopes = {"POST": Scope.WRITE}
    tag = "Benchmarks"
    operation_ids = {"POST": "import_judgments"}
    serializer_class = JudgmentFile
    parser_classes = [MultiPartParser]

    @extend_schema(request={"multipart/form-data": JudgmentFile}, responses={200: ReportSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Import a judgment file, all or nothing. Existing judgments do not change."""
        people_access.require_maintainer(request.user)
        benchmark = access.find_benchmark(request.user, slug)
        given = JudgmentFile(data=request.data)
        given.is_valid(raise_exception=True)
        file = given.validated_data["file"]
        outcome = imports.import_judgments(
            file.read(),
            file.name,
            benchmark=benchmark,
            judge=given.validated_data["judge"],
            agent=given.validated_data["agent"],
            person=request.user,
        )
        return imported(outcome.report, "The judgment file was rejected; nothing was imported.")
