"""Judgments that were made elsewhere."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from annotation import access as people_access
from annotation.api.base import Request, View, imported
from annotation.api.serializers import ReportSerializer
from annotation.api_tokens import Scope
from judges import access, imports


class JudgmentFile(serializers.Serializer):
    file = serializers.FileField(help_text="JSON Lines or CSV with agent, task_id, verdict; or a WebJudge result file.")
    judge = serializers.SlugField(max_length=imports.LONGEST_NAME, help_text="Whose judgments they are.")
    agent = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=200, help_text="Where the file does not name it."
    )

    def validate_file(self, file: Any) -> Any:
        if file.size > imports.LARGEST_FILE:
            raise serializers.ValidationError(f"The file has more than {imports.LARGEST_FILE:,} bytes.")
        return file


class ImportedJudgments(View):
    """Judgments that were made elsewhere."""

    scopes = {"POST": Scope.WRITE}
    serializer_class = JudgmentFile
    parser_classes = [MultiPartParser]

    @extend_schema(request={"multipart/form-data": JudgmentFile}, responses={200: ReportSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Load a judgment file: all of it or nothing; a judgment that is there already is left alone."""
        people_access.require_maintainer(request.user)
        benchmark = access.find_benchmark(request.user, slug)
        given = JudgmentFile(data=request.data)
        given.is_valid(raise_exception=True)
        file = given.validated_data["file"]
        outcome = imports.import_judgments(
            file.read(),
            file.name,
            benchmark=benchmark,
            judge=given.validated_data["judge"],
            agent=given.validated_data["agent"],
            person=request.user,
        )
        return imported(outcome.report, "The judgment file was refused; nothing was imported.")
