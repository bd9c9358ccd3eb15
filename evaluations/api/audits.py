"""API endpoints of audits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from annotation import access
from annotation.api.base import FileView, Listing, Request, View, report_stopped_import
from annotation.api_tokens import Scope
from annotation.models import Person
from annotation.workflow.guards import LONGEST_NOTE, REASON_TOO_LONG
from evaluations import audit_rules, jobs
from evaluations.access import audit_for, audits_for, bundle_upload_for
from evaluations.api.exporting import ClaimSerializer, EnvelopeSerializer
from evaluations.api.shapes import SERIALIZERS, serializer_of
from evaluations.attestation import MEDIA_TYPES, attest_audit
from evaluations.auditing import actions, reference_data, uploads
from evaluations.auditing.results import Differing, Result, find_related_bundles, list_checks, result
from evaluations.download import attach_attestation
from evaluations.encoding import fields_to_json
from evaluations.models import Audit, AuditDecision, BundleUpload


class AuditSerializer(serializers.ModelSerializer):
    """``submission`` and ``sample`` are numbers of submissions; ``decision`` is the newest one, or null.

    ``key_id`` and ``key_trusted`` belong to the newest check. ``seed`` is the SHA-256 of ``manifest`` followed by
    ``nonce``, unless the auditor chose it (``seed_chosen``).
    """

    agent = serializers.CharField(source="submission.agent.name", read_only=True)
    benchmark = serializers.CharField(source="submission.benchmark.stated_slug", read_only=True)
    key_id = serializers.CharField(read_only=True)
    key_trusted = serializers.BooleanField(read_only=True)
    sample = serializers.SerializerMethodField()
    seed_chosen = serializers.BooleanField(read_only=True)
    decision = serializers.SerializerMethodField()

    class Meta:
        model = Audit
        fields = [
            "id",
            "submission",
            "agent",
            "benchmark",
            "file_name",
            "manifest",
            "key_id",
            "key_trusted",
            "opened_at",
            "sample",
            "size",
            "seed",
            "nonce",
            "seed_chosen",
            "drawn_at",
            "tolerance",
            "decision",
        ]

    def get_sample(self, audit: Audit) -> int | None:
        return audit.sample.pk if audit.sample else None

    def get_decision(self, audit: Audit) -> str | None:
        return audit.decision.outcome if audit.decision else None


SERIALIZERS[Differing] = serializer_of(Differing, without={"audited", "sampled"})
AuditResultSerializer = serializer_of(Result, name="AuditResult")
AuditRuleSerializer = serializer_of(audit_rules.RuleProgress, name="AuditRule")


class AuditDecisionSerializer(serializers.ModelSerializer):
    reason = serializers.CharField(max_length=LONGEST_NOTE, error_messages={"max_length": REASON_TOO_LONG})

    class Meta:
        model = AuditDecision
        fields = ("outcome", "reason", "rule_said", "decided_at")
        read_only_fields = ("rule_said", "decided_at")


class OtherBundleSerializer(serializers.Serializer):
    manifest = serializers.CharField()
    opened_at = serializers.DateTimeField()
    size = serializers.IntegerField(allow_null=True)
    drawn_at = serializers.DateTimeField(allow_null=True, help_text="Null until its sample is drawn.")


class BesideSerializer(serializers.Serializer):
    """Other bundles of the same submission that were opened here, and the total number of samples drawn."""

    samples_drawn = serializers.IntegerField()
    other_bundles = OtherBundleSerializer(many=True)


class AuditCheckSerializer(serializers.Serializer):
    """A check of the bundle: the auditor, the reference data given (null if not recorded), and the failed checks."""

    checked_at = serializers.DateTimeField()
    checked_by = serializers.CharField(help_text="A pseudonym.")
    given = serializers.ListField(child=serializers.CharField(), allow_null=True)
    key_id = serializers.CharField()
    key_trusted = serializers.BooleanField()
    failed = ClaimSerializer(many=True)


class AuditDetailSerializer(AuditSerializer):
    """Also has the findings of the newest check, all checks (newest first) and all decisions. ``rule`` is what the rule
    of the audit says, null without a rule. ``result`` is the result of the sample, null until it is frozen."""

    findings = ClaimSerializer(many=True)
    checks = serializers.SerializerMethodField()
    rule = serializers.SerializerMethodField()
    result = serializers.SerializerMethodField()
    decisions = AuditDecisionSerializer(many=True)
    beside = serializers.SerializerMethodField()

    class Meta(AuditSerializer.Meta):
        fields = [*AuditSerializer.Meta.fields, "findings", "checks", "rule", "result", "decisions", "beside"]

    @extend_schema_field(AuditCheckSerializer(many=True))
    def get_checks(self, audit: Audit) -> list[dict[str, Any]]:
        return [each.as_json() for each in list_checks(audit)]

    @extend_schema_field(BesideSerializer)
    def get_beside(self, audit: Audit) -> dict[str, Any]:
        return find_related_bundles(audit).as_json()

    @extend_schema_field(AuditRuleSerializer(allow_null=True))
    def get_rule(self, audit: Audit) -> dict[str, Any] | None:
        found = audit_rules.find_progress(audit)
        return found.as_json() if found else None

    @extend_schema_field(AuditResultSerializer(allow_null=True))
    def get_result(self, audit: Audit) -> dict[str, Any] | None:
        found = result(audit)
        return fields_to_json(found) if found else None


class AuditBundleSerializer(serializers.Serializer):
    bundle = serializers.FileField(
        max_length=255, validators=[reference_data.check_bundle_size], help_text="An evidence bundle as a zip."
    )
    keys = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=reference_data.LONGEST_KEYS,
        error_messages={"max_length": reference_data.KEYS_TOO_LONG},
        help_text="The submitter's /.well-known/webverdict-keys.json, or a public key in hex.",
    )
    anchors = serializers.FileField(required=False, max_length=255, help_text=reference_data.ANCHORS_HELP)
    chain = serializers.CharField(
        required=False, allow_blank=True, max_length=reference_data.LONGEST_CHAIN, help_text=reference_data.CHAIN_HELP
    )
    heads = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=reference_data.LONGEST_HEADS,
        error_messages={"max_length": reference_data.HEADS_TOO_LONG},
        help_text=reference_data.HEADS_HELP,
    )
    tasks = serializers.FileField(required=False, max_length=255, help_text=reference_data.TASKS_HELP)
    revocations = serializers.FileField(required=False, max_length=255, help_text=reference_data.REVOCATIONS_HELP)


class BundleUploadSerializer(serializers.ModelSerializer):
    """An uploaded bundle; ``done`` of ``total`` files are read.

    When it is finished, ``audit`` has the number of its audit, or ``refused`` the reason, with the ``findings`` of the
    checks done so far. With ``again``, this bundle was already open as that audit, and was checked again.
    """

    stage = serializers.ChoiceField(choices=["waiting", "running", "finished"])
    findings = ClaimSerializer(many=True)

    class Meta:
        model = BundleUpload
        fields = (
            "id",
            "stage",
            "file_name",
            "created_at",
            "started_at",
            "finished_at",
            "done",
            "total",
            "refused",
            "findings",
            "audit",
            "again",
        )


class AuditSampleSerializer(serializers.Serializer):
    size = serializers.IntegerField(min_value=1, max_value=1_000_000, required=False, help_text="Only without a rule.")
    rule = serializers.ChoiceField(
        [audit_rules.ACCEPT], required=False, help_text="The rule says accept, query or reject while people label."
    )
    tolerance = serializers.FloatField(
        required=False,
        help_text="Only with a rule: a claimed success rate that is too high by this much or more is accepted in at "
        f"most 5% of audits. The default is {audit_rules.TOLERANCE:g}.",
    )
    max_size = serializers.IntegerField(
        min_value=2,
        max_value=1_000_000,
        required=False,
        help_text="Only with a rule: the largest number of trajectories that people label.",
    )
    seed = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=actions.LONGEST_SEED,
        error_messages={"max_length": actions.SEED_TOO_LONG},
    )


def _validate(serializer: type[serializers.BaseSerializer], request: Request) -> Any:
    given = serializer(data=request.data)
    given.is_valid(raise_exception=True)
    return given.validated_data


class AuditFilters(serializers.Serializer):
    archived = serializers.BooleanField(default=False, help_text="true: only archived audits. false: all others.")


class Audits(Listing):
    """The caller's audits, newest first."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Audits"
    operation_ids = {"GET": "list_audits", "POST": "upload_bundle"}
    serializer_class = AuditSerializer
    parser_classes = [MultiPartParser]
    filters = AuditFilters

    def get_queryset(self) -> QuerySet[Audit]:
        archived = self.chosen()["archived"]
        return audits_for(self.request.user).filter(submission__archived_at__isnull=not archived)

    @extend_schema(
        request={"multipart/form-data": AuditBundleSerializer},
        responses={202: BundleUploadSerializer},
        parameters=[OpenApiParameter("Location", str, OpenApiParameter.HEADER, response=[202])],
    )
    def post(self, request: Request) -> Response:
        """Upload a bundle to open it as an audit. The header Location has the address of the upload.

        If the caller already audits this bundle, it is checked again with the reference data sent now.
        """
        access.require_creator(request.user)
        sent = _validate(AuditBundleSerializer, request)
        file = sent.pop("bundle")
        given = reference_data.parse_reference_data(**sent)
        with report_stopped_import("bundle"):
            upload = uploads.receive(request.user, file, given, jobs.open_bundle.delay)
        where = request.build_absolute_uri(reverse("api-bundle-upload", args=[upload.pk]))
        return Response(BundleUploadSerializer(upload).data, status.HTTP_202_ACCEPTED, headers={"Location": where})


