"""Benchmarks, their tasks and key points; uploads of submissions and their reports."""

from __future__ import annotations

import base64
import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Count, Max, OuterRef, Q, Subquery
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import slugify

from annotation import access, arrivals, catalogue, checked_uploads, import_causes, jobs, operations, resumable
from annotation.formats.printable import counted
from annotation.formats.spreadsheets import csv_text, file_name
from annotation.forms import HoursForm, KeyPointsForm, LabelsForm, TasksForm, UploadForm, UploadInPartsForm
from annotation.ingest import ImportStopped
from annotation.models import Benchmark, ImportedLabel, Label, ResumableUpload, Submission, Task, Upload
from annotation.problem_details import Refused
from annotation.records import ImportReport
from annotation.views.answers import Request, act, filter_archived, page, paginate


@page
def benchmarks(request: Request) -> HttpResponse:
    return _benchmarks(request, TasksForm())


@act
def import_tasks(request: Request) -> HttpResponse:
    access.require_creator(request.user)
    form = TasksForm(request.POST, request.FILES)
    if not form.is_valid():
        return _benchmarks(request, form, 400)
    name, file = form.cleaned_data["name"], form.cleaned_data["tasks"]
    known = Benchmark.objects.filter(Q(name=name) | Q(slug=slugify(name)[:64])).first()
    slug = known.slug if known else slugify(name)[:64]
    report = catalogue.import_task_file(file, benchmark_slug=slug, benchmark_name=name)
    if report.rejected:
        for problem in report.rejected[""]:
            form.add_error("tasks", problem.message)
        return _benchmarks(request, form, 400)
    changed = sum(problem.code == "task_changed" for _, problem in report.warnings)
    messages.success(
        request,
        f"{counted(len(report.accepted), 'task')} read, {changed:,} of them changed.",
    )
    return redirect("benchmark", slug)


def _benchmarks(request: Request, form: TasksForm, status: int = 200) -> HttpResponse:
    rows, archived = filter_archived(request, access.benchmarks_for(request.user))
    shown = list(rows.order_by("name"))
    counts = dict(Task.objects.filter(benchmark__in=shown).values_list("benchmark").annotate(Count("pk")))
    context = {
        "form": form,
        "rows": [(benchmark, counts.get(benchmark.pk, 0)) for benchmark in shown],
        "may_import": access.may_create_submissions(request.user),
        **archived,
    }
    return render(request, "annotation/benchmarks.html", context, status=status)


@page
def benchmark(request: Request, slug: str) -> HttpResponse:
    """Show the latest version of each task; ?q= searches ids and texts, ?proposed=1 shows those with proposals."""
    return _benchmark(request, access.benchmark_for(request.user, slug), LabelsForm())


@act
def import_labels(request: Request, slug: str) -> HttpResponse:
    """Import labels, and show the whole report, because a file of labels seldom has only one problem."""
    found = access.benchmark_for(request.user, slug)
    form = LabelsForm(request.POST, request.FILES)
    if not form.is_valid():
        return _benchmark(request, found, form, status=400)
    file = form.cleaned_data["labels"]
    report = catalogue.import_labels(file.read(), file.name, benchmark=found)
    return _benchmark(request, found, LabelsForm(), report, 400 if report.rejected else 200)


def _benchmark(
    request: Request, found: Benchmark, form: LabelsForm, report: ImportReport | None = None, status: int = 200
) -> HttpResponse:
    words = request.GET.get("q", "").strip()
    newest = Task.objects.filter(benchmark=found, external_id=OuterRef("external_id")).order_by("-version")
    proposed = Q(key_points__accepted_at=None, key_points__retired_at=None)
    if access.annotates(request.user, found):
        proposed &= Q(key_points__proposed_by=request.user)
    tasks = (
        Task.objects.filter(benchmark=found, pk=Subquery(newest.values("pk")[:1]))
        .filter(Q(external_id__icontains=words) | Q(text__icontains=words))
        .annotate(
            points=Count("key_points", filter=Q(key_points__accepted_at__isnull=False, key_points__retired_at=None)),
            proposals=Count("key_points", filter=proposed),
        )
        .order_by("pk")
    )
    if "proposed" in request.GET:
        tasks = tasks.filter(proposals__gt=0)
    maintained = access.submissions_maintained_by(request.user).filter(benchmark=found)
    context = {
        "benchmark": found,
        "page": paginate(request, tasks, 100),
        "q": words,
        "form": form,
        "report": report.as_json() if report else None,
        "hours_form": HoursForm() if maintained.exists() else None,
        "may_delete": access.may_create_submissions(request.user) and not found.submissions.exists(),
        "imported_labels": ImportedLabel.objects.filter(benchmark=found).count(),
    }
    return render(request, "annotation/benchmark.html", context, status=status)


