"""Submissions for their maintainers: progress while people review, labels and verdicts once it is frozen."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, redactions, workflow
from annotation.access import Role
from annotation.api.base import Listing, Request, View
from annotation.api.serializers import (
    AdjudicationSerializer,
    LabelSerializer,
    MemberSerializer,
    ProgressSerializer,
    RedactionSerializer,
    RedactSerializer,
    ReportToMaintainerSerializer,
    SubmissionSerializer,
    TrajectoryDetailSerializer,
    TrajectorySerializer,
    VerdictSerializer,
)
from annotation.api_tokens import Scope
from annotation.models import Membership, Redaction, Screenshot, Submission, Trajectory
from annotation.models.states import State, final_verdict, with_state
from annotation.workflow import Conflict


class SubmissionFilters(serializers.Serializer):
    benchmark = serializers.SlugField(required=False)
    agent = serializers.CharField(required=False, help_text="The agent's whole name.")
    frozen = serializers.BooleanField(required=False)


class TaskFilter(serializers.Serializer):
    task_id = serializers.CharField(required=False)


class ProgressFilters(TaskFilter):
    state = serializers.ChoiceField(choices=[state.value for state in State], required=False)


class MemberFilters(serializers.Serializer):
    role = serializers.ChoiceField(choices=Membership.Role.choices, required=False)


class Submissions(Listing):
    """The submissions that the caller maintains, newest first."""

    scopes = {"GET": Scope.READ}
    serializer_class = SubmissionSerializer
    filters = SubmissionFilters

    def get_queryset(self) -> QuerySet[Submission]:
        access.require_maintainer(self.request.user)
        chosen = self.chosen()
        found = access.submissions_maintained_by(self.request.user)
        if "benchmark" in chosen:
            found = found.filter(benchmark__slug=chosen["benchmark"])
        if "agent" in chosen:
            found = found.filter(agent__name=chosen["agent"])
        if "frozen" in chosen:
            found = found.filter(frozen_at__isnull=not chosen["frozen"])
        return found.annotate(trajectory_count=Count("trajectories")).order_by("-created_at", "-pk")


class SubmissionDetail(View):
    """One submission."""

    scopes = {"GET": Scope.READ}
    serializer_class = SubmissionSerializer

    def get(self, request: Request, pk: int) -> Response:
        submission: Any = access.submission_for(request.user, pk, *access.READERS)
        self.chosen()
        submission.trajectory_count = submission.trajectories.count()
        return Response(SubmissionSerializer(submission).data)


class OfSubmission(Listing):
    """A list that belongs to one submission, for its maintainers and auditors."""

    filters: type[serializers.Serializer] = TaskFilter

    def submission(self) -> Submission:
        return access.submission_for(self.request.user, self.kwargs["pk"], *access.READERS)

    def frozen(self, what: str) -> Submission:
        """The submission when it is frozen; a Conflict that explains itself before."""
        submission = self.submission()
        if not access.may_see_all_labels(self.request.user, submission):
            raise Conflict(
                f"The {what} can be read once the submission is frozen: until then people work independently of them."
            )
        return submission

    def of_task(self, rows: QuerySet[Any], path: str) -> QuerySet[Any]:
        """``rows``, of one task only when the caller asked for one; ``path`` leads to the task's id."""
        chosen = self.chosen()
        return rows.filter(**{path: chosen["task_id"]}) if "task_id" in chosen else rows

    def get_serializer_context(self) -> dict[str, Any]:
        context: dict[str, Any] = {**super().get_serializer_context()}
        if "pk" in self.kwargs:
            members = Membership.objects.filter(submission=self.kwargs["pk"])
            context["pseudonyms"] = dict(members.values_list("person_id", "pseudonym"))
        return context


class Progress(OfSubmission):
    """The state of every trajectory."""

    scopes = {"GET": Scope.READ}
    serializer_class = ProgressSerializer
    filters = ProgressFilters

    def get_queryset(self) -> QuerySet[Any]:
        rows = with_state(self.submission().trajectories.select_related("task")).order_by("position")
        chosen = self.chosen()
        if "state" in chosen:
            rows = rows.filter(state=chosen["state"])
        return self.of_task(rows, "task__external_id")


