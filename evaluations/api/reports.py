"""API endpoints with the figures of the pages: agreement of people, of judges, and success rates of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from annotation.api.base import Request, View
from annotation.api_tokens import Scope
from annotation.models import Benchmark, Submission
from annotation.workflow import Conflict
from evaluations import access, agreement, comparison
from evaluations.api.shapes import (
    AgentsSerializer,
    AgreementSerializer,
    BenchmarkAgreementSerializer,
    BenchmarkComparisonSerializer,
    ComparisonSerializer,
    JudgesSerializer,
)
from evaluations.cases import Case, Rules
from evaluations.comparison.judges import People, compare_judges, with_ceiling
from evaluations.encoding import to_json
from evaluations.forms import LONGEST, Filters
from evaluations.judge_alignment import notices
from evaluations.statistics.alternative import EPSILON
from judges.access import find_benchmark
from judges.models import Judge

LONGEST_JUDGE = 100
JUDGE = OpenApiParameter("judge", str, required=True, description="A judge's name, or name@version.")


class SubmissionFilters(serializers.Serializer):
    level = serializers.CharField(required=False, max_length=LONGEST)
    website = serializers.CharField(required=False, max_length=LONGEST)
    rules = serializers.ChoiceField(
        choices=[rule.value for rule in Rules],
        required=False,
        help_text="How differing imported labels become one verdict, and how figures are rounded.",
    )


class SubmissionJudgeFilters(SubmissionFilters):
    judge = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST_JUDGE,
        help_text="A judge's name, or name@version; without a version: the newest.",
    )


class RankingFilters(SubmissionJudgeFilters):
    agent = serializers.CharField(required=False, max_length=LONGEST, help_text="The agent's full name.")


class BenchmarkFilters(SubmissionFilters):
    agent = serializers.CharField(required=False, max_length=LONGEST, help_text="The agent's full name.")
    imported = serializers.BooleanField(
        required=False, help_text="Only imported labels, without reviews of this instance."
    )


class SubmissionComparisonFilters(SubmissionJudgeFilters):
    epsilon = serializers.FloatField(
        required=False,
        min_value=0,
        max_value=1,
        help_text=f"Epsilon of the alternative annotator test; by default {EPSILON}.",
    )


class BenchmarkComparisonFilters(BenchmarkFilters, SubmissionComparisonFilters):
    pass


class Report(View):
    """Figures of the cases that the caller may see."""

    pagination_class = None  # type: ignore[assignment]
    scopes = {"GET": Scope.READ}

    def asked_for(self) -> Filters:
        """Return the filters and the judge of the address."""
        chosen = self.chosen()
        chosen.pop("imported", None)
        chosen.pop("epsilon", None)
        rules = Rules(chosen.pop("rules", Rules.DEFAULT))
        return Filters(**chosen, rules=rules)

    def epsilon(self) -> float:
        found: float = self.chosen().get("epsilon", EPSILON)
        return found

    def frozen(self, what: str) -> Submission:
        """Return the submission of its readers after the freeze; before it, a Conflict with an explanation."""
        submission = access.reported_for(self.request.user, self.kwargs["pk"])
        if submission.frozen_at is None and submission.audited:  # the freeze is the submitter's, not ours
            raise Conflict(
                f"The {what} cannot be read: the submission was not frozen when its bundle was exported. "
                "Ask the submitter for a bundle of the frozen submission."
            )
        if submission.frozen_at is None:
            raise Conflict(
                f"The {what} can be read once the submission is frozen, because people work independently until then."
            )
        return submission


def judge_named(text: str, cases: Sequence[Case], benchmark: str) -> Judge:
    """Return the judge of that name if it was asked about these cases; else an error that lists the judges."""
    allowed = comparison.list_judges(cases, benchmark=benchmark)
    try:
        return access.judge_named(text, allowed)
    except Http404 as error:
        known = ", ".join(access.name_of(judge) for judge in allowed) or "no judges for these trajectories"
        wrong = f"The judge {text} does not exist here" if text else "Name a judge"
        raise serializers.ValidationError({"judge": f"{wrong}. Known: {known}."}) from error


class SubmissionAgreement(Report):
    """Agreement of a submission's annotators on their blind labels, and the outcomes of QA."""

    tag = "Results"
    operation_ids = {"GET": "get_submission_agreement"}
    serializer_class = AgreementSerializer
    filters = SubmissionFilters

    def get(self, request: Request, pk: int) -> Response:
        """Return the agreement of the annotators of a frozen submission (409 before the freeze)."""
        submission = self.frozen("agreement")
        asked = self.asked_for()
        cases = asked.applied(access.submission_cases(submission))
        return Response(agreement.agreement(cases, asked.scope(str(submission)), asked.rules).as_json())


class SubmissionComparison(Report):
    """Agreement of a judge with the final verdicts of a submission."""

    tag = "Results"
    operation_ids = {"GET": "get_submission_comparison"}
    serializer_class = ComparisonSerializer
    filters = SubmissionComparisonFilters

    @extend_schema(parameters=[JUDGE])
    def get(self, request: Request, pk: int) -> Response:
        """Compare a judge with the final verdicts of a frozen submission (409 before). 400 lists the judges."""
        submission = self.frozen("comparison")
        asked = self.asked_for()
        cases = access.submission_cases(submission)
        slug = submission.benchmark.slug
        judge, scope = judge_named(asked.judge, cases, slug), asked.scope(str(submission))
        return Response(compared(judge, asked.applied(cases), scope, slug, asked.rules, self.epsilon()))


