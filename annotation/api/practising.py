"""Practice sets, known answers and gold items."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, training, workflow
from annotation.access import Role
from annotation.api.base import Request, View
from annotation.api.desks import Desk, DeskSerializer
from annotation.api.label_input import ContentSerializer, LabelInputSerializer, read_content
from annotation.api_tokens import Scope
from annotation.models import KnownAnswer, Submission, Trajectory
from annotation.models.reviews import FINDINGS, VERDICTS

MOST_ROUNDS = 2**15 - 1


class PracticeItemSerializer(serializers.Serializer):
    trajectory = serializers.IntegerField()
    answered = serializers.BooleanField(help_text="In the newest round.")
    right = serializers.BooleanField(allow_null=True)


class PracticeSerializer(serializers.Serializer):
    """The caller's practice. ``open_round`` takes answers (null after passing); ``needed`` right answers pass."""

    items = PracticeItemSerializer(many=True)
    round = serializers.IntegerField(source="number")
    open_round = serializers.IntegerField(allow_null=True)
    right = serializers.IntegerField()
    needed = serializers.IntegerField(allow_null=True)
    passed = serializers.BooleanField()
    admitted = serializers.BooleanField(help_text="The caller gets real work.")


class Practice(View):
    """The practice set of a submission, for its annotators."""

    scopes = {"GET": Scope.READ}
    tag = "Annotation"
    operation_ids = {"GET": "get_practice"}
    serializer_class = PracticeSerializer

    def get(self, request: Request, pk: int) -> Response:
        self.chosen()
        submission = access.practice_for(request.user, pk)
        state = training.load_practice(request.user, submission)
        items = [
            {"trajectory": item.pk, "answered": given is not None, "right": None if given is None else given.right}
            for item in state.items
            for given in (state.current.get(item.pk),)
        ]
        names = ("number", "open_round", "right", "needed", "passed")
        body = {name: getattr(state, name) for name in names}
        admitted = training.is_admitted(request.user, submission)
        return Response(PracticeSerializer(body | {"items": items, "admitted": admitted}).data)


class KnownFindingSerializer(serializers.Serializer):
    key_point = serializers.CharField()
    finding = serializers.ChoiceField(choices=FINDINGS)
    step = serializers.IntegerField(allow_null=True)


class KnownAnswerSerializer(serializers.ModelSerializer):
    """The right answer and its explanation."""

    verdict = serializers.ChoiceField(choices=VERDICTS)
    findings = serializers.SerializerMethodField()

    class Meta:
        model = KnownAnswer
        fields = ["verdict", "failure_step", "failure_type", "cause", "explanation", "findings"]

    @extend_schema_field(KnownFindingSerializer(many=True))
    def get_findings(self, known: KnownAnswer) -> list[dict[str, Any]]:
        return _name_findings(known.trajectory, known.findings)


def _name_findings(trajectory: Trajectory, findings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return stored findings, which have ids of key points, with texts; those of retired key points are left out."""
    texts = workflow.key_points_of(trajectory).values_list("pk", "text")
    return [{"key_point": text, **findings[str(pk)]} for pk, text in texts if str(pk) in findings]


class PracticeDeskSerializer(DeskSerializer):
    """A practice item; ``right`` and ``known_answer`` are null until it is answered in the newest round."""

    right = serializers.BooleanField(allow_null=True)
    known_answer = KnownAnswerSerializer(allow_null=True)

    class Meta(DeskSerializer.Meta):
        fields = [*DeskSerializer.Meta.fields, "right", "known_answer"]


class PracticeAnswerSerializer(LabelInputSerializer):
    round = serializers.IntegerField(min_value=1, max_value=MOST_ROUNDS, help_text="The open round.")


class PracticeItem(View):
    """An item of a practice set."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Annotation"
    operation_ids = {"GET": "get_practice_item", "POST": "answer_practice_item"}
    serializer_class = PracticeDeskSerializer

    def find(self) -> tuple[Submission, Trajectory]:
        return access.practice_trajectory_for(self.request.user, self.kwargs["pk"], self.kwargs["item"])

    def get(self, request: Request, pk: int, item: int) -> Response:
        """Read an item, after the own answer with the known one."""
        self.chosen()
        return Response(self.describe(*self.find()))

    @extend_schema(request=PracticeAnswerSerializer, responses={201: PracticeDeskSerializer})
    def post(self, request: Request, pk: int, item: int) -> Response:
        """Answer an item like a label, once in a round, and learn the known answer."""
        submission, found = self.find()
        given = self.given(PracticeAnswerSerializer)
        content = read_content(given, found)
        workflow.answer_practice(request.user, submission, found, content, given["round"])
        return Response(self.describe(submission, found), status.HTTP_201_CREATED)

    def describe(self, submission: Submission, found: Trajectory) -> dict[str, Any]:
        own = training.load_practice(self.request.user, submission).current.get(found.pk)
        known = None if own is None else KnownAnswer.objects.get(trajectory=found)
        shown = Desk(found, right=None if own is None else own.right, known_answer=known)
        return dict(PracticeDeskSerializer(shown).data)


# --- maintainers ------------------------------------------------------------------------------------------------------


class KnownAnswerDetail(View):
    """The known answer of a trajectory."""

    scopes = {"GET": Scope.READ, "PUT": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"GET": "get_known_answer", "PUT": "set_known_answer"}
    serializer_class = KnownAnswerSerializer

    def get(self, request: Request, pk: int) -> Response:
        """Return the known answer; 404 if there is none."""
        self.chosen()
        found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
        known = KnownAnswer.objects.filter(trajectory=found).first()
        if known is None:
            raise Http404("This trajectory has no known answer.")
        return Response(KnownAnswerSerializer(known).data)

    @extend_schema(request=ContentSerializer, responses={200: KnownAnswerSerializer})
    def put(self, request: Request, pk: int) -> Response:
        """Set or replace the known answer. Its reasoning becomes the explanation."""
        found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
        content = read_content(self.given(ContentSerializer), found)
        return Response(KnownAnswerSerializer(workflow.set_known_answer(request.user, found, content)).data)


class GoldSerializer(serializers.Serializer):
    """A gold item; ``results`` says for each pseudonym whether the first label was right."""

    trajectory = serializers.IntegerField(source="trajectory.pk")
    task_id = serializers.CharField(source="trajectory.task.external_id")
    verdict = serializers.ChoiceField(choices=VERDICTS, source="answer.verdict")
    results = serializers.DictField(child=serializers.BooleanField())


class Gold(View):
    """The gold items of a submission with each annotator's result, for maintainers."""

    scopes = {"GET": Scope.READ}
    tag = "Submissions"
    operation_ids = {"GET": "list_gold_items"}
    serializer_class = GoldSerializer
    pagination_class = None  # type: ignore[assignment]

    @extend_schema(responses=GoldSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        self.chosen()
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        items = found.trajectories.filter(known_answer__isnull=False).values_list("pk", flat=True)
        gold = [] if found.practice else training.load_gold(found, items)
        return Response(GoldSerializer(gold, many=True).data)
