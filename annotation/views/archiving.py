"""Archive submissions and benchmarks, restore them, and delete what nobody has worked in."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from annotation import access, workflow
from annotation.models import Membership
from annotation.views.answers import Request, act

Role = Membership.Role


@act
def archive(request: Request, pk: int) -> HttpResponse:
    workflow.archive(request.user, access.submission_for(request.user, pk, Role.MAINTAINER))
    messages.success(request, "Submission archived.")
    return redirect("submission-settings", pk)


@act
def restore(request: Request, pk: int) -> HttpResponse:
    workflow.restore(request.user, access.submission_for(request.user, pk, Role.MAINTAINER))
    messages.success(request, "Submission restored.")
    return redirect("submission-settings", pk)


@act
def archive_benchmark(request: Request, slug: str) -> HttpResponse:
    workflow.archive_benchmark(request.user, access.benchmark_for(request.user, slug))
    messages.success(request, "Benchmark archived.")
    return redirect("benchmark", slug)


@act
def restore_benchmark(request: Request, slug: str) -> HttpResponse:
    workflow.restore_benchmark(request.user, access.benchmark_for(request.user, slug))
    messages.success(request, "Benchmark restored.")
    return redirect("benchmark", slug)


@act
def delete_submission(request: Request, pk: int) -> HttpResponse:
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    workflow.delete_submission(request.user, found, request.POST.get("name", ""))
    messages.success(request, "Submission deleted.")
    return redirect("submissions")


@act
def delete_benchmark(request: Request, slug: str) -> HttpResponse:
    found = access.benchmark_for(request.user, slug)
    workflow.delete_benchmark(request.user, found, request.POST.get("name", ""))
    messages.success(request, "Benchmark deleted.")
    return redirect("benchmarks")
