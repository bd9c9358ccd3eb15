"""Exports, evidence bundles and their claims for the scripts of maintainers."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access, store_checks
from annotation.access import Role
from annotation.api.base import FileView, Request, View
from annotation.api.serializers import ProblemSerializer
from annotation.api_tokens import Scope
from annotation.problem_details import Refused
from annotation.workflow.guards import LONGEST_NOTE
from evaluations import exports_v2
from evaluations.access import claims_may_be_shown
from evaluations.attestation import MEDIA_TYPES
from evaluations.download import (
    download,
    download_attestation,
    download_evidence,
    find_format,
    prepare_download,
    prepare_evidence,
)
from evaluations.evidence import standing
from evaluations.evidence.writing import SCREENSHOTS
from evaluations.exports import ExportFormat, ExportRefused, missing_for_export
from evaluations.publication.options import RELATIONSHIPS, SCHEMA_VERSIONS, ResultFormat
from evaluations.verifier.findings import Result

FORMATS = [each.value for each in (*ExportFormat, *ResultFormat)]


class ExportCheckSerializer(serializers.Serializer):
    """``missing`` prevents every complete export, ``unconvertible`` only that of trajectories-v2."""

    complete = serializers.BooleanField()
    missing = ProblemSerializer(many=True)
    unconvertible = ProblemSerializer(many=True)
    warnings = ProblemSerializer(many=True, help_text="Gaps that will appear in trajectories-v2.")


class ExportFilters(serializers.Serializer):
    partial = serializers.BooleanField(  # type: ignore[assignment]
        required=False, help_text="Export the verdicts that are final; the file says that it is partial."
    )
    accept_names = serializers.BooleanField(
        required=False, help_text="Of published formats: export although texts name members."
    )
    schema_version = serializers.ChoiceField(SCHEMA_VERSIONS, required=False, help_text="Of every-eval-ever.")
    dataset = serializers.CharField(
        required=False, max_length=200, help_text="The benchmark's dataset on Hugging Face, as owner/name."
    )
    task_id = serializers.CharField(
        required=False, max_length=200, help_text="Of eval-results: the task in the dataset's eval.yaml."
    )
    model = serializers.CharField(required=False, max_length=200, help_text="Of every-eval-ever: owner/name.")
    organization = serializers.CharField(required=False, max_length=200, help_text="Of every-eval-ever: who evaluated.")
    relationship = serializers.ChoiceField(
        RELATIONSHIPS, required=False, help_text="Of every-eval-ever: of the evaluator to the agent."
    )
    licence = serializers.CharField(
        required=False, max_length=64, help_text="Of dataset: an identifier of Hugging Face, such as cc-by-4.0."
    )
    creator = serializers.CharField(required=False, max_length=200, help_text="Of dataset: who publishes it.")
    url = serializers.URLField(required=False, help_text="The page of the dataset, or the source of eval-results.")


class ExportCheck(View):
    """Everything that prevents a complete export."""

    scopes = {"GET": Scope.READ}
    tag = "Results"
    operation_ids = {"GET": "check_export"}
    serializer_class = ExportCheckSerializer

    def get(self, request: Request, pk: int) -> Response:
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        self.chosen()
        missing = missing_for_export(submission)
        unconvertible, warnings = exports_v2.survey(submission)
        unconvertible += store_checks.find_known_damage(submission)
        answer = {
            "complete": not missing,
            "missing": [problem.as_json() for problem in missing],
            "unconvertible": [problem.as_json() for problem in unconvertible],
            "warnings": [problem.as_json() for problem in warnings],
        }
        return Response(answer)


class ExportFile(FileView):
    """A submission as a file."""

    scopes = {"GET": Scope.READ}
    tag = "Results"
    operation_ids = {"GET": "download_export"}
    serializer_class = ExportFilters
    filters = ExportFilters

    @extend_schema(
        parameters=[OpenApiParameter("export_format", str, OpenApiParameter.PATH, enum=FORMATS)],
        responses={
            (200, "application/json"): OpenApiTypes.ANY,
            (200, "application/jsonl"): OpenApiTypes.STR,
            (200, "application/zip"): OpenApiTypes.BINARY,
            (200, "application/yaml"): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request, pk: int, export_format: str) -> Any:
        """Download an export. 409 with every reason if something is missing, unless ``partial`` is set."""
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        if (chosen := find_format(export_format)) is None:
            raise Http404("This export does not exist.")
        options = self.chosen()
        try:
            return download(prepare_download(submission, chosen, **options))
        except ExportRefused as refused:
            raise Refused("The export was rejected.", refused.problems, status.HTTP_409_CONFLICT) from refused


class Nowhere(APIView):
    """An address that the API does not have; the answer has problem details, like every other error."""

    http_method_names = ["get", "post", "put", "patch", "delete", "head"]
    scopes = dict.fromkeys(["GET", "POST", "PUT", "PATCH", "DELETE"], Scope.READ)
    schema = None

    def get(self, request: Request, rest: str) -> Response:
        raise Http404("This address does not exist in the API. Check its spelling.")

    post = put = patch = delete = head = get


# --- evidence bundles -------------------------------------------------------------------------------------------------


class ChainSerializer(serializers.Serializer):
    """The chain of events: the hash of its first event, the number of events, and the hash of the last one."""

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
    """``claims`` is null until the submission is frozen, because claims reveal labels."""

    chain = ChainSerializer()
    missing = ProblemSerializer(many=True)
    claims = ClaimSerializer(many=True, allow_null=True)


class EvidenceFilters(serializers.Serializer):
    screenshots = serializers.ChoiceField(
        SCREENSHOTS, required=False, default="files", help_text="Screenshots and attachments, or only their SHA-256."
    )
    judges = serializers.BooleanField(required=False, default=True, help_text="Include judgments.")
    partial = serializers.BooleanField(  # type: ignore[assignment]
        required=False, default=False, help_text="Export although things are missing; the bundle lists them."
    )
    accept_names = serializers.BooleanField(
        required=False, default=False, help_text="Export although texts name members."
    )
    supersedes = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=100,
        help_text="The SHA-256 of MANIFEST.json in the replaced bundle. Whether that bundle exists is not checked.",
    )
    reason = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_NOTE,
        help_text="Why this bundle replaces that one. The bundle's signature covers this reason.",
    )


class EvidenceFile(FileView):
    """The evidence bundle of a submission."""

    scopes = {"GET": Scope.READ}
    tag = "Evidence"
    operation_ids = {"GET": "download_evidence"}
    serializer_class = EvidenceFilters
    filters = EvidenceFilters

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int) -> Any:
        """Download the evidence bundle. 409 with every reason before the freeze, or if something is missing."""
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        try:
            return download_evidence(prepare_evidence(submission, **self.chosen()))
        except ExportRefused as refused:
            raise Refused("The export was rejected.", refused.problems, status.HTTP_409_CONFLICT) from refused


class EnvelopeSignatureSerializer(serializers.Serializer):
    keyid = serializers.CharField(help_text="The key's id in /.well-known/webverdict-keys.json.")
    sig = serializers.CharField(help_text="Ed25519, in base64.")


class EnvelopeSerializer(serializers.Serializer):
    """A DSSE envelope with an in-toto Statement."""

    payload = serializers.CharField(help_text="The Statement as JSON, in base64.")
    payloadType = serializers.CharField(help_text="application/vnd.in-toto+json.")  # noqa: N815 - as DSSE has it
    signatures = EnvelopeSignatureSerializer(many=True, help_text="One signature.")


class Attestation(FileView):
    """The attestation of an evidence bundle."""

    scopes = {"GET": Scope.READ}
    tag = "Evidence"
    operation_ids = {"GET": "download_attestation"}
    serializer_class = EnvelopeSerializer
    filters = EvidenceFilters

    @extend_schema(responses={(200, MEDIA_TYPES["evidence"]): EnvelopeSerializer})
    def get(self, request: Request, pk: int) -> Any:
        """Download the attestation of the bundle that download_evidence gives for the same parameters.

        The server creates and checks the bundle again. 409 with every reason before the freeze, or if a check fails.
        Also 409 for a bundle without screenshots, because each export of it differs.
        """
        submission = access.submission_for(request.user, pk, Role.MAINTAINER)
        try:
            return download_attestation(prepare_evidence(submission, **self.chosen()))
        except ExportRefused as refused:
            raise Refused("The attestation was refused.", refused.problems, status.HTTP_409_CONFLICT) from refused


class Claims(View):
    """The chain head, missing parts and claims of an evidence bundle of the submission."""

    scopes = {"GET": Scope.READ}
    tag = "Evidence"
    operation_ids = {"GET": "get_claims"}
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
