"""A trajectory as the desks of annotators and adjudicators show it, and its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from annotation import access, screenshots, store_checks, workflow
from annotation.api.base import FileView, Request
from annotation.api.serializers import StepSerializer
from annotation.api_tokens import Scope
from annotation.models import Attachment, Step, Trajectory
from annotation.outages import Outage, find_outage
from annotation.problem_details import Refused


class AttachmentSerializer(serializers.ModelSerializer):
    class Meta:
        model = Attachment
        fields = ["id", "kind", "name", "sha256", "size", "withheld"]


class DeskSerializer(serializers.ModelSerializer):
    """A trajectory as its reviewers see it, without agent and origin."""

    trajectory = serializers.IntegerField(source="pk")
    task_id = serializers.CharField(source="task.external_id")
    task_text = serializers.CharField(source="task.text")
    website = serializers.CharField(source="task.website")
    level = serializers.CharField(source="task.level")
    reference_length = serializers.IntegerField(source="task.reference_length", allow_null=True)
    protocol_version = serializers.IntegerField(source="submission.protocol_version")
    process_labels = serializers.BooleanField(source="submission.process_labels")
    key_points = serializers.ListField(child=serializers.CharField())
    steps = StepSerializer(many=True)
    attachments = AttachmentSerializer(many=True)

    class Meta:
        model = Trajectory
        fields = [
            "trajectory", "submission", "task_id", "task_text", "website", "level", "reference_length",
            "protocol_version", "process_labels", "key_points", "final_answer", "steps", "attachments",
        ]  # fmt: skip


class Desk:
    """A trajectory for a serializer, with other values, some of which have the names of hidden relations."""

    def __init__(self, trajectory: Trajectory, **values: Any) -> None:
        prefetch_related_objects([trajectory], Prefetch("steps", Step.objects.select_related("screenshot")))
        self._trajectory = trajectory
        self.key_points = list(workflow.key_points_of(trajectory).values_list("text", flat=True))
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trajectory, name)


def read_stored(read: Callable[[], Any], sha256: str = "") -> Any:
    """Return the content of a stored file; Http404 if it is lost or damaged, 503 if the store does not answer."""
    try:
        return read()
    except screenshots.DamagedFile as error:
        store_checks.record_damage([sha256])
        raise Http404("This file is damaged in the file store. Ask the operator to restore it.") from error
    except FileNotFoundError as error:
        raise Http404("This file is missing from the file store.") from error
    except screenshots.STORE_ERRORS as error:
        outage = find_outage(error) or Outage.STORE
        raise Refused(outage.advice, [], outage.status, outage.retry_after) from error


class ScreenshotFile(FileView):
    """The screenshot of a step."""

    scopes = {"GET": Scope.READ}
    tag = "Annotation"
    operation_ids = {"GET": "download_screenshot"}
    serializer_class = serializers.Serializer

    @extend_schema(
        responses={
            (200, "image/webp"): OpenApiTypes.BINARY,
            (200, "image/png"): OpenApiTypes.BINARY,
            (200, "image/jpeg"): OpenApiTypes.BINARY,
        }
    )
    def get(self, request: Request, pk: int, step: int, kind: str) -> HttpResponse:
        """Return the screenshot of a step: a WebP, a JPEG if it is very tall, or with ``full`` a PNG."""
        self.chosen()
        found, _ = access.screenshot_for(request.user, pk, step)
        data, media_type = read_stored(lambda: screenshots.rendition(found, screenshots.Rendition(kind)), found.sha256)
        return HttpResponse(data, content_type=media_type)


class AttachmentFile(FileView):
    """A file of a trajectory."""

    scopes = {"GET": Scope.READ}
    tag = "Annotation"
    operation_ids = {"GET": "download_attachment"}
    serializer_class = serializers.Serializer

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, attachment: int) -> HttpResponseBase:
        """Download a file of a trajectory, such as the pages stored for an answer."""
        self.chosen()
        found = access.attachment_for(request.user, pk, attachment)
        stream = read_stored(lambda: screenshots.open_original(found.sha256), found.sha256)
        name = found.name.rsplit("/", 1)[-1]
        return FileResponse(stream, as_attachment=True, filename=name, content_type="application/octet-stream")
