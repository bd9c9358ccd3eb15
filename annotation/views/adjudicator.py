"""The adjudicator's pages: the queue, hardest first, and the desk, with the labels if they may be seen."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from annotation import access, operations, parked, progress, queue, workflow
from annotation.forms import LabelForm, values_of
from annotation.models import Adjudication, Draft, Flag, FlagAnswer, Membership, Person, Report, Submission, Trajectory
from annotation.models.states import State, with_waiting
from annotation.records import Problem, Verdict
from annotation.views import desk
from annotation.views.answers import Request, act, act_from, page, paginate, show_task_message
from annotation.views.comparing import (
    Agreement,
    Comparison,
    compare_labels,
    describe_agreement,
    describe_effects,
    pseudonyms,
    summarise,
)
from annotation.views.discussion import load_comments, load_first_questions
from annotation.views.viewer import number, viewer

Role = Membership.Role
TONES = {queue.Kind.FLAGGED: "warn", queue.Kind.SPOT_CHECK: ""}  # of the chips; the other kinds are disputes


@page
def adjudicate(request: Request, pk: int) -> HttpResponse:
    """Show the adjudicator's queue; trajectories to judge blind with only task, kind and age."""
    submission = access.submission_for(request.user, pk, Role.ADJUDICATOR)
    kind = _read_kind(request.GET.get("kind"))
    found = queue.load_queue_of(request.user, submission, kind)
    waiting = paginate(request, found.others, 50)
    waiting.object_list = [_describe_wait(row) for row in waiting.object_list]
    decided = Adjudication.objects.filter(
        adjudicator=request.user, trajectory__submission=submission, decided_at__isnull=False
    )
    latest = _latest(decided)
    context = {
        "submission": submission,
        "mine": _with_drafts(request, [_describe_wait(row) for row in found.mine[:]]),
        "put_off": found.put_off[:],
        "waiting": waiting,
        "total": found.kinds.total(),
        "kinds": _list_kinds(found.kinds, kind),
        "kind": kind,
        "decided": latest,
        "draws": progress.load_draws(submission),
        "unanswered": _find_unanswered(request.user, submission) if latest else [],
    }
    context |= load_first_questions(request, submission) | {"may_ask": submission.frozen_at is None}
    return render(request, "annotation/adjudicate.html", context)


def _find_unanswered(person: Person, submission: Submission) -> QuerySet[Flag]:
    """Return flags without an answer on trajectories that the person decided."""
    decided = Adjudication.objects.filter(adjudicator=person, decided_at__isnull=False).values("trajectory")
    later = FlagAnswer.objects.filter(trajectory=OuterRef("trajectory"), answered_at__gte=OuterRef("flagged_at"))
    flags = Flag.objects.filter(~Exists(later), trajectory__in=decided, trajectory__submission=submission)
    return flags.select_related("trajectory__task").order_by("flagged_at")[:50]


def _latest(decided: QuerySet[Adjudication]) -> list[Adjudication]:
    return list(decided.select_related("trajectory__task").order_by("-decided_at")[:50])


def _read_kind(value: str | None) -> queue.Kind | None:
    return queue.Kind(value) if value in queue.Kind.values else None


def _list_kinds(counts: Counter[queue.Kind], chosen: queue.Kind | None) -> list[tuple[queue.Kind, int, bool]]:
    """Return the kinds in the queue, each with its number and whether the list is filtered by it."""
    return [(kind, counts[kind], kind == chosen) for kind in queue.Kind if counts[kind] or kind == chosen]


def _describe_wait(row: Any) -> Any:
    """Add to a row how long it has waited, and the tone of its chip."""
    row.age, row.tone = format_age(row.since, timezone.now()), TONES.get(row.kind, "bad")
    return row


def _with_drafts(request: Request, rows: list[Any]) -> list[Any]:
    drafts = Draft.objects.filter(author=request.user, trajectory__in=rows)
    saved = dict(drafts.values_list("trajectory", "saved_at"))
    for row in rows:
        row.draft_at = saved.get(row.pk)
        row.draft_age = format_age(row.draft_at, timezone.now()) if row.draft_at else ""
    return rows


