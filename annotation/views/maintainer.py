"""The maintainer's pages of one submission: progress, freezing, people, events. No verdict before the freeze."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from annotation import access, workflow
from annotation.forms import VERDICT_NAMES, InvitationForm, MemberForm
from annotation.models import Membership, Person, Submission, Trajectory
from annotation.models.events import first_broken
from annotation.models.states import FINAL, State, final_verdict, state_of, with_state
from annotation.records import Verdict
from annotation.views import desk
from annotation.views.answers import Request, act, page, paged
from annotation.views.comparing import compared, named, pseudonyms
from annotation.views.viewer import viewer

Role = Membership.Role
# What a maintainer may read of an event before the freeze: an annotator's note can give a label away.
HIDDEN_BEFORE_FREEZE = frozenset({"note", "reason"})


@page
def submissions(request: Request) -> HttpResponse:
    """Every submission that the person maintains, with how much of its review is done."""
    rows = access.submissions_maintained_by(request.user)
    shown = paged(request, rows, 50)
    progress = _progress([row.pk for row in shown])
    for row in shown:
        row.progress = progress[row.pk] | {"needed": progress[row.pk]["trajectories"] * row.required_labels}
    context = {"rows": shown, "may_upload": access.may_create_submissions(request.user)}
    return render(request, "annotation/submissions.html", context)


def _progress(submissions: list[int]) -> dict[int, dict[str, int]]:
    """Trajectories and labels that are in, by the submission's primary key."""
    counted = Trajectory.objects.filter(submission__in=submissions).order_by().values("submission")
    rows = counted.annotate(
        trajectories=Count("pk", distinct=True),
        filled=Count("assignments", filter=Q(assignments__lease_expires_at__isnull=True)),
    )
    found = {row["submission"]: {"trajectories": row["trajectories"], "labels": row["filled"]} for row in rows}
    return {pk: found.get(pk, {"trajectories": 0, "labels": 0}) for pk in submissions}


@page
def submission(request: Request, pk: int) -> HttpResponse:
    """The matrix task x slot: who has filled or holds which slot, by pseudonym, and the state of each trajectory."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    rows = with_state(found.trajectories.select_related("task"))
    counts = {State(row["state"]): row["n"] for row in rows.order_by().values("state").annotate(n=Count("pk"))}
    chosen = next((state for state in State if state.value == request.GET.get("state")), None)
    shown = paged(request, rows.filter(state=chosen.value) if chosen else rows, 100)
    progress = _progress([pk])[pk]
    context = {
        "submission": found,
        "progress": progress | {"needed": progress["trajectories"] * found.required_labels},
        "counts": [(state, counts[state]) for state in State if state in counts],
        "final_count": sum(counts.get(state, 0) for state in FINAL),
        "chosen": chosen,
        "slots": range(1, found.required_labels + 1),
        "page": shown,
        "matrix": [_matrix_row(found, row) for row in _with_slots(found, shown)],
        "draws": found.spot_check_draws.order_by("number"),
    }
    return render(request, "annotation/submission.html", context)


def _with_slots(found: Submission, rows: Any) -> list[Any]:
    rows = list(rows)
    names = dict(found.memberships.values_list("person_id", "pseudonym"))
    slots: dict[int, dict[int, tuple[str, str]]] = {}
    now = timezone.now()
    for row in found.trajectories.filter(pk__in=[r.pk for r in rows]).values_list(
        "pk", "assignments__slot", "assignments__annotator", "assignments__lease_expires_at"
    ):
        trajectory, slot, person, lease = row
        if slot is not None:
            state = "filled" if lease is None else "held" if lease > now else "expired"
            slots.setdefault(trajectory, {})[slot] = (state, names[person])
    for row in rows:
        row.slots = slots.get(row.pk, {})
    return rows


def _matrix_row(found: Submission, row: Any) -> dict[str, Any]:
    verdict = final_verdict(row) if found.frozen_at is not None else None
    return {
        "trajectory": row,
        "cells": [row.slots.get(slot, ("open", "")) for slot in range(1, found.required_labels + 1)],
        "verdict": VERDICT_NAMES[Verdict(verdict)] if verdict is not None else "",
    }


@page
def trajectory(request: Request, pk: int) -> HttpResponse:
    """A trajectory as its maintainer sees it: the steps always, what was said about it once it is frozen."""
    found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
    if request.htmx:
        return desk.step_partial(request, found)
    state, seen = state_of(found), access.may_see_labels(request.user, found)
    names = pseudonyms(found) if seen else {}
    decided = found.adjudications.filter(decided_at__isnull=False).prefetch_related("findings__key_point")
    context = {
        "trajectory": found,
        "submission": found.submission,
        "viewer": viewer(request, found),
        "state": state,
        "reopenable": state in FINAL and found.submission.frozen_at is None,
        "comparison": compared(access.labels_for(request.user, found), found) if seen else None,
        "decisions": [(names[a.adjudicator_id], named(a)) for a in decided.order_by("-revision")] if seen else [],
        "key_points": workflow.key_points_of(found),
    }
    return render(request, "annotation/trajectory.html", context)


@act
def draw(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    made = workflow.draw_spot_checks(request.user, found)
    messages.success(request, f"Drew {len(made.drawn)} of {len(made.population)} unanimous trajectories.")
    return redirect("submission", pk)


@act
def freeze(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    workflow.freeze(request.user, found)
    messages.success(request, "The submission is frozen.")
    return redirect("submission", pk)


@act
def open_results(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    workflow.open_results(request.user, found)
    messages.success(request, "The annotators may see all labels now.")
    return redirect("submission", pk)


@act
def reopen_submission(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    workflow.reopen_submission(request.user, found, request.POST.get("reason", "")[:2000])
    messages.success(request, "The submission is open again.")
    return redirect("submission", pk)


@act
def reopen_trajectory(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
    workflow.reopen(request.user, found, request.POST.get("reason", "")[:2000])
    messages.success(request, f"{found.task.external_id} waits for an adjudicator again.")
    return redirect("submission-trajectory", pk)


# --- people ----------------------------------------------------------------------------------------------------------


@page
def people(request: Request, pk: int) -> HttpResponse:
    """The only page with real names beside pseudonyms."""
    return _people(request, access.submission_for(request.user, pk, Role.MAINTAINER))


@act
def add_person(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _people(request, found, member_form=form, status=400)
    member = workflow.add_member(request.user, found, form.cleaned_data["person"], form.cleaned_data["role"])
    messages.success(request, f"{member.person} takes part as {member.role}, {member.pseudonym}.")
    return redirect("people", pk)


@act
def invite(request: Request, pk: int) -> HttpResponse:
    """Make an account and a membership, and show the link for joining; it is in this answer only."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    access.require_creator(request.user)
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _people(request, found, invitation_form=form, status=400)
    with transaction.atomic():
        person = form.invite()
        workflow.add_member(request.user, found, person, form.cleaned_data["role"])
    return _people(request, found, invited=person, link=_join_link(request, person))


