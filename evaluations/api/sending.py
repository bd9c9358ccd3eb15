"""The files of a frozen submission for sending, and the published heads of its chain."""

from __future__ import annotations

from typing import Any

from django.core.files.storage import default_storage
from django.http import FileResponse, Http404
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access
from annotation.access import Role
from annotation.api.base import FileView, Request, View
from annotation.api.desks import read_stored
from annotation.api.serializers import ProblemSerializer
from annotation.api_tokens import Scope
from annotation.models import Submission
from annotation.workflow import Conflict
from evaluations import jobs, sending
from evaluations.models import Anchor, Delivery


class SentFileSerializer(serializers.Serializer):
    part = serializers.ChoiceField(choices=sending.PARTS)
    name = serializers.CharField()


class FilesSerializer(serializers.Serializer):
    """Files for sending. ``current``: they are those of the present freeze, and can be downloaded."""

    stage = serializers.CharField(help_text="none, waiting, running or finished.")
    done = serializers.IntegerField(help_text="Of 300.")
    current = serializers.BooleanField()
    files = SentFileSerializer(many=True)
    problems = ProblemSerializer(many=True, help_text="Why the newest request failed.")


def _describe(submission: Submission) -> dict[str, Any]:
    newest, made = sending.find_latest(submission)
    current = made is not None and sending.is_current(made)
    return {
        "stage": newest.stage if newest else "none",
        "done": newest.done if newest else 0,
        "current": current,
        "files": [{"part": each["part"], "name": each["name"]} for each in made.files] if made and current else [],
        "problems": newest.problems or [] if newest else [],
    }


class OptionsSerializer(serializers.Serializer):
    with_screenshots = serializers.BooleanField(default=False, help_text="In the evidence bundle.")
    accept_names = serializers.BooleanField(default=False, help_text="Create them although texts name members.")


class Files(View):
    """The files of a submission for sending: labels, trajectories and evidence, each checked after it is written."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE, "DELETE": Scope.WRITE}
    tag = "Evidence"
    operation_ids = {"GET": "get_files", "POST": "create_files", "DELETE": "cancel_files"}
    serializer_class = FilesSerializer

    def submission(self) -> Submission:
        return access.submission_for(self.request.user, self.kwargs["pk"], Role.MAINTAINER)

    def get(self, request: Request, pk: int) -> Response:
        """Return the progress, and the files that can be downloaded."""
        self.chosen()
        return Response(_describe(self.submission()))

    @extend_schema(request=OptionsSerializer, responses={202: FilesSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Create the files, in the background; 409 before the freeze."""
        found = self.submission()
        if found.practice:
            raise Http404("A practice submission has nothing to send.")
        sending.request(request.user, found, jobs.create_delivery.delay, **self.given(OptionsSerializer))
        return Response(_describe(found), status.HTTP_202_ACCEPTED)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Cancel the creation of the files. Finished files stay."""
        sending.cancel(self.submission())
        return Response(status=status.HTTP_204_NO_CONTENT)


class SentFile(FileView):
    """A file for sending."""

    scopes = {"GET": Scope.READ}
    tag = "Evidence"
    operation_ids = {"GET": "download_file"}
    serializer_class = serializers.Serializer

    @extend_schema(
        parameters=[OpenApiParameter("part", str, OpenApiParameter.PATH, enum=sending.PARTS)],
        responses={
            (200, "application/json"): OpenApiTypes.BINARY,
            (200, "application/jsonl"): OpenApiTypes.BINARY,
            (200, "application/zip"): OpenApiTypes.BINARY,
        },
    )
    def get(self, request: Request, pk: int, part: str) -> HttpResponseBase:
        """Download one of the files; 409 if it is from an earlier freeze, or no longer stored."""
        self.chosen()
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        delivery: Delivery | None = sending.find_latest(submission)[1]
        if part not in sending.PARTS:
            raise Http404("There is no such file.")
        if delivery is None or not sending.is_current(delivery):
            raise Conflict("This file is from an earlier freeze, or no longer stored. Create the files again.")
        facts = next(each for each in delivery.files if each["part"] == part)
        stream = read_stored(lambda: default_storage.open(facts["stored_as"]))
        return FileResponse(stream, as_attachment=True, filename=facts["name"])


class AnchorSerializer(serializers.ModelSerializer):
    """A head of the chain as published outside; with ``error``, the publication failed and is tried again."""

    class Meta:
        model = Anchor
        fields = ["method", "sequence", "head", "target", "error", "published_at"]


class Anchors(View):
    """The published heads of a submission's chain."""

    scopes = {"GET": Scope.READ}
    tag = "Evidence"
    operation_ids = {"GET": "list_anchors"}
    serializer_class = AnchorSerializer
    pagination_class = None  # type: ignore[assignment]

    @extend_schema(responses=AnchorSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        self.chosen()
        found = access.submission_for(request.user, pk, *access.READERS)
        rows = found.anchors.order_by("sequence", "method").defer("token")
        return Response(AnchorSerializer(rows, many=True).data)
