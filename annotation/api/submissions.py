"""Submissions for their maintainers: progress during the review, labels and verdicts after the freeze."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Prefetch, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, operations, redactions, workflow
from annotation.access import Role
from annotation.api.base import Listing, Request, View
from annotation.api.serializers import (
    STATES,
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
from annotation.invitations import GIVEN_ROLES
from annotation.models import Membership, Person, Redaction, Screenshot, Step, Submission, Trajectory
from annotation.models.states import final_verdict, with_state
from annotation.workflow import Conflict


class SubmissionFilters(serializers.Serializer):
    benchmark = serializers.SlugField(required=False, source="benchmark__slug")
    agent = serializers.CharField(required=False, source="agent__name", help_text="The agent's full name.")
    frozen = serializers.BooleanField(required=False)
    archived = serializers.BooleanField(
        default=False, help_text="true: only archived and deleted submissions. false: all others."
    )


class TaskFilter(serializers.Serializer):
    task_id = serializers.CharField(required=False)


class ProgressFilters(TaskFilter):
    state = serializers.ChoiceField(choices=STATES, required=False)


class MemberFilters(serializers.Serializer):
    role = serializers.ChoiceField(choices=Membership.Role.choices, required=False)


class NewMemberSerializer(serializers.Serializer):
    name = serializers.CharField(max_length=150, help_text="The user name.")
    role = serializers.ChoiceField(choices=GIVEN_ROLES)


class DeletionFilters(serializers.Serializer):
    name = serializers.CharField(help_text="The name of what is deleted, as a confirmation.")


class Submissions(Listing):
    """The submissions that the caller maintains, newest first."""

    scopes = {"GET": Scope.READ}
    tag = "Submissions"
    operation_ids = {"GET": "list_submissions"}
    serializer_class = SubmissionSerializer
    filters = SubmissionFilters

    def get_queryset(self) -> QuerySet[Submission]:
        access.require_maintainer(self.request.user)
        chosen = self.chosen()
        if "frozen" in chosen:
            chosen["frozen_at__isnull"] = not chosen.pop("frozen")
        chosen["archived_at__isnull"] = not chosen.pop("archived")
        found = access.submissions_maintained_by(self.request.user).filter(**chosen)
        return found.annotate(trajectory_count=Count("trajectories")).order_by("-created_at", "-pk")


class SubmissionDetail(View):
    """One submission."""

    scopes = {"GET": Scope.READ, "DELETE": Scope.ADMIN}
    tag = "Submissions"
    operation_ids = {"GET": "get_submission", "DELETE": "delete_submission"}
    serializer_class = SubmissionSerializer

    def get(self, request: Request, pk: int) -> Response:
        submission: Any = access.submission_for(request.user, pk, *access.READERS)
        self.chosen()
        submission.trajectory_count = submission.trajectories.count()
        return Response(SubmissionSerializer(submission).data)

    @extend_schema(parameters=[DeletionFilters], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a submission in which nobody has worked; its events stay. ``name`` is that of the agent."""
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        self.filters = DeletionFilters
        workflow.delete_submission(request.user, found, self.chosen()["name"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class OfSubmission(Listing):
    """A list of one submission: its ``rows``, sorted by ``order`` and filtered by ``filters``.

    ``task`` is the path to the task of a row. ``withheld`` is the name of the rows if they are hidden until the freeze.
    """

    scopes = {"GET": Scope.READ}
    filters: type[serializers.Serializer] | None = TaskFilter
    roles: tuple[Role, ...] = access.READERS
    task = "task"
    order: tuple[str, ...] = ("position",)
    withheld = ""

    def rows(self, submission: Submission) -> QuerySet[Any]:
        raise NotImplementedError

    def submission(self) -> Submission:
        return access.submission_for(self.request.user, self.kwargs["pk"], *self.roles)

    def get_queryset(self) -> QuerySet[Any]:
        submission = self.submission()
        if self.withheld and not access.may_see_all_labels(self.request.user, submission):
            raise Conflict(
                f"The {self.withheld} can be read once the submission is frozen, because people work "
                "independently until then."
            )
        chosen = self.chosen()
        if "task_id" in chosen:
            chosen[f"{self.task}__external_id"] = chosen.pop("task_id")
        return self.rows(submission).filter(**chosen).order_by(*self.order)

    def get_serializer_context(self) -> dict[str, Any]:
        context: dict[str, Any] = {**super().get_serializer_context()}
        if "pk" in self.kwargs:
            members = Membership.objects.filter(submission=self.kwargs["pk"])
            context["pseudonyms"] = dict(members.values_list("person_id", "pseudonym"))
        return context


class Progress(OfSubmission):
    """The state of every trajectory."""

    tag = "Submissions"
    operation_ids = {"GET": "list_progress"}
    serializer_class = ProgressSerializer
    filters = ProgressFilters

    def rows(self, submission: Submission) -> QuerySet[Any]:
        return with_state(submission.trajectories.select_related("task"))


class Trajectories(OfSubmission):
    """The trajectories of a submission."""

    tag = "Submissions"
    operation_ids = {"GET": "list_trajectories"}
    serializer_class = TrajectorySerializer

    def rows(self, submission: Submission) -> QuerySet[Any]:
        return submission.trajectories.select_related("task").annotate(step_count=Count("steps"))


class TrajectoryDetail(View):
    """One trajectory with its steps."""

    scopes = {"GET": Scope.READ}
    tag = "Submissions"
    operation_ids = {"GET": "get_trajectory"}
    serializer_class = TrajectoryDetailSerializer

    def get(self, request: Request, pk: int) -> Response:
        trajectory = access.trajectory_for(request.user, pk, *access.READERS)
        self.chosen()
        steps = Prefetch("steps", Step.objects.select_related("screenshot"))
        shown = Trajectory.objects.select_related("task").prefetch_related(steps).get(pk=trajectory.pk)
        return Response(TrajectoryDetailSerializer(shown).data)


class Labels(OfSubmission):
    """Every label with all its revisions, after the freeze."""

    tag = "Results"
    operation_ids = {"GET": "list_labels"}
    serializer_class = LabelSerializer
    withheld = "labels"
    task = "assignment__trajectory__task"
    order = ("assignment__trajectory__position", "assignment__slot", "revision")

    def rows(self, submission: Submission) -> QuerySet[Any]:
        labels = access.labels_of(self.request.user, submission).select_related(self.task, "attempt")
        return labels.prefetch_related("findings")


class Adjudications(OfSubmission):
    """Every adjudication with all its revisions, after the freeze."""

    tag = "Results"
    operation_ids = {"GET": "list_adjudications"}
    serializer_class = AdjudicationSerializer
    withheld = "adjudications"
    task = "trajectory__task"
    order = ("trajectory__position", "revision")

    def rows(self, submission: Submission) -> QuerySet[Any]:
        made = access.adjudications_of(self.request.user, submission).select_related(self.task)
        return made.prefetch_related("findings")


class Reports(OfSubmission):
    """Reports of annotators and adjudicators to the maintainer, oldest first, after the freeze."""

    tag = "Results"
    operation_ids = {"GET": "list_reports"}
    serializer_class = ReportToMaintainerSerializer
    withheld = "reports"
    task = "trajectory__task"
    order = ("reported_at", "pk")

    def rows(self, submission: Submission) -> QuerySet[Any]:
        return access.reports_of(self.request.user, submission).select_related(self.task)


class Verdicts(OfSubmission):
    """The final verdict of every trajectory, after the freeze."""

    tag = "Results"
    operation_ids = {"GET": "list_verdicts"}
    serializer_class = VerdictSerializer
    withheld = "final verdicts"

    def rows(self, submission: Submission) -> QuerySet[Any]:
        return with_state(submission.trajectories.select_related("task"))

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        for trajectory in page or []:
            trajectory.final = final_verdict(trajectory)
        return page


class Members(OfSubmission):
    """The members with pseudonyms and names, for maintainers only."""

    scopes = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}
    tag = "People"
    operation_ids = {"GET": "list_members", "POST": "add_member"}
    serializer_class = MemberSerializer
    filters = MemberFilters
    roles = (Role.MAINTAINER,)
    order = ("role", "pk")

    def rows(self, submission: Submission) -> QuerySet[Membership]:
        return submission.memberships.select_related("person")

    @extend_schema(request=NewMemberSerializer, responses={201: MemberSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Give a person with an account a role. A person who has this role already stays as they are."""
        found, given = self.submission(), self.given(NewMemberSerializer)
        person = Person.objects.filter(is_active=True, username=given["name"]).first()
        if person is None:
            raise serializers.ValidationError({"name": ["No account here has this name. Invite the person."]})
        member = operations.add_member(request.user, found, person, Role(given["role"]))
        return Response(MemberSerializer(member).data, status=status.HTTP_201_CREATED)


class Redactions(OfSubmission):
    """All revisions of the redactions of a submission, oldest first. The newest of a screenshot applies."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"GET": "list_redactions", "POST": "redact_screenshot"}
    serializer_class = RedactionSerializer
    filters = None
    order = ("redacted_at", "pk")

    def rows(self, submission: Submission) -> QuerySet[Redaction]:
        return redactions.find_history(submission)

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
            raise Http404("No step of this submission has this screenshot.")
        made = workflow.redact(request.user, submission, picture, asked["boxes"], asked["reason"])
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)
