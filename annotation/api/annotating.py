"""The work of annotators for scripts: the same transitions and rules as on their pages."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, catalogue, operations, parked, workflow
from annotation.access import Role
from annotation.api.base import Request, View
from annotation.api.desks import Desk, DeskSerializer
from annotation.api.label_input import NewLabelSerializer, RevisionSerializer, read_content
from annotation.api.serializers import OwnLabelSerializer
from annotation.api_tokens import Scope
from annotation.models import Assignment, Label, Report, Trajectory
from annotation.work import find_work
from annotation.workflow.guards import LONGEST_NOTE


class WorkSerializer(serializers.Serializer):
    """A submission in which the caller has a role. ``count`` is what waits for them, ``note`` says what."""

    submission = serializers.IntegerField(source="membership.submission_id")
    benchmark = serializers.CharField(source="membership.submission.benchmark.slug")
    role = serializers.CharField(source="membership.role")
    pseudonym = serializers.CharField(source="membership.pseudonym")
    count = serializers.IntegerField()
    note = serializers.CharField()
    done = serializers.IntegerField(allow_null=True, help_text="Own labels; null for other roles.")
    total = serializers.IntegerField(allow_null=True)


class Work(View):
    """The work of the caller in each submission, in all their roles."""

    scopes = {"GET": Scope.READ}
    tag = "Annotation"
    operation_ids = {"GET": "list_work"}
    serializer_class = WorkSerializer
    pagination_class = None  # type: ignore[assignment]

    @extend_schema(responses=WorkSerializer(many=True))
    def get(self, request: Request) -> Response:
        self.chosen()
        members = access.memberships_of(request.user).filter(submission__archived_at=None).order_by("-submission")
        return Response(WorkSerializer([find_work(request.user, each) for each in members], many=True).data)


class AssignedSerializer(DeskSerializer):
    """A trajectory with what the caller has done with it; nothing about other people.

    ``reserved_until`` is null once the label is submitted, and if the reservation has ended.
    """

    reserved_until = serializers.DateTimeField(allow_null=True)
    put_off_until = serializers.DateTimeField(allow_null=True)
    label = OwnLabelSerializer(allow_null=True)  # type: ignore[assignment]
    flagged = serializers.BooleanField()
    reported = serializers.BooleanField()
    flag_answers = serializers.ListField(child=serializers.CharField(), help_text="Answers to the caller's own flag.")

    class Meta(DeskSerializer.Meta):
        fields = [
            *DeskSerializer.Meta.fields, "reserved_until", "put_off_until", "label", "flagged", "reported",
            "flag_answers",
        ]  # fmt: skip


def describe_assigned(request: Request, found: Trajectory) -> dict[str, Any]:
    own: Assignment | None = found.assignments.filter(annotator=request.user).first()
    labels = access.own_labels(request.user, found).select_related("attempt").prefetch_related("findings")
    answers = access.flag_answers_of(request.user, found.submission).filter(trajectory=found)
    shown = Desk(
        found,
        reserved_until=own.lease_expires_at if own else None,
        put_off_until=own.put_off_until if own else None,
        label=labels.order_by("-revision").first(),
        flagged=found.flags.filter(annotator=request.user).exists(),
        reported=found.reports.filter(reporter=request.user).exists(),
        flag_answers=list(answers.values_list("text", flat=True)),
    )
    return dict(AssignedSerializer(shown).data)


class NextTrajectory(View):
    """The next trajectory of an annotator."""

    scopes = {"POST": Scope.WRITE}
    tag = "Annotation"
    operation_ids = {"POST": "take_next_trajectory"}
    serializer_class = AssignedSerializer

    @extend_schema(request=None, responses={200: AssignedSerializer, 204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Reserve the next trajectory; 204 if the queue is empty.

        Until you label, decline or put it off, the same one is returned and its reservation renewed.
        """
        submission = access.submission_for(request.user, pk, Role.ANNOTATOR)
        assignment = operations.claim_next(request.user, submission)
        if assignment is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        found = access.trajectory_for(request.user, assignment.trajectory_id, Role.ANNOTATOR)
        return Response(describe_assigned(request, found))


class OfTrajectory(View):
    """A view for the annotator of a trajectory."""

    scopes = {"POST": Scope.WRITE}
    tag = "Annotation"

    def trajectory(self) -> Trajectory:
        return access.trajectory_for(self.request.user, self.kwargs["pk"], Role.ANNOTATOR)


class Assigned(OfTrajectory):
    """A trajectory that the caller has reserved or labelled."""

    scopes = {"GET": Scope.READ}
    operation_ids = {"GET": "get_assigned_trajectory"}
    serializer_class = AssignedSerializer

    def get(self, request: Request, pk: int) -> Response:
        self.chosen()
        return Response(describe_assigned(request, self.trajectory()))


