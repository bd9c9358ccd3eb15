"""The evidence page of a submission for its maintainers, the bundle itself, published heads and signing keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page, require_GET, require_safe

from annotation import access, store_checks
from annotation.access import Role
from annotation.models import Submission
from annotation.views.answers import Request
from evaluations import jobs, revoking, signing
from evaluations.access import claims_may_be_shown
from evaluations.download import download_attestation, download_evidence, prepare_evidence
from evaluations.evidence import standing
from evaluations.evidence.trajectories import stored_size
from evaluations.evidence.writing import Evidence
from evaluations.exports import ExportRefused, Missing, missing_for_export
from evaluations.forms import EvidenceForm
from evaluations.signing import KeyClosed
from evaluations.verifier.rules import NOT_PROVED
from evaluations.views.findings import counted, finding_rows


@login_required
@require_safe
def evidence(request: Request, pk: int) -> HttpResponse:
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    return render(request, "evaluations/evidence.html", _standing(submission, EvidenceForm()))


@login_required
@require_GET
def evidence_file(request: Request, pk: int) -> HttpResponseBase:
    return _download(request, pk, download_evidence)


@login_required
@require_GET
def evidence_attestation(request: Request, pk: int) -> HttpResponseBase:
    """Return the attestation of the bundle that has the same choices."""
    return _download(request, pk, download_attestation)


def _download(request: Request, pk: int, download: Callable[[Evidence], HttpResponseBase]) -> HttpResponseBase:
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    form = EvidenceForm(request.GET)
    if not form.is_valid():
        return render(request, "evaluations/evidence.html", _standing(submission, form), status=400)
    try:
        return download(prepare_evidence(submission, **form.chosen()))
    except ExportRefused as refused:
        context = _standing(submission, form) | {"refused": refused.problems}
        context["named"] = context["named"] or [each for each in refused.problems if each.code == "name_in_text"]
        return render(request, "evaluations/evidence.html", context, status=409)


def _standing(submission: Submission, form: EvidenceForm) -> dict[str, Any]:
    """Return the context; before the freeze only the output of `check_submission`, because claims reveal labels."""
    frozen = claims_may_be_shown(submission)
    look = standing.look(submission) if frozen else standing.Look(None)
    if frozen and look.computed_at is None and standing.request(submission):
        transaction.on_commit(lambda: jobs.compute_standing.delay(submission.pk), robust=True)
    trajectories = dict(submission.trajectories.values_list("task__external_id", "pk"))
    return {
        "submission": submission,
        "form": form,
        "frozen": frozen,
        "chain": standing.chain(submission),
        "missing": Missing(missing_for_export(submission) + store_checks.find_known_damage(submission)),
        "computed_at": look.computed_at,
        "claims": finding_rows(look.claims, trajectories),
        "counts": counted(look.claims),
        "named": look.named,
        "not_proved": NOT_PROVED,
        "stored": stored_size(submission) if frozen else 0,
    }


SHORTLY = 300  # seconds that caches may store the keys


@require_safe
@cache_control(public=True, max_age=SHORTLY)
def signing_keys(request: HttpRequest) -> JsonResponse:
    """Return the public keys, the same for everybody, without sign-in. Empty before the first key exists."""
    return JsonResponse(signing.published())


@require_safe
@conditional_page
def revocations(request: HttpRequest) -> JsonResponse:
    """Return the signed list of revoked bundles and keys, the same for everybody, without sign-in."""
    try:
        document = revoking.published()
    except KeyClosed:
        return JsonResponse({"detail": "The signing key of this instance cannot be opened."}, status=503)
    if document is None:
        return JsonResponse({"detail": "This instance has not signed anything yet."}, status=404)
    response = JsonResponse(document)
    patch_cache_control(response, public=True, max_age=SHORTLY)
    return response


@login_required
@require_safe
def anchors(request: Request, pk: int) -> HttpResponse:
    """Return the part of a submission's page with its published heads; for a normal request, redirect to the page."""
    submission = access.submission_for(request.user, pk, *access.READERS)
    if request.headers.get("HX-Request") != "true":
        return redirect("submission", pk)
    rows = submission.anchors.order_by("method", "sequence").defer("token")
    newest = {(row.method, bool(row.error)): row for row in rows}
    shown = sorted(newest.values(), key=lambda row: (row.method, bool(row.error)))
    return render(request, "evaluations/_anchors.html", {"submission": submission, "rows": shown})