class Trajectories(OfSubmission):
    """The trajectories of a submission."""

    scopes = {"GET": Scope.READ}
    serializer_class = TrajectorySerializer

    def get_queryset(self) -> QuerySet[Any]:
        rows = self.submission().trajectories.select_related("task").annotate(step_count=Count("steps"))
        return self.of_task(rows, "task__external_id").order_by("position")


class TrajectoryDetail(View):
    """One trajectory with its steps."""

    scopes = {"GET": Scope.READ}
    serializer_class = TrajectoryDetailSerializer

    def get(self, request: Request, pk: int) -> Response:
        trajectory = access.trajectory_for(request.user, pk, *access.READERS)
        self.chosen()
        shown = Trajectory.objects.select_related("task").prefetch_related("steps__screenshot").get(pk=trajectory.pk)
        return Response(TrajectoryDetailSerializer(shown).data)


class Labels(OfSubmission):
    """Every label with all its revisions, after the freeze."""

    scopes = {"GET": Scope.READ}
    serializer_class = LabelSerializer

    def get_queryset(self) -> QuerySet[Any]:
        labels = access.labels_of(self.request.user, self.frozen("labels"))
        labels = labels.select_related("assignment__trajectory__task", "attempt").prefetch_related(
            "findings__key_point"
        )
        labels = self.of_task(labels, "assignment__trajectory__task__external_id")
        return labels.order_by("assignment__trajectory__position", "assignment__slot", "revision")


class Adjudications(OfSubmission):
    """Every adjudication with all its revisions, after the freeze."""

    scopes = {"GET": Scope.READ}
    serializer_class = AdjudicationSerializer

    def get_queryset(self) -> QuerySet[Any]:
        made = access.adjudications_of(self.request.user, self.frozen("adjudications"))
        made = made.select_related("trajectory__task").prefetch_related("findings__key_point")
        return self.of_task(made, "trajectory__task__external_id").order_by("trajectory__position", "revision")


class Reports(OfSubmission):
    """Reports of annotators and adjudicators to the maintainer, oldest first, after the freeze."""

    scopes = {"GET": Scope.READ}
    serializer_class = ReportToMaintainerSerializer

    def get_queryset(self) -> QuerySet[Any]:
        made = access.reports_of(self.request.user, self.frozen("reports")).select_related("trajectory__task")
        return self.of_task(made, "trajectory__task__external_id").order_by("reported_at", "pk")


class Verdicts(OfSubmission):
    """The final verdict of every trajectory, after the freeze."""

    scopes = {"GET": Scope.READ}
    serializer_class = VerdictSerializer

    def get_queryset(self) -> QuerySet[Any]:
        rows = with_state(self.frozen("final verdicts").trajectories.select_related("task")).order_by("position")
        return self.of_task(rows, "task__external_id")

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        for trajectory in page or []:
            trajectory.final = final_verdict(trajectory)
        return page


class Members(OfSubmission):
    """The members with pseudonyms and names, for maintainers only."""

    scopes = {"GET": Scope.ADMIN}
    serializer_class = MemberSerializer
    filters = MemberFilters

    def get_queryset(self) -> QuerySet[Membership]:
        submission = access.submission_for(self.request.user, self.kwargs["pk"], Role.MAINTAINER)
        members, chosen = submission.memberships.select_related("person"), self.chosen()
        return members.filter(**chosen).order_by("role", "pk")


class Redactions(OfSubmission):
    """All revisions of the redactions of a submission, oldest first. The newest of a screenshot counts."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    serializer_class = RedactionSerializer
    filters = None  # type: ignore[assignment]

    def get_queryset(self) -> QuerySet[Redaction]:
        self.chosen()
        return redactions.find_history(self.submission())

    @extend_schema(request=RedactSerializer, responses={201: RedactionSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Cover parts of a screenshot in bundles and exports, or remove a redaction. Reviewers see the original."""
        submission = self.submission()
        given = RedactSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        asked = given.validated_data
        shown = Screenshot.objects.filter(sha256=asked["screenshot"], steps__trajectory__submission=submission)
        picture = shown.first()
        if picture is None:
            raise Http404("No step of this submission shows this picture.")
        made = workflow.redact(request.user, submission, picture, asked["boxes"], asked["reason"])
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)
