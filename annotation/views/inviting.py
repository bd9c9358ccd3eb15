"""The page on which maintainers of the instance invite many people with one CSV file."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render

from annotation import access, invitations
from annotation.formats.spreadsheets import file_name
from annotation.forms import GIVEN_ROLES, PeopleFileForm
from annotation.views.answers import Request, act, page

SHOWN = 20  # submissions whose numbers the page lists


@page
def invite_many(request: Request) -> HttpResponse:
    return _show(request, PeopleFileForm())


@act
def upload_people(request: Request) -> HttpResponse:
    """Invite everybody in the file, or show all of its problems."""
    access.require_creator(request.user)
    form = PeopleFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _show(request, form, status=400)
    file, dry_run = form.cleaned_data["people"], form.cleaned_data["dry_run"]
    report = invitations.invite_all(request.user, file.read(), file.name, dry_run=dry_run)
    return _show(request, PeopleFileForm(), report, dry_run, 400 if report.problems else 200)


@act
def invitation_links(request: Request) -> HttpResponse:
    """Return links for the people of the form who have not joined, as CSV; others are left out."""
    access.require_creator(request.user)
    asked = [int(value) for value in request.POST.getlist("person") if value.isdecimal() and len(value) < 10]
    people = invitations.find_invited(request.user, asked)
    text = invitations.write_links(request.user, people, request.build_absolute_uri("/").rstrip("/"))
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file_name("invitations")}"'
    return response


def _show(
    request: Request,
    form: PeopleFileForm,
    report: invitations.Report | None = None,
    dry_run: bool = False,
    status: int = 200,
) -> HttpResponse:
    access.require_creator(request.user)
    maintained = access.submissions_maintained_by(request.user).order_by("-pk")
    context = {
        "form": form,
        "report": report,
        "dry_run": dry_run,
        "days": settings.PASSWORD_RESET_TIMEOUT // 86_400,
        "roles": [role for role, _ in GIVEN_ROLES],
        "submissions": maintained[:SHOWN],
        "more": max(maintained.count() - SHOWN, 0),
    }
    return render(request, "annotation/invite_many.html", context, status=status)
