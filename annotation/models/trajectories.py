"""What an agent did: submissions, trajectories, steps, and the files that show it."""

from __future__ import annotations

import secrets
import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from annotation.models.catalogue import Benchmark, Task
from annotation.protocol import MINIMUM_LABELS
from annotation.records import AttachmentKind, SourceFormat


def new_seed() -> str:
    """A seed for the draw of the spot checks, unknown to everybody until it is recorded with the first draw."""
    return secrets.token_hex(16)


class Agent(models.Model):
    """The system under evaluation, by the name that the exports carry."""

    name = models.CharField(max_length=200, unique=True)

    def __str__(self) -> str:
        return self.name


class Submission(models.Model):
    """One agent's trajectories for one benchmark; attempts of the same agent are numbered.

    ``digest`` is the SHA-256 over the trajectories' digests: the same bytes uploaded twice are the same submission.
    """

    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="submissions")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="submissions")
    attempt = models.PositiveIntegerField(default=1)
    digest = models.CharField(max_length=64)
    protocol_version = models.PositiveSmallIntegerField(default=1)
    required_labels = models.PositiveSmallIntegerField(default=MINIMUM_LABELS)
    spot_check_rate = models.FloatField(default=0.10)
    spot_check_seed = models.CharField(max_length=64, default=new_seed)
    created_at = models.DateTimeField(auto_now_add=True)
    frozen_at = models.DateTimeField(null=True, blank=True)
    opened_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "agent", "attempt"], name="submission_attempt_once"),
            models.UniqueConstraint(fields=["benchmark", "agent", "digest"], name="submission_bytes_once"),
            models.CheckConstraint(
                condition=Q(spot_check_rate__gte=0, spot_check_rate__lte=1),
                name="spot_check_rate_is_a_fraction",
            ),
            models.CheckConstraint(
                condition=Q(opened_at__isnull=True) | Q(frozen_at__isnull=False),
                name="opened_only_when_frozen",
            ),
        ]

    def __str__(self) -> str:
        suffix = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        return f"{self.agent.name}{suffix}"


class Trajectory(models.Model):
    """One agent's attempt at one task.

    ``open_slots`` is kept by triggers of the database as assignments come and go: the check constraint below thus
    refuses an assignment more than ``required_labels``, whoever writes it, and the queue can order by it.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="trajectories")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="trajectories")
    position = models.PositiveIntegerField()
    task_text = models.TextField(help_text="As the agent's files state it.")
    final_answer = models.TextField(null=True, blank=True)  # noqa: DJ001 - null is "none given", "" is an answer
    reference_length = models.PositiveIntegerField(null=True, blank=True)
    source_format = models.CharField(max_length=32, choices=[(f.value, f.value) for f in SourceFormat])
    digest = models.CharField(max_length=64)
    warnings = models.JSONField(default=list)
    open_slots = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["position"]
        verbose_name_plural = "trajectories"
        constraints = [
            models.UniqueConstraint(fields=["submission", "task"], name="trajectory_once_per_task"),
            models.UniqueConstraint(fields=["submission", "position"], name="trajectory_position_once"),
            models.CheckConstraint(condition=Q(open_slots__gte=0), name="no_more_labels_than_required"),
        ]
        indexes = [
            # Read by queue.next_trajectory: started trajectories first, in the order of the submission.
            models.Index(
                F("submission"),
                F("open_slots"),
                F("position"),
                condition=Q(open_slots__gt=0),
                name="trajectory_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task.external_id} of {self.submission}"


class Screenshot(models.Model):
    """An image by its content: ``sha256`` of the original bytes. Sizes in pixels and bytes."""

    sha256 = models.CharField(max_length=64, unique=True)
    media_type = models.CharField(max_length=20)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    size = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return self.sha256[:12]


class Step(models.Model):
    """Observation and action number ``index``, from 0. Clicks are in pixels of the agent's viewport."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="steps")
    index = models.PositiveIntegerField()
    action = models.TextField(blank=True)
    thought = models.TextField(null=True, blank=True)  # noqa: DJ001 - null is "none recorded"
    url = models.TextField(blank=True)
    status = models.CharField(max_length=10, blank=True)
    screenshot = models.ForeignKey(Screenshot, on_delete=models.PROTECT, null=True, blank=True, related_name="steps")
    file_name = models.CharField(max_length=255, blank=True)
    click_x = models.FloatField(null=True, blank=True)
    click_y = models.FloatField(null=True, blank=True)
    warnings = models.JSONField(default=list)

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["trajectory", "index"], name="step_index_once")]

    def __str__(self) -> str:
        return f"step {self.index}"


class Attachment(models.Model):
    """A file that came with a trajectory beside its screenshots, by its content."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="attachments")
    kind = models.CharField(max_length=20, choices=[(k.value, k.value) for k in AttachmentKind])
    name = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trajectory", "name"], name="attachment_name_once")]

    def __str__(self) -> str:
        return self.name


class Upload(models.Model):
    """A package on its way in through the web or the API, and its report when it has been read."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="uploads")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="+")
    agent_name = models.CharField(max_length=200)
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=255)
    keep_valid = models.BooleanField(default=False)
    dry_run = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True, blank=True)
    report = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    submission = models.ForeignKey(Submission, on_delete=models.SET_NULL, null=True, blank=True, related_name="uploads")

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.file_name
