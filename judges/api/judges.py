"""Judges, the terms of models, and prompt sets."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.fields import empty
from rest_framework.response import Response

from annotation import access as people_access
from annotation.access import Role
from annotation.api.base import Listing, Request, View
from annotation.api_tokens import Scope
from judges import access, attacking, defining, model_check, prompt_sets, robustness, runs
from judges.api.runs import PlanSerializer, RunDetailSerializer
from judges.lab import OPERATORS
from judges.models import Judge, ModelTerms, RobustnessCard
from judges.planning import MOST_SEED


class JudgeSerializer(serializers.ModelSerializer):
    """A judge with all its parameters; ``frozen_at`` is null until its first run, and it may change until then."""

    parameters = serializers.DictField(read_only=True)
    generation = serializers.DictField(read_only=True)
    fingerprint = serializers.CharField(read_only=True)

    class Meta:
        model = Judge
        fields = [
            "id", "name", "version", "description", "scorer", "scorer_version", "endpoint", "model", "prompts",
            "prompts_digest", "parameters", "generation", "concurrency", "timeout", "attempts", "fingerprint",
            "created_at", "frozen_at",
        ]  # fmt: skip


class NewJudgeSerializer(serializers.Serializer):
    """Definition of a judge; omitted fields have their defaults."""

    name = serializers.CharField(max_length=64, help_text="If the name exists, this becomes its next version.")
    scorer = serializers.CharField(max_length=40)
    model = serializers.CharField(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="The model's name at its endpoint; empty if the scorer asks no model.",
    )
    endpoint = serializers.CharField(max_length=40, default="default")
    prompts = serializers.CharField(
        max_length=100, default="", allow_blank=True, help_text="A prompt set; empty: the scorer's default."
    )
    parameters = serializers.DictField(default=dict, help_text="The scorer's parameters.")
    generation = serializers.DictField(default=dict, help_text="How the model is called.")
    description = serializers.CharField(max_length=500, default="", allow_blank=True)
    concurrency = serializers.IntegerField(default=16)
    timeout = serializers.FloatField(default=120.0, help_text="Seconds for one attempt.")
    attempts = serializers.IntegerField(default=6)
    check = serializers.BooleanField(
        default=False, help_text="Ask the model once with these settings; nothing is defined if it does not answer."
    )


class ChangedJudgeSerializer(serializers.Serializer):
    """The fields to change; the others stay."""

    def get_fields(self) -> dict[str, serializers.Field]:
        fields = NewJudgeSerializer().get_fields()
        for each in fields.values():
            each.required, each.default = False, empty
        return {name: each for name, each in fields.items() if name not in ("name", "scorer", "check")}


class JudgeFilters(serializers.Serializer):
    # Not trimmed: a space would become "", which is refused, though it fits the schema.
    name = serializers.CharField(required=False, trim_whitespace=False)
    scorer = serializers.CharField(required=False, trim_whitespace=False)
    newest = serializers.BooleanField(required=False, help_text="Only the newest version of each judge.")


class Judges(Listing):
    """The judges of the instance."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Judges"
    operation_ids = {"GET": "list_judges", "POST": "define_judge"}
    serializer_class = JudgeSerializer
    filters = JudgeFilters

    def get_queryset(self) -> QuerySet[Judge]:
        found = access.find_judges(self.request.user)
        chosen = self.chosen()
        for name in ("name", "scorer"):
            if name in chosen:
                found = found.filter(**{name: chosen[name]})
        if chosen.get("newest"):
            found = found.filter(~Exists(Judge.own.filter(name=OuterRef("name"), version__gt=OuterRef("version"))))
        return found.order_by("name", "-version")

    @extend_schema(request=NewJudgeSerializer, responses={201: JudgeSerializer})
    def post(self, request: Request) -> Response:
        """Define a judge, or its next version if the name exists."""
        access.find_judges(request.user)
        given = NewJudgeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        fields = given.validated_data
        if fields.pop("check"):
            model_check.require_answer(request.user, **fields)
        made = defining.define(request.user, **fields)
        return Response(JudgeSerializer(made).data, status=status.HTTP_201_CREATED)


