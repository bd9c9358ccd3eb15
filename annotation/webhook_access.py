"""Rights to see and send webhooks, by the rules of `access`. A webhook is its owner's alone."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404

from annotation import access
from annotation.models import Membership, Person, Submission, Webhook, WebhookDelivery


def is_entitled(webhook: Webhook, submission: Submission | None = None) -> bool:
    """Return whether the owner may know about a submission now; without one, about what the webhook is for."""
    owner: Person = webhook.owner
    submission = submission or webhook.submission
    if not owner.is_active or owner.erased_at is not None:
        return False
    if submission is None:
        return webhook.benchmark is not None and access.may_edit_catalogue(owner, webhook.benchmark)
    return access.role_in(owner, submission) is Membership.Role.MAINTAINER


def webhooks_of(person: Person) -> QuerySet[Webhook]:
    found = Webhook.objects.filter(owner=person).select_related("owner", "submission__agent", "benchmark")
    return found.defer("submission__import_report")


def webhook_for(person: Person, pk: Any) -> Webhook:
    found = webhooks_of(person).filter(pk=pk).first()
    if found is None:
        raise Http404("No such webhook.")
    return found


def deliveries_of(person: Person, webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """Return the messages, newest first, without those about submissions that the person no longer maintains."""
    shown = Q(submission=None) | Q(submission__in=access.submissions_maintained_by(person).values("pk"))
    return webhook.deliveries.filter(shown)


def delivery_for(person: Person, webhook_pk: Any, pk: Any) -> WebhookDelivery:
    found = deliveries_of(person, webhook_for(person, webhook_pk)).filter(pk=pk).first()
    if found is None:
        raise Http404("No such delivery.")
    return found
