"""Questions about the guidelines before the freeze, and comments on trajectories after it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import F
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, workflow
from annotation.access import Role
from annotation.api.base import Request, View
from annotation.api.serializers import PseudonymField
from annotation.api.submissions import OfSubmission
from annotation.api_tokens import Scope
from annotation.models import Comment, Membership, Question, Submission, Trajectory
from annotation.workflow.guards import LONGEST_NOTE

MEMBERS = (Role.ANNOTATOR, Role.ADJUDICATOR, Role.MAINTAINER)


class QuestionSerializer(serializers.ModelSerializer):
    """A question. ``mine``: the caller asked it. Only maintainers get ``id`` and ``asker``, which tell about others."""

    id = serializers.SerializerMethodField()
    asker = serializers.SerializerMethodField()
    mine = serializers.SerializerMethodField()
    asked_at = serializers.SerializerMethodField()

    class Meta:
        model = Question
        fields = ["id", "asker", "mine", "text", "asked_at", "answer", "answered_at", "private"]

    def get_id(self, question: Question) -> int | None:
        return None if self.context["askers"] is None else question.pk

    def get_asked_at(self, question: Question) -> datetime | None:
        return question.asked_at if self.get_mine(question) or self.context["askers"] is not None else None

    def get_asker(self, question: Question) -> str | None:
        names: dict[int, str] | None = self.context["askers"]
        return None if names is None else names.get(question.asker_id, "")

    def get_mine(self, question: Question) -> bool:
        return bool(question.asker_id == self.context["request"].user.pk)


class TextSerializer(serializers.Serializer):
    text = serializers.CharField(max_length=LONGEST_NOTE)


class Questions(OfSubmission):
    """The questions that the caller may read: open ones first, then the latest answers."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Discussion"
    operation_ids = {"GET": "list_questions", "POST": "ask_question"}
    serializer_class = QuestionSerializer
    filters = None
    roles = MEMBERS
    order = (F("answered_at").desc(nulls_first=True), "-pk")  # type: ignore[assignment]

    def rows(self, submission: Submission) -> Any:
        return access.questions_for(self.request.user, submission)

    def get_serializer_context(self) -> dict[str, Any]:
        context = super().get_serializer_context()
        if "pk" not in self.kwargs or self.request.method == "OPTIONS":
            return context
        maintains = access.role_in(self.request.user, self.submission()) is Role.MAINTAINER
        return context | {"askers": context["pseudonyms"] if maintains else None}

    @extend_schema(request=TextSerializer, responses={201: QuestionSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Ask the maintainer about the guidelines, as an annotator or adjudicator."""
        found = access.submission_for(request.user, pk, Role.ANNOTATOR, Role.ADJUDICATOR)
        made = workflow.ask_question(request.user, found, self.given(TextSerializer)["text"])
        return Response(self.get_serializer(made).data, status.HTTP_201_CREATED)


class AnswerSerializer(serializers.Serializer):
    answer = serializers.CharField(max_length=LONGEST_NOTE)
    private = serializers.BooleanField(default=False, help_text="Only the person who asked can read the answer.")


class QuestionAnswer(View):
    """The answer to a question."""

    scopes = {"POST": Scope.WRITE}
    tag = "Discussion"
    operation_ids = {"POST": "answer_question"}
    serializer_class = AnswerSerializer

    @extend_schema(request=AnswerSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Answer a question, once, as a maintainer."""
        found, given = access.question_for(request.user, pk), self.given()
        workflow.answer_question(request.user, found, given["answer"], private=given["private"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class CommentSerializer(serializers.ModelSerializer):
    """A comment, under the author's pseudonym."""

    author = PseudonymField(source="author_id")

    class Meta:
        model = Comment
        fields = ["id", "author", "step", "text", "written_at"]


class NewCommentSerializer(TextSerializer):
    step = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False, allow_null=True, default=None)


class Comments(View):
    """The comments on a trajectory, oldest first."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Discussion"
    operation_ids = {"GET": "list_comments", "POST": "write_comment"}
    serializer_class = CommentSerializer
    pagination_class = None  # type: ignore[assignment]

    def trajectory(self) -> Trajectory:
        return access.trajectory_for(self.request.user, self.kwargs["pk"], *MEMBERS)

    def describe(self, found: Trajectory, comments: Any, many: bool = False) -> Any:
        members = Membership.objects.filter(submission=found.submission_id)
        context = {"pseudonyms": dict(members.values_list("person_id", "pseudonym"))}
        return CommentSerializer(comments, many=many, context=context).data

    @extend_schema(responses=CommentSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the comments; 409 for people who may not read them yet."""
        self.chosen()
        found = self.trajectory()
        comments = access.comments_for(request.user, found)
        if comments is None:
            raise workflow.Conflict("Comments can be read once the submission is frozen and you may see its labels.")
        return Response(self.describe(found, comments, many=True))

    @extend_schema(request=NewCommentSerializer, responses={201: CommentSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Comment on a trajectory, or on one of its steps."""
        found, given = self.trajectory(), self.given(NewCommentSerializer)
        made = workflow.write_comment(request.user, found, given["text"], given["step"])
        return Response(self.describe(found, made), status.HTTP_201_CREATED)


class CommentDetail(View):
    """One comment."""

    scopes = {"DELETE": Scope.WRITE}
    tag = "Discussion"
    operation_ids = {"DELETE": "delete_comment"}
    serializer_class = CommentSerializer

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete your own comment; maintainers delete any."""
        workflow.delete_comment(access.comment_for(request.user, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)