class JudgeDetail(View):
    """One judge."""

    scopes = {"GET": Scope.READ, "PATCH": Scope.WRITE, "DELETE": Scope.ADMIN}
    tag = "Judges"
    operation_ids = {"GET": "get_judge", "PATCH": "change_judge", "DELETE": "delete_judge"}
    serializer_class = JudgeSerializer

    def get(self, request: Request, pk: int) -> Response:
        found = access.find_judge(request.user, pk)
        self.chosen()
        return Response(JudgeSerializer(found).data)

    @extend_schema(request=ChangedJudgeSerializer, responses={200: JudgeSerializer})
    def patch(self, request: Request, pk: int) -> Response:
        """Change what is sent, before the first run of the judge; 409 afterwards. Its name and scorer stay."""
        found = access.find_judge(request.user, pk)
        return Response(
            JudgeSerializer(defining.change(request.user, found, **self.given(ChangedJudgeSerializer))).data
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a judge that was never used."""
        defining.delete(request.user, access.find_judge(request.user, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class RobustnessSerializer(serializers.ModelSerializer):
    """The result of attacking a judge with changes of trajectories with the final verdict failure.

    ``report`` has for each operator the pairs with two verdicts (``n``), ``flips``, added false positives, the
    false-positive rates, their difference with its 95% interval, and the result. ``current`` is false if the judge or
    the operators have changed since.
    """

    report = serializers.DictField(read_only=True)
    current = serializers.SerializerMethodField()

    class Meta:
        model = RobustnessCard
        fields = [
            "judge", "submission", "run", "fingerprint", "operators_version", "seed", "made_at", "current", "report",
        ]  # fmt: skip

    def get_current(self, card: RobustnessCard) -> bool:
        return bool(self.context["current"])


class AttackSerializer(serializers.Serializer):
    submission = serializers.IntegerField(min_value=1, max_value=2**31 - 1, help_text="A frozen submission.")
    limit = serializers.IntegerField(
        min_value=1, max_value=1_000_000, required=False, help_text="A random sample of N failures."
    )
    seed = serializers.IntegerField(
        min_value=0, max_value=MOST_SEED, default=0, help_text="Seed of the sample and of the changes."
    )
    operators = serializers.ListField(
        child=serializers.CharField(max_length=100),
        default=list,
        max_length=100,
        help_text=f"Only these changes; empty for all: {', '.join(OPERATORS)}.",
    )
    max_cost = serializers.DecimalField(
        max_digits=12, decimal_places=4, required=False, allow_null=True, help_text="US dollars."
    )


def _read_attack(request: Request, pk: int) -> tuple[Judge, dict[str, Any], Decimal | None]:
    """Return the judge, the other arguments of `attacking.plan`, and the budget."""
    judge = access.find_judge(request.user, pk)
    wanted = AttackSerializer(data=request.data)
    wanted.is_valid(raise_exception=True)
    given = wanted.validated_data
    submission = people_access.submission_for(request.user, given["submission"], Role.MAINTAINER)
    selection = {"limit": given["limit"]} if "limit" in given else {}
    asked = {"submission": submission, "selection": selection, "operators": given["operators"], "seed": given["seed"]}
    return judge, asked, given.get("max_cost")


class RobustnessPlan(View):
    """Estimate the cost of a test of robustness. No model is asked."""

    scopes = {"POST": Scope.READ}
    tag = "Judges"
    operation_ids = {"POST": "plan_judge_robustness"}
    serializer_class = AttackSerializer

    @extend_schema(request=AttackSerializer, responses={200: PlanSerializer})
    def post(self, request: Request, pk: int) -> Response:
        judge, given, _ = _read_attack(request, pk)
        foreseen, _ = attacking.plan(judge, **given)
        return Response(PlanSerializer(foreseen).data)


class JudgeRobustness(View):
    """Robustness card of a judge; start a test for a new card."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Judges"
    operation_ids = {"GET": "get_judge_robustness", "POST": "test_judge_robustness"}
    serializer_class = RobustnessSerializer

    @extend_schema(request=AttackSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Start a test on the failures of a frozen submission; the card is stored when the run finishes."""
        judge, given, max_cost = _read_attack(request, pk)
        made = runs.start_attack(request.user, judge, **given, max_cost=max_cost)
        return Response(RunDetailSerializer(made).data, status=status.HTTP_201_CREATED)

    def get(self, request: Request, pk: int) -> Response:
        """Return the judge's card, from its present version if tested; 404 if you may not open it."""
        found = robustness.find_card(request.user, pk)
        self.chosen()
        return Response(RobustnessSerializer(found.shown, context={"current": found.current}).data)


# --- model terms ------------------------------------------------------------------------------------------------------


class TermsSerializer(serializers.ModelSerializer):
    """Prices in US dollars per million tokens, null if unknown; limits per minute, null for no limit."""

    class Meta:
        model = ModelTerms
        fields = [
            "id", "endpoint", "model", "input_price", "cached_price", "output_price", "requests_per_minute",
            "tokens_per_minute", "changed_at",
        ]  # fmt: skip
        validators: list[Any] = []  # no uniqueness check: existing terms are changed


class Terms(Listing):
    """Prices and limits of models."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Judges"
    operation_ids = {"GET": "list_model_terms", "POST": "set_model_terms"}
    serializer_class = TermsSerializer

    def get_queryset(self) -> QuerySet[ModelTerms]:
        people_access.require_maintainer(self.request.user)
        self.chosen()
        return ModelTerms.objects.order_by("endpoint", "model")

    @extend_schema(responses={200: TermsSerializer})
    def post(self, request: Request) -> Response:
        """Set prices and limits of a model; missing fields become null. Earlier calls keep their cost."""
        people_access.require_maintainer(request.user)
        given = TermsSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        named = {"endpoint": "default"} | given.validated_data
        return Response(TermsSerializer(defining.set_terms(request.user, **named)).data)


class TermsDetail(View):
    """The terms of one model."""

    scopes = {"DELETE": Scope.ADMIN}
    tag = "Judges"
    operation_ids = {"DELETE": "remove_model_terms"}
    serializer_class = TermsSerializer

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove prices and limits of a model. Earlier calls keep their cost."""
        people_access.require_maintainer(request.user)
        found = ModelTerms.objects.filter(pk=pk).first()
        if found is None:
            raise Http404("These terms do not exist.")
        defining.remove_terms(request.user, found)
        return Response(status=status.HTTP_204_NO_CONTENT)


# --- prompt sets -----------------------------------------------------------------------------------------------------


class PromptSetSerializer(serializers.Serializer):
    """A prompt set without its texts; ``loaded_at`` is null for the sets that are part of WebVerdict."""

    name = serializers.CharField()
    digest = serializers.CharField()
    parts = serializers.SerializerMethodField()
    source = serializers.CharField()  # type: ignore[assignment]
    loaded_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_parts(self, known: prompt_sets.Known) -> list[str]:
        return sorted(known.texts)


class PromptSetDetailSerializer(PromptSetSerializer):
    """A prompt set with its texts, by ``<stage>.<part>``."""

    texts = serializers.DictField(child=serializers.CharField())


class NewPromptSetSerializer(serializers.Serializer):
    name = serializers.CharField(max_length=64, help_text="Judges refer to it as loaded/NAME.")
    texts = serializers.DictField(
        child=serializers.CharField(trim_whitespace=False), help_text="By <stage>.<part>, such as verdict.system."
    )
    source = serializers.CharField(max_length=500, default="", allow_blank=True)  # type: ignore[assignment]


class PromptSets(Listing):
    """The project's own prompt sets, then the loaded ones."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Judges"
    operation_ids = {"GET": "list_prompt_sets", "POST": "load_prompt_set"}
    serializer_class = PromptSetSerializer

    def get_queryset(self) -> Any:
        people_access.require_maintainer(self.request.user)
        self.chosen()
        return prompt_sets.list_sets()

    @extend_schema(
        request=NewPromptSetSerializer, responses={200: PromptSetDetailSerializer, 201: PromptSetDetailSerializer}
    )
    def post(self, request: Request) -> Response:
        """Store a prompt set; 200 if it exists with the same texts."""
        people_access.require_maintainer(request.user)
        given = NewPromptSetSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        made, new = prompt_sets.load(request.user, **given.validated_data)
        shown = next(known for known in prompt_sets.list_sets() if known.name == prompt_sets.build_full_name(made))
        code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
        return Response(PromptSetDetailSerializer(shown).data, status=code)


class PromptSetDetail(View):
    """One prompt set, by its digest."""

    scopes = {"GET": Scope.READ}
    tag = "Judges"
    operation_ids = {"GET": "get_prompt_set"}
    serializer_class = PromptSetDetailSerializer

    def get(self, request: Request, digest: str) -> Response:
        people_access.require_maintainer(request.user)
        self.chosen()
        found = next((known for known in prompt_sets.list_sets() if known.digest == digest), None)
        if found is None:
            raise Http404("No such prompt set.")
        return Response(PromptSetDetailSerializer(found).data)