def format_age(since: datetime, now: datetime) -> str:
    """Format an age: under 1 min, 12 min, 3 h, 2 d."""
    minutes = int((now - since).total_seconds() // 60)
    if minutes < 1:
        return "under 1 min"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} d"


@act
def draw(request: Request, pk: int) -> HttpResponse:
    submission = access.submission_for(request.user, pk, Role.ADJUDICATOR)
    made = operations.draw_spot_checks(request.user, submission)
    messages.success(request, f"Drew {len(made.drawn)} of {len(made.population)} unanimous trajectories.")
    return redirect("adjudicate", pk)


@act
def open_next(request: Request, pk: int) -> HttpResponse:
    """Open the hardest trajectory in the queue, only of the posted ``kind`` if there is one."""
    submission = access.submission_for(request.user, pk, Role.ADJUDICATOR)
    parked.submit_due(submission)
    return _open_next(request, submission, _read_kind(request.POST.get("kind")))


def _open_next(request: Request, submission: Submission, kind: queue.Kind | None = None) -> HttpResponse:
    trajectory = operations.open_next(request.user, submission, kind)
    if trajectory is not None:
        return redirect("adjudication", trajectory.pk)
    if kind:  # the page lists every kind
        messages.info(request, "No trajectories of this kind are waiting.")
    return redirect("adjudicate", submission.pk)


