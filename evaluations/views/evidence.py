"""The evidence page of a submission, for its maintainers: what a bundle would show, and the bundle itself."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_safe

from annotation import access
from annotation.access import Role
from annotation.models import Submission
from annotation.records import Problem
from evaluations.access import claims_may_be_shown
from evaluations.download import download_evidence, prepare_evidence
from evaluations.evidence import names, standing
from evaluations.evidence.trajectories import stored_size
from evaluations.exports import ExportRefused, missing_for_export
from evaluations.forms import EvidenceForm
from evaluations.verifier.rules import NOT_PROVED
from evaluations.views.findings import counted, finding_rows


@login_required
@require_safe
def evidence(request: HttpRequest, pk: int) -> HttpResponse:
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    return render(request, "evaluations/evidence.html", _standing(submission, EvidenceForm()))


@login_required
@require_GET
def evidence_file(request: HttpRequest, pk: int) -> HttpResponseBase:
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    form = EvidenceForm(request.GET)
    if not form.is_valid():
        return render(request, "evaluations/evidence.html", _standing(submission, form), status=400)
    try:
        return download_evidence(prepare_evidence(submission, **form.chosen()))
    except ExportRefused as refused:
        context = _standing(submission, form) | {"refused": refused.problems}
        return render(request, "evaluations/evidence.html", context, status=409)


def _standing(submission: Submission, form: EvidenceForm) -> dict[str, Any]:
    """Before the freeze only what `check_submission` says: claims would tell a maintainer of labels."""
    frozen = claims_may_be_shown(submission)
    claims = [claim.as_json() for claim in standing.claims(submission)] if frozen else []
    named: list[Problem] = names.named(submission) if frozen else []
    trajectories = dict(submission.trajectories.values_list("task__external_id", "pk"))
    return {
        "submission": submission,
        "form": form,
        "frozen": frozen,
        "chain": standing.chain(submission),
        "missing": missing_for_export(submission),
        "claims": finding_rows(claims, trajectories),
        "counts": counted(claims),
        "named": named,
        "not_proved": NOT_PROVED,
        "stored": stored_size(submission) if frozen else 0,
    }
