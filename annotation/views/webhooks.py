"""Webhooks of a maintainer: for a submission or a benchmark, and the messages of each."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from annotation import access, webhook_access, webhooks
from annotation.forms import WebhookForm
from annotation.models import Benchmark, Membership, Submission, Webhook
from annotation.views.answers import Request, act, page, paginate
from annotation.workflow import Incomplete

PER_PAGE = 50


@page
def of_submission(request: Request, pk: int) -> HttpResponse:
    return _list(request, access.submission_for(request.user, pk, Membership.Role.MAINTAINER))


@page
def of_benchmark(request: Request, slug: str) -> HttpResponse:
    return _list(request, access.benchmark_for(request.user, slug))


@act
def add_to_submission(request: Request, pk: int) -> HttpResponse:
    return _add(request, access.submission_for(request.user, pk, Membership.Role.MAINTAINER))


@act
def add_to_benchmark(request: Request, slug: str) -> HttpResponse:
    return _add(request, access.benchmark_for(request.user, slug))


def _list(
    request: Request, of: Submission | Benchmark, form: WebhookForm | None = None, status: int = 200
) -> HttpResponse:
    form = form or WebhookForm(of_submission=isinstance(of, Submission))
    kind = "submission" if isinstance(of, Submission) else "benchmark"
    found = webhook_access.webhooks_of(request.user).filter(**{kind: of})
    context = {"submission": None, "benchmark": None, "webhooks": found, "tab": "webhooks", kind: of}
    return render(request, "annotation/webhooks.html", context | {"form": form}, status=status)


def _add(request: Request, of: Submission | Benchmark) -> HttpResponse:
    form = WebhookForm(request.POST, of_submission=isinstance(of, Submission))
    if form.is_valid():
        try:
            found, secret = webhooks.create(request.user, of, **form.cleaned_data)
        except Incomplete as incomplete:
            _show_problems(form, incomplete)
        else:
            return _show(request, found, secret=secret)
    return _list(request, of, form, status=400)


def _show_problems(form: WebhookForm, incomplete: Incomplete) -> None:
    for problem in incomplete.problems:
        form.add_error(problem.where, problem.message)


@page
def webhook(request: Request, pk: UUID) -> HttpResponse:
    return _show(request, webhook_access.webhook_for(request.user, pk))


def _show(
    request: Request, found: Webhook, form: WebhookForm | None = None, secret: str = "", status: int = 200
) -> HttpResponse:
    entitled = webhook_access.is_entitled(found)
    initial = {"url": found.url, "events": found.events}
    context = {
        "webhook": found,
        "submission": found.submission if entitled else None,
        "benchmark": found.benchmark if entitled else None,
        "page": paginate(request, webhook_access.deliveries_of(request.user, found), PER_PAGE),
        "form": form or WebhookForm(initial=initial, of_submission=found.submission_id is not None),
        "secret": secret,
        "entitled": entitled,
        "tab": "webhooks",
    }
    response = render(request, "annotation/webhook.html", context, status=status)
    if secret:
        response["Cache-Control"] = "no-store"
    return response


@act
def change(request: Request, pk: UUID) -> HttpResponse:
    found = webhook_access.webhook_for(request.user, pk)
    form = WebhookForm(request.POST, of_submission=found.submission_id is not None)
    if form.is_valid():
        try:
            webhooks.change(found, **form.cleaned_data)
        except Incomplete as incomplete:
            _show_problems(form, incomplete)
        else:
            messages.success(request, "Webhook saved.")
            return redirect("webhook", pk)
    return _show(request, found, form, status=400)


@act
def switch(request: Request, pk: UUID) -> HttpResponse:
    found = webhook_access.webhook_for(request.user, pk)
    enabled = request.POST.get("enabled") == "1"
    webhooks.change(found, enabled=enabled)
    messages.success(request, "Webhook switched on." if enabled else "Webhook switched off.")
    return redirect("webhook", pk)


@act
def rotate(request: Request, pk: UUID) -> HttpResponse:
    found = webhook_access.webhook_for(request.user, pk)
    secret = webhooks.rotate(found)
    found.refresh_from_db()
    return _show(request, found, secret=secret)


@act
def test(request: Request, pk: UUID) -> HttpResponse:
    webhooks.test(webhook_access.webhook_for(request.user, pk))
    messages.success(request, "Test queued. Its outcome is shown here in a few seconds.")
    return redirect("webhook", pk)


@act
def replay(request: Request, pk: UUID, delivery_pk: UUID) -> HttpResponse:
    webhooks.replay(webhook_access.delivery_for(request.user, pk, delivery_pk))
    messages.success(request, "Message queued again.")
    return redirect("webhook", pk)


@act
def delete(request: Request, pk: UUID) -> HttpResponse:
    found = webhook_access.webhook_for(request.user, pk)
    webhooks.delete(found)
    messages.success(request, "Webhook deleted.")
    if not webhook_access.is_entitled(found):
        return redirect("home")
    if found.benchmark is not None:
        return redirect("benchmark-webhooks", found.benchmark.slug)
    return redirect("submission-webhooks", found.submission_id)