@page
def adjudication(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    if request.htmx:
        return desk.step_partial(request, found)
    return _render_desk(request, found)


@act
def open_one(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    workflow.open_adjudication(request.user, found, request.POST.get("reason", ""))
    return redirect("adjudication", pk)


@act_from("adjudication")
def decide(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    form = LabelForm.from_post(request.POST, criterion=True)
    try:
        workflow.decide(request.user, found, form.valid_content())
    except workflow.Incomplete as incomplete:
        return _render_desk(request, found, refused=incomplete.problems, status=400)
    show_task_message(request, "Trajectory decided: {}", found.task)
    if request.POST.get("then") == "next":
        return _open_next(request, found.submission)
    return redirect("adjudication", pk)


@act
def leave(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    workflow.leave_adjudication(request.user, found)
    show_task_message(request, "Trajectory returned to the queue. Your draft is saved: {}", found.task)
    return redirect("adjudicate", found.submission_id)


@act_from("adjudication")
def put_off(request: Request, pk: int) -> HttpResponse:
    """Save the posted form as the draft, and put the trajectory off for a day."""
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    saved = desk.save_draft(request, found, Role.ADJUDICATOR, reverse("adjudication", args=[pk]))
    if saved.status_code == 409:
        return saved
    until = workflow.put_off_adjudication(request.user, found)
    show_task_message(request, f"Put off until {until:%Y-%m-%d %H:%M} UTC: {{}}", found.task)
    return redirect("adjudicate", found.submission_id)


@act
def answer_flags(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    workflow.answer_flags(request.user, found, request.POST.get("answer", ""))
    messages.success(request, "Answer sent.")
    return redirect(f"{reverse('adjudication', args=[pk])}?step={number(request.POST.get('step')) or 0}")


@act
def draft(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    return desk.save_draft(request, found, Role.ADJUDICATOR, reverse("adjudication", args=[pk]))


@act
def report(request: Request, pk: int) -> HttpResponse:
    """Send a report to the maintainer; a script gets only the part of the page with the reports."""
    found = access.trajectory_for(request.user, pk, Role.ADJUDICATOR)
    if request.POST.get("kind") not in Report.Kind.values:
        raise BadRequest("This kind of report does not exist.")
    workflow.report(request.user, found, Report.Kind(request.POST["kind"]), request.POST.get("note", ""))
    if request.htmx:
        return render(request, "annotation/_reports.html", {"trajectory": found} | _load_reports(request, found))
    messages.success(request, "Report sent to the maintainer.")
    return redirect(f"{reverse('adjudication', args=[pk])}?step={number(request.POST.get('step')) or 0}")


def _load_reports(request: Request, trajectory: Trajectory) -> dict[str, Any]:
    """Return each kind of report, with the question of its form and the person's own report."""
    sent = {report.kind: report for report in trajectory.reports.filter(reporter=request.user)}
    asks = [
        (Report.Kind.GUIDELINE_UNCLEAR, "What is unclear, and how can it be read?"),
        (Report.Kind.TASK_OUTDATED, "What does the task ask for that no longer exists?"),
    ]
    return {"reports": [(kind, question, sent.get(kind)) for kind, question in asks]}


def _render_desk(
    request: Request, trajectory: Trajectory, refused: list[Problem] | None = None, status: int = 200
) -> HttpResponse:
    adjudications = list(trajectory.adjudications.prefetch_related("findings").order_by("revision"))
    undecided = next((a for a in adjudications if a.decided_at is None), None)
    decided = [a for a in adjudications if a.decided_at is not None]
    mine = undecided if undecided and undecided.adjudicator_id == request.user.pk else None
    shown = viewer(request, trajectory, address=reverse("adjudication", args=[trajectory.pk]) + "?")
    points = list(workflow.key_points_of(trajectory))
    asked = workflow.asked_of(trajectory, Role.ADJUDICATOR)
    kept = Draft.objects.filter(trajectory=trajectory, author=request.user).first()
    context: dict[str, Any] = {
        "trajectory": trajectory,
        "submission": trajectory.submission,
        "viewer": shown,
        "mine": mine,
        "put_off_until": mine.put_off_until if mine and queue.is_put_off(mine.put_off_until) else None,
        "elsewhere": undecided is not None and mine is None,
        "final": trajectory.submission.frozen_at is not None,
        "answerable": trajectory.submission.frozen_at is None,
        "draft": kept,
        "phrases": access.phrases_of(request.user),
        "folded": request.COOKIES.get("labels") == "folded",
    }
    context |= (
        _load_standing(trajectory)
        | _load_reports(request, trajectory)
        | _compare_labels(request, trajectory, mine, decided)
        | load_comments(request, trajectory)
    )
    comparison = context.get("comparison") if mine else None
    agreed = comparison.agreed_findings | comparison.majority_process if comparison else {}
    start = kept.content if kept else values_of(decided[-1]) if decided else agreed
    context["contested_steps"] = comparison.contested_steps if comparison else []
    context["prefilled"] = bool(agreed) and start is agreed
    context |= desk.form_context(request.POST if refused is not None else start, points, asked, refused)
    context |= desk.load_rules(trajectory.task.text)
    return render(request, "annotation/adjudication.html", context, status=status)


def _load_standing(trajectory: Trajectory) -> dict[str, Any]:
    """Load the state of the trajectory in the protocol, and why it is in the queue."""
    row = with_waiting(Trajectory.objects.filter(pk=trajectory.pk)).get()
    kind = queue.find_kind(row)
    return {"state": State(row.state), "waits": kind, "changeable": row.state == State.ADJUDICATED}


def _compare_labels(
    request: Request, trajectory: Trajectory, mine: Adjudication | None, decided: list[Adjudication]
) -> dict[str, Any]:
    """Return the labels and the effect of a decision, if the person may see them; else whether it is judged blind."""
    names = pseudonyms(trajectory)
    decisions = [(names[a.adjudicator_id], summarise(a)) for a in reversed(decided)]
    if not access.may_see_labels(request.user, trajectory):
        return {"decisions": decisions, "blind": access.judged_blind(trajectory)}
    comparison = compare_labels(access.labels_for(request.user, trajectory), trajectory, measured=True)
    final = decided[-1].verdict if decided else None
    before = None if final is None else Verdict(final)
    return {
        "decisions": decisions,
        "blind": False,
        "comparison": comparison,
        "effects": describe_effects(comparison, before) if mine else None,
        "agreement": _describe_agreement(request, comparison, decided) if not mine else None,
        "asked_again": trajectory.reopenings.order_by("-revision").first() if decided else None,
    }


def _describe_agreement(request: Request, comparison: Comparison, decided: list[Adjudication]) -> Agreement | None:
    if not decided:
        return None
    return describe_agreement(comparison, decided[-1], own=decided[-1].adjudicator_id == request.user.pk)
