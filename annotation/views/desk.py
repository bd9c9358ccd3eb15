"""Shared parts of the annotator's and the adjudicator's desk, the page with a trajectory and a label form."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers

from annotation import access, clock, protocol, queue, workflow
from annotation.completeness import Asked
from annotation.forms import FINDING_FIELD, VERDICT_NAMES, LabelForm, values_of
from annotation.models import Assignment, Draft, Flag, KeyPoint, Label, Membership, Person, Report, Step, Trajectory
from annotation.records import Problem
from annotation.views.answers import Request, is_scripted
from annotation.views.comparing import Comparison, compare_labels, summarise
from annotation.views.discussion import load_comments
from annotation.views.viewer import number, viewer

UNDONE = "undone right after submitting"  # preset reason of the revision that undoes a submitted label


def load_rules(task: str = "") -> dict[str, Any]:
    """Load the protocol's texts; ``criteria`` are (term, words of the ``task`` that match it), matching ones first."""
    touched = protocol.wording(task)
    criteria = [(term, touched.get(term.code, ())) for term in protocol.CRITERIA]
    return {
        "criteria": sorted(criteria, key=lambda pair: not pair[1]),
        "touched": len(touched),
        "failure_types": protocol.FAILURE_TYPES,
        "causes": protocol.CAUSES,
        "verdict_rules": [(VERDICT_NAMES[verdict], rule) for verdict, rule in protocol.VERDICT_RULES.items()],
    }


def step_partial(
    request: Request, trajectory: Trajectory, address: str | None = None, redacting: bool = False
) -> HttpResponse:
    """Return only the viewer, at the requested step; it shows no labels or notes."""
    shown = viewer(request, trajectory, address, redacting)
    response = render(request, "annotation/_viewer.html", {"viewer": shown})
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return response


def render_desk(
    request: Request, trajectory: Trajectory, refused: list[Problem] | None = None, status: int = 200
) -> HttpResponse:
    """Render the annotator's desk. ``refused`` has the problems of a rejected form, which stays as typed."""
    facts = _load_facts(request.user, trajectory)
    assignment = trajectory.assignments.filter(annotator=request.user).first()
    labelled = assignment is not None and assignment.lease_expires_at is None
    draft = Draft.objects.filter(trajectory=trajectory, author=request.user).first()
    points, proposals = _load_key_points(request.user, trajectory)
    label = summarise(_find_own_label(request.user, trajectory)) if labelled else None
    # After the second stage or a draw the label is fixed. An opened adjudication must not be visible here.
    stays = labelled and (hasattr(label, "informed") or workflow.was_in_draw(trajectory))
    revising = labelled and (refused is not None or "revise" in request.GET) and not stays
    undoing = revising and request.GET.get("revise") == "undo"
    mode = "?revise=undo&" if undoing else "?revise&" if revising else "?"
    address = reverse("trajectory", args=[trajectory.pk]) + mode
    context = {
        "answers": access.flag_answers_of(request.user, trajectory.submission).filter(trajectory=trajectory)
        if facts["flagged"]
        else [],
        "trajectory": trajectory,
        "submission": trajectory.submission,
        "viewer": viewer(request, trajectory, address),
        "facts": facts,
        "assignment": assignment,
        "expired": _is_expired(assignment),
        "label": label,
        "revising": revising,
        "stays": stays,
        "undoing": undoing,
        "proposals": proposals,
        "draft": draft,
        "parked": assignment is not None and assignment.submit_at is not None,
        "final": trajectory.submission.frozen_at is not None,
        "comparison": _compare_opened(request.user, trajectory) if labelled else None,
        "phrases": access.phrases_of(request.user),
    }
    start = ({"reason": UNDONE} if undoing else {}) | (draft.content if draft else values_of(label))
    data = request.POST if refused is not None else start
    asked = Asked(
        tuple(point.pk for point in points),
        facts["count"],
        trajectory.submission.asks_attempt,
        trajectory.submission.process_labels,
        reason=revising,
    )
    context |= form_context(data, points, asked, refused) | load_rules(trajectory.task.text)
    context |= load_comments(request, trajectory)
    return render(request, "annotation/desk.html", context, status=status)


def _is_expired(assignment: Assignment | None) -> bool:
    until = assignment.lease_expires_at if assignment else None
    return until is not None and until <= clock.now()


def form_context(
    data: Any, points: list[KeyPoint], asked: Asked, refused: list[Problem] | None = None
) -> dict[str, Any]:
    form = LabelForm(_drop_lost_boxes(data, points), asked)
    missing = form.missing()
    if refused is not None:
        form.add_problems(refused)
    else:
        form.errors.clear()
    return {"form": form, "points": form.rows(points), "missing": missing, "refused": refused is not None}


