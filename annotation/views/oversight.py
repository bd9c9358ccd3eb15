"""The maintainer's pages on progress, quality, reports and settings. No verdict before the freeze."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db.models import F, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect, render

from annotation import access, clock, progress, quality, workflow
from annotation.forms import VERDICT_NAMES, MatrixForm, SettingsForm
from annotation.models import Membership, Submission
from annotation.models.states import State, final_verdict
from annotation.records import Verdict
from annotation.task_versions import TaskVersions
from annotation.views.answers import Request, act, page, paginate

Role = Membership.Role

# --- progress --------------------------------------------------------------------------------------------------------


@page
def submission(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, *access.READERS)
    members = list(found.memberships.order_by("joined_at", "pk"))
    names = {member.person_id: member.pseudonym for member in members}
    done = progress.count_done([pk])[pk]
    needed = done["trajectories"] * found.required_labels
    first = found.events.filter(sequence=0).values("hash")
    context = {
        "submission": found,
        "progress": done | {"needed": needed},
        "standing": progress.count_states(found, done["trajectories"]),
        "at_work": progress.find_active_people(found, names),
        "minutes": int(progress.AT_WORK.total_seconds() // 60),
        "pace": progress.measure_pace(found, names, needed - done["labels"]),
        "draws": progress.load_draws(found),
        "head": found.events.annotate(chain=Subquery(first)).order_by("-sequence").first(),
    }
    return render(
        request, "annotation/submission.html", context | _matrix(request, found, members, done["trajectories"])
    )


def _matrix(request: Request, found: Submission, members: list[Membership], total: int) -> dict[str, Any]:
    annotators = {m.pseudonym: m.person_id for m in members if m.role == Role.ANNOTATOR}
    states = [state.value for state in State] + [progress.OPENED]
    form = MatrixForm(request.GET, states, progress.SLOT_STATES, annotators)
    chosen: dict[str, Any] = form.chosen()
    wanted = {**chosen, "who": annotators[chosen["who"]]} if "who" in chosen else chosen
    shown = paginate(request, progress.filter_matrix(found, **wanted), 100, None if chosen else total)
    rows = _with_slots(found, shown, members)
    versions = TaskVersions(found.benchmark, [row.task.external_id for row in rows])
    return {
        "filters": form,
        "chosen": chosen,
        "slots": range(1, found.required_labels + 1),
        "page": shown,
        "matrix": [_matrix_row(found, row, versions) for row in rows],
    }


def _with_slots(found: Submission, rows: Any, members: list[Membership]) -> list[Any]:
    rows = list(rows)
    names = {member.person_id: member.pseudonym for member in members}
    slots: dict[int, dict[int, tuple[str, str]]] = {}
    now = clock.now()
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


def _matrix_row(found: Submission, row: Any, versions: TaskVersions) -> dict[str, Any]:
    outdated = {problem.code for problem in versions.find_outdated(row.task)}
    verdict = final_verdict(row) if found.frozen_at is not None else None
    return {
        "trajectory": row,
        "outdated": bool(outdated),
        "warnings": [warning for warning in row.warnings if warning["code"] not in outdated],
        "cells": [row.slots.get(slot, ("open", "")) for slot in range(1, found.required_labels + 1)],
        "verdict": VERDICT_NAMES[Verdict(verdict)] if verdict is not None else "",
    }


# --- quality ---------------------------------------------------------------------------------------------------------


@page
def annotator_quality(request: Request, pk: int) -> HttpResponse:
    """Show figures of each annotator that reveal no single verdict; see docs/decisions/0007."""
    found = access.submission_for(request.user, pk, *access.READERS)
    report = quality.report(found)
    context = {
        "submission": found,
        "report": report,
        "enough": quality.ENOUGH,
        "page": paginate(request, report.hints, 50),
    }
    return render(request, "annotation/quality.html", context)


# --- reports ---------------------------------------------------------------------------------------------------------


@page
def reports(request: Request, pk: int) -> HttpResponse:
    """List the reports of annotators and adjudicators, open ones first, the longest waiting on top."""
    return _reports(request, access.submission_for(request.user, pk, *access.READERS))


def _reports(request: Request, found: Submission) -> HttpResponse:
    rows = access.reports_of(request.user, found).select_related("trajectory__task", "settled_by")
    shown = paginate(request, rows.order_by(F("settled_at").desc(nulls_first=True), "reported_at", "pk"), 50)
    names = dict(found.memberships.values_list("person_id", "pseudonym"))
    entries = [(row, names.get(row.reporter_id, ""), names.get(row.settled_by_id, "")) for row in shown]
    return render(request, "annotation/reports.html", {"submission": found, "page": shown, "entries": entries})


@act
def settle_report(request: Request, pk: int) -> HttpResponse:
    found = access.report_for(request.user, pk)
    workflow.settle_report(request.user, found, request.POST.get("answer", ""))
    messages.success(request, "Report settled.")
    return redirect("reports", found.trajectory.submission_id)


# --- settings --------------------------------------------------------------------------------------------------------


@page
def settings(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    return _settings(request, found, _settings_form(request, found, None))


@act
def configure(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    form = _settings_form(request, found, request.POST)
    if not form.is_valid():
        return _settings(request, found, form, status=400)
    changes = form.changes()
    try:
        workflow.configure(request.user, found, **changes)
    except workflow.Incomplete as incomplete:
        for problem in incomplete.problems:
            form.add_error(problem.where, problem.message)
        return _settings(request, found, form, status=400)
    messages.success(request, "Settings saved." if changes else "Nothing was changed.")
    return redirect("submission-settings", pk)


def _settings_form(request: Request, found: Submission, data: Mapping[str, Any] | None) -> SettingsForm:
    sets = access.submissions_maintained_by(request.user).filter(practice=True).exclude(pk=found.pk)
    return SettingsForm(data, found, sets, workflow.find_fixed_settings(found))


def _settings(request: Request, found: Submission, form: SettingsForm, status: int = 200) -> HttpResponse:
    context = {"submission": found, "form": form, "frozen": found.frozen_at is not None}
    return render(request, "annotation/settings.html", context, status=status)
