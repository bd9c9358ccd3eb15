"""Evidence bundles and their claims for the scripts of maintainers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from annotation import access
from annotation.access import Role
from annotation.api.base import Request, View
from annotation.api.serializers import ProblemSerializer
from annotation.api_tokens import Scope
from annotation.problem_details import Refused
from evaluations.access import claims_may_be_shown
from evaluations.api.exporting import AnyFile
from evaluations.download import download_evidence, prepare_evidence
from evaluations.evidence import standing
from evaluations.evidence.writing import SCREENSHOTS
from evaluations.exports import ExportRefused, missing_for_export
from evaluations.verifier.findings import Result


class ChainSerializer(serializers.Serializer):
    """The chain of events: the hash of its first event, how many there are, and the hash of the last one."""

    id = serializers.CharField(allow_null=True)
    events = serializers.IntegerField(min_value=0)
    head = serializers.CharField(allow_null=True)


class ClaimSerializer(serializers.Serializer):
    name = serializers.CharField()
    title = serializers.CharField()
    result = serializers.ChoiceField([result.value for result in Result])
    says = serializers.CharField()
    places = serializers.ListField(child=serializers.CharField(), help_text="Task ids, files or numbers of events.")


class ClaimsSerializer(serializers.Serializer):
    """``claims`` is null until the submission is frozen: they would tell of labels."""

    chain = ChainSerializer()
    missing = ProblemSerializer(many=True)
    claims = ClaimSerializer(many=True, allow_null=True)


class EvidenceFilters(serializers.Serializer):
    screenshots = serializers.ChoiceField(
        SCREENSHOTS, required=False, default="files", help_text="Pictures and attachments, or only their SHA-256."
    )
    judges = serializers.BooleanField(required=False, default=True, help_text="What judges said, too.")
    partial = serializers.BooleanField(  # type: ignore[assignment]
        required=False, default=False, help_text="Take what there is; the bundle says what is missing."
    )
    accept_names = serializers.BooleanField(
        required=False, default=False, help_text="Take texts in which members are named."
    )


class EvidenceFile(View):
    """The evidence bundle of a submission."""

    scopes = {"GET": Scope.READ}
    renderer_classes = [JSONRenderer, AnyFile]
    serializer_class = EvidenceFilters
    filters = EvidenceFilters

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int) -> Any:
        """Download the evidence bundle. 409 with every reason before the freeze, or while something is missing."""
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        try:
            return download_evidence(prepare_evidence(submission, **self.chosen()))
        except ExportRefused as refused:
            raise Refused("The export was refused.", refused.problems, status.HTTP_409_CONFLICT) from refused


class Claims(View):
    """The chain head, missing parts and claims of an evidence bundle of the submission."""

    scopes = {"GET": Scope.READ}
    serializer_class = ClaimsSerializer

    def get(self, request: Request, pk: int) -> Response:
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        self.chosen()
        claims = standing.claims(submission) if claims_may_be_shown(submission) else None
        answer = {
            "chain": standing.chain(submission),
            "missing": [problem.as_json() for problem in missing_for_export(submission)],
            "claims": None if claims is None else [claim.as_json() for claim in claims],
        }
        return Response(answer)