def compared(
    judge: Judge, cases: Sequence[Case], scope: str, benchmark: str, rules: Rules, epsilon: float
) -> dict[str, Any]:
    found = comparison.compare(judge, cases, scope, benchmark=benchmark, rules=rules, epsilon=epsilon)
    return with_ceiling(found, People.of(cases, rules)) | notices.describe(judge, benchmark)


class OfBenchmark(Report):
    """The frozen submissions of a benchmark that the caller maintains, and imported labels; or only the labels."""

    def cases(self, slug: str, rules: Rules) -> tuple[Benchmark, list[Case]]:
        alone = self.chosen().get("imported", False)
        return (access.imported_cases if alone else access.benchmark_cases)(self.request.user, slug, rules)

    def of_benchmark(self) -> tuple[Benchmark, list[Case], Filters]:
        """Return the benchmark, all its cases, and the filters of the address."""
        slug = self.kwargs["slug"]
        find_benchmark(self.request.user, slug)  # check permission before the parameters
        asked = self.asked_for()
        benchmark, cases = self.cases(slug, asked.rules)
        return benchmark, cases, asked

    def answer(self, benchmark: Benchmark, found: dict[str, Any]) -> Response:
        """Return the figures, and the submissions that they leave out."""
        alone = self.chosen().get("imported", False)
        planned = [] if alone else access.find_left_out(self.request.user, benchmark)
        rows = [
            {
                "submission": each.pk,
                "agent": each.agent.name,
                "reason": access.PLANNED,
                "estimate": reverse("api-estimate", args=[each.pk]),
            }
            for each in planned
        ]
        return Response(found | {"left_out": rows})


class BenchmarkAgreement(OfBenchmark):
    """Agreement of people over the submissions of a benchmark and over imported labels."""

    tag = "Results"
    operation_ids = {"GET": "get_benchmark_agreement"}
    serializer_class = BenchmarkAgreementSerializer
    filters = BenchmarkFilters

    def get(self, request: Request, slug: str) -> Response:
        """Return the agreement over the frozen submissions that the caller maintains, and imported labels."""
        benchmark, cases, asked = self.of_benchmark()
        found = agreement.agreement(asked.applied(cases), asked.scope(benchmark.name), asked.rules)
        return self.answer(benchmark, found.as_json())


class BenchmarkComparison(OfBenchmark):
    """Agreement of a judge with people over the agents of a benchmark."""

    tag = "Results"
    operation_ids = {"GET": "get_benchmark_comparison"}
    serializer_class = BenchmarkComparisonSerializer
    filters = BenchmarkComparisonFilters

    @extend_schema(parameters=[JUDGE])
    def get(self, request: Request, slug: str) -> Response:
        """Compare a judge with people, over the cases of the agreement. 400 lists the judges."""
        benchmark, cases, asked = self.of_benchmark()
        judge, scope = judge_named(asked.judge, cases, slug), asked.scope(benchmark.name)
        found = compared(judge, asked.applied(cases), scope, slug, asked.rules, self.epsilon())
        return self.answer(benchmark, found)


class Judges(OfBenchmark):
    """All judges of a benchmark: agreement with people, coverage and cost, and their rankings of agents."""

    tag = "Results"
    operation_ids = {"GET": "compare_judges"}
    serializer_class = JudgesSerializer
    filters = BenchmarkFilters

    def get(self, request: Request, slug: str) -> Response:
        """Compare all judges with people and each other, with the human ceiling and success rates by people."""
        benchmark, cases, asked = self.of_benchmark()
        judges, scope = comparison.list_judges(cases, benchmark=slug), asked.scope(benchmark.name)
        found = compare_judges(judges, asked.applied(cases), scope, benchmark=slug, rules=asked.rules)
        return self.answer(benchmark, notices.describe_all(found.as_json(), judges, slug))


class Agents(OfBenchmark):
    """Success rates of the agents of a benchmark."""

    tag = "Results"
    operation_ids = {"GET": "list_agents"}
    serializer_class = AgentsSerializer
    filters = RankingFilters

    def cases(self, slug: str, rules: Rules) -> tuple[Benchmark, list[Case]]:
        return access.ranked_cases(self.request.user, slug, rules)

    def get(self, request: Request, slug: str) -> Response:
        """Return the success rates of agents, the highest first. ``judge`` is used for agents without human verdicts.

        Figures over attempts are by people and by every judge.
        """
        benchmark, cases, asked = self.of_benchmark()
        judge, chosen = judge_named(asked.judge, cases, slug) if asked.judge else None, asked.applied(cases)
        standings = comparison.standings(chosen, judge, benchmark=slug)
        several = comparison.attempts(chosen, comparison.list_judges(cases, benchmark=slug), benchmark=slug)
        return self.answer(
            benchmark,
            {
                "benchmark": benchmark.slug,
                "agents": to_json(standings),
                "attempts": to_json(several),
                "pairs": to_json(comparison.agent_pairs(chosen)),
            },
        )
