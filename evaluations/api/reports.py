"""How far people agree, how far judges can be trusted, and how good the agents are: the figures of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from annotation import access as people_access
from annotation.api.base import Request, View
from annotation.api_tokens import Scope
from annotation.models import Benchmark, Submission
from annotation.workflow import Conflict
from evaluations import access, agreement, comparison
from evaluations.api.shapes import AgentsSerializer, AgreementSerializer, ComparisonSerializer, JudgesSerializer
from evaluations.cases import Case, Rules
from evaluations.comparison.judges import compare_judges, with_ceiling
from evaluations.encoding import to_json
from evaluations.forms import LONGEST, Filters
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
        help_text="How imported labels that differ become one verdict, and how figures are rounded.",
    )


class SubmissionJudgeFilters(SubmissionFilters):
    judge = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST_JUDGE,
        help_text="A judge's name, or name@version; without: the newest.",
    )


class RankingFilters(SubmissionJudgeFilters):
    agent = serializers.CharField(required=False, max_length=LONGEST, help_text="The agent's whole name.")


class BenchmarkFilters(SubmissionFilters):
    agent = serializers.CharField(required=False, max_length=LONGEST, help_text="The agent's whole name.")
    imported = serializers.BooleanField(
        required=False, help_text="Only the labels made elsewhere, as if nothing had been reviewed here."
    )


class BenchmarkJudgeFilters(BenchmarkFilters, SubmissionJudgeFilters):
    pass


class Report(View):
    """Figures about the cases that the caller may see figures of."""

    pagination_class = None  # type: ignore[assignment]
    scopes = {"GET": Scope.READ}

    def asked_for(self) -> Filters:
        """The filters and the judge of the address."""
        chosen = self.chosen()
        chosen.pop("imported", None)
        rules = Rules(chosen.pop("rules", Rules.DEFAULT))
        return Filters(**chosen, rules=rules)

    def frozen(self, what: str) -> Submission:
        """The submission when its maintainer asks and it is frozen; a Conflict that explains itself before."""
        submission = access.reported_for(self.request.user, self.kwargs["pk"])
        if not people_access.may_see_all_labels(self.request.user, submission):
            raise Conflict(
                f"The {what} can be read once the submission is frozen: until then people work independently of it."
            )
        return submission


def judge_named(text: str, cases: Sequence[Case], benchmark: str) -> Judge:
    """The judge of that name among those that were asked about these cases; an error with the known names if none."""
    allowed = comparison.list_judges(cases, benchmark=benchmark)
    try:
        return access.judge_named(text, allowed)
    except Http404 as error:
        known = ", ".join(access.name_of(judge) for judge in allowed) or "none for these trajectories"
        wrong = f"There is no judge {text} here" if text else "Name a judge"
        raise serializers.ValidationError({"judge": f"{wrong}; known are {known}."}) from error


class SubmissionAgreement(Report):
    """How far the annotators of a submission agree on their blind labels, and what QA made of them."""

    serializer_class = AgreementSerializer
    filters = SubmissionFilters

    def get(self, request: Request, pk: int) -> Response:
        """Agreement of the annotators of a frozen submission (409 before the freeze)."""
        submission = self.frozen("agreement")
        asked = self.asked_for()
        cases = asked.applied(access.submission_cases(submission))
        return Response(agreement.agreement(cases, asked.scope(str(submission)), asked.rules).as_json())


class SubmissionComparison(Report):
    """How far a judge agrees with the final verdicts of a submission."""

    serializer_class = ComparisonSerializer
    filters = SubmissionJudgeFilters

    @extend_schema(parameters=[JUDGE])
    def get(self, request: Request, pk: int) -> Response:
        """Compare a judge with the final verdicts of a frozen submission (409 before). 400 lists the judges."""
        submission = self.frozen("comparison")
        asked = self.asked_for()
        cases = access.submission_cases(submission)
        slug = submission.benchmark.slug
        judge, scope = judge_named(asked.judge, cases, slug), asked.scope(str(submission))
        return Response(compared(judge, asked.applied(cases), scope, slug, asked.rules))


def compared(judge: Judge, cases: Sequence[Case], scope: str, benchmark: str, rules: Rules) -> dict[str, Any]:
    found = comparison.compare(judge, cases, scope, benchmark=benchmark, rules=rules)
    return with_ceiling(found, comparison.ceiling(cases, rules))


class OfBenchmark(Report):
    """The frozen submissions of a benchmark that the caller maintains, and labels made elsewhere; or these alone."""

    def cases(self, slug: str, rules: Rules) -> tuple[Benchmark, list[Case]]:
        alone = self.chosen().get("imported", False)
        return (access.imported_cases if alone else access.benchmark_cases)(self.request.user, slug, rules)

    def of_benchmark(self) -> tuple[Benchmark, list[Case], Filters]:
        """The benchmark, all its cases, and what the address asks for."""
        slug = self.kwargs["slug"]
        find_benchmark(self.request.user, slug)  # who may not see it is not told what is wrong with the address
        asked = self.asked_for()
        benchmark, cases = self.cases(slug, asked.rules)
        return benchmark, cases, asked


class BenchmarkAgreement(OfBenchmark):
    """How far people agree, over the submissions of a benchmark and over labels made elsewhere."""

    serializer_class = AgreementSerializer
    filters = BenchmarkFilters

    def get(self, request: Request, slug: str) -> Response:
        """Agreement over the frozen submissions that the caller maintains, and imported labels."""
        benchmark, cases, asked = self.of_benchmark()
        found = agreement.agreement(asked.applied(cases), asked.scope(benchmark.name), asked.rules)
        return Response(found.as_json())


class BenchmarkComparison(OfBenchmark):
    """How far a judge agrees with people, over the agents of a benchmark."""

    serializer_class = ComparisonSerializer
    filters = BenchmarkJudgeFilters

    @extend_schema(parameters=[JUDGE])
    def get(self, request: Request, slug: str) -> Response:
        """Compare a judge with people, over the cases of the agreement. 400 lists the judges."""
        benchmark, cases, asked = self.of_benchmark()
        judge, scope = judge_named(asked.judge, cases, slug), asked.scope(benchmark.name)
        return Response(compared(judge, asked.applied(cases), scope, slug, asked.rules))


class Judges(OfBenchmark):
    """Every judge of a benchmark: how far it agrees with people, what it covers and costs, and how it ranks agents."""

    serializer_class = JudgesSerializer
    filters = BenchmarkFilters

    def get(self, request: Request, slug: str) -> Response:
        """Compare all judges with people and each other, with the human ceiling and success rates by people."""
        benchmark, cases, asked = self.of_benchmark()
        judges, scope = comparison.list_judges(cases, benchmark=slug), asked.scope(benchmark.name)
        return Response(
            compare_judges(judges, asked.applied(cases), scope, benchmark=slug, rules=asked.rules).as_json()
        )


class Agents(OfBenchmark):
    """How good the agents of a benchmark are."""

    serializer_class = AgentsSerializer
    filters = RankingFilters

    def cases(self, slug: str, rules: Rules) -> tuple[Benchmark, list[Case]]:
        return access.ranked_cases(self.request.user, slug, rules)

    def get(self, request: Request, slug: str) -> Response:
        """Success rates of agents, the highest first. ``judge`` is used for agents without human verdicts.

        Figures over attempts are by people and by every judge.
        """
        benchmark, cases, asked = self.of_benchmark()
        judge, chosen = judge_named(asked.judge, cases, slug) if asked.judge else None, asked.applied(cases)
        standings = comparison.standings(chosen, judge, benchmark=slug)
        several = comparison.attempts(chosen, comparison.list_judges(cases, benchmark=slug), benchmark=slug)
        return Response({"benchmark": benchmark.slug, "agents": to_json(standings), "attempts": to_json(several)})
