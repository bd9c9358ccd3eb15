"""Benchmarks, their tasks, and the key points of a task."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, OuterRef, Q, Subquery
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify

from annotation import access, catalogue
from annotation.formats.printable import counted
from annotation.forms import KeyPointsForm, LabelsForm, TasksForm
from annotation.models import Benchmark, ImportedLabel, Label, Task
from annotation.records import ImportReport
from annotation.views.answers import Request, act, page, paged


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
    shown = list(access.benchmarks_for(request.user).order_by("name"))
    counts = dict(Task.objects.filter(benchmark__in=shown).values_list("benchmark").annotate(Count("pk")))
    context = {
        "form": form,
        "rows": [(benchmark, counts.get(benchmark.pk, 0)) for benchmark in shown],
        "may_import": access.may_create_submissions(request.user),
    }
    return render(request, "annotation/benchmarks.html", context, status=status)


@page
def benchmark(request: Request, slug: str) -> HttpResponse:
    """The latest version of every task; ?q= searches ids and texts, ?proposed=1 shows those with proposals."""
    return _benchmark(request, access.benchmark_for(request.user, slug), LabelsForm())


@act
def import_labels(request: Request, slug: str) -> HttpResponse:
    """Load labels made elsewhere; answers with the whole report, since a file of labels seldom has only one problem."""
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
    context = {
        "benchmark": found,
        "page": paged(request, tasks, 100),
        "q": words,
        "form": form,
        "report": report.as_json() if report else None,
        "imported_labels": ImportedLabel.objects.filter(benchmark=found).count(),
    }
    return render(request, "annotation/benchmark.html", context, status=status)


@page
def task(request: Request, slug: str, external_id: str) -> HttpResponse:
    """A version of a task (?version=, else the latest) with its key points and the proposals."""
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
    made = catalogue.add_key_points(found, form.cleaned_data["key_points"])
    messages.success(request, f"{counted(len(made), 'key point')} added.")
    return _to_task(found)


@act
def accept_key_point(request: Request, pk: int) -> HttpResponse:
    found = access.key_point_for(request.user, pk)
    catalogue.accept_key_point(found)
    return _to_task(found.task)


@act
def retire_key_point(request: Request, pk: int) -> HttpResponse:
    found = access.key_point_for(request.user, pk)
    catalogue.retire_key_point(found)
    return _to_task(found.task)


def _to_task(found: Task) -> HttpResponse:
    response: HttpResponse = redirect("task", found.benchmark.slug, found.external_id)
    response["Location"] += f"?version={found.version}"
    return response


def _task(request: Request, found: Task, form: KeyPointsForm, status: int = 200) -> HttpResponse:
    points = list(found.key_points.all())
    blind = access.annotates(request.user, found.benchmark)
    context: dict[str, Any] = {
        "task": found,
        "benchmark": found.benchmark,
        "versions": Task.objects.filter(benchmark=found.benchmark, external_id=found.external_id).order_by("version"),
        "current": [p for p in points if p.accepted_at and not p.retired_at],
        # Whoever annotates the benchmark themselves is not told what other annotators propose, or that they labelled.
        "proposals": [] if blind else [p for p in points if not p.accepted_at and not p.retired_at],
        "retired": [p for p in points if p.retired_at and (p.accepted_at or not blind)],
        "labelled": not blind and Label.objects.filter(assignment__trajectory__task=found).exists(),
        "form": form,
    }
    return render(request, "annotation/task.html", context, status=status)