class OwnLabel(OfTrajectory):
    """The caller's label of a trajectory."""

    operation_ids = {"POST": "submit_label"}
    serializer_class = NewLabelSerializer

    @extend_schema(request=NewLabelSerializer, responses={201: OwnLabelSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Submit a label at once, without the undo period of the page. The same label again changes nothing.

        Active time and opened steps are null, because they are not measured.
        """
        found, given = self.trajectory(), self.given()
        parked.submit_due(found.submission)
        content = read_content(given, found)
        made = workflow.submit(request.user, found, content, given.get("flag_note"), measured=False)
        return Response(_describe_label(made), status.HTTP_201_CREATED)


class Revisions(OfTrajectory):
    """Revisions of the caller's label."""

    operation_ids = {"POST": "revise_label"}
    serializer_class = RevisionSerializer

    @extend_schema(request=RevisionSerializer, responses={201: OwnLabelSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Correct the label, with a reason; 409 once it can no longer change. A repeated revision changes nothing."""
        found, given = self.trajectory(), self.given()
        parked.submit_due(found.submission)
        content = read_content(given, found)
        made = workflow.revise(request.user, found, content, given.get("reason", ""), measured=False)
        return Response(_describe_label(made), status.HTTP_201_CREATED)


def _describe_label(label: Label) -> dict[str, Any]:
    rows = Label.objects.select_related("assignment__trajectory__task", "attempt").prefetch_related("findings")
    return dict(OwnLabelSerializer(rows.get(pk=label.pk)).data)


class ReasonSerializer(serializers.Serializer):
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=LONGEST_NOTE)


class NoteSerializer(serializers.Serializer):
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=LONGEST_NOTE)


class Release(OfTrajectory):
    """Decline a trajectory."""

    operation_ids = {"POST": "decline_trajectory"}
    serializer_class = ReasonSerializer

    @extend_schema(request=ReasonSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Decline an unlabelled trajectory, with a reason. It is not offered to the caller again."""
        workflow.release(request.user, self.trajectory(), self.given()["reason"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class UntilSerializer(serializers.Serializer):
    until = serializers.DateTimeField(allow_null=True)


class PutOff(OfTrajectory):
    """Put off a trajectory."""

    operation_ids = {"POST": "put_off_trajectory"}
    serializer_class = UntilSerializer

    @extend_schema(request=None, responses={200: UntilSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Keep the reservation for a day; others are offered meanwhile."""
        return Response({"until": workflow.put_off(request.user, self.trajectory()).lease_expires_at})


class Hold(OfTrajectory):
    """Reserve a trajectory again."""

    operation_ids = {"POST": "resume_trajectory"}
    serializer_class = UntilSerializer

    @extend_schema(request=None, responses={200: UntilSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Renew the reservation of a trajectory, also of one that was put off."""
        return Response({"until": workflow.hold_again(request.user, self.trajectory()).lease_expires_at})


class Flags(OfTrajectory):
    """The caller's flag."""

    operation_ids = {"POST": "flag_trajectory"}
    serializer_class = NoteSerializer

    @extend_schema(request=NoteSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Flag a trajectory for the adjudicator. Flagging it again changes nothing."""
        workflow.flag(request.user, self.trajectory(), self.given()["note"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class NewReportSerializer(NoteSerializer):
    kind = serializers.ChoiceField(choices=Report.Kind.choices, help_text="Only adjudicators report guideline_unclear.")


class OwnReports(View):
    """The caller's reports to the maintainer."""

    scopes = {"POST": Scope.WRITE}
    tag = "Annotation"
    operation_ids = {"POST": "report_problem"}
    serializer_class = NewReportSerializer

    @extend_schema(request=NewReportSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Report to the maintainer what is wrong with the task or the guidelines. The same kind again adds nothing."""
        found = access.trajectory_for(request.user, pk, Role.ANNOTATOR, Role.ADJUDICATOR)
        given = self.given()
        workflow.report(request.user, found, Report.Kind(given["kind"]), given["note"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class ProposalSerializer(serializers.Serializer):
    text = serializers.CharField(max_length=500)


class Proposals(OfTrajectory):
    """Proposals of key points."""

    operation_ids = {"POST": "propose_key_point"}
    serializer_class = ProposalSerializer

    @extend_schema(request=ProposalSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Propose a key point to the maintainer. The answer does not tell whether somebody else has proposed it."""
        catalogue.propose_key_point(self.trajectory().task, self.given()["text"], request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
