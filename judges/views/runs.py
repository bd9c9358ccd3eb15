"""Pages for the maintainer to plan, start, watch, pause and end judge runs of a submission."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.http import content_disposition_header
from django_htmx.http import trigger_client_event

from annotation import access as people_access
from annotation.access import Role
from annotation.formats.printable import counted
from annotation.formats.spreadsheets import file_name
from annotation.models import Submission
from annotation.views.answers import Request, act, act_from, page, paginate
from judges import access, planning, predictions, robustness, run_table, runs
from judges.forms.runs import BudgetForm, JudgmentsFilter, PredictionsFilter, RunForm
from judges.models import Judge, JudgeRun, Judgment, Service
from judges.planning import BATCH_TIME, Plan
from judges.predictions import Prediction, Results
from judges.ready_judges import RunRefused, find_endpoint_problem, load_addresses
from judges.scorer import IMPORTED
from judges.scorers.action_selection.details import PredictedStep, read_details

# --- the runs of a submission, and a new one -------------------------------------------------------------------------


@page
def judge_runs(request: Request, pk: int) -> HttpResponse:
    """List the runs over a submission, newest first, with a form for the next one; ?judge=... fills it in."""
    found = people_access.submission_for(request.user, pk, Role.MAINTAINER)
    form = _build_form(request, found, None)
    form.initial = {**{name: form[name].initial for name in form.fields}, **request.GET.dict()}
    return _render_runs(request, found, form)


@act_from("judge-runs")
def plan(request: Request, pk: int) -> HttpResponse:
    """Show the plan of a run. It is posted, since a list of tasks is too long for a URL."""
    found = people_access.submission_for(request.user, pk, Role.MAINTAINER)
    form = _build_form(request, found, request.POST)
    if not form.is_valid():
        return _render_runs(request, found, form, status=400)
    given = form.cleaned_data
    try:
        foreseen = planning.plan(given["judge"], found, form.selection(), given["repetitions"], given["service"])
    except RunRefused as refused:
        form.add_error(None, str(refused))
        return _render_runs(request, found, form, status=409)
    context = {
        "submission": found,
        "plan": foreseen,
        "form": form,
        "judge": given["judge"],
        "unasked": find_endpoint_problem(given["judge"]),
        "asks": given["judge"].asks_model,
        "time": BATCH_TIME if given["service"] == Service.BATCH else format_duration(foreseen.seconds),
        "tokens": (
            format_span(foreseen.prompt_tokens, foreseen.prompt_tokens_high),
            format_span(foreseen.completion_tokens, foreseen.completion_tokens_high),
        ),
        "calls": format_span(foreseen.calls, foreseen.calls_high),
        "given": [(name, value) for name, value in request.POST.items() if name in form.fields],
    }
    context |= compare_with_budget(foreseen, given["max_cost"])
    return render(request, "judges/plan.html", context)


def format_span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def compare_with_budget(foreseen: Plan, budget: Decimal | None) -> dict[str, bool]:
    if budget is None:
        return {}
    over = foreseen.cost is not None and foreseen.cost > budget
    may = foreseen.cost_high is not None and foreseen.cost_high > budget
    return {"unpriced": foreseen.cost is None, "over_budget": over, "may_be_over_budget": may and not over}


@act_from("judge-runs")
def start(request: Request, pk: int) -> HttpResponse:
    found = people_access.submission_for(request.user, pk, Role.MAINTAINER)
    form = _build_form(request, found, request.POST)
    if not form.is_valid():
        return _render_runs(request, found, form, status=400)
    try:
        made = runs.start(request.user, form.cleaned_data["judge"], found, form.selection(), **form.terms())
    except RunRefused as refused:
        form.add_error(None, str(refused))
        return _render_runs(request, found, form, status=409)
    messages.success(request, "Run started.")
    return redirect("judge-run", made.pk)


def _build_form(request: Request, found: Submission, data: Any) -> RunForm:
    judges = access.find_judges(request.user).exclude(scorer=IMPORTED).order_by("name", "-version")
    return RunForm(data, judges, found)


def _render_runs(request: Request, found: Submission, form: RunForm, status: int = 200) -> HttpResponse:
    shown = paginate(request, access.find_runs(request.user, found).filter(test=False), 20)
    context = {
        "submission": found,
        "form": form,
        "page": shown,
        "rows": run_table.summarize(shown),
        "elsewhere": _find_imported_judges(found),
        "predicting": access.find_prediction_judges(request.user, found),
        "configured": load_addresses(),
        "may_define": access.may_define_judges(request.user),
    }
    return render(request, "judges/runs.html", context, status=status)


def _find_imported_judges(found: Submission) -> QuerySet[Judge]:
    """Return judges with imported judgments of the submission, each with their number and the first of them."""
    here = Q(judgments__trajectory__submission=found, judgments__item__isnull=True)
    ordered = Judgment.objects.filter(judge=OuterRef("pk"), item__isnull=True, trajectory__submission=found)
    judges = Judge.own.annotate(
        made=Count("judgments", filter=here),
        unscored=Count("judgments", filter=here & Q(judgments__verdict__isnull=True)),
        first=Subquery(ordered.order_by("trajectory__position").values("pk")[:1]),
    )
    return judges.filter(scorer=IMPORTED, made__gt=0).order_by("name")


# --- one run ---------------------------------------------------------------------------------------------------------


@page
def judge_run(request: Request, pk: int) -> HttpResponse:
    """Show the progress of a run, its actions, and its judgments."""
    found = access.find_run(request.user, pk)
    form = JudgmentsFilter(request.GET, repeated=found.repetitions > 1)
    chosen = form.chosen()
    groups = run_table.filter_trajectories(found, **chosen)
    shown = paginate(request, groups, 50)
    context = _render_progress(found) | {
        "submission": found.submission,
        "filters": form,
        "chosen": chosen,
        "page": shown,
        "rows": run_table.build_rows(found, [group["trajectory"] for group in shown]),
        "repetitions": robustness.name_repetitions(found),
        "flips": run_table.count_flips(found) if found.repetitions > 1 else 0,
        "scores": run_table.load_scores(found),
        "budget": BudgetForm(),
        "withheld": access.must_hide(request.user, found.judge, found.submission),
    }
    return render(request, "judges/run.html", context)


@page
def standing(request: Request, pk: int) -> HttpResponse:
    """Render the part of the page that changes, with the buttons if they differ from ?acts=.

    Without htmx, redirect to the page itself.
    """
    found = access.find_run(request.user, pk)
    if not request.htmx:
        return redirect("judge-run", pk)
    context = _render_progress(found) | {"submission": found.submission, "budget": BudgetForm()}
    context["changed"] = request.GET.get("acts") != context["acts"]
    response = render(request, "judges/_standing.html", context)
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return trigger_client_event(response, "run-moved") if context["changed"] else response


def format_duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _render_progress(found: JudgeRun) -> dict[str, Any]:
    now = runs.load_progress(found)
    ended, waits = now.state in ("finished", "cancelled"), now.state in ("paused", "stopped")
    batches = found.batches.filter(ended_at=None).count() if found.service == Service.BATCH else 0
    may_retry = now.failed > 0 and now.state != "cancelled"
    return {
        "run": found,
        "standing": now,
        "acts": ("ended" if ended else "waits" if waits else "goes") + ("-failed" if may_retry else ""),
        "advised": [(text, count, run_table.find_advice(text)) for text, count in now.errors],
        "ended": ended,
        "waits": waits,
        "settled": now.done + now.failed,
        "todo": now.total - now.done - now.failed,
        "left": format_duration(now.seconds_left),
        "tokens": f"{now.tokens:,}",
        "every": None if ended and not now.running else 10 if waits and not now.running else 2,
        "batches": batches,
        "abandoned": not ended and not waits and not batches and run_table.is_abandoned(found),
        "may_retry": may_retry,
    }


# --- actions on a run -------------------------------------------------------------------------------------------------


@act
def pause(request: Request, pk: int) -> HttpResponse:
    found = access.find_run(request.user, pk)
    runs.pause(request.user, found)
    messages.success(request, "Run paused. Calls in progress will finish first.")
    return redirect("judge-run", pk)


@act
def resume(request: Request, pk: int) -> HttpResponse:
    found = access.find_run(request.user, pk)
    form = BudgetForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"The budget is invalid: {' '.join(map(str, form.errors['max_cost']))}")
        return redirect("judge-run", pk)
    runs.resume(request.user, found, form.cleaned_data["max_cost"])
    messages.success(request, "Run resumed.")
    return redirect("judge-run", pk)


@act
def cancel(request: Request, pk: int) -> HttpResponse:
    found = access.find_run(request.user, pk)
    runs.cancel(request.user, found)
    messages.success(request, "Run cancelled. Its judgments remain.")
    return redirect("judge-run", pk)


@act
def retry(request: Request, pk: int) -> HttpResponse:
    found = access.find_run(request.user, pk)
    count = runs.retry_failed(request.user, found)
    messages.success(request, f"{counted(count, 'failed item')} will be tried again.")
    return redirect("judge-run", pk)


# --- predictions -----------------------------------------------------------------------------------------------------


SHOWN = 50  # predictions on a page


@page
def predicted(request: Request, pk: int) -> HttpResponse:
    """Show the predictions over a submission by the judge ?judge= (key or name); ?csv= returns a table as a file."""
    submission = people_access.submission_for(request.user, pk, Role.MAINTAINER)
    judges = access.find_prediction_judges(request.user, submission)
    judge = _find_judge(request, judges)
    context: dict[str, Any] = {"submission": submission, "judges": judges, "judge": judge}
    if judge is None:
        return render(request, "judges/predictions.html", context)
    found = predictions.compute_results(predictions.select_judgments(judge, submission))
    form = PredictionsFilter(request.GET, found)
    if wanted := request.GET.get("csv"):
        return _build_file(wanted, found, submission, judge, form.applied())
    shown = paginate(request, form.applied(), SHOWN)
    context |= _render_numbers(found) | {"form": form, "page": shown, "all": len(found.predictions)}
    return render(request, "judges/predictions.html", context)


def _find_judge(request: Request, judges: QuerySet[Judge]) -> Judge | None:
    """Return the requested judge, or the newest; raise Http404 if it has predicted nothing here."""
    asked = request.GET.get("judge", "")
    if not asked:
        return judges.first()
    found = next((judge for judge in judges if asked in (str(judge.pk), str(judge))), None)
    if found is None:
        raise Http404("No such judge has predicted actions here.")
    return found


def _render_numbers(found: Results) -> dict[str, Any]:
    return {
        "results": found,
        "figures": predictions.build_figures(found.overall),
        "recall": predictions.format_recall(found.overall),
        "graded": predictions.describe_grading(found),
        "tables": [table for table in predictions.build_tables(found) if table.rows],
        "columns": predictions.COLUMNS,
        "said": ", ".join(f"{name} {count}" for name, count in found.overall.said.items()),
    }


def _build_file(
    wanted: str, found: Results, submission: Submission, judge: Judge, chosen: Iterable[Prediction]
) -> HttpResponse:
    if wanted == "predictions":
        text = predictions.write_predictions_csv(list(chosen))
    elif wanted in predictions.GROUPS:
        text = predictions.write_groups_csv(predictions.build_tables(found, wanted)[0])
    else:
        raise Http404("This table does not exist.")
    name = file_name(submission.benchmark.slug, str(submission), str(judge), wanted)
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = str(content_disposition_header(True, name))
    return response


@page
def prediction(request: Request, pk: int, step: int) -> HttpResponse:
    """Show one prediction: the page summary and the screenshot that it used, the correct action, and the reply."""
    found = access.find_judgment(request.user, pk)
    steps = _read_steps(found)
    place = next((number for number, one in enumerate(steps) if one.step == step), None)
    if place is None:
        raise Http404("This judgment has no prediction for that step.")
    assert found.trajectory is not None  # noqa: S101 - find_judgment returns no others
    context = {
        "judgment": found,
        "trajectory": found.trajectory,
        "submission": found.trajectory.submission,
        "maintains": people_access.role_in(request.user, found.trajectory.submission) is Role.MAINTAINER,
        "one": steps[place],
        "earlier": steps[place - 1] if place else None,
        "later": steps[place + 1] if place + 1 < len(steps) else None,
        "picture": found.trajectory.steps.filter(index=step, screenshot__isnull=False).first(),
    }
    return render(request, "judges/prediction.html", context)


def _read_steps(found: Judgment) -> list[PredictedStep]:
    details = found.evidence.get("details") if isinstance(found.evidence, dict) else None
    if not isinstance(details, dict) or details.get("kind") != predictions.KIND:
        return []
    return read_details(details).steps
