"""Active hours as CSV: of a submission and of a benchmark for their maintainers, and of everybody's own labels."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from annotation import access, active_hours
from annotation.active_hours import Span
from annotation.formats.spreadsheets import file_name
from annotation.forms import HoursForm
from annotation.records import Problem
from annotation.views.answers import Request, page
from annotation.workflow import Incomplete


@page
def submission_hours(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, access.Role.MAINTAINER)
    return _download(active_hours.measure_submissions([found], _read_span(request)), str(pk))


@page
def benchmark_hours(request: Request, slug: str) -> HttpResponse:
    """Return the hours in those submissions of a benchmark that the person maintains."""
    found = access.benchmark_for(request.user, slug)
    maintained = access.submissions_maintained_by(request.user).filter(benchmark=found)
    return _download(active_hours.measure_submissions(maintained, _read_span(request)), slug)


@page
def own_hours(request: Request) -> HttpResponse:
    return _download(active_hours.measure_own(request.user, _read_span(request)), "own")


def _read_span(request: Request) -> Span:
    form = HoursForm(request.GET)
    if not form.is_valid():
        raise Incomplete(
            [
                Problem("span_invalid", f"{form[name].label if name in form.fields else 'Dates'}: {error}", name)
                for name, errors in form.errors.items()
                for error in errors
            ]
        )
    return Span(**form.cleaned_data)


def _download(rows: list[dict[str, Any]], about: str) -> HttpResponse:
    response = HttpResponse(active_hours.write_csv(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file_name("active-hours", about)}"'
    return response
