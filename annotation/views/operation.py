"""The page *Operation* for superusers: state of the stored files."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from annotation import access, store_checks
from annotation.views.answers import Request, page

MOST_SHOWN = 200


@page
def operator(request: Request) -> HttpResponse:
    """Show the last check of all stored files, and the running one."""
    access.require_superuser(request.user)
    last = store_checks.find_last_finished()
    problems = last.problems[:MOST_SHOWN] if last else []
    places = store_checks.places_of([each["sha256"] for each in problems])
    context = {
        "last": last,
        "running": store_checks.unfinished(),
        "rows": [(each, places.get(each["sha256"], [])) for each in problems],
        "more": max(len(last.problems) - MOST_SHOWN, 0) if last else 0,
    }
    return render(request, "annotation/operator.html", context)
