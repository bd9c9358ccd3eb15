"""Pages of a planned sample, before the first label, and of the estimated success rate, after the freeze."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from annotation import access as people_access
from annotation import workflow
from annotation.access import Role
from annotation.formats.printable import counted
from annotation.models import SamplePlan, Submission
from annotation.records import Problem
from annotation.views.answers import Request, act_from, page
from annotation.workflow import Conflict, Incomplete
from evaluations import access, cases, estimate_tables, estimating
from evaluations.comparison import list_judges
from evaluations.estimating import Population, load_population
from evaluations.forms import Filters, PlanForm
from evaluations.sample_planning import CHANGED, SamplePlanning, describe_checks, find_refusal, plan_sample
from evaluations.statistics.estimates import Estimand
from evaluations.views.agreement import require_unfrozen
from evaluations.views.exporting import csv_file

Cases = list[cases.Case]
NOT_CONFIRMED = "Confirm that you know that the plan cannot be changed."


@page
def sample_plan(request: Request, pk: int) -> HttpResponse:
    """Show the planner, and the answer to the question of the address; or the plan that the submission has."""
    submission = people_access.submission_for(request.user, pk, Role.MAINTAINER)
    form, found = _build_form(request.GET or None, submission)
    return _render_plan(request, submission, form, found)


@act_from("sample-plan")
def use_plan(request: Request, pk: int) -> HttpResponse:
    """Draw the plan that the page has shown; a plan that has changed meanwhile is shown again."""
    submission = people_access.submission_for(request.user, pk, Role.MAINTAINER)
    form, found = _build_form(request.POST, submission)
    planned, terms, status = _plan(request, submission, form, found)
    if planned is None or terms is None:
        return _render_plan(request, submission, form, found, status)
    if planned.digest != request.POST.get("digest"):
        form.add_error(None, CHANGED)
        return _render_plan(request, submission, form, found, 409)
    if "confirmed" not in request.POST:
        form.add_error(None, NOT_CONFIRMED)
        return _render_plan(request, submission, form, found, 400)
    workflow.make_plan(request.user, submission, terms)
    total = counted(planned.n_total, "trajectory", "trajectories")
    messages.success(request, f"Sample drawn: people label {planned.labels:,} of {total}.")
    return redirect("submission", pk)


@act_from("sample-plan")
def stop_sampling(request: Request, pk: int) -> HttpResponse:
    submission = people_access.submission_for(request.user, pk, Role.MAINTAINER)
    if "confirmed" not in request.POST:
        raise Incomplete([Problem("not_confirmed", "Confirm that you know that this cannot be undone.", "confirmed")])
    stop = estimating.stop_sampling(request.user, submission)
    labelled = counted(stop.labelled, "trajectory", "trajectories")
    messages.success(request, f"Labelling stops at {labelled}.")
    return redirect("sample-plan", pk)


def _build_form(data: Any, submission: Submission) -> tuple[PlanForm, Cases]:
    found = cases.of_population(submission)
    return PlanForm(data, list_judges(found, benchmark=submission.benchmark.slug)), found


def _plan(
    request: Request, submission: Submission, form: PlanForm, found: Cases
) -> tuple[SamplePlanning | None, workflow.PlanTerms | None, int]:
    """Return the plan and its terms, or the errors in the form; and the status of the response."""
    if not form.is_valid():
        return None, None, 400
    population = load_population(submission, form.judge_chosen, found)
    try:
        planned, terms = plan_sample(population, form.question(), access.earlier_submissions(request.user, submission))
    except (Conflict, Incomplete) as refused:
        form.add_refusal(refused)
        return None, None, 409 if isinstance(refused, Conflict) else 400
    return planned, terms, 200


def _render_plan(
    request: Request, submission: Submission, form: PlanForm, found: Cases, status: int = 200
) -> HttpResponse:
    plan = SamplePlan.objects.filter(submission=submission).first()
    context: dict[str, Any] = {"submission": submission, "form": form, "plan": plan}
    context["earlier"] = _tell_earlier(submission, plan)
    if plan is not None:
        context |= {"drawn": estimate_tables.drawn(plan), "terms": estimate_tables.describe_terms(plan)}
        context |= {"rule": estimate_tables.rule(plan), "progress": estimating.find_progress(submission)}
        return render(request, "evaluations/sample_plan.html", context, status=status)
    context["refusal"] = find_refusal(submission)
    if form.is_bound:
        planned, _, answer = (None, None, 400) if form.errors else _plan(request, submission, form, found)
        status = status if status != 200 else answer
        if planned is not None:
            context |= {
                "planned": planned,
                "checks": describe_checks(planned.labels),
                "summary": estimate_tables.summary(planned),
                "table": estimate_tables.planned_strata(planned),
                "given": [(name, value) for name, value in form.data.items() if name in form.fields],
            }
    return render(request, "evaluations/sample_plan.html", context, status=status)


def _tell_earlier(submission: Submission, plan: SamplePlan | None) -> str:
    """Say how many samples of the agent were drawn before the plan, or up to now without one."""
    earlier = (
        workflow.find_earlier_plans(submission).count()
        if plan is None
        else len(workflow.read_earlier(submission) or ())
    )
    return workflow.describe_earlier(earlier)


@page
def success_rate(request: Request, pk: int) -> HttpResponse:
    """Show the success rate by people alone, combined with the judge of ?judge=, and by the judge only."""
    submission = access.reported_for(request.user, pk)
    if submission.frozen_at is None:
        if "csv" in request.GET:
            raise Http404("Figures are available after the freeze.")
        return render(request, "evaluations/success_rate.html", require_unfrozen(submission))
    every = access.submission_population(submission)
    judges = list_judges(every, benchmark=submission.benchmark.slug)
    planned = estimating.judge_of_plan(submission, judges)
    judges.sort(key=lambda each: each != planned)
    judge, silent = Filters.of(request.GET).judge_or_first(judges)
    population = load_population(submission, judge, every)
    found = estimating.estimate(population, _read_estimand(request))
    tables = estimate_tables.tables(found)
    if wanted := request.GET.get("csv"):
        return csv_file(tables, wanted, submission.benchmark.slug, str(submission), str(judge or "people"))
    context: dict[str, Any] = {"submission": submission, "judge": judge, "silent": silent, "estimate": found}
    context |= {"chart": estimate_tables.chart(found), "tables": tables, "basis": estimate_tables.basis(found)}
    context["earlier"] = population.plan and _tell_earlier(submission, population.plan)
    context["choices"] = _list_choices(population, judges, found.estimand)
    return render(request, "evaluations/success_rate.html", context)


def _read_estimand(request: Request) -> Estimand | None:
    known = {each.value: each for each in Estimand}
    return known.get(request.GET.get("estimand", ""))


def _list_choices(population: Population, judges: list[Any], estimand: Estimand) -> dict[str, Any]:
    """Return the links of the page: the judges and the estimands, each with whether it is shown."""
    return {
        "judges": [(access.name_of(each), str(each), each == population.judge) for each in judges],
        "estimands": [(each.value, words, each is estimand) for each, words in ESTIMANDS.items()],
    }


ESTIMANDS = {Estimand.RUNS: "these trajectories", Estimand.AGENT: "the agent"}
