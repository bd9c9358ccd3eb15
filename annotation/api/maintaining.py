"""Changes of a submission by its maintainers: settings, freeze, reopening, archive, reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Count
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, blinding, operations, quality, workflow
from annotation.access import Role
from annotation.api.annotating import ReasonSerializer
from annotation.api.base import Request, View
from annotation.api.serializers import ReportToMaintainerSerializer, SubmissionSerializer
from annotation.api.submissions import OfSubmission
from annotation.api_tokens import Scope
from annotation.models import Event, Person, Submission, Trajectory
from annotation.protocol import MINIMUM_LABELS
from annotation.workflow.guards import LONGEST_NOTE
from annotation.workflow.maintaining import MOST_LABELS

# --- transitions ------------------------------------------------------------------------------------------------------


def describe(submission: Submission) -> dict[str, Any]:
    rows = Submission.objects.select_related("agent", "benchmark").annotate(trajectory_count=Count("trajectories"))
    return dict(SubmissionSerializer(rows.get(pk=submission.pk)).data)


class SubmissionAction(View):
    """A transition of a submission without arguments, for its maintainers."""

    scopes = {"POST": Scope.WRITE}
    tag = "Submissions"
    serializer_class = SubmissionSerializer
    act: Callable[[Person, Submission], Any]

    @extend_schema(request=None, responses={200: SubmissionSerializer})
    def post(self, request: Request, pk: int) -> Response:
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        type(self).act(request.user, found)
        return Response(describe(found))


class Freeze(SubmissionAction):
    """Freeze a submission; 409 with the reason if a trajectory has no final verdict."""

    operation_ids = {"POST": "freeze_submission"}
    act = staticmethod(operations.freeze)


class OpenResults(SubmissionAction):
    """Show the annotators of a frozen submission all labels. This cannot be undone."""

    operation_ids = {"POST": "open_results"}
    act = staticmethod(workflow.open_results)


class Archive(SubmissionAction):
    """Archive a submission. Nothing is lost, and nothing can be added until it is restored."""

    operation_ids = {"POST": "archive_submission"}
    act = staticmethod(workflow.archive)


class Restore(SubmissionAction):
    """Restore an archived submission."""

    operation_ids = {"POST": "restore_submission"}
    act = staticmethod(workflow.restore)


class Reopen(View):
    """Reopen a submission."""

    scopes = {"POST": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"POST": "reopen_submission"}
    serializer_class = ReasonSerializer

    @extend_schema(request=ReasonSerializer, responses={200: SubmissionSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Undo the freeze, with a reason; 409 after people could read the labels of others."""
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        workflow.reopen_submission(request.user, found, self.given()["reason"])
        return Response(describe(found))


