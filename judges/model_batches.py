"""Services of a run, and the batches that it submitted to an endpoint. A part of `judges.models`, which imports it."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from annotation.clock import CreatedAtField


class Service(models.TextChoices):
    """How an endpoint serves the calls of a run. It changes their price and their time, not the requests."""

    STANDARD = "", "standard"
    BATCH = "batch", "batch (half price, within 24 hours)"
    FLEX = "flex", "flex (half price, slower)"


class ModelBatch(models.Model):
    """A batch of calls of a run (`working.batches`), committed before it is submitted.

    ``token`` is in the metadata of the batch at the endpoint: a batch without ``provider_id`` was submitted if the
    endpoint has one with this token or with the uploaded ``file_id``. Until then ``heartbeat_at`` shows that its worker
    lives. ``polls`` counts the polls so far, ``poll_at`` is the time of the next one. At the end, all calls have a
    reply or an error; ``status`` is the last one of the endpoint. A batch with a status and without ``ended_at`` has
    ended without all of its results; then ``polls`` counts from there.
    """

    run = models.ForeignKey("judges.JudgeRun", on_delete=models.CASCADE, db_index=False, related_name="batches")
    token = models.CharField(max_length=32, unique=True)
    file_id = models.CharField(max_length=200, blank=True)
    provider_id = models.CharField(max_length=200, blank=True)
    created_at = CreatedAtField()
    heartbeat_at = models.DateTimeField()
    polls = models.PositiveIntegerField(default=0)
    poll_at = models.DateTimeField()
    status = models.CharField(max_length=40, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            # Read by the reconciler every few seconds (batches.claim_due_runs), and by leases.match_free.
            models.Index(F("run"), condition=Q(ended_at__isnull=True), name="model_batch_open"),
        ]

    def __str__(self) -> str:
        return f"batch {self.pk} of run {self.run_id}"
