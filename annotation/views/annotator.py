"""The annotator's pages: queue, desk, guidelines. They show nothing about other people."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from annotation import access, catalogue, operations, parked, queue, training, workflow
from annotation.forms import ActivityForm, LabelForm, ProposalForm
from annotation.models import Membership, Release, Report, Submission, Trajectory
from annotation.models.states import current_labels
from annotation.screenshots import Rendition
from annotation.views import desk
from annotation.views.answers import Request, act, act_from, is_scripted, page, paginate, show_task_message
from annotation.views.discussion import load_first_questions, load_questions

Role = Membership.Role


@page
def guidelines(request: Request) -> HttpResponse:
    own = access.memberships_of(request.user).filter(role__in=(Role.ANNOTATOR, Role.ADJUDICATOR))
    return render(request, "annotation/guidelines.html", desk.load_rules() | {"memberships": own.order_by("-pk")})


@page
def submission_guidelines(request: Request, pk: int) -> HttpResponse:
    """Show the guidelines with the questions about them that were asked in a submission."""
    found = access.submission_for(request.user, pk, Role.ANNOTATOR, Role.ADJUDICATOR, Role.MAINTAINER)
    context = desk.load_rules() | load_questions(request, found)
    context["may_ask"] = access.role_in(request.user, found) is not Role.MAINTAINER and found.frozen_at is None
    return render(request, "annotation/guidelines.html", context)


@page
def work(request: Request, pk: int) -> HttpResponse:
    submission = access.submission_for(request.user, pk, Role.ANNOTATOR)
    parked.submit_due(submission)
    done, total = queue.count_own(request.user, submission)
    own = current_labels().filter(assignment__annotator=request.user, assignment__trajectory__submission=submission)
    context = {
        "submission": submission,
        "done": done,
        "total": total,
        "practice": training.load_practice(request.user, submission) if submission.practice_set_id else None,
        "admitted": training.is_admitted(request.user, submission),
        "held": queue.find_held(request.user, submission),
        "pace": training.load_own_pace(request.user, submission),
        "put_off": queue.find_put_off(request.user, submission),
        "answers": access.flag_answers_of(request.user, submission)
        .select_related("trajectory__task")
        .order_by("-answered_at")[:20],
        "history": paginate(request, own.select_related("assignment__trajectory__task").order_by("-created_at"), 25),
        "releases": Release.objects.filter(annotator=request.user, trajectory__submission=submission)
        .select_related("trajectory__task")
        .order_by("-released_at")[:50],
    }
    context |= load_first_questions(request, submission) | {"may_ask": submission.frozen_at is None}
    return render(request, "annotation/work.html", context)


@act
def next_trajectory(request: Request, pk: int) -> HttpResponse:
    return _next(request, access.submission_for(request.user, pk, Role.ANNOTATOR))


def _next(request: Request, submission: Submission) -> HttpResponse:
    assignment = operations.claim_next(request.user, submission)
    if assignment is None:
        messages.info(request, "Your queue is empty. Thank you.")
        return redirect("work", submission.pk)
    return redirect("trajectory", assignment.trajectory_id)


@page
def trajectory(request: Request, pk: int) -> HttpResponse:
    """Show the desk; for its own script only the viewer at another step."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    if request.htmx:
        return desk.step_partial(request, found)
    return desk.render_desk(request, found)


