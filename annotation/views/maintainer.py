"""The maintainer's pages of submissions: list, view, freeze, open, reopen, read the events."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from annotation import access, blinding, chain_checks, mail, operations, progress, training, workflow
from annotation.formats.printable import counted
from annotation.forms import InvitationForm, MemberForm
from annotation.models import Event, Membership, Submission, Trajectory
from annotation.models.states import FINAL, State, state_of
from annotation.task_versions import TaskVersions
from annotation.views import desk
from annotation.views.answers import Request, act, filter_archived, page, paginate, show_task_message
from annotation.views.comparing import compare_labels, pseudonyms, summarise
from annotation.views.discussion import load_comments
from annotation.views.viewer import viewer
from annotation.workflow import passwords

Role = Membership.Role


@page
def submissions(request: Request) -> HttpResponse:
    """List the submissions that the person maintains, with their progress; ?archived=1 lists the archived ones."""
    rows, archived = filter_archived(request, access.submissions_maintained_by(request.user))
    shown = paginate(request, rows, 50)
    done = progress.count_done([row.pk for row in shown])
    for row in shown:
        row.progress = done[row.pk] | {"needed": done[row.pk]["to_label"] * row.required_labels}
    context = {"rows": shown, "may_upload": access.may_create_submissions(request.user)} | archived
    return render(request, "annotation/submissions.html", context)


@page
def trajectory(request: Request, pk: int) -> HttpResponse:
    """Show a trajectory to its maintainer: always its steps, and its labels once it is frozen."""
    found = access.trajectory_for(request.user, pk, *access.READERS)
    redacting = not (found.submission.audited or found.submission.practice)
    if request.htmx:
        return desk.step_partial(request, found, redacting=redacting)
    state, seen = state_of(found), access.may_see_labels(request.user, found)
    names = pseudonyms(found) if seen else {}
    outdated = TaskVersions(found.task.benchmark, [found.task.external_id]).find_outdated(found.task)
    decided = found.adjudications.filter(decided_at__isnull=False).prefetch_related("findings")
    context = {
        "trajectory": found,
        "submission": found.submission,
        "viewer": viewer(request, found, redacting=redacting),
        "state": state,
        "reopenable": state in FINAL and found.submission.frozen_at is None and not found.submission.audited,
        "given_back": _count_releases(found, state),
        "comparison": compare_labels(access.labels_for(request.user, found), found) if seen else None,
        "decisions": [(names[a.adjudicator_id], summarise(a)) for a in decided.order_by("-revision")] if seen else [],
        "key_points": workflow.key_points_of(found),
        "outdated": outdated,
        "warnings": [warning for warning in found.warnings if warning["code"] not in {each.code for each in outdated}],
    }
    return render(request, "annotation/trajectory.html", context | load_comments(request, found))


def _count_releases(found: Trajectory, state: State) -> int:
    """Count the annotators who declined it, if it can be offered again."""
    if state is not State.IN_REVIEW or found.submission.audited:
        return 0
    return found.releases.filter(lifted_at__isnull=True).count()


@act
def draw(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    made = operations.draw_spot_checks(request.user, found)
    messages.success(request, f"Drew {len(made.drawn)} of {len(made.population)} unanimous trajectories.")
    return redirect("submission", pk)


@act
def freeze(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    operations.freeze(request.user, found)
    messages.success(request, "Submission frozen.")
    return redirect("submission", pk)


@act
def open_results(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    workflow.open_results(request.user, found)
    messages.success(request, "The annotators can now see all labels.")
    return redirect("submission", pk)


@act
def reopen_submission(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    workflow.reopen_submission(request.user, found, request.POST.get("reason", ""))
    messages.success(request, "Submission unfrozen.")
    return redirect("submission", pk)


@act
def reopen_trajectory(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
    workflow.reopen(request.user, found, request.POST.get("reason", ""))
    show_task_message(request, "Trajectory reopened for an adjudicator: {}", found.task)
    return redirect("submission-trajectory", pk)


@act
def offer_again(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
    workflow.offer_again(request.user, found, request.POST.get("reason", ""))
    show_task_message(request, "Trajectory offered again: {}", found.task)
    return redirect("submission-trajectory", pk)


# --- events ----------------------------------------------------------------------------------------------------------


@page
def events(request: Request, pk: int) -> HttpResponse:
    """Show the events, newest first, by pseudonym, and whether the chain of hashes is intact."""
    found = access.submission_for(request.user, pk, *access.READERS)
    shown = paginate(request, found.events.order_by("-sequence"), 100)
    look = chain_checks.check_shown(found, list(shown))
    context = {
        "submission": found,
        "look": look,
        "page": shown,
        "rows": [(event, _describe_payload(event, found)) for event in shown],
    }
    return render(request, "annotation/events.html", context)


def _describe_payload(event: Event, submission: Submission) -> list[tuple[str, str]]:
    """Return names and values of a payload; settings as old → new, if the event (maybe from a bundle) has both."""
    said = list(blinding.visible_payload(event, submission).items())
    if event.kind != "configured" or not all(isinstance(value, list) and len(value) == 2 for _, value in said):
        return [(name.replace("_", " "), _format_value(value)) for name, value in said]
    return [(name.replace("_", " "), f"{_format_value(old)} → {_format_value(new)}") for name, (old, new) in said]


def _format_value(value: Any) -> str:
    """Format a JSON value without brackets and quotation marks."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_format_value(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_format_value, value)) or "none"
    return str(value)


