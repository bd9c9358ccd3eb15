"""The quotas of a benchmark and what is used of them, a part of its page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render

from annotation import access
from annotation.quotas import count_bytes
from annotation.views.answers import Request, page
from judges import quotas


@page
def benchmark_quotas(request: Request, slug: str) -> HttpResponse:
    """Return the part of the page with the quotas; for a normal request, redirect to the page."""
    found = access.benchmark_for(request.user, slug)
    if not request.htmx:
        return redirect("benchmark", slug)
    context = {
        "benchmark": found,
        "bytes": count_bytes(found),
        "calls": quotas.load_use(found.pk, quotas.CALLS),
        "cost": quotas.load_use(found.pk, quotas.COST),
    }
    return render(request, "judges/_quotas.html", context)