@act
def invite_again(request: Request, pk: int, person_pk: int) -> HttpResponse:
    """A new link for somebody who has not joined yet."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    access.require_creator(request.user)
    person = _member(found, person_pk)
    if person.has_usable_password():
        raise workflow.Conflict(f"{person} has joined already.")
    return _people(request, found, invited=person, link=_join_link(request, person))


@act
def deactivate(request: Request, pk: int, person_pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    member = workflow.deactivate_member(request.user, found, _member(found, person_pk))
    messages.success(request, f"{member.person} no longer takes part; what they held is back in the queue.")
    return redirect("people", pk)


def _member(found: Submission, person_pk: int) -> Person:
    person = Person.objects.filter(pk=person_pk, memberships__submission=found).first()
    if person is None:
        raise Http404("No such member.")
    return person


def _join_link(request: Request, person: Person) -> str:
    uid = urlsafe_base64_encode(force_bytes(person.pk))
    return request.build_absolute_uri(reverse("join", args=[uid, default_token_generator.make_token(person)]))


def _people(request: Request, found: Submission, status: int = 200, **context: Any) -> HttpResponse:
    members = found.memberships.select_related("person").order_by("role", "joined_at", "pk")
    context.setdefault("member_form", MemberForm())
    context.setdefault("invitation_form", InvitationForm())
    context |= {"submission": found, "members": members, "may_invite": access.may_create_submissions(request.user)}
    response = render(request, "annotation/people.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


# --- events ----------------------------------------------------------------------------------------------------------


@page
def events(request: Request, pk: int) -> HttpResponse:
    """What happened, newest first, by pseudonym, and whether the chain of hashes holds."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    chain = found.events.order_by("sequence")
    shown = paged(request, found.events.order_by("-sequence"), 100)
    hidden = HIDDEN_BEFORE_FREEZE if found.frozen_at is None else frozenset()
    context = {
        "submission": found,
        "broken": first_broken(chain.iterator()),
        "page": shown,
        "rows": [(event, [item for item in event.payload.items() if item[0] not in hidden]) for event in shown],
    }
    return render(request, "annotation/events.html", context)
