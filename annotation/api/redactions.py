"""Which parts of the pictures of a submission are covered in what leaves the instance."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.response import Response

from annotation import redactions, workflow
from annotation.api.base import Request
from annotation.api.serializers import RedactionSerializer, RedactSerializer
from annotation.api.submissions import OfSubmission
from annotation.api_tokens import Scope
from annotation.models import Redaction, Screenshot


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
