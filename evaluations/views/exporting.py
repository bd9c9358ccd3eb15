"""The export page of a submission, for its maintainers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET, require_safe

from annotation import access, clock, store_checks
from annotation.access import Role
from annotation.formats.spreadsheets import file_name
from annotation.models import Submission
from annotation.views.answers import Request
from evaluations import exports_v2
from evaluations.cases import Rules
from evaluations.charts import Chart
from evaluations.download import download, find_format, prepare_download
from evaluations.exports import ExportFormat, ExportRefused, Missing, missing_for_export
from evaluations.papers import latex
from evaluations.papers.archive import write_archive
from evaluations.publication.options import ResultFormat
from evaluations.tables import Table

EXPLANATIONS = {
    ExportFormat.HUMAN_LABEL: "The final verdict of every task, in the published format (JSON).",
    ExportFormat.LABELS: "Every label and adjudication with its revisions, reasons and times (JSON Lines).",
    ExportFormat.TRAJECTORIES_V2: "The trajectories as Online-Mind2Web v2 folders, whatever format they came in (zip).",
}
PUBLISHED = {
    ResultFormat.DATASET: "A dataset folder for Hugging Face: Parquet, a card and Croissant metadata (zip).",
    ResultFormat.EVERY_EVAL_EVER: "The success rate and its trajectories as Every Eval Ever 0.3.0 records (zip).",
    ResultFormat.EVAL_RESULTS: "The success rate for the .eval_results folder of a model on Hugging Face (YAML).",
    ResultFormat.OTEL: "Verdicts, labels and judgments as OpenTelemetry evaluation events (JSON Lines).",
    ResultFormat.REWARD_STEPS: "Labels of single steps for process reward models (JSON Lines).",
    ResultFormat.REWARD_OUTCOMES: "Final verdicts for outcome reward models (JSON Lines).",
}


@login_required
@require_safe
def export(request: Request, pk: int) -> HttpResponse:
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    return render(request, "evaluations/export.html", _what_is_missing(submission))


@login_required
@require_safe
def export_check(request: Request, pk: int) -> HttpResponse:
    """Return the part of the page with the missing data, checked again; for a normal request, redirect to the page."""
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    if request.headers.get("HX-Request") != "true":
        return redirect("export", pk)
    return render(request, "evaluations/_export_check.html", _what_is_missing(submission))


@login_required
@require_GET
def export_file(request: Request, pk: int, export_format: str) -> HttpResponseBase:
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    if (chosen := find_format(export_format)) is None:
        raise Http404("This export does not exist.")
    options: dict[str, Any] = {name: request.GET.get(name) == "1" for name in ("partial", "accept_names")}
    options |= {name: request.GET[name].strip() for name in ("dataset",) if request.GET.get(name)}
    try:
        return download(prepare_download(submission, chosen, **options))
    except ExportRefused as refused:
        context = _what_is_missing(submission) | {"refused": refused.problems, "refused_format": export_format}
        return render(request, "evaluations/export.html", context, status=409)


def _what_is_missing(submission: Submission) -> dict[str, Any]:
    unconvertible, doubtful = exports_v2.summarise(submission)
    return {
        "submission": submission,
        "missing": Missing(missing_for_export(submission)),
        "unread": max(submission.trajectories.count() - exports_v2.MOST_SURVEYED, 0),
        "unconvertible": unconvertible,
        "doubtful": doubtful,
        "damaged": store_checks.find_known_damage(submission),
        "formats": [(f.value, EXPLANATIONS[f]) for f in ExportFormat],
        "published": [(f.value, PUBLISHED[f]) for f in ResultFormat],
    }


RULES = {
    Rules.DEFAULT: "Undecided cases are left out.",
    Rules.PUBLISHED: "Rules of published tables: if imported labels differ, the first one counts; an undefined rate "
    "is 0 where there are cases; figures are rounded as in those tables.",
}


def paper_file(
    tables: Iterable[Table], charts: Iterable[Chart | None], scope: str, rules: Rules, *about: str
) -> HttpResponse:
    """Return every chart and table of a page as a zip for a paper; ``about`` describes it as in `csv_file`."""
    basis = latex.join_sentences(scope, RULES[rules])
    drawn = [chart for chart in charts if chart is not None]
    data = write_archive(", ".join(about), basis, tables, drawn, clock.now())
    response = HttpResponse(data, content_type="application/zip")
    name = file_name(*about, "paper").removesuffix(".csv") + ".zip"
    response["Content-Disposition"] = str(content_disposition_header(True, name))
    return response


def csv_file(tables: Iterable[Table], name: str, *about: str) -> HttpResponse:
    """Return the table of that name as an attachment; Http404 for a name that the page does not have.

    ``about`` describes the table in the file's name; names of agents can contain any characters.
    """
    table = next((table for table in tables if table.name == name), None)
    if table is None:
        raise Http404("This table does not exist.")
    response = HttpResponse(table.as_csv(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = str(content_disposition_header(True, file_name(*about, table.name)))
    return response