class ReopenTrajectory(View):
    """Reopen a trajectory."""

    scopes = {"POST": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"POST": "reopen_trajectory"}
    serializer_class = ReasonSerializer
    act: Callable[[Person, Trajectory, str], Any] = staticmethod(workflow.reopen)

    @extend_schema(request=ReasonSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Ask the adjudicators for a new decision on a final trajectory, with a reason."""
        found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
        type(self).act(request.user, found, self.given()["reason"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class OfferAgain(ReopenTrajectory):
    """Offer a trajectory again."""

    operation_ids = {"POST": "offer_trajectory_again"}
    act = staticmethod(workflow.offer_again)

    @extend_schema(request=ReasonSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Offer a trajectory to the annotators who declined it, with a reason."""
        return super().post(request, pk)


# --- settings ---------------------------------------------------------------------------------------------------------


class SettingsSerializer(serializers.Serializer):
    """Settings of a submission. Shares are fractions. ``fixed`` has the reason for each that cannot be changed."""

    protocol_version = serializers.ChoiceField(choices=[1, 2], required=False)
    required_labels = serializers.IntegerField(min_value=MINIMUM_LABELS, max_value=MOST_LABELS, required=False)
    spot_check_rate = serializers.FloatField(min_value=0, max_value=1, required=False)
    process_labels = serializers.BooleanField(required=False)
    practice = serializers.BooleanField(required=False, help_text="It is a practice set and takes no labels.")
    practice_set = serializers.IntegerField(
        required=False, allow_null=True, help_text="Number of a practice submission of the caller; null: none."
    )
    pass_mark = serializers.FloatField(min_value=0, max_value=1, required=False, allow_null=True)
    second_stage = serializers.BooleanField(required=False)
    fixed = serializers.DictField(child=serializers.CharField(), read_only=True)


class Settings(View):
    """The settings of a submission."""

    scopes = {"GET": Scope.READ, "PATCH": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"GET": "get_settings", "PATCH": "change_settings"}
    serializer_class = SettingsSerializer

    def get(self, request: Request, pk: int) -> Response:
        """Return the settings, and why some are fixed."""
        self.chosen()
        return Response(_describe_settings(access.submission_for(request.user, pk, Role.MAINTAINER)))

    def patch(self, request: Request, pk: int) -> Response:
        """Change those that are sent: all or none. 409 for a setting that is fixed."""
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        changes = self.given()
        wanted = changes.get("practice_set")
        if wanted is not None:
            own = access.submissions_maintained_by(request.user).filter(pk=wanted).first()
            current = found.practice_set if found.practice_set_id == wanted else None
            if own is None and current is None:
                raise serializers.ValidationError({"practice_set": ["You maintain no such submission."]})
            changes["practice_set"] = current or own
        return Response(_describe_settings(workflow.configure(request.user, found, **changes)))


def _describe_settings(found: Submission) -> dict[str, Any]:
    names = [str(name) for name in SettingsSerializer().fields if name != "fixed"]
    values = {name: getattr(found, name) for name in names if name != "practice_set"}
    return values | {"practice_set": found.practice_set_id, "fixed": workflow.find_fixed_settings(found)}


# --- events, quality and reports --------------------------------------------------------------------------------------


class EventSerializer(serializers.ModelSerializer):
    """An event of the chain. Before the freeze, ``payload`` has no notes and reasons, so ``hash`` cannot be checked."""

    actor = serializers.CharField(source="actor_pseudonym")
    payload = serializers.SerializerMethodField()

    class Meta:
        model = Event
        fields = ["sequence", "kind", "actor", "at", "payload", "previous", "hash"]

    def get_payload(self, event: Event) -> dict[str, Any]:
        return blinding.visible_payload(event, self.context["submission"])


class Events(OfSubmission):
    """The events of a submission, newest first, under pseudonyms."""

    tag = "Submissions"
    operation_ids = {"GET": "list_events"}
    serializer_class = EventSerializer
    filters = None
    order = ("-sequence",)

    def rows(self, submission: Submission) -> Any:
        return submission.events.all()

    def get_serializer_context(self) -> dict[str, Any]:
        context = super().get_serializer_context()
        return context | ({"submission": self.submission()} if "pk" in self.kwargs else {})


class ShareSerializer(serializers.Serializer):
    """A part of ``whole`` cases; ``part`` and ``rate`` are null if there are too few."""

    whole = serializers.IntegerField()
    part = serializers.IntegerField(allow_null=True)
    rate = serializers.FloatField(allow_null=True)


class QualitySerializer(serializers.Serializer):
    """Figures of an annotator that reveal no single verdict. Medians are null if nothing was measured."""

    annotator = serializers.CharField(source="member.pseudonym")
    labels = serializers.IntegerField()
    agreement = ShareSerializer(help_text="Labels that are equal to the final verdict.")
    overturned = ShareSerializer(help_text="Labels that an adjudicator decided otherwise.")
    gold = ShareSerializer(help_text="Right answers to gold items.")
    seconds = serializers.FloatField(allow_null=True, help_text="Median active time.")
    seconds_per_step = serializers.FloatField(allow_null=True)
    seen = serializers.FloatField(allow_null=True, help_text="Share of steps that were opened.")
    hints = serializers.IntegerField(help_text="Labels that were fast or had few opened steps.")
    flags = serializers.IntegerField()
    released = serializers.IntegerField(help_text="Declined trajectories.")


class Quality(View):
    """Figures of each annotator of a submission."""

    scopes = {"GET": Scope.READ}
    tag = "Submissions"
    operation_ids = {"GET": "list_annotator_quality"}
    serializer_class = QualitySerializer
    pagination_class = None  # type: ignore[assignment]

    @extend_schema(responses=QualitySerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        self.chosen()
        found = access.submission_for(request.user, pk, *access.READERS)
        return Response(QualitySerializer(quality.report(found).rows, many=True).data)


class OpenReportSerializer(ReportToMaintainerSerializer):
    class Meta(ReportToMaintainerSerializer.Meta):
        fields = ["id", *ReportToMaintainerSerializer.Meta.fields]


class OpenReports(OfSubmission):
    """The reports to the maintainer that are not settled, oldest first, also before the freeze."""

    tag = "Submissions"
    operation_ids = {"GET": "list_open_reports"}
    serializer_class = OpenReportSerializer
    task = "trajectory__task"
    order = ("reported_at", "pk")

    def rows(self, submission: Submission) -> Any:
        found = access.reports_of(self.request.user, submission).filter(settled_at__isnull=True)
        return found.select_related("trajectory__task")


class SettleSerializer(serializers.Serializer):
    answer = serializers.CharField(max_length=LONGEST_NOTE)


class SettleReport(View):
    """Settle a report."""

    scopes = {"POST": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"POST": "settle_report"}
    serializer_class = SettleSerializer

    @extend_schema(request=SettleSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Settle a report, with an answer; 409 if it is settled."""
        workflow.settle_report(request.user, access.report_for(request.user, pk), self.given()["answer"])
        return Response(status=status.HTTP_204_NO_CONTENT)
