"""The informed second stage of annotators, the network evidence of adjudicators, and quotas of a benchmark."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access as people_access
from annotation.api.base import Request, View
from annotation.api_tokens import Scope
from annotation.models.reviews import VERDICTS
from annotation.quotas import count_bytes
from annotation.records import Verdict
from annotation.workflow.guards import LONGEST_NOTE
from judges import disclosure, quotas, trying
from judges.disclosure import NetworkEvidence, SecondStage


class ShownJudgmentSerializer(serializers.Serializer):
    judge = serializers.CharField()
    verdict = serializers.ChoiceField(choices=VERDICTS, allow_null=True)
    unscored = serializers.CharField(allow_blank=True)
    explanation = serializers.CharField(allow_blank=True)


class SecondStageSerializer(serializers.Serializer):
    """``judgments`` is empty until the caller has opened them; then ``verdict`` is their later opinion, if any."""

    opened = serializers.BooleanField()
    decided = serializers.BooleanField()
    own_verdict = serializers.IntegerField()
    verdict = serializers.ChoiceField(choices=VERDICTS, allow_null=True)
    judgments = ShownJudgmentSerializer(many=True)


def _describe(found: SecondStage) -> dict[str, Any]:
    informed = found.informed
    values = {
        "opened": informed is not None,
        "decided": found.decided,
        "own_verdict": found.label.verdict,
        "verdict": informed.verdict if informed is not None else None,
        "judgments": found.judgments,
    }
    return dict(SecondStageSerializer(values).data)


class SecondStageDetail(View):
    """The second stage of a trajectory, after the own label."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Annotation"
    operation_ids = {"GET": "get_second_stage", "POST": "open_second_stage"}
    serializer_class = SecondStageSerializer

    def get(self, request: Request, pk: int) -> Response:
        """Return the judgments that the caller has opened."""
        self.chosen()
        return Response(_describe(disclosure.load_second_stage(request.user, pk)))

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Open the judgments, to read them afterwards. The label stays as it is from then on."""
        found = disclosure.load_second_stage(request.user, pk)
        disclosure.open_second_stage(request.user, found.trajectory)
        return Response(status=status.HTTP_204_NO_CONTENT)


class NewOpinionSerializer(serializers.Serializer):
    verdict = serializers.ChoiceField(choices=VERDICTS)
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=LONGEST_NOTE)


class SecondStageOpinion(View):
    """The opinion after the judgments."""

    scopes = {"POST": Scope.WRITE}
    tag = "Annotation"
    operation_ids = {"POST": "decide_second_stage"}
    serializer_class = NewOpinionSerializer

    @extend_schema(request=NewOpinionSerializer, responses={201: SecondStageSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Keep or change the verdict, which is stored beside the label; a change needs a reason."""
        found, given = disclosure.load_second_stage(request.user, pk), self.given()
        disclosure.decide(request.user, found.trajectory, found.label, Verdict(given["verdict"]), given["reason"])
        return Response(_describe(disclosure.load_second_stage(request.user, pk)), status.HTTP_201_CREATED)


class EvidenceSerializer(serializers.Serializer):
    """``verdict`` and ``details`` are null until the caller has opened the evidence."""

    opened = serializers.BooleanField()
    verdict = serializers.ChoiceField(choices=VERDICTS, allow_null=True)
    details = serializers.JSONField(allow_null=True)


class NetworkEvidenceDetail(View):
    """The results of a task's network checks, for an adjudicator who does not judge it blind."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Adjudication"
    operation_ids = {"GET": "get_network_evidence", "POST": "open_network_evidence"}
    serializer_class = EvidenceSerializer

    def find(self) -> NetworkEvidence:
        found = disclosure.load_network_evidence(self.request.user, self.kwargs["pk"])
        if found is None:
            raise Http404("The task has no checks, or its checks need a network trace and the trajectory has none.")
        return found

    def get(self, request: Request, pk: int) -> Response:
        """Return the results, if the caller has opened them."""
        self.chosen()
        return Response(_describe_evidence(self.find()))

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Open the results, which is recorded, to read them afterwards."""
        disclosure.open_network_evidence(request.user, self.find())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _describe_evidence(found: NetworkEvidence) -> dict[str, Any]:
    score = trying.run_checks(found.subject) if found.seen else None
    details = None if score is None else dict(score.details)
    return {"opened": found.seen, "verdict": None if score is None else score.verdict, "details": details}


class Quotas(View):
    """The quotas of a benchmark and what is used of them."""

    scopes = {"GET": Scope.READ}
    tag = "Benchmarks"
    operation_ids = {"GET": "get_quotas"}
    serializer_class = serializers.Serializer

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, slug: str) -> Response:
        """Return limit (null for none) and use of bytes, model calls, and cost in US dollars."""
        self.chosen()
        found = people_access.benchmark_for(request.user, slug)
        used: dict[str, Any] = {"bytes": count_bytes(found)}
        used |= {name: quotas.load_use(found.pk, f"quota_{name}") for name in ("calls", "cost")}
        return Response({name: {"limit": getattr(found, f"quota_{name}"), "used": used[name]} for name in used})