def _drop_lost_boxes(data: Any, points: list[KeyPoint]) -> Any:
    """Return the form's data without the boxes of retired key points, as their findings are not in the form either."""
    known = {None, *(point.text for point in points)}
    try:
        boxes = json.loads(data.get("boxes") or "[]")
        kept = [box for box in boxes if box["key_point"] in known or not isinstance(box["key_point"], str)]
    except (ValueError, TypeError, KeyError, RecursionError):
        return data  # the form says what is wrong
    if len(kept) == len(boxes):
        return data
    data = data.copy()
    data["boxes"] = json.dumps(kept) if kept else ""
    return data


def _load_facts(person: Person, trajectory: Trajectory) -> dict[str, Any]:
    """Load the number of steps, own flag and report, and own progress, in one query."""
    here = Q(trajectory=OuterRef("pk"))
    own = Assignment.objects.filter(queue.SUBMITTED, annotator=person, trajectory__submission=OuterRef("submission"))
    everything = Trajectory.objects.filter(submission=OuterRef("submission"))
    facts: Any = (
        Trajectory.objects.filter(pk=trajectory.pk)
        .annotate(
            count=_count(Step.objects.filter(here), "trajectory"),
            flagged=Exists(Flag.objects.filter(here, annotator=person)),
            reported=Exists(Report.objects.filter(here, reporter=person)),
            done=_count(own, "trajectory__submission"),
            # Positions run from 0 without gaps: the last one gives the total without counting rows.
            total=Subquery(everything.order_by("-position").values("position")[:1]) + 1,
        )
        .values("count", "flagged", "reported", "done", "total")
        .get()
    )
    return dict(facts)


def _count(rows: QuerySet[Any], group: str) -> Coalesce:
    return Coalesce(Subquery(rows.order_by().values(group).annotate(n=Count("pk")).values("n")), 0)


def _load_key_points(person: Person, trajectory: Trajectory) -> tuple[list[KeyPoint], list[KeyPoint]]:
    current = KeyPoint.objects.filter(task=trajectory.task_id, retired_at__isnull=True)
    shown = list(current.filter(Q(accepted_at__isnull=False) | Q(proposed_by=person)))
    return [p for p in shown if p.accepted_at], [p for p in shown if not p.accepted_at]


def _find_own_label(person: Person, trajectory: Trajectory) -> Label | None:
    return access.own_labels(person, trajectory).order_by("-revision").prefetch_related("findings").first()


def _compare_opened(person: Person, trajectory: Trajectory) -> Comparison | None:
    if trajectory.submission.opened_at is None or not access.may_see_labels(person, trajectory):
        return None
    return compare_labels(access.labels_for(person, trajectory), trajectory)


# --- drafts -----------------------------------------------------------------------------------------------------------


def save_draft(request: Request, trajectory: Trajectory, role: Membership.Role, back: str) -> HttpResponse:
    """Save the posted form as the person's draft and list what a decision in their ``role`` still needs."""
    revising = "reason" in request.POST
    asked = replace(workflow.asked_of(trajectory, role), reason=revising)
    form = LabelForm(request.POST, asked)
    version = number(request.POST.get("version")) or 0
    script = is_scripted(request)
    try:
        draft = workflow.save_draft(request.user, trajectory, form.typed(), version, revising=revising)
    except workflow.StaleDraft as stale:
        return _stale(request, stale, form, script, back)
    if not script:
        messages.success(request, "Draft saved.")
        return redirect(f"{back}?step={number(request.POST.get('step')) or 0}")
    missing = form.missing()
    return JsonResponse(
        {
            "version": draft.version,
            "saved_at": draft.saved_at.isoformat(),
            "missing": [{"where": problem.where, "message": problem.message} for problem in missing],
        }
    )


def _stale(request: Request, stale: workflow.StaleDraft, form: LabelForm, script: bool, back: str) -> HttpResponse:
    here: dict[str, Any] = form.typed()
    there: dict[str, Any] = stale.current.content
    if script:
        body = {"message": str(stale), "version": stale.current.version, "here": here, "there": there}
        return JsonResponse(body, status=409)
    rows = [(describe_field(name, form), here.get(name, ""), there.get(name, "")) for name in sorted({*here, *there})]
    return render(request, "annotation/stale_draft.html", {"rows": rows, "back": back}, status=409)


def describe_field(name: str, form: LabelForm) -> str:
    """Return the readable name of a field; key points by their number on the desk."""
    match = FINDING_FIELD.match(name)
    if match is None:
        return name.replace("_", " ").capitalize()
    pk = int(match[1])
    number = form.asked.key_points.index(pk) + 1 if pk in form.asked.key_points else "no longer available"
    return f"Step of key point {number}" if name.endswith("_step") else f"Key point {number}"