class BundleUploadStatus(View):
    """An uploaded bundle, for its uploader."""

    scopes = {"GET": Scope.READ, "DELETE": Scope.WRITE}
    tag = "Audits"
    operation_ids = {"GET": "get_bundle_upload", "DELETE": "cancel_bundle_upload"}
    serializer_class = BundleUploadSerializer

    def get(self, request: Request, pk: Any) -> Response:
        """Return the progress of an upload, and its audit or the refusal when it is finished."""
        self.chosen()
        return Response(BundleUploadSerializer(bundle_upload_for(request.user, pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: Any) -> Response:
        """Cancel an upload, or remove a finished one. Its audit stays. 409 if it ended at this moment."""
        uploads.cancel(bundle_upload_for(request.user, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditDetail(View):
    """One audit."""

    scopes = {"GET": Scope.READ}
    tag = "Audits"
    operation_ids = {"GET": "get_audit"}
    serializer_class = AuditDetailSerializer

    def get(self, request: Request, pk: int) -> Response:
        self.chosen()
        return Response(AuditDetailSerializer(audit_for(request.user, pk)).data)


class AuditSample(View):
    """The sample of an audit."""

    scopes = {"POST": Scope.ADMIN}
    tag = "Audits"
    operation_ids = {"POST": "draw_audit_sample"}
    serializer_class = AuditSampleSerializer

    @extend_schema(request=AuditSampleSerializer, responses={201: AuditDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Draw the sample of an audit, once (409 afterwards). It is a submission: add its people there."""
        found = audit_for(request.user, pk)
        given = _validate(AuditSampleSerializer, request)
        seed = given.pop("seed", None)
        size, tolerance = audit_rules.read_terms(**given)
        actions.draw(found, request.user, size, seed, tolerance)
        return Response(AuditDetailSerializer(found).data, status.HTTP_201_CREATED)


class AuditorSerializer(serializers.Serializer):
    username = serializers.CharField(max_length=150)
    pseudonym = serializers.CharField(read_only=True)


class Auditors(View):
    """The auditors of an audit."""

    scopes = {"POST": Scope.ADMIN}
    tag = "Audits"
    operation_ids = {"POST": "add_auditor"}
    serializer_class = AuditorSerializer

    @extend_schema(request=AuditorSerializer, responses={201: AuditorSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Add an auditor who has an account. 409 if they label the sample."""
        found = audit_for(request.user, pk)
        given = _validate(AuditorSerializer, request)
        name = given["username"]
        person = Person.objects.filter(is_active=True, username=name).first()
        if person is None:
            raise serializers.ValidationError({"username": ["No account here has this name."]})
        member = actions.add_auditor(request.user, found, person)
        return Response({"username": name, "pseudonym": member.pseudonym}, status.HTTP_201_CREATED)


class AuditDecisions(View):
    """The decisions of the auditors."""

    scopes = {"POST": Scope.ADMIN}
    tag = "Audits"
    operation_ids = {"POST": "decide_audit"}
    serializer_class = AuditDecisionSerializer

    @extend_schema(request=AuditDecisionSerializer, responses={201: AuditDecisionSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Accept, query or reject the submission, with a reason. The newest decision counts."""
        found = audit_for(request.user, pk)
        given = _validate(AuditDecisionSerializer, request)
        made = actions.decide(request.user, found, given["outcome"], given["reason"])
        return Response(AuditDecisionSerializer(made).data, status.HTTP_201_CREATED)


class AuditAttestation(FileView):
    """The attestation of an audit."""

    scopes = {"GET": Scope.READ}
    tag = "Audits"
    operation_ids = {"GET": "download_audit_attestation"}
    serializer_class = EnvelopeSerializer

    @extend_schema(responses={(200, MEDIA_TYPES["audit"]): EnvelopeSerializer})
    def get(self, request: Request, pk: int) -> HttpResponse:
        """Download the result of the audit as a Simple Verification Result. 409 before the first decision."""
        self.chosen()
        found = audit_for(request.user, pk)
        return attach_attestation(attest_audit(found), found.submission, "audit")


class AuditArchive(View):
    """Archive an audit."""

    scopes = {"POST": Scope.WRITE}
    tag = "Audits"
    operation_ids = {"POST": "archive_audit"}
    serializer_class = AuditSerializer
    act: Callable[[Person, Audit], Any] = staticmethod(actions.archive)

    @extend_schema(request=None, responses={200: AuditSerializer})
    def post(self, request: Request, pk: int) -> Response:
        found = audit_for(request.user, pk)
        type(self).act(request.user, found)
        return Response(AuditSerializer(audit_for(request.user, pk)).data)


class AuditRestore(AuditArchive):
    """Restore an archived audit."""

    operation_ids = {"POST": "restore_audit"}
    act = staticmethod(actions.restore)
