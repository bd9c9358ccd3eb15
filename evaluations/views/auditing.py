"""Pages of audits: imported bundles, results of their checks, the sample, and its results."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from annotation import access, progress
from annotation.ingest import ImportStopped
from annotation.models.plans import find_to_label
from annotation.views.answers import Request, act, filter_archived, page, paginate
from evaluations import audit_rules, jobs, report_tables
from evaluations.access import audit_for, audits_for, bundle_upload_for, bundle_uploads_for
from evaluations.attestation import attest_audit
from evaluations.auditing import actions, uploads
from evaluations.auditing.importing import OPENED
from evaluations.auditing.results import (
    RUNS_IT,
    count_labellers,
    find_freeze,
    find_related_bundles,
    list_checks,
    load_pseudonyms,
    result,
)
from evaluations.auditing.summary import summarise
from evaluations.download import attach_attestation
from evaluations.forms import AuditDecisionForm, AuditorForm, BundleForm, SampleForm
from evaluations.models import Audit, AuditCheck, SigningKey
from evaluations.sample_planning import describe_checks
from evaluations.views.findings import checks_counted, counted, finding_rows, passed_rows, risk_rows

MOST_UPLOADS = 20  # newest uploads shown


@page
def audits(request: Request) -> HttpResponse:
    found = audits_for(request.user)
    if not access.may_create_submissions(request.user) and not found.exists():
        access.require_creator(request.user)
    return _audits(request, BundleForm())


@act
def open_audit(request: Request) -> HttpResponse:
    access.require_creator(request.user)
    form = BundleForm(request.POST, request.FILES)
    if not form.is_valid():
        return _audits(request, form, HTTPStatus.BAD_REQUEST)
    try:
        made = uploads.receive(
            request.user, form.cleaned_data["bundle"], form.cleaned_data["given"], jobs.open_bundle.delay
        )
    except ImportStopped as error:
        form.add_error("bundle", str(error))
        answer = _audits(request, form, error.outage.status)
        answer["Retry-After"] = str(error.outage.retry_after)
        return answer
    return redirect("bundle-upload", made.pk)


def load_results(rows: Iterable[Audit]) -> dict[int, tuple[str, list[tuple[str, str]]]]:
    """Return for each audit how many checks were made of the bundle, and how many passed, failed and are notes."""
    newest = {row.newest_check.pk: row.pk for row in rows}
    found = AuditCheck.objects.filter(pk__in=newest).values_list("pk", "findings").order_by()
    # One at a time: the findings of a hostile bundle can be megabytes.
    return {newest[pk]: (checks_counted(each), counted(each)) for pk, each in found.iterator(chunk_size=1)}


def _audits(request: Request, form: BundleForm, status: int = 200) -> HttpResponse:
    found, links = filter_archived(request, audits_for(request.user), "submission__archived_at")
    rows = paginate(request, found, 50)
    creator = access.may_create_submissions(request.user)
    results = load_results(rows.object_list)
    context = {
        "rows": [(row, *results[row.pk], row.decision, row.sample) for row in rows],
        "page": rows,
        **links,
        "form": form if creator else None,
        "uploads": bundle_uploads_for(request.user).defer("findings")[:MOST_UPLOADS] if creator else [],
    }
    return render(request, "evaluations/audits.html", context, status=status)


@page
def bundle_upload(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the progress of an upload (the page reloads every second), then the audit, or the refusal with findings."""
    found = bundle_upload_for(request.user, pk)
    context = {"upload": found, "findings": finding_rows(found.findings, {})}
    template = "evaluations/_bundle_upload.html" if request.htmx else "evaluations/bundle_upload.html"
    return render(request, template, context)


@act
def cancel_bundle(request: Request, pk: uuid.UUID) -> HttpResponse:
    found = bundle_upload_for(request.user, pk)
    uploads.cancel(found)
    opened = found.audit is not None and not found.refused
    messages.success(request, "It was already opened, and its audit remains." if opened else "Bundle deleted.")
    return redirect("audits")


@page
def audit(request: Request, pk: int) -> HttpResponse:
    return _audit(request, audit_for(request.user, pk))


@act
def draw_sample(request: Request, pk: int) -> HttpResponse:
    found = audit_for(request.user, pk)
    form = SampleForm(request.POST)
    if not form.is_valid():
        return _audit(request, found, HTTPStatus.BAD_REQUEST, sample_form=form)
    given = dict(form.cleaned_data)
    seed = given.pop("seed")
    size, tolerance = audit_rules.read_terms(**given)
    made = actions.draw(found, request.user, size, seed, tolerance)
    messages.success(request, "Sample drawn. Add the people who label it again.")
    return redirect("people", made.pk)


