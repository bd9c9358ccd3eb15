"""API endpoints to align a judge with people."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation.api.base import Listing, Request, View
from annotation.api_tokens import Scope
from evaluations import jobs
from evaluations.access import name_of
from evaluations.judge_alignment import disagreements, forecasting, looks, reporting, starting
from evaluations.judge_alignment.optimisers import OPTIMISERS, PLAIN
from judges import defining
from judges.models import Alignment, AlignmentVersion, DisagreementMark

BUDGET: dict[str, Any] = {"max_digits": 12, "decimal_places": 4, "required": False, "allow_null": True}


class BriefAlignmentSerializer(serializers.ModelSerializer):
    judge = serializers.CharField()
    state = serializers.CharField()

    class Meta:
        model = Alignment
        fields = ["id", "judge", "optimiser", "rounds", "state", "created_at", "finished_at"]


class VersionSerializer(serializers.Serializer):
    """A version of the criteria; ``development`` has its figures against its parent."""

    number = serializers.IntegerField()
    judge = serializers.CharField(allow_null=True)
    parent = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    accepted = serializers.BooleanField(allow_null=True)
    reason = serializers.CharField()
    criteria = serializers.CharField()
    development = serializers.DictField(allow_null=True)


class LookSerializer(serializers.Serializer):
    """A look at the test split; ``test`` is the paired change from the base judge, null until it is computed."""

    version = serializers.IntegerField()
    person = serializers.CharField()
    looked_at = serializers.DateTimeField()
    test = serializers.DictField(allow_null=True)
    reason = serializers.CharField(help_text="Why it cannot go on; empty if it can.")


class AlignmentSerializer(serializers.Serializer):
    alignment = serializers.IntegerField()
    benchmark = serializers.CharField()
    judge = serializers.CharField()
    optimiser = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    split = serializers.DictField()
    looks_at_test = serializers.IntegerField(help_text="All looks at the test split of this benchmark.")
    versions_tried = serializers.IntegerField(help_text="Rewritten versions of all alignments on this split.")
    rounds = serializers.IntegerField()
    max_cost = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(allow_null=True)
    max_calls = serializers.IntegerField(allow_null=True)
    calls = serializers.IntegerField()
    best = serializers.CharField(allow_null=True)
    reopened = serializers.BooleanField(help_text="A submission of it is not frozen, so figures are null.")
    versions = VersionSerializer(many=True)
    looks = LookSerializer(many=True)


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class JudgeField(serializers.PrimaryKeyRelatedField):
    """A judge by its id, its name, or name@version."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data.isdecimal():
            return super().to_internal_value(data)
        try:
            return defining.find_judge(data, starting.find_judges())
        except LookupError as error:
            raise serializers.ValidationError(str(error.args[0])) from error


class NewAlignmentPlanSerializer(serializers.Serializer):
    judge = JudgeField(queryset=starting.find_judges(), help_text="The id of a judge, its name, or name@version.")
    rounds = serializers.IntegerField(min_value=1, max_value=starting.MOST_ROUNDS, default=5)


class AlignmentPlanSerializer(serializers.Serializer):
    """From the fewest to the most paid calls; costs in US dollars, without rewriting, null without prices."""

    calls = serializers.IntegerField()
    calls_high = serializers.IntegerField()
    cost = serializers.CharField(allow_null=True)
    cost_high = serializers.CharField(allow_null=True)
    look_calls = serializers.IntegerField(help_text="Calls of one look at the test split, in addition.")


class NewAlignmentSerializer(NewAlignmentPlanSerializer):
    max_cost = serializers.DecimalField(**BUDGET)
    max_calls = serializers.IntegerField(min_value=1, required=False, allow_null=True)
    optimiser = serializers.ChoiceField(choices=sorted(OPTIMISERS), default=PLAIN)


class Alignments(Listing):
    """Alignments of judges with the verdicts of a benchmark."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Judges"
    operation_ids = {"GET": "list_alignments", "POST": "start_alignment"}
    serializer_class = BriefAlignmentSerializer

    def get_queryset(self) -> QuerySet[Alignment]:
        benchmark = starting.find_benchmark(self.request.user, self.kwargs["slug"])
        self.chosen()
        return starting.find_alignments(self.request.user, benchmark)

    @extend_schema(request=NewAlignmentSerializer, responses={201: AlignmentSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Start an alignment; the first one of a benchmark draws and locks the split."""
        benchmark = starting.find_benchmark(request.user, slug)
        given = NewAlignmentSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        terms = dict(given.validated_data)
        made = starting.start(request.user, terms.pop("judge"), benchmark, jobs.advance_alignment.delay, **terms)
        return Response(reporting.describe(made), status=status.HTTP_201_CREATED)


