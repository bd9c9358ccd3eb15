"""API endpoints for maintainers' scripts: plan, start and follow judge runs, and read judgments."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, get_args, get_type_hints

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access as people_access
from annotation.access import Role
from annotation.api.base import Listing, Request, View
from annotation.api_tokens import Scope
from annotation.models import Submission
from annotation.models.reviews import VERDICTS
from annotation.models.states import State
from judges import access, defining, planning, predictions, robustness, run_table, runs, trace
from judges.models import Judge, JudgeRun, Judgment, Service
from judges.planning import MOST_REPETITIONS, MOST_SEED, Plan

RUN_STATES = "waiting, running, paused, stopped, cancelled or finished"


# --- serializers ------------------------------------------------------------------------------------------------------


class WantedRunSerializer(serializers.Serializer):
    """Judge and trajectories of a new run; without a selection, all trajectories."""

    judge = serializers.CharField(
        max_length=100, help_text="A judge's name, or name@version; without a version: the newest."
    )
    state = serializers.ChoiceField(choices=[state.value for state in State], required=False)
    level = serializers.CharField(max_length=100, required=False)
    task_ids = serializers.ListField(child=serializers.CharField(max_length=200), required=False, max_length=100_000)
    limit = serializers.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        help_text="The first N trajectories, or with a seed a random sample of N.",
    )
    seed = serializers.IntegerField(
        min_value=0, max_value=MOST_SEED, required=False, help_text="Draws the sample; requires limit."
    )
    unjudged = serializers.BooleanField(default=False, help_text="Skip what this judge has already judged.")
    repetitions = serializers.IntegerField(min_value=1, max_value=MOST_REPETITIONS, default=1)
    max_cost = serializers.DecimalField(
        max_digits=12, decimal_places=4, required=False, allow_null=True, help_text="US dollars."
    )
    fresh = serializers.BooleanField(default=False, help_text="Do not reuse replies of earlier runs.")
    service = serializers.ChoiceField(
        choices=Service.choices,
        default=Service.STANDARD,
        allow_blank=True,
        help_text="batch: the endpoint answers within 24 hours for each stage, at half the price. flex: slower calls "
        "at half the price. The requests are the same. Default: standard.",
    )

    def judge_asked_for(self) -> Judge:
        try:
            return defining.find_judge(self.validated_data["judge"])
        except LookupError as error:
            raise serializers.ValidationError({"judge": str(error.args[0])}) from error

    def selection(self, judge: Judge) -> dict[str, Any]:
        given = self.validated_data
        chosen = {name: given[name] for name in ("state", "level", "task_ids", "limit") if given.get(name)}
        chosen |= {"seed": given["seed"]} if "seed" in given else {}
        return chosen | ({"unjudged": judge.pk} if given["unjudged"] else {})


class NumbersSerializer(serializers.Serializer):
    """The numeric fields of the dataclass ``shown``; None in a type makes its field nullable."""

    shown: type
    left_out: tuple[str, ...] = ()

    def get_fields(self) -> dict[str, serializers.Field]:
        made: dict[Any, Callable[..., serializers.Field]] = {
            int: serializers.IntegerField,
            float: serializers.FloatField,
            Decimal: partial(serializers.DecimalField, max_digits=20, decimal_places=8),
        }
        found: dict[str, serializers.Field] = super().get_fields()
        for name, hint in get_type_hints(self.shown).items():
            kind, *rest = get_args(hint) or (hint,)
            if kind in made and name not in (*found, *self.left_out):
                found[name] = made[kind](allow_null=bool(rest))
        return found


class PlanSerializer(NumbersSerializer):
    """The plan of a run. Tokens, cost (US dollars, null without prices) and seconds are estimates.

    Fields ending in ``_high`` assume that the model reasons, if it can, and first gives every answer in another form.
    """

    shown, left_out = Plan, ("meeting_requirement",)
    trajectories = serializers.IntegerField()
    prices = serializers.CharField(
        help_text="Where the prices of the model come from; empty if they are unknown, or no model is asked."
    )


class RunErrorSerializer(serializers.Serializer):
    message = serializers.CharField()
    count = serializers.IntegerField()


class StandingSerializer(NumbersSerializer):
    """Progress of a run; ``rate`` in judgments per minute."""

    shown = runs.Progress
    state = serializers.CharField(help_text=RUN_STATES)
    status_not_stated = serializers.IntegerField(
        help_text="Verdicts that upstream's rules give to replies without a verdict."
    )
    errors = serializers.SerializerMethodField()  # type: ignore[assignment]

    @extend_schema_field(RunErrorSerializer(many=True))
    def get_errors(self, standing: runs.Progress) -> list[dict[str, Any]]:
        return [{"message": text, "count": count} for text, count in standing.errors]


class RunSerializer(serializers.ModelSerializer):
    """A run. ``stopped`` is the reason if it waits without being paused; ``estimate`` is its plan at the start."""

    judge = serializers.CharField(source="judge.name")
    judge_version = serializers.IntegerField(source="judge.version")
    state = serializers.CharField(help_text=RUN_STATES)

    class Meta:
        model = JudgeRun
        fields = [
            "id", "judge", "judge_version", "submission", "state", "selection", "repetitions", "fresh", "test",
            "max_cost", "estimate", "created_at", "started_at", "paused_at", "cancelled_at", "finished_at", "stopped",
            "retried_at", "robustness", "service",
        ]  # fmt: skip
        read_only_fields = fields


class RunScoresSerializer(NumbersSerializer):
    """Scores of a run: ``average`` and share of ``perfect`` ones from 0 to 100, over ``judgments`` with a score.

    ``efficiency`` is the mean of score (0 to 100) divided by steps, null if no trajectory has steps.
    """

    shown = run_table.RunScores


class RunDetailSerializer(RunSerializer):
    standing = serializers.SerializerMethodField()
    scores = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "standing", "scores"]
        read_only_fields = fields

    @extend_schema_field(RunScoresSerializer(allow_null=True))
    def get_scores(self, run: JudgeRun) -> Any:
        found = run_table.load_scores(run)
        return None if found is None else RunScoresSerializer(found).data

    @extend_schema_field(StandingSerializer)
    def get_standing(self, run: JudgeRun) -> Any:
        return StandingSerializer(runs.load_progress(run)).data


class JudgmentSerializer(serializers.ModelSerializer):
    """A judgment. If ``verdict`` is null, ``unscored`` says why. ``imported``: the file and its other fields."""

    task_id = serializers.CharField(source="task.external_id")
    agent = serializers.CharField(source="agent.name")
    judge = serializers.CharField(source="judge.name")
    judge_version = serializers.IntegerField(source="judge.version")
    run = serializers.IntegerField(source="item.run_id", allow_null=True, default=None)
    verdict = serializers.ChoiceField(choices=VERDICTS, allow_null=True)
    change = serializers.SerializerMethodField(
        help_text='What was changed before the judge saw the trajectory, "" for nothing; see the command judge_lab.'
    )

    class Meta:
        model = Judgment
        fields = [
            "id", "task_id", "agent", "trajectory", "judge", "judge_version", "fingerprint", "run", "repetition",
            "verdict", "unscored", "score", "explanation", "evidence", "response", "model", "tokens", "cost",
            "imported", "made_at", "status_not_stated", "change",
        ]  # fmt: skip
        read_only_fields = fields

    def get_change(self, judgment: Judgment) -> str:
        return robustness.name_change(judgment)


class RetriedSerializer(serializers.Serializer):
    items = serializers.IntegerField(help_text="Number of items that will be tried again.")


class BudgetSerializer(serializers.Serializer):
    max_cost = serializers.DecimalField(
        max_digits=12, decimal_places=4, required=False, allow_null=True, help_text="A new budget in US dollars."
    )


class RunFilters(serializers.Serializer):
    judge = serializers.CharField(required=False, help_text="A judge's name.")


class JudgmentFilters(serializers.Serializer):
    task_id = serializers.CharField(required=False)
    verdict = serializers.ChoiceField(choices=VERDICTS, required=False)
    unscored = serializers.BooleanField(required=False)
    repetition = serializers.IntegerField(required=False, min_value=1, max_value=MOST_REPETITIONS)


# --- the runs of a submission ----------------------------------------------------------------------------------------


class RunPlan(View):
    """Estimate the cost of a run. No model is asked."""

    scopes = {"POST": Scope.READ}
    tag = "Judge runs"
    operation_ids = {"POST": "plan_judge_run"}
    serializer_class = WantedRunSerializer

    @extend_schema(request=WantedRunSerializer, responses={200: PlanSerializer})
    def post(self, request: Request, pk: int) -> Response:
        submission = people_access.submission_for(request.user, pk, Role.MAINTAINER)
        judge, wanted = _read_wanted_run(request)
        given = wanted.validated_data
        foreseen = planning.plan(judge, submission, wanted.selection(judge), given["repetitions"], given["service"])
        return Response(PlanSerializer(foreseen).data)


class Runs(Listing):
    """The judge runs of a submission, newest first, without tests of a judge."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Judge runs"
    operation_ids = {"GET": "list_judge_runs", "POST": "start_judge_run"}
    serializer_class = RunSerializer
    filters = RunFilters

    def submission(self) -> Submission:
        return people_access.submission_for(self.request.user, self.kwargs["pk"], Role.MAINTAINER)

    def get_queryset(self) -> QuerySet[JudgeRun]:
        chosen = self.chosen()
        found = access.find_runs(self.request.user, self.submission()).filter(test=False)
        return found.filter(judge__name=chosen["judge"]) if "judge" in chosen else found

    @extend_schema(request=WantedRunSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Start a run; 409 with the reason if it cannot start."""
        submission = self.submission()
        judge, wanted = _read_wanted_run(request)
        terms = {name: wanted.validated_data.get(name) for name in ("repetitions", "max_cost", "fresh", "service")}
        made = runs.start(request.user, judge, submission, wanted.selection(judge), **terms)
        return Response(RunDetailSerializer(made).data, status=status.HTTP_201_CREATED)


class TestSerializer(serializers.Serializer):
    submission = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    task_id = serializers.CharField(max_length=200)


class JudgeTest(View):
    """A test of a judge."""

    scopes = {"POST": Scope.WRITE}
    tag = "Judges"
    operation_ids = {"POST": "test_judge"}
    serializer_class = TestSerializer

    @extend_schema(request=TestSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Try a judge on one trajectory of a submission. The run is left out of lists and results."""
        judge, given = access.find_judge(request.user, pk), self.given()
        submission = people_access.submission_for(request.user, given["submission"], Role.MAINTAINER)
        made = runs.start(request.user, judge, submission, {"task_ids": [given["task_id"]]}, test=True)
        return Response(RunDetailSerializer(made).data, status=status.HTTP_201_CREATED)


def _read_wanted_run(request: Request) -> tuple[Judge, WantedRunSerializer]:
    access.find_judges(request.user)
    wanted = WantedRunSerializer(data=request.data)
    wanted.is_valid(raise_exception=True)
    return wanted.judge_asked_for(), wanted


# --- one run ---------------------------------------------------------------------------------------------------------


class RunDetail(View):
    """A run with its progress."""

    scopes = {"GET": Scope.READ}
    tag = "Judge runs"
    operation_ids = {"GET": "get_judge_run"}
    serializer_class = RunDetailSerializer

    def get(self, request: Request, pk: int) -> Response:
        found = access.find_run(request.user, pk)
        self.chosen()
        return Response(RunDetailSerializer(found).data)


class RunAction(View):
    scopes = {"POST": Scope.WRITE}
    serializer_class = RunDetailSerializer
    act: Callable[[Any, JudgeRun], None]

    @extend_schema(request=None, responses={200: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        found = access.find_run(request.user, pk)
        type(self).act(request.user, found)
        return Response(RunDetailSerializer(found).data)


class RunPause(RunAction):
    """Pause a run. Calls in flight end; no new ones start."""

    tag = "Judge runs"
    operation_ids = {"POST": "pause_judge_run"}
    act = staticmethod(runs.pause)


class RunCancel(RunAction):
    """Cancel a run. Its judgments stay."""

    tag = "Judge runs"
    operation_ids = {"POST": "cancel_judge_run"}
    act = staticmethod(runs.cancel)


class RunResume(View):
    """Resume a paused run, or one that needs a higher budget."""

    scopes = {"POST": Scope.WRITE}
    tag = "Judge runs"
    operation_ids = {"POST": "resume_judge_run"}
    serializer_class = RunDetailSerializer

    @extend_schema(request=BudgetSerializer, responses={200: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        found = access.find_run(request.user, pk)
        budget = BudgetSerializer(data=request.data)
        budget.is_valid(raise_exception=True)
        runs.resume(request.user, found, budget.validated_data.get("max_cost"))
        return Response(RunDetailSerializer(found).data)


class RunRetry(View):
    """Retry the failed items."""

    scopes = {"POST": Scope.WRITE}
    tag = "Judge runs"
    operation_ids = {"POST": "retry_judge_run"}
    serializer_class = RetriedSerializer

    @extend_schema(request=None, responses={200: RetriedSerializer})
    def post(self, request: Request, pk: int) -> Response:
        found = access.find_run(request.user, pk)
        return Response({"items": runs.retry_failed(request.user, found)})


# --- judgments -------------------------------------------------------------------------------------------------------


class Judgments(Listing):
    """The judgments of a run, by task and repetition."""

    scopes = {"GET": Scope.READ}
    tag = "Judge runs"
    operation_ids = {"GET": "list_judgments"}
    serializer_class = JudgmentSerializer
    filters = JudgmentFilters

    def get_queryset(self) -> QuerySet[Judgment]:
        run = access.find_run(self.request.user, self.kwargs["pk"])
        chosen = self.chosen()
        found = access.find_run_judgments(self.request.user, run).select_related("judge", "item__run", "task", "agent")
        if "unscored" in chosen:
            found = found.filter(verdict__isnull=chosen["unscored"])
        names = {"task_id": "task__external_id", "verdict": "verdict", "repetition": "repetition"}
        found = found.filter(**{path: chosen[name] for name, path in names.items() if name in chosen})
        return found.order_by("trajectory__position", "repetition", "pk")


class JudgmentDetail(View):
    """One judgment with its evidence."""

    scopes = {"GET": Scope.READ}
    tag = "Judge runs"
    operation_ids = {"GET": "get_judgment"}
    serializer_class = JudgmentSerializer

    def get(self, request: Request, pk: int) -> Response:
        found = access.find_judgment(request.user, pk)
        self.chosen()
        return Response(JudgmentSerializer(found).data)


class JudgmentTrace(View):
    """A judgment with all its model calls: prompts (images by digest), raw replies, tokens, cost and times."""

    scopes = {"GET": Scope.READ}
    tag = "Judge runs"
    operation_ids = {"GET": "get_judgment_trace"}
    serializer_class = JudgmentSerializer

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, pk: int) -> Response:
        found = access.find_judgment(request.user, pk)
        self.chosen()
        return Response(trace.build_trace(found))


# --- predictions -----------------------------------------------------------------------------------------------------


class PredictionFilters(serializers.Serializer):
    judge = serializers.CharField(max_length=100, help_text="A judge of actions by its name, or name@version.")
    each = serializers.BooleanField(required=False, help_text="All predictions, not only the figures.")


class Predictions(View):
    """Measures and groups of an action judge's predictions, and with ``each`` every prediction."""

    scopes = {"GET": Scope.READ}
    tag = "Judge runs"
    operation_ids = {"GET": "get_predictions"}
    serializer_class = serializers.Serializer
    filters = PredictionFilters

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, pk: int) -> Response:
        submission = people_access.submission_for(request.user, pk, Role.MAINTAINER)
        chosen, judges = self.chosen(), list(access.find_prediction_judges(request.user, submission))
        judge = next((one for one in judges if str(one) == chosen["judge"]), None)
        if judge is None:
            known = ", ".join(map(str, judges)) or "none"
            raise serializers.ValidationError({"judge": f"No such judge has predicted actions here. Known: {known}."})
        found = predictions.compute_results(predictions.select_judgments(judge, submission))
        return Response(found.as_json(predictions=chosen.get("each", False)))