# --- people -----------------------------------------------------------------------------------------------------------


@page
def people(request: Request, pk: int) -> HttpResponse:
    """Show the members; this is the only page with real names next to pseudonyms."""
    return _people(request, access.submission_for(request.user, pk, Role.MAINTAINER))


@act
def add_person(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _people(request, found, member_form=form, status=400)
    member = operations.add_member(request.user, found, form.cleaned_data["person"], form.cleaned_data["role"])
    messages.success(request, f"{member.person} joined as {member.role}, {member.pseudonym}.")
    return redirect("people", pk)


@act
def invite(request: Request, pk: int) -> HttpResponse:
    """Create an account and a membership, and show the join link, which only this response contains."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    access.require_creator(request.user)
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _people(request, found, invitation_form=form, status=400)
    member, path = operations.invite(request.user, found, **form.cleaned_data)
    link, mailed = request.build_absolute_uri(path), mail.can_mail(member.person)
    return _people(request, found, invited=member.person, link=link, mailed=mailed)


@act
def invite_again(request: Request, pk: int, person_pk: int) -> HttpResponse:
    """Create a link for a person who has not joined yet, or (operators only) has forgotten the password."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    access.require_creator(request.user)
    person = _member(found, person_pk).person
    path, mailed = operations.invite_again(request.user, person)
    link = request.build_absolute_uri(path)
    return _people(request, found, invited=person, link=link, mailed=mailed)


@act
def remind(request: Request, pk: int) -> HttpResponse:
    """Remind the annotators or the adjudicators by e-mail of everything that waits for them."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    role = Role.ADJUDICATOR if request.POST.get("role") == Role.ADJUDICATOR else Role.ANNOTATOR
    written, others = operations.remind(found, role)
    said = f"{counted(written, 'person', 'people')} reminded."
    if others:
        said += f" Not reminded: {others}. They have no work or no e-mail address, were active or reminded in the last"
        said += " day, or do not want reminders."
    messages.success(request, said)
    return redirect("submission", pk)


@act
def deactivate(request: Request, pk: int, person_pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    member = operations.deactivate(request.user, found, _member(found, person_pk).person)
    messages.success(request, f"{member.person} was deactivated. Their reserved trajectories are back in the queue.")
    return redirect("people", pk)


@act
def reactivate(request: Request, pk: int, person_pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    member = operations.reactivate(request.user, _member(found, person_pk))
    messages.success(request, f"{member.person} was reactivated as {member.role}, {member.pseudonym}.")
    return redirect("people", pk)


def _member(found: Submission, person_pk: int) -> Membership:
    member = found.memberships.select_related("person").filter(person=person_pk).first()
    if member is None:
        raise Http404("No such member.")
    return member


def _load_practices(found: Submission, members: list[Membership]) -> list[tuple[str, training.Practice]]:
    if found.practice_set_id is None:
        return []
    names = {member.person_id: member.pseudonym for member in members if member.role == Role.ANNOTATOR}
    return [(names[person], practice) for person, practice in training.load_practices(names, found).items()]


def _people(request: Request, found: Submission, status: int = 200, **context: Any) -> HttpResponse:
    members = paginate(request, found.memberships.select_related("person").order_by("role", "joined_at", "pk"), 100)
    seen = progress.find_last_signs(found)
    member_form = context.setdefault("member_form", MemberForm())
    others = member_form.fields["person"].queryset.exclude(memberships__submission=found)
    member_form.fields["person"].queryset = others
    context.setdefault("invitation_form", InvitationForm())
    context |= {
        "submission": found,
        "page": members,
        "members": [
            (member, seen.get(member.person_id), passwords.may_create_link(request.user, member.person))
            for member in members
        ],
        "practices": _load_practices(found, list(members)),
        "may_invite": access.may_create_submissions(request.user),
    }
    response = render(request, "annotation/people.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