class AlignmentPlan(View):
    """An estimate of an alignment."""

    scopes = {"POST": Scope.READ}
    tag = "Judges"
    operation_ids = {"POST": "plan_alignment"}
    serializer_class = AlignmentPlanSerializer

    @extend_schema(request=NewAlignmentPlanSerializer, responses={200: AlignmentPlanSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Estimate the calls and the cost of an alignment. Nothing is started."""
        benchmark = starting.find_benchmark(request.user, slug)
        given = NewAlignmentPlanSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        found = forecasting.forecast(request.user, benchmark=benchmark, **given.validated_data)
        return Response(found.as_json())


class One(View):
    tag = "Judges"
    serializer_class: Any = AlignmentSerializer

    def alignment(self) -> Alignment:
        return starting.find_alignment(self.request.user, self.kwargs["pk"])

    def version(self) -> AlignmentVersion:
        return disagreements.find_version(self.alignment(), self.kwargs["number"])


class AlignmentDetail(One):
    """One alignment."""

    scopes = {"GET": Scope.READ}
    operation_ids = {"GET": "get_alignment"}

    def get(self, request: Request, pk: int) -> Response:
        """Return versions, figures on the development split, and looks at the test split."""
        found = self.alignment()
        self.chosen()
        return Response(reporting.describe(found))


class ResumeSerializer(serializers.Serializer):
    max_cost = serializers.DecimalField(**BUDGET)
    max_calls = serializers.IntegerField(min_value=1, required=False, allow_null=True)


class AlignmentResume(One):
    """Continue a stopped alignment."""

    scopes = {"POST": Scope.WRITE}
    operation_ids = {"POST": "resume_alignment"}

    @extend_schema(request=ResumeSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Resume with a new budget, if given; 409 if it is not stopped."""
        found = self.alignment()
        given = ResumeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        starting.resume(request.user, found, jobs.advance_alignment.delay, **given.validated_data)
        return Response(reporting.describe(found))


class AlignmentCancel(One):
    """End an alignment."""

    scopes = {"POST": Scope.WRITE}
    operation_ids = {"POST": "cancel_alignment"}

    @extend_schema(request=None)
    def post(self, request: Request, pk: int) -> Response:
        """Cancel an alignment; its versions and judgments stay."""
        found = self.alignment()
        starting.cancel(request.user, found)
        return Response(reporting.describe(found))


class NewLookSerializer(serializers.Serializer):
    version = serializers.IntegerField(min_value=1)


class AlignmentLooks(One):
    """Looks at the test split."""

    scopes = {"POST": Scope.WRITE}
    operation_ids = {"POST": "look_at_test"}

    @extend_schema(request=NewLookSerializer, responses={202: LookSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Compare a version with the base judge on the test split, in the background; each look is counted."""
        found = self.alignment()
        given = NewLookSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        made = looks.look(request.user, disagreements.find_version(found, given.validated_data["version"]))
        jobs.queue_look(made.pk)
        return Response(reporting.describe_look(made), status=status.HTTP_202_ACCEPTED)


class DisagreementSerializer(serializers.Serializer):
    """A disagreement on a training or development task; ``right`` is the newest mark, empty without one."""

    judgment = serializers.IntegerField(source="judgment.pk")
    task_id = serializers.CharField(source="case.task_id")
    part = serializers.CharField()
    judge = serializers.CharField(source="judge_verdict")
    judge_reason = serializers.CharField(source="judgment.explanation")
    people = serializers.CharField(source="people_verdict")
    people_reasons = serializers.ListField(child=serializers.CharField(), source="reasons.texts")
    step = serializers.IntegerField(source="reasons.step", allow_null=True)
    right = serializers.CharField()


class MarksSerializer(serializers.Serializer):
    judgments = serializers.ListField(child=serializers.IntegerField(), max_length=1000)
    right = serializers.ChoiceField(choices=DisagreementMark.Right.choices)


class Disagreements(One):
    """Disagreements of a version with people, on training and development tasks only."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    operation_ids = {"GET": "list_disagreements", "POST": "mark_disagreements"}
    serializer_class = DisagreementSerializer
    pagination_class = None  # type: ignore[assignment]

    @extend_schema(responses=DisagreementSerializer(many=True))
    def get(self, request: Request, pk: int, number: int) -> Response:
        """Return the disagreements with the reasons of both sides."""
        version = self.version()
        self.chosen()
        return Response(DisagreementSerializer(disagreements.list_rows(version), many=True).data)

    @extend_schema(request=MarksSerializer, responses={204: None})
    def post(self, request: Request, pk: int, number: int) -> Response:
        """Mark who is right in some of them."""
        version = self.version()
        given = MarksSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        disagreements.mark(request.user, version, **given.validated_data)
        return Response(status=status.HTTP_204_NO_CONTENT)


class CriterionSerializer(serializers.Serializer):
    judgments = serializers.ListField(child=serializers.IntegerField(), max_length=1000)
    text = serializers.CharField(
        max_length=disagreements.LONGEST_CRITERION, help_text="The criterion, in your own words."
    )


class NewJudgeSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    judge = serializers.CharField()


class Criteria(One):
    """Criteria from disagreements."""

    scopes = {"POST": Scope.WRITE}
    operation_ids = {"POST": "add_criterion"}
    serializer_class = NewJudgeSerializer

    @extend_schema(request=CriterionSerializer, responses={201: NewJudgeSerializer})
    def post(self, request: Request, pk: int, number: int) -> Response:
        """Define a new version of the judge with one more criterion."""
        version = self.version()
        given = CriterionSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        made = disagreements.add_criterion(request.user, version, **given.validated_data)
        return Response({"id": made.pk, "judge": name_of(made)}, status=status.HTTP_201_CREATED)
