"""What a judge of actions predicted in a submission: the numbers, the groups, and every prediction behind them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header

from annotation import access as people_access
from annotation.access import Role
from annotation.formats.spreadsheets import file_name
from annotation.models import Submission
from annotation.views.answers import Request, page, paged
from judges import access, prediction_tables, predictions
from judges.forms.predictions import PredictionsFilter
from judges.models import Judge, Judgment
from judges.predictions import Prediction, Results
from judges.scorers.action_selection.details import PredictedStep, read_details

SHOWN = 50  # predictions on a page


@page
def predicted(request: Request, pk: int) -> HttpResponse:
    """The judge that ?judge= names (its key) over a submission; ?csv= is one of its tables as a file."""
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
    shown = paged(request, form.applied(), SHOWN)
    context |= _render_numbers(found) | {"form": form, "page": shown, "all": len(found.predictions)}
    return render(request, "judges/predictions.html", context)


def _find_judge(request: Request, judges: QuerySet[Judge]) -> Judge | None:
    """The judge asked for, or the newest; Http404 for one that has predicted nothing here."""
    asked = request.GET.get("judge", "")
    if not asked:
        return judges.first()
    found = next((judge for judge in judges if asked in (str(judge.pk), str(judge))), None)
    if found is None:
        raise Http404("No such judge has predicted anything here.")
    return found


def _render_numbers(found: Results) -> dict[str, Any]:
    return {
        "results": found,
        "figures": prediction_tables.build_figures(found.overall),
        "recall": prediction_tables.format_recall(found.overall),
        "graded": prediction_tables.describe_grading(found),
        "tables": [table for table in prediction_tables.build_tables(found) if table.rows],
        "columns": prediction_tables.COLUMNS,
        "said": ", ".join(f"{name} {count}" for name, count in found.overall.said.items()),
    }


def _build_file(
    wanted: str, found: Results, submission: Submission, judge: Judge, chosen: Iterable[Prediction]
) -> HttpResponse:
    if wanted == "predictions":
        text = prediction_tables.write_predictions_csv(list(chosen))
    elif wanted in prediction_tables.GROUPS:
        text = prediction_tables.write_groups_csv(prediction_tables.build_tables(found, wanted)[0])
    else:
        raise Http404("This page has no such table.")
    name = file_name(submission.benchmark.slug, str(submission), str(judge), wanted)
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = str(content_disposition_header(True, name))
    return response


@page
def prediction(request: Request, pk: int, step: int) -> HttpResponse:
    """One prediction: the page summary and the picture that it was made from, what was right, and the reply."""
    found = access.find_judgment(request.user, pk)
    steps = _read_steps(found)
    place = next((number for number, one in enumerate(steps) if one.step == step), None)
    if place is None:
        raise Http404("This judgment has no prediction of that step.")
    assert found.trajectory is not None  # noqa: S101 - judgment_for finds no others
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