@page
def task(request: Request, slug: str, external_id: str) -> HttpResponse:
    """Show a version of a task (?version=, else the latest) with its key points and the proposals."""
    found = access.benchmark_for(request.user, slug)
    versions = list(found.tasks.filter(external_id=external_id).order_by("-version"))
    chosen = next((t for t in versions if str(t.version) == request.GET.get("version")), None)
    if not versions:
        raise Http404("No such task.")
    return _task(request, chosen or versions[0], KeyPointsForm())


@act
def add_key_points(request: Request, pk: int) -> HttpResponse:
    found = access.task_for(request.user, pk)
    form = KeyPointsForm(request.POST)
    if not form.is_valid():
        return _task(request, found, form, 400)
    made = operations.add_key_points(found, form.cleaned_data["key_points"])
    messages.success(request, f"{counted(len(made), 'key point')} added.")
    return _to_task(found)


@act
def accept_key_point(request: Request, pk: int) -> HttpResponse:
    found = operations.find_key_point(request.user, pk)
    operations.accept_key_point(found)
    return _to_task(found.task)


@act
def retire_key_point(request: Request, pk: int) -> HttpResponse:
    found = operations.find_key_point(request.user, pk)
    operations.retire_key_point(found)
    return _to_task(found.task)


def _to_task(found: Task) -> HttpResponse:
    response: HttpResponse = redirect("task", found.benchmark.slug, found.external_id)
    response["Location"] += f"?version={found.version}"
    return response


def _task(request: Request, found: Task, form: KeyPointsForm, status: int = 200) -> HttpResponse:
    points = list(operations.find_key_points(request.user, found))
    blind = access.annotates(request.user, found.benchmark)
    context: dict[str, Any] = {
        "task": found,
        "benchmark": found.benchmark,
        "versions": Task.objects.filter(benchmark=found.benchmark, external_id=found.external_id).order_by("version"),
        "current": [p for p in points if p.accepted_at and not p.retired_at],
        "proposals": [p for p in points if not p.accepted_at and not p.retired_at],
        "retired": [p for p in points if p.retired_at],
        # Annotators of the benchmark must not see that others have labelled.
        "labelled": not blind and Label.objects.filter(assignment__trajectory__task=found).exists(),
        "form": form,
    }
    return render(request, "annotation/task.html", context, status=status)


# --- uploads ----------------------------------------------------------------------------------------------------------


PLACES_SHOWN = 50  # folders of a cause on one page
OPTIONS = ("agent_name", "keep_valid", "dry_run", "protocol_version", "process_labels", "create_tasks")


@page
def upload_form(request: Request) -> HttpResponse:
    access.require_creator(request.user)
    return _form(request, UploadForm())


@act
def upload(request: Request) -> HttpResponse:
    access.require_creator(request.user)
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _form(request, form, 400)
    benchmark = _find_benchmark(form)
    if benchmark is None:
        return _form(request, form, 400)
    given = {name: form.cleaned_data[name] for name in OPTIONS}
    made = Upload(uploaded_by=request.user, benchmark=benchmark, **given)
    try:
        arrivals.receive(made, form.cleaned_data["package"], jobs.import_upload.delay)
    except ImportStopped as error:
        form.add_error("package", str(error))
        answer = _form(request, form, error.outage.status)
        answer["Retry-After"] = str(error.outage.retry_after)
        return answer
    return redirect("upload-status", made.pk)


@act
def start_upload(request: Request) -> HttpResponse:
    """Start an upload in parts; the script of the page sends the form without the package, and then the parts."""
    access.require_creator(request.user)
    form = UploadInPartsForm(request.POST, request.FILES)
    benchmark = _find_benchmark(form) if form.is_valid() else None
    if benchmark is None:
        return _list_errors(form, 400)
    given = {name: form.cleaned_data[name] for name in (*OPTIONS, "file_name", "length")}
    made = ResumableUpload(uploaded_by=request.user, benchmark=benchmark, **given)
    try:
        resumable.create(made)
    except Refused as refused:
        form.add_error(None, str(refused))
        return _list_errors(form, refused.code)
    addresses = {"address": reverse("api-resumable-upload", args=[made.pk])}
    return JsonResponse(addresses | {"report": reverse("upload-status", args=[made.pk])}, status=201)


