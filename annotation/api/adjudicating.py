"""The work of adjudicators for scripts: the same transitions and rules as on their pages."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, operations, parked, queue, workflow
from annotation.access import Role
from annotation.api.annotating import ReasonSerializer, UntilSerializer
from annotation.api.base import Listing, Request, View
from annotation.api.desks import Desk, DeskSerializer
from annotation.api.label_input import DecisionInputSerializer, read_content
from annotation.api.serializers import STATES, AdjudicationSerializer, LabelSerializer
from annotation.api_tokens import Scope
from annotation.models import Membership, Trajectory
from annotation.models.states import State, current_labels, with_waiting
from annotation.workflow.guards import LONGEST_NOTE

KINDS = queue.Kind.choices


class DrawSerializer(serializers.Serializer):
    """A draw of spot checks: how many unanimous trajectories there were, and how many were drawn."""

    number = serializers.IntegerField()
    population = serializers.IntegerField()
    drawn = serializers.IntegerField()


class Draws(View):
    """Draws of spot checks."""

    scopes = {"POST": Scope.WRITE}
    tag = "Adjudication"
    operation_ids = {"POST": "draw_spot_checks"}
    serializer_class = DrawSerializer

    @extend_schema(request=None, responses={201: DrawSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Draw spot checks from unanimous trajectories of no earlier draw; maintainers may do this too."""
        found = access.submission_for(request.user, pk, Role.MAINTAINER, Role.ADJUDICATOR)
        made = operations.draw_spot_checks(request.user, found)
        counts = {"number": made.number, "population": len(made.population), "drawn": len(made.drawn)}
        return Response(counts, status.HTTP_201_CREATED)


class KindSerializer(serializers.Serializer):
    kind = serializers.ChoiceField(choices=KINDS, required=False, help_text="Why it waits for an adjudicator.")


class QueueFilters(KindSerializer):
    part = serializers.ChoiceField(
        choices=["waiting", "mine", "put_off"], default="waiting", help_text="mine and put_off: opened by the caller."
    )


class WaitingSerializer(serializers.Serializer):
    """A trajectory in the queue. Blind spot checks show only that the labels agree."""

    trajectory = serializers.IntegerField(source="pk")
    task_id = serializers.CharField(source="task.external_id")
    task_text = serializers.CharField(source="task.text")
    kind = serializers.ChoiceField(choices=KINDS)
    since = serializers.DateTimeField()


class AdjudicationQueue(Listing):
    """The queue of an adjudicator, hardest first."""

    scopes = {"GET": Scope.READ}
    tag = "Adjudication"
    operation_ids = {"GET": "list_adjudication_queue"}
    serializer_class = WaitingSerializer
    filters = QueueFilters

    def get_queryset(self) -> Any:
        submission = access.submission_for(self.request.user, self.kwargs["pk"], Role.ADJUDICATOR)
        chosen = self.chosen()
        kind = queue.Kind(chosen["kind"]) if "kind" in chosen else None
        found = queue.load_queue_of(self.request.user, submission, kind)
        return {"waiting": found.others, "mine": found.mine, "put_off": found.put_off}[chosen["part"]]


class FlagSerializer(serializers.Serializer):
    annotator = serializers.CharField()
    note = serializers.CharField(allow_blank=True)


class AdjudicationDeskSerializer(DeskSerializer):
    """A trajectory with what its adjudicator may see.

    ``labels`` (the newest revisions), ``flags``, ``flag_answers`` and ``decisions`` are null until the caller has
    opened a dispute, or decided a spot check. ``opened``: the caller has opened it, and may decide.
    """

    state = serializers.ChoiceField(choices=STATES)
    kind = serializers.ChoiceField(choices=KINDS, allow_null=True)
    blind = serializers.BooleanField(help_text="The next decision is made without seeing a label.")
    opened = serializers.BooleanField()
    opened_by_another = serializers.BooleanField()
    put_off_until = serializers.DateTimeField(allow_null=True)
    labels = LabelSerializer(many=True, allow_null=True)
    flags = FlagSerializer(many=True, allow_null=True)
    flag_answers = serializers.ListField(child=serializers.CharField(), allow_null=True)
    decisions = AdjudicationSerializer(many=True, allow_null=True)

    class Meta(DeskSerializer.Meta):
        fields = [
            *DeskSerializer.Meta.fields, "state", "kind", "blind", "opened", "opened_by_another", "put_off_until",
            "labels", "flags", "flag_answers", "decisions",
        ]  # fmt: skip


def describe_adjudication(request: Request, found: Trajectory) -> dict[str, Any]:
    row = with_waiting(Trajectory.objects.filter(pk=found.pk)).get()
    undecided = found.adjudications.filter(decided_at__isnull=True).first()
    mine = undecided if undecided is not None and undecided.adjudicator_id == request.user.pk else None
    names = dict(Membership.objects.filter(submission=found.submission_id).values_list("person", "pseudonym"))
    shown = Desk(
        found,
        state=State(row.state).value,
        kind=queue.find_kind(row),
        blind=access.judged_blind(found),
        opened=mine is not None,
        opened_by_another=undecided is not None and mine is None,
        put_off_until=mine.put_off_until if mine is not None else None,
        **_load_labels(request, found, names),
    )
    return dict(AdjudicationDeskSerializer(shown, context={"pseudonyms": names}).data)


