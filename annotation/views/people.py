"""The people of a submission, for its maintainer: adding, inviting, deactivating, letting back in."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from annotation import access, progress, workflow
from annotation.forms import InvitationForm, MemberForm
from annotation.models import Membership, Person, Submission
from annotation.views.answers import Request, act, page
from annotation.workflow import passwords

Role = Membership.Role


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
    """Create a link for a person who has not joined yet, or (operators only) has forgotten the password."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    access.require_creator(request.user)
    person = _member(found, person_pk).person
    if person.erased_at is not None:
        raise workflow.Conflict("This person was erased and cannot take part again.")
    if not passwords.may_create_link(request.user, person):
        raise workflow.Conflict(f"{person} has already joined. Ask an operator to create a link for a new password.")
    return _people(request, found, invited=person, link=_join_link(request, person))


@act
def deactivate(request: Request, pk: int, person_pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    member = workflow.deactivate_member(request.user, found, _member(found, person_pk).person)
    messages.success(request, f"{member.person} no longer takes part; what they held is back in the queue.")
    return redirect("people", pk)


@act
def reactivate(request: Request, pk: int, person_pk: int) -> HttpResponse:
    """Let a former member back in, with the role and the pseudonym they had."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    former = _member(found, person_pk)
    member = workflow.add_member(request.user, found, former.person, Role(former.role))
    messages.success(request, f"{member.person} takes part again as {member.role}, {member.pseudonym}.")
    return redirect("people", pk)


def _member(found: Submission, person_pk: int) -> Membership:
    member = found.memberships.select_related("person").filter(person=person_pk).first()
    if member is None:
        raise Http404("No such member.")
    return member


def _join_link(request: Request, person: Person) -> str:
    uid = urlsafe_base64_encode(force_bytes(person.pk))
    token = passwords.create_link_token(request.user, person)
    return request.build_absolute_uri(reverse("join", args=[uid, token]))


def _people(request: Request, found: Submission, status: int = 200, **context: Any) -> HttpResponse:
    members = found.memberships.select_related("person").order_by("role", "joined_at", "pk")
    seen = progress.find_last_signs(found)
    member_form = context.setdefault("member_form", MemberForm())
    others = member_form.fields["person"].queryset.exclude(memberships__submission=found)
    member_form.fields["person"].queryset = others
    context.setdefault("invitation_form", InvitationForm())
    context |= {
        "submission": found,
        "members": [
            (member, seen.get(member.person_id), passwords.may_create_link(request.user, member.person))
            for member in members
        ],
        "may_invite": access.may_create_submissions(request.user),
    }
    response = render(request, "annotation/people.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
