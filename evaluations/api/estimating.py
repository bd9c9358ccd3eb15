"""API endpoints that plan a sample of a submission, draw it, and estimate its success rate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import workflow
from annotation.access import Role, submission_for
from annotation.api.base import Request, View
from annotation.api_tokens import Scope
from annotation.models import Submission
from evaluations import access, cases, estimating
from evaluations.api.reports import LONGEST_JUDGE, Report, judge_named
from evaluations.api.shapes import serializer_of
from evaluations.comparison import list_judges
from evaluations.estimating import Estimate, SamplingProgress
from evaluations.sample_planning import CHANGED, Question, SamplePlanning, plan_sample
from evaluations.statistics.estimates import Estimand
from judges import defining
from judges.models import Judge

ESTIMANDS = [each.value for each in Estimand]
JUDGE_HELP = "A judge's name, or name@version; without it people alone."

ProgressSerializer = serializer_of(SamplingProgress, name="SamplingProgress")
EstimateSerializer = serializer_of(Estimate, name="SuccessRateEstimate")
SamplePlanningSerializer = serializer_of(
    SamplePlanning, {"goal": serializers.DictField(help_text="The question, by field.")}
)


class EstimateFilters(serializers.Serializer):
    judge = serializers.CharField(
        required=False,
        max_length=LONGEST_JUDGE,
        help_text="A judge's name, or name@version; that of the sample plan if omitted, people alone without one.",
    )
    estimand = serializers.ChoiceField(
        ESTIMANDS,
        required=False,
        help_text="The rate of these runs or of the agent; by default that of the sample plan, else of the runs.",
    )


class PlanQuestion(serializers.Serializer):
    """One goal: half_width, budget, power or accept."""

    judge = serializers.CharField(required=False, max_length=LONGEST_JUDGE, help_text=JUDGE_HELP)
    estimand = serializers.ChoiceField(ESTIMANDS, required=False, help_text="The rate of these runs, or of the agent.")
    half_width = serializers.FloatField(required=False, help_text="Half of the 95% interval, such as 0.05.")
    budget = serializers.IntegerField(required=False, help_text="Labels by one person that you can pay for.")
    power = serializers.FloatField(
        required=False, help_text="Show this difference from another agent with probability 0.8."
    )
    accept = serializers.FloatField(required=False, help_text="Show that the success rate is above this one.")
    error = serializers.FloatField(
        required=False, help_text="Probability of a wrong acceptance, with accept; 0.05 if omitted."
    )
    expected_rate = serializers.FloatField(
        required=False, help_text="Expected success rate, only without a judge; 0.5 if omitted."
    )
    sensitivity = serializers.FloatField(
        required=False,
        help_text="Expected sensitivity of the judge; if omitted, measured on earlier submissions, else assumed.",
    )
    specificity = serializers.FloatField(
        required=False, help_text="Expected specificity of the judge. State both or neither."
    )
    review_usd = serializers.FloatField(required=False, help_text="The price of a review.")
    may_stop = serializers.BooleanField(
        required=False, help_text="With half_width: labelling may stop once the interval is that narrow."
    )


class PlanUse(PlanQuestion):
    digest = serializers.CharField(
        required=False, max_length=64, help_text="Of the plan that you have seen: 409 if it has changed since."
    )


class SubmissionEstimate(Report):
    """The success rate of a submission by people alone, combined with a judge, and by the judge only."""

    tag = "Results"
    operation_ids = {"GET": "get_submission_estimate"}
    serializer_class = EstimateSerializer
    filters = EstimateFilters

    def get(self, request: Request, pk: int) -> Response:
        """Estimate the success rate of a frozen submission (409 before the freeze). 400 lists the judges."""
        submission = self.frozen("estimate")
        chosen = self.chosen()
        found = access.submission_population(submission)
        slug = submission.benchmark.slug
        if "judge" in chosen:
            judge: Judge | None = judge_named(chosen["judge"], found, slug)
        else:
            judge = estimating.judge_of_plan(submission, list_judges(found, benchmark=slug))
        population = estimating.load_population(submission, judge, found)
        stated = Estimand(chosen["estimand"]) if "estimand" in chosen else None
        return Response(estimating.estimate(population, stated).as_json())


class SamplingStop(View):
    """The early stop of a planned sample, for its maintainers."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"GET": "get_sampling_progress", "POST": "stop_sampling"}
    serializer_class = ProgressSerializer
    pagination_class = None  # type: ignore[assignment]

    def get(self, request: Request, pk: int) -> Response:
        """Show how narrow the interval is, without the rate. 404 without a plan that lets labelling stop early."""
        return Response(self._look(submission_for(request.user, pk, Role.MAINTAINER)))

    @extend_schema(request=None, responses={200: ProgressSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Stop labelling: people complete what they have started. It cannot be undone. 409 if the rule forbids it."""
        submission = submission_for(request.user, pk, Role.MAINTAINER)
        estimating.stop_sampling(request.user, submission)
        return Response(self._look(submission))

    def _look(self, submission: Submission) -> dict[str, Any]:
        if (progress := estimating.find_progress(submission)) is None:
            raise Http404("No sample plan of this submission allows labelling to stop early.")
        return progress.as_json()


def _find_judge(text: str, found: Sequence[cases.Case], benchmark: str) -> Judge:
    """Return a judge of these trajectories, else any of this instance: the plan says that it has to run first."""
    try:
        return judge_named(text, found, benchmark)
    except serializers.ValidationError:
        with suppress(LookupError):
            return defining.find_judge(text)
        raise


class PlannedSample(View):
    """A planned sample of a submission, for its maintainers."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Submissions"
    operation_ids = {"GET": "plan_sample", "POST": "use_sample_plan"}
    serializer_class = SamplePlanningSerializer
    pagination_class = None  # type: ignore[assignment]
    filters = PlanQuestion

    def get(self, request: Request, pk: int) -> Response:
        """Plan how many trajectories people label. It changes nothing."""
        submission = submission_for(request.user, pk, Role.MAINTAINER)
        planned, _ = self._plan(submission, self.chosen())
        return Response(planned.as_json())

    @extend_schema(request=PlanUse, responses={201: SamplePlanningSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Draw the planned sample, once and before the first label. It cannot be changed."""
        submission = submission_for(request.user, pk, Role.MAINTAINER)
        asked = dict(self.given(PlanUse))
        seen = asked.pop("digest", None)
        planned, terms = self._plan(submission, asked)
        if seen not in (None, planned.digest):
            raise workflow.Conflict(CHANGED, "plan_changed")
        workflow.make_plan(request.user, submission, terms)
        return Response(planned.as_json(), status.HTTP_201_CREATED)

    def _plan(self, submission: Submission, asked: dict[str, Any]) -> tuple[SamplePlanning, workflow.PlanTerms]:
        asked = dict(asked)
        found = cases.of_population(submission)
        named = asked.pop("judge", None)
        judge = None if named is None else _find_judge(named, found, submission.benchmark.slug)
        question = Question(**asked | {"estimand": Estimand(asked.pop("estimand", Estimand.RUNS))})
        population = estimating.load_population(submission, judge, found)
        return plan_sample(population, question, access.earlier_submissions(self.request.user, submission))
