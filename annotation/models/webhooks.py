"""Webhooks of maintainers, and the messages that are sent to them."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from annotation.models.catalogue import Benchmark
from annotation.models.reviews import person
from annotation.models.trajectories import Submission


class WebhookEvent(models.TextChoices):
    """Events that a webhook reports; the label is the text of the choice."""

    MEMBER_INVITED = "member.invited", "A person was added to a submission"
    LABELS_COMPLETE = "trajectory.labels_complete", "A trajectory has all its labels"
    DISPUTED = "trajectory.disputed", "The labels of a trajectory differ"
    READY = "submission.ready_to_freeze", "Every trajectory has a final verdict"
    FROZEN = "submission.frozen", "A submission was frozen"
    RUN_FINISHED = "judge_run.finished", "A judge run has finished"
    UPLOAD_FINISHED = "upload.finished", "Your own upload was imported, checked or rejected"


class Webhook(models.Model):
    """An address that gets messages about one submission, or all submissions of a benchmark that the owner maintains.

    ``events`` are values of `WebhookEvent`; empty: all. ``sealed`` is the encrypted secret; until ``former_until`` the
    secret before it (``former``) signs too. ``reason`` says why it is disabled.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = person(related_name="webhooks")
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, null=True, blank=True, related_name="webhooks")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, null=True, blank=True, related_name="webhooks")
    url = models.CharField(max_length=500)
    events = models.JSONField(default=list, blank=True)
    sealed = models.TextField()
    former = models.TextField(blank=True)
    former_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(submission__isnull=True) ^ Q(benchmark__isnull=True), name="webhook_of_one_thing"
            ),
        ]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """A message to a webhook; its primary key is the ``webhook-id`` of all attempts.

    A webhook gets one message of a ``topic``. ``due_at`` is the time of the next attempt, or the end of the lease of
    the worker that sends it now; null: no attempt follows. ``status`` (HTTP) and ``error`` are those of the last
    attempt. ``submission`` is null for uploads.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    type = models.CharField(max_length=40)
    topic = models.CharField(max_length=100, blank=True)
    data = models.JSONField()
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    attempted_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["webhook", "topic"], condition=~Q(topic=""), name="webhook_delivery_once_per_topic"
            ),
        ]
        indexes = [
            # Read by the worker every few seconds.
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="webhook_delivery_due"),
            # Serves the list of a webhook's deliveries.
            models.Index(fields=["webhook", "-created_at"], name="webhook_delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.type} ({self.state})"

    @property
    def state(self) -> str:
        if self.delivered_at is not None:
            return "delivered"
        if self.due_at is not None:
            return "retrying" if self.error else "waiting"
        return "failed"
