"""The page that creates the files of a frozen submission for sending, checks them, and offers them together."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_GET, require_POST, require_safe

from annotation import access, screenshots
from annotation.access import Role
from annotation.models import Submission
from annotation.views.answers import Request
from annotation.workflow import Conflict
from evaluations import jobs, sending
from evaluations.evidence.trajectories import stored_size
from evaluations.exports import Missing

ONLINE_MIND2WEB = "online-mind2web"


@login_required
@require_safe
def send(request: Request, pk: int) -> HttpResponse:
    """Show what is missing before the freeze, else the files; while they are created the page polls its state."""
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    partial = request.headers.get("HX-Request") == "true"
    return render(request, f"evaluations/{'_send' if partial else 'send'}.html", _build_context(submission))


@login_required
@require_POST
def create_files(request: Request, pk: int) -> HttpResponse:
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    if submission.practice:
        raise Http404("A practice submission has nothing to send.")
    options = {name: request.POST.get(name) == "on" for name in ("with_screenshots", "accept_names")}
    try:
        sending.request(request.user, submission, jobs.create_delivery.delay, **options)
    except Conflict as conflict:
        messages.error(request, str(conflict))
    return redirect("send", pk)


@login_required
@require_POST
def cancel_files(request: Request, pk: int) -> HttpResponse:
    sending.cancel(access.submission_for(request.user, pk, Role.MAINTAINER))
    return redirect("send", pk)


@login_required
@require_GET
def sent_file(request: Request, pk: int, part: str) -> HttpResponseBase:
    """Return one of the files, as long as they are those of the present freeze."""
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    _, delivery = sending.find_latest(submission)
    if part not in sending.PARTS:
        raise Http404("There is no such file.")
    if delivery is None or not sending.is_current(delivery):
        messages.error(request, "This file is from an earlier freeze, or no longer stored. Create the files again.")
        return redirect("send", pk)
    facts = next(each for each in delivery.files if each["part"] == part)
    try:
        stream = default_storage.open(facts["stored_as"])
    except screenshots.STORE_ERRORS:
        messages.error(request, "This file cannot be read from the store. Create the files again.")
        return redirect("send", pk)
    response = FileResponse(stream, as_attachment=True, filename=facts["name"])
    response["Cache-Control"] = "private, no-store"
    return response


def _build_context(submission: Submission) -> dict[str, Any]:
    newest, made = sending.find_latest(submission)
    running = newest if newest and newest.finished_at is None else None
    failed = newest if newest and newest.problems and newest.key == sending.find_key(submission) else None
    current = made is not None and sending.is_current(made)
    names = failed is not None and any(problem["code"] == "name_in_text" for problem in failed.problems)
    # Not while the page polls: it looks at every trajectory.
    missing = [] if running or submission.practice else sending.find_missing(submission, converted=current)
    never = sending.find_never(submission)
    return {
        "submission": submission,
        "never": never,
        "missing": Missing([problem for problem in missing if problem not in never]),
        "running": running,
        "part": min(running.done // sending.STEPS + 1, len(sending.PARTS)) if running else None,
        "failed": failed,
        "names": names or (current and made is not None and made.accept_names),
        "stored": stored_size(submission) if submission.frozen_at and not running else 0,
        "made": made,
        "current": current,
        "expires_at": sending.find_expiry(made) if made else None,
        "is_online_mind2web": ONLINE_MIND2WEB in slugify(f"{submission.benchmark.slug} {submission.benchmark.name}"),
    }