@act_from("trajectory")
def submit(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    form = LabelForm.from_post(request.POST, attempt=found.submission.asks_attempt)
    try:
        content = form.valid_content()
        if "undo" in request.POST:
            workflow.park(request.user, found, form.typed(), content, form.note())
        else:
            workflow.submit(request.user, found, content, form.note())
    except workflow.Incomplete as incomplete:
        return desk.render_desk(request, found, refused=incomplete.problems, status=400)
    show_task_message(request, "Label submitted: {}", found.task, undo=reverse("undo-submit", args=[pk]))
    if request.POST.get("then") == "next":
        return _next(request, found.submission)
    return redirect("work", found.submission_id)


@act_from("trajectory")
def undo_submit(request: Request, pk: int) -> HttpResponse:
    """Undo the last submit and open its draft; if it is too late, open a revision of the label."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    if workflow.undo_submit(request.user, found):
        messages.info(request, "Submit undone. Your draft is as it was.")
        return redirect("trajectory", pk)
    messages.info(request, "It is too late to undo the submit. You can revise the label instead.")
    return redirect(reverse("trajectory", args=[pk]) + "?revise=undo")


@act_from("trajectory")
def revise(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    form = LabelForm.from_post(request.POST, attempt=found.submission.asks_attempt)
    try:
        workflow.revise(request.user, found, form.valid_content(), form.cleaned_data["reason"])
    except workflow.Incomplete as incomplete:
        return desk.render_desk(request, found, refused=incomplete.problems, status=400)
    show_task_message(request, "Label revised: {}", found.task)
    if request.POST.get("then") == "next":
        return _next(request, found.submission)
    return redirect("trajectory", pk)


@act
def draft(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    return desk.save_draft(request, found, Role.ANNOTATOR, reverse("trajectory", args=[pk]))


@act_from("trajectory")
def put_off(request: Request, pk: int) -> HttpResponse:
    """Save the posted form as the draft, and put the trajectory off for a day."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    saved = desk.save_draft(request, found, Role.ANNOTATOR, reverse("trajectory", args=[pk]))
    if saved.status_code == 409:
        return saved
    until = workflow.put_off(request.user, found).lease_expires_at
    show_task_message(request, f"Put off until {until:%Y-%m-%d %H:%M} UTC: {{}}", found.task)
    return redirect("work", found.submission_id)


@act
def release(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    workflow.release(request.user, found, request.POST.get("reason", ""))
    show_task_message(request, "Trajectory declined: {}", found.task)
    return redirect("work", found.submission_id)


@act
def flag(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    workflow.flag(request.user, found, request.POST.get("flag_note", ""))
    messages.success(request, "Flagged for the adjudicator.")
    return redirect("trajectory", pk)


@act
def report(request: Request, pk: int) -> HttpResponse:
    """Report to the maintainer that the task is outdated; a script stays on its page and gets 204."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    workflow.report(request.user, found, Report.Kind.TASK_OUTDATED, request.POST.get("note", ""))
    if is_scripted(request):
        return HttpResponse(status=204)
    messages.success(request, "Task reported as outdated.")
    return redirect("trajectory", pk)


@act
def propose(request: Request, pk: int) -> HttpResponse:
    """Propose a key point to the maintainer; nobody else sees it before it is accepted."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    form = ProposalForm(request.POST)
    if not form.is_valid():
        messages.error(request, "A key point has 1 to 500 characters.")
    else:
        # The same answer whether or not somebody else has proposed it: proposals of others are not shown.
        catalogue.propose_key_point(found.task, form.cleaned_data["text"], request.user)
        messages.success(request, "Key point proposed to the maintainer.")
    return redirect("trajectory", pk)


# --- requests of the desk's script ------------------------------------------------------------------------------------


FIRST = 2  # screenshots of the next trajectory to preload, in addition to the first sheet of thumbnails


@act
def activity(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR, Role.ADJUDICATOR)
    form = ActivityForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"message": "Enter seconds and steps as numbers."}, status=400)
    given = form.cleaned_data
    until = workflow.record_activity(request.user, found, given["seconds"], given["steps"], revising=given["revising"])
    said = {"lease_expires_at": until.isoformat() if until else None}
    if until is None and workflow.has_submitted(request.user, found):
        said["code"] = workflow.LABEL_SUBMITTED
    return JsonResponse(said)


@act
def ahead(request: Request, pk: int) -> HttpResponse:
    """Reserve the next trajectory and return the addresses of its first images; an empty list if there is none."""
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    held = workflow.claim_ahead(request.user, found)
    return JsonResponse({"pictures": first_pictures(held.trajectory) if held else []})


def first_pictures(trajectory: Trajectory) -> list[str]:
    steps = trajectory.steps.filter(index__lt=FIRST, screenshot__isnull=False).values_list("index", flat=True)
    large = [reverse("picture", args=[trajectory.pk, step, Rendition.DISPLAY]) for step in steps]
    if not large and not trajectory.steps.exists():  # an answer: its text comes with the page
        return []
    return [*large, reverse("sheet", args=[trajectory.pk, 0])]


@act
def hold(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ANNOTATOR)
    held = workflow.hold_again(request.user, found)
    if is_scripted(request) and held.lease_expires_at:
        return JsonResponse({"lease_expires_at": held.lease_expires_at.isoformat()})
    return redirect("trajectory", pk)