def _list_errors(form: UploadInPartsForm, status: int) -> HttpResponse:
    listed: list[dict[str, str]] = []
    for name, messages_of_field in form.errors.items():
        field = form[name] if name in form.fields else None
        place = {"field": field.id_for_label, "label": str(field.label)} if field else {"field": "", "label": ""}
        listed += [place | {"message": str(message)} for message in messages_of_field]
    return JsonResponse({"errors": listed}, status=status)


def _find_benchmark(form: UploadForm) -> Benchmark | None:
    """Return the benchmark of the form, created from the task file if new; None with form errors if refused."""
    known: Benchmark | None = form.cleaned_data["benchmark"]
    file, name = form.cleaned_data["tasks"], form.cleaned_data["benchmark_name"]
    if known is not None and not file:
        return known
    slug = known.slug if known else slugify(name)[:64]
    report = catalogue.import_task_file(file, benchmark_slug=slug, benchmark_name=name)
    for problems in report.rejected.values():
        for problem in problems:
            form.add_error("tasks", problem.message)
    return None if report.rejected else Benchmark.objects.get(slug=slug)


def _form(request: Request, form: UploadForm, status: int = 200) -> HttpResponse:
    recent = Upload.objects.filter(uploaded_by=request.user).select_related("benchmark").defer("preview")[:20]
    return render(request, "annotation/upload.html", {"form": form, "recent": recent}, status=status)


@page
def upload_status(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the progress of the import (the page polls every second), then the report by causes."""
    found = access.upload_for(request.user, pk)
    context = {"upload": found} | _build_report(request, found)
    partial = request.htmx
    return render(request, "annotation/_upload.html" if partial else "annotation/upload_status.html", context)


def _build_report(request: Request, upload: Upload) -> dict[str, Any]:
    if upload.report is None:
        return {}
    problems, warnings = (import_causes.group_by_cause(upload.report, kind) for kind in import_causes.KINDS)
    wanted = request.GET.get("show", "rejected"), request.GET.get("code")
    chosen = next((each for each in [*problems, *warnings] if (each.kind, each.code) == wanted), None)
    if chosen is None and problems:
        chosen = problems[0]
    earlier = Submission.objects.filter(benchmark=upload.benchmark, agent__name=upload.agent_name)
    return {
        "problems": problems,
        "warnings": warnings,
        "problem_count": sum(each.count for each in problems),
        "warning_count": sum(each.count for each in warnings),
        "folders": import_causes.count_folders(upload.report),
        "chosen": chosen,
        "places": paginate(request, chosen.places, PLACES_SHOWN) if chosen else None,
        "expires_at": checked_uploads.find_expiry(upload),
        "attempt": (earlier.aggregate(Max("attempt"))["attempt__max"] or 0) + 1,
    }


@page
def preview_picture(request: Request, pk: uuid.UUID, step: int) -> HttpResponse:
    """Return the picture of a step of the preview."""
    steps = (access.upload_for(request.user, pk).preview or {"steps": []})["steps"]
    if step >= len(steps) or not steps[step]["picture"]:
        raise Http404
    return HttpResponse(base64.b64decode(steps[step]["picture"]), content_type="image/webp")


@act
def import_checked(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Import a package that was only checked, from the stored file; a second request finds the import running."""
    access.require_creator(request.user)
    found = access.upload_for(request.user, pk)
    if not checked_uploads.start_import(found, jobs.import_upload.delay) and found.dry_run:
        found.refresh_from_db()
        if found.dry_run:  # not started by somebody else in this moment
            messages.error(request, "The checked file is no longer stored. Upload it again.")
    return redirect("upload-status", pk)


@page
def upload_places(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Return the problems and warnings as CSV; those of one cause with ?show= and ?code=."""
    found = access.upload_for(request.user, pk)
    if found.report is None:
        return redirect("upload-status", pk)
    show, code = request.GET.get("show", ""), request.GET.get("code", "")
    rows: list[list[str]] = [["kind", "code", "task_id", "where", "message"]]
    for kind, name in import_causes.KINDS.items():
        if show in ("", kind):
            listed = import_causes.list_rows(found.report, kind)
            rows += [[name, *(row[column] for column in rows[0][1:])] for row in listed if code in ("", row["code"])]
    response = HttpResponse(csv_text(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file_name("report", str(found.pk), code)}"'
    return response


@page
def upload_report(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Return the report as JSON, as the import commands write it."""
    found = access.upload_for(request.user, pk)
    if found.report is None:
        return redirect("upload-status", pk)
    response = JsonResponse(found.report, json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="report-{found.pk}.json"'
    return response
