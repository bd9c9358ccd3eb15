"""Uploading a submission, and following its import."""

from __future__ import annotations

import uuid
from itertools import groupby
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify

from annotation import access, arrivals, catalogue, jobs
from annotation.forms import UploadForm
from annotation.ingest import ImportStopped
from annotation.models import Benchmark, Upload
from annotation.views.answers import Request, act, page, paged

KINDS = ("rejected", "warnings", "valid", "accepted")


@page
def upload_form(request: Request) -> HttpResponse:
    access.require_creator(request.user)
    return _form(request, UploadForm())


@act
def upload(request: Request) -> HttpResponse:
    """Store the package, write down what to do with it, and let a worker do it."""
    access.require_creator(request.user)
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _form(request, form, 400)
    benchmark = _find_benchmark(form)
    if benchmark is None:
        return _form(request, form, 400)
    given = {name: form.cleaned_data[name] for name in ("agent_name", "keep_valid", "dry_run")}
    made = Upload(uploaded_by=request.user, benchmark=benchmark, **given)
    try:
        arrivals.receive(made, form.cleaned_data["package"], jobs.import_upload.delay)
    except ImportStopped as error:
        form.add_error("package", str(error))
        answer = _form(request, form, error.outage.status)
        answer["Retry-After"] = str(error.outage.retry_after)
        return answer
    return redirect("upload-status", made.pk)


def _find_benchmark(form: UploadForm) -> Benchmark | None:
    """The benchmark of the form, made from its task file when it is new; None with an error when that is refused."""
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
    recent = Upload.objects.filter(uploaded_by=request.user).select_related("benchmark")[:20]
    return render(request, "annotation/upload.html", {"form": form, "recent": recent}, status=status)


@page
def upload_status(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Progress while it runs (the page asks again every second), then the report."""
    found = access.upload_for(request.user, pk)
    context = {"upload": found} | _build_report(request, found.report)
    partial = request.htmx
    return render(request, "annotation/_upload.html" if partial else "annotation/upload_status.html", context)


def _build_report(request: Request, report: dict[str, Any] | None) -> dict[str, Any]:
    if report is None:
        return {}
    kinds = [kind for kind in KINDS if kind in report]
    kind = request.GET.get("show", "")
    if kind not in kinds:
        kind = next((k for k in kinds if report[k]), "accepted")
    code, words = request.GET.get("code", ""), request.GET.get("q", "").strip().lower()
    rows = _rows(report, kind)
    codes = sorted({row["code"] for row in rows if row["code"]})
    rows = [row for row in rows if code in ("", row["code"]) and words in " ".join(row.values()).lower()]
    groups = [(task_id, list(found)) for task_id, found in groupby(rows, key=lambda row: row["task_id"])]
    counts = {k: len({row["task_id"] for row in _rows(report, k)}) for k in kinds}
    return {
        "kind": kind,
        "code": code,
        "q": words,
        "codes": codes,
        "counts": counts,
        "groups": paged(request, groups, 50),
    }


def _rows(report: dict[str, Any], kind: str) -> list[dict[str, str]]:
    if kind in ("accepted", "valid"):
        return [{"task_id": task_id, "code": "", "message": "", "where": ""} for task_id in report[kind]]
    if kind == "rejected":
        return [{"task_id": r["task_id"], **problem} for r in report["rejected"] for problem in r["problems"]]
    return sorted(report["warnings"], key=lambda row: str(row["task_id"]))


@page
def upload_report(request: Request, pk: uuid.UUID) -> HttpResponse:
    """The report as the import commands write it."""
    found = access.upload_for(request.user, pk)
    if found.report is None:
        return redirect("upload-status", pk)
    response = JsonResponse(found.report, json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="report-{found.pk}.json"'
    return response