@act
def decide_audit(request: Request, pk: int) -> HttpResponse:
    found = audit_for(request.user, pk)
    form = AuditDecisionForm(request.POST)
    if not form.is_valid():
        return _audit(request, found, HTTPStatus.BAD_REQUEST, decision_form=form)
    made = actions.decide(request.user, found, form.cleaned_data["outcome"], form.cleaned_data["reason"])
    against = ", against the rule" if made.against_rule else ""
    messages.success(request, f"Submission {made}{against}.")
    return redirect("audit", pk)


@page
def audit_attestation(request: Request, pk: int) -> HttpResponse:
    found = audit_for(request.user, pk)
    return attach_attestation(attest_audit(found), found.submission, "audit")


@act
def archive_audit(request: Request, pk: int) -> HttpResponse:
    actions.archive(request.user, audit_for(request.user, pk))
    messages.success(request, "Audit archived.")
    return redirect("audit", pk)


@act
def restore_audit(request: Request, pk: int) -> HttpResponse:
    actions.restore(request.user, audit_for(request.user, pk))
    messages.success(request, "Audit restored.")
    return redirect("audit", pk)


@act
def add_auditor(request: Request, pk: int) -> HttpResponse:
    found = audit_for(request.user, pk)
    form = AuditorForm(request.POST)
    if not form.is_valid():
        return _audit(request, found, HTTPStatus.BAD_REQUEST, auditor_form=form)
    member = actions.add_auditor(request.user, found, form.cleaned_data["person"])
    messages.success(request, f"{member.person} can now read this audit, as {member.pseudonym}.")
    return redirect("audit", pk)


@page
def audit_report(request: Request, pk: int) -> HttpResponse:
    found = audit_for(request.user, pk)
    head = found.submission.events.order_by("-sequence").first()
    context = _build_context(found) | {"head": head, "generated_at": timezone.now()}
    return render(request, "evaluations/audit_report.html", context)


def _audit(request: Request, found: Audit, status: int = 200, **forms: Any) -> HttpResponse:
    sample, findings = found.sample, found.findings
    context = _build_context(found) | {
        "risks": risk_rows(findings, _trajectories(found)),
        "passed": passed_rows(findings),
        "imported": next((row["says"] for row in findings if row["name"] == OPENED and row["result"] == "pass"), ""),
        "maintains_sample": sample is not None and access.role_in(request.user, sample) is access.Role.MAINTAINER,
        "progress": progress.count_done([sample.pk])[sample.pk] if sample else None,
        "needed": find_to_label(sample.trajectories.all()).count() * sample.required_labels if sample else 0,
        "auditors": found.submission.memberships.filter(role=access.Role.AUDITOR).select_related("person"),
        "may_change": access.may_create_submissions(request.user),
        "sample_form": SampleForm(),
        "decision_form": AuditDecisionForm(),
        "auditor_form": AuditorForm(),
    }
    return render(request, "evaluations/audit.html", context | forms, status=status)


def _build_context(found: Audit) -> dict[str, Any]:
    came, checks = result(found), list_checks(found)
    names = load_pseudonyms(found)
    differing = came.differing if came else []
    links = {each.audited: reverse("submission-trajectory", args=[each.audited]) for each in differing}
    decisions, findings = reversed(found.decisions.all()), checks[0].row.findings
    return {
        "audit": found,
        "submission": found.submission,
        "trajectories": (total := find_to_label(found.submission.trajectories.all()).count()),
        "checks": describe_checks(total),
        "sample": found.sample,
        "rule": audit_rules.find_progress(found),
        "decisions": [(each, names.get(each.decided_by_id, RUNS_IT)) for each in decisions],
        "check": checks[0],
        "earlier": checks[1:],
        "failed_earlier": sum(bool(each.row.failed) for each in checks[1:]),
        "summary": summarise(findings, found.submission.frozen_at, find_freeze(found)),
        "checks_counted": checks_counted(findings),
        "counts": counted(findings),
        "findings": finding_rows(findings, _trajectories(found)),
        "own_key": found.key_trusted and SigningKey.objects.filter(key_id=found.key_id).exists(),
        "beside": find_related_bundles(found),
        "labelled_by": count_labellers(found) if came else None,
        "result": came,
        "figures": report_tables.audit_figures(came).figures if came else [],
        "verdicts": report_tables.compare_verdicts(came) if came else None,
        "differing": report_tables.differing(came, links) if came else None,
    }


def _trajectories(found: Audit) -> dict[str, int]:
    return dict(found.submission.trajectories.values_list("task__external_id", "pk"))
