"""The maintainer's pages on progress, quality, reports and settings. No verdict before the freeze."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings as django_settings
from django.contrib import messages
from django.db.models import F, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from annotation import access, clock, progress, quality, queue, stages, state_snapshots, training, workflow
from annotation.forms import VERDICT_NAMES, HoursForm, MatrixForm
from annotation.models import Membership, Submission
from annotation.models.states import State, final_verdict
from annotation.records import Verdict
from annotation.settings_form import SettingsForm
from annotation.stages import Stage
from annotation.task_versions import TaskVersions
from annotation.views.answers import Request, act, page, paginate

Role = Membership.Role
MOST_QUESTIONS = 20  # before the reports; others follow when these are answered

# --- progress --------------------------------------------------------------------------------------------------------


@page
def submission(request: Request, pk: int) -> HttpResponse:
    """Show the path of a submission; an audited one has none."""
    found = access.submission_for(request.user, pk, *access.READERS)
    if found.audited or not request.GET.keys().isdisjoint({*MatrixForm.base_fields, "page"}):
        # The table of tasks was on this page, and bookmarks have its filters.
        asked = f"?{request.GET.urlencode()}" if request.GET else ""
        return redirect(reverse("submission-tasks", args=[pk]) + asked)
    members = _members(found)
    names = {member.person_id: member.pseudonym for member in members}
    context = _progress(found)
    done, standing = context["progress"], context["standing"]
    path = stages.load_path(found, done["to_label"], standing, members)
    context |= {
        "path": path,
        "stuck": stages.find_stuck(found, members) if path.current is Stage.LABELS else [],
        "waiting": _find_longest_waiting(path, names),
        "at_work": progress.find_active_people(found, names),
        "minutes": int(progress.AT_WORK.total_seconds() // 60),
        "pace": progress.measure_pace(found, names, done["needed"] - done["labels"]),
        "reports": found.open_reports(),
        "known_answers": training.load_items(pk).count() if found.practice else 0,
        "may_upload": access.may_create_submissions(request.user),
        "sends": bool(django_settings.EMAIL_HOST),
    }
    return render(request, "annotation/submission.html", context)


def _find_longest_waiting(path: stages.Path, names: dict[int, str]) -> list[tuple[Any, str]]:
    """Return what has waited longest for adjudicators in the current stage, each with the one who has opened it.

    Nothing for a large submission: all its rows would be read.
    """
    if path.current not in (Stage.DISPUTES, Stage.SPOT_CHECKS) or path.trajectories >= state_snapshots.LARGE:
        return []
    rows = queue.find_longest_waiting(path.submission, 3, spot_checks=path.current is Stage.SPOT_CHECKS)
    return [(row, names.get(row.opened_by, "")) for row in rows]


@page
def tasks(request: Request, pk: int) -> HttpResponse:
    """Show the labels of each task by slot, with filters."""
    found = access.submission_for(request.user, pk, *access.READERS)
    context = _progress(found)
    table = _matrix(request, found, _members(found), context["progress"]["trajectories"])
    return render(request, "annotation/tasks.html", context | table)


def _members(found: Submission) -> list[Membership]:
    return list(found.memberships.order_by("joined_at", "pk"))


def _progress(found: Submission) -> dict[str, Any]:
    done = progress.count_done([found.pk])[found.pk]
    first = found.events.filter(sequence=0).values("hash")
    return {
        "submission": found,
        "progress": done | {"needed": done["to_label"] * found.required_labels},
        "standing": progress.count_states(found, done["trajectories"]),
        "draws": progress.load_draws(found),
        "head": found.events.annotate(chain=Subquery(first)).order_by("-sequence").first(),
    }


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
    columns = ("slot", "annotator", "lease_expires_at", "submit_at")
    taken = found.trajectories.filter(pk__in=[r.pk for r in rows])
    for trajectory, slot, person, lease, submit_at in taken.values_list("pk", *(f"assignments__{c}" for c in columns)):
        if slot is not None:
            state = "filled" if lease is None else "held" if submit_at or lease > now else "expired"
            slots.setdefault(trajectory, {})[slot] = (state, names[person])
    for row in rows:
        row.slots = slots.get(row.pk, {})
    return rows


def _matrix_row(found: Submission, row: Any, versions: TaskVersions) -> dict[str, Any]:
    outdated = {problem.code for problem in versions.find_outdated(row.task)}
    verdict = final_verdict(row) if found.frozen_at is not None else None
    empty = ("", "") if row.state == State.NOT_DRAWN else ("open", "")
    return {
        "trajectory": row,
        "outdated": bool(outdated),
        "warnings": [warning for warning in row.warnings if warning["code"] not in outdated],
        "cells": [row.slots.get(slot, empty) for slot in range(1, found.required_labels + 1)],
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
        "hours_form": HoursForm(),
        "page": paginate(request, report.hints, 50),
    }
    return render(request, "annotation/quality.html", context)


# --- reports ---------------------------------------------------------------------------------------------------------


@page
def reports(request: Request, pk: int) -> HttpResponse:
    """List open questions about the guidelines, then the reports: open ones first, the longest waiting on top."""
    return _reports(request, access.submission_for(request.user, pk, *access.READERS))


def _reports(request: Request, found: Submission) -> HttpResponse:
    rows = access.reports_of(request.user, found).select_related("trajectory__task", "settled_by")
    shown = paginate(request, rows.order_by(F("settled_at").desc(nulls_first=True), "reported_at", "pk"), 50)
    names = dict(found.memberships.values_list("person_id", "pseudonym"))
    entries = [(row, names.get(row.reporter_id, ""), names.get(row.settled_by_id, "")) for row in shown]
    asked = access.questions_for(request.user, found).filter(answered_at__isnull=True)
    questions = [(row, names.get(row.asker_id, "")) for row in asked[:MOST_QUESTIONS]] if shown.number == 1 else []
    context = {"submission": found, "page": shown, "entries": entries, "questions": questions}
    context["later_questions"] = max(asked.count() - MOST_QUESTIONS, 0) if questions else 0
    return render(request, "annotation/reports.html", context)


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
    sets = access.submissions_maintained_by(request.user).filter(practice=True, archived_at=None).exclude(pk=found.pk)
    return SettingsForm(data, found, sets, workflow.find_fixed_settings(found))


def _settings(request: Request, found: Submission, form: SettingsForm, status: int = 200) -> HttpResponse:
    context = {"submission": found, "form": form, "frozen": found.frozen_at is not None}
    return render(request, "annotation/settings.html", context, status=status)
