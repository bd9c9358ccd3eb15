"""What this instance makes public of itself, and shows its maintainers of it: signing keys, published heads."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from annotation import access
from annotation.views.answers import Request
from evaluations import signing

SHORTLY = 300  # seconds that a copy of the keys is kept on the way


@require_safe
@cache_control(public=True, max_age=SHORTLY)
def signing_keys(request: HttpRequest) -> JsonResponse:
    """The public keys, for everybody: no sign-in, and the same answer whoever asks. None before there is one."""
    return JsonResponse(signing.published())


@login_required
@require_safe
def anchors(request: Request, pk: int) -> HttpResponse:
    """The part of a submission's page that says where its head was published; followed as a link, the page itself."""
    submission = access.submission_for(request.user, pk, *access.READERS)
    if request.headers.get("HX-Request") != "true":
        return redirect("submission", pk)
    rows = submission.anchors.order_by("method", "sequence").defer("token")
    newest = {(row.method, bool(row.error)): row for row in rows}
    shown = sorted(newest.values(), key=lambda row: (row.method, bool(row.error)))
    return render(request, "evaluations/_anchors.html", {"submission": submission, "rows": shown})