def _load_labels(request: Request, found: Trajectory, names: dict[int, str]) -> dict[str, Any]:
    """Return labels, flags and decisions, all null for people who may not see the labels."""
    if not access.may_see_labels(request.user, found):
        return dict.fromkeys(("labels", "flags", "flag_answers", "decisions"))
    labels = access.labels_for(request.user, found).filter(pk__in=current_labels().values("pk"))
    decided = found.adjudications.filter(decided_at__isnull=False).select_related("trajectory__task")
    return {
        "labels": labels.select_related("assignment__trajectory__task", "attempt")
        .prefetch_related("findings")
        .order_by("assignment__slot"),
        "flags": [{"annotator": names[flag.annotator_id], "note": flag.note} for flag in found.flags.all()],
        "flag_answers": list(found.flag_answers.values_list("text", flat=True)),
        "decisions": decided.prefetch_related("findings").order_by("revision"),
    }


class NextAdjudication(View):
    """The next trajectory of an adjudicator."""

    scopes = {"POST": Scope.WRITE}
    tag = "Adjudication"
    operation_ids = {"POST": "open_next_adjudication"}
    serializer_class = KindSerializer

    @extend_schema(request=KindSerializer, responses={200: AdjudicationDeskSerializer, 204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Open the hardest trajectory in the queue, or of one kind; 204 if none waits."""
        submission, kind = access.submission_for(request.user, pk, Role.ADJUDICATOR), self.given().get("kind")
        parked.submit_due(submission)
        opened = operations.open_next(request.user, submission, queue.Kind(kind) if kind else None)
        if opened is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        found = access.trajectory_for(request.user, opened.pk, Role.ADJUDICATOR)
        return Response(describe_adjudication(request, found))


class OfTrajectory(View):
    """A view for the adjudicator of a trajectory."""

    scopes = {"POST": Scope.WRITE}
    tag = "Adjudication"

    def trajectory(self) -> Trajectory:
        return access.trajectory_for(self.request.user, self.kwargs["pk"], Role.ADJUDICATOR)


class AdjudicationDetail(OfTrajectory):
    """The adjudication of a trajectory."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    operation_ids = {"GET": "get_adjudication", "POST": "open_adjudication"}
    serializer_class = AdjudicationDeskSerializer

    @extend_schema(responses={200: AdjudicationDeskSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """Read a trajectory, with the labels if the caller may see them."""
        self.chosen()
        return Response(describe_adjudication(request, self.trajectory()))

    @extend_schema(request=ReasonSerializer, responses={200: AdjudicationDeskSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Open a trajectory to decide it; its labels cannot change any more. A decided trajectory needs a reason."""
        found = self.trajectory()
        workflow.open_adjudication(request.user, found, self.given(ReasonSerializer)["reason"])
        return Response(describe_adjudication(request, found))


class Decision(OfTrajectory):
    """The decision of the adjudicator."""

    operation_ids = {"POST": "decide_adjudication"}
    serializer_class = DecisionInputSerializer

    @extend_schema(request=DecisionInputSerializer, responses={201: AdjudicationDeskSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Decide a trajectory that the caller has opened. The same decision again changes nothing."""
        found = self.trajectory()
        workflow.decide(request.user, found, read_content(self.given(), found), measured=False)
        return Response(describe_adjudication(request, found), status.HTTP_201_CREATED)


class Leave(OfTrajectory):
    """Return an opened trajectory."""

    operation_ids = {"POST": "leave_adjudication"}
    serializer_class = serializers.Serializer

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Return an opened trajectory to the queue."""
        workflow.leave_adjudication(request.user, self.trajectory())
        return Response(status=status.HTTP_204_NO_CONTENT)


class PutOff(OfTrajectory):
    """Put off an opened trajectory."""

    operation_ids = {"POST": "put_off_adjudication"}
    serializer_class = UntilSerializer

    @extend_schema(request=None, responses={200: UntilSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Keep an opened trajectory for a day; others are offered meanwhile."""
        return Response({"until": workflow.put_off_adjudication(request.user, self.trajectory())})


class FlagAnswerSerializer(serializers.Serializer):
    answer = serializers.CharField(max_length=LONGEST_NOTE)


class FlagAnswers(OfTrajectory):
    """Answers to flags."""

    operation_ids = {"POST": "answer_flags"}
    serializer_class = FlagAnswerSerializer

    @extend_schema(request=FlagAnswerSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Answer everybody who flagged a trajectory, once its labels may be seen. Do not name verdicts of others."""
        workflow.answer_flags(request.user, self.trajectory(), self.given()["answer"])
        return Response(status=status.HTTP_204_NO_CONTENT)
