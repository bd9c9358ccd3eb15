"""Benchmarks, their tasks by version, and the key points of each task."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.text import Truncator

from annotation.clock import CreatedAtField

NO_LIMIT = "Empty: no limit."


class Benchmark(models.Model):
    """A set of tasks, such as Online-Mind2Web.

    ``bundled_as`` is the slug in the evidence bundle that it came in, and empty for all others. A bundled benchmark
    belongs to one audit: its catalogue is read-only, and no list shows it. An archived benchmark takes no uploads, and
    lists show it only if asked; its submissions are archived too.

    The quotas limit what its submissions may use: ``quota_bytes`` of stored files, ``quota_calls`` of models that are
    paid for, and ``quota_cost`` in US dollars. Null: no limit. See `annotation.quotas`.
    """

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    bundled_as = models.CharField(max_length=200, blank=True, default="", db_default="")
    archived_at = models.DateTimeField(null=True, blank=True)
    quota_bytes = models.PositiveBigIntegerField(
        "quota of stored files, in bytes", null=True, blank=True, help_text=NO_LIMIT
    )
    quota_calls = models.PositiveBigIntegerField("quota of model calls", null=True, blank=True, help_text=NO_LIMIT)
    quota_cost = models.DecimalField(
        "quota of cost, in US dollars",
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        help_text=NO_LIMIT,
        validators=[MinValueValidator(0)],
    )

    @property
    def stated_slug(self) -> str:
        """Return the slug for evidence bundles; a benchmark that came in a bundle has the slug from there."""
        return self.bundled_as or self.slug

    def __str__(self) -> str:
        return self.name


class Task(models.Model):
    """One version of an instruction. A changed text is a new version, so labels keep the text they judged.

    ``external_id`` is the benchmark's task id (with its date suffix, if it has one); ``reference_length`` is the
    number of steps a person needed.
    """

    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="tasks")
    external_id = models.CharField(max_length=128)
    version = models.PositiveIntegerField(default=1)
    text = models.TextField()
    website = models.CharField(max_length=500, blank=True)
    reference_length = models.PositiveIntegerField(null=True, blank=True)
    level = models.CharField(max_length=40, blank=True)
    created_at = CreatedAtField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "external_id", "version"], name="task_version_once"),
        ]

    @property
    def short_text(self) -> str:
        return Truncator(" ".join(self.text.split())).chars(70)

    def __str__(self) -> str:
        return self.external_id


class KeyPoint(models.Model):
    """A requirement stated in a task. It is retired instead of reworded, because findings refer to its wording.

    An annotator's proposal has no ``accepted_at`` and is seen by the maintainer only.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="key_points")
    position = models.PositiveIntegerField()
    text = models.CharField(max_length=500)
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    accepted_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "text"],
                condition=Q(retired_at__isnull=True, accepted_at__isnull=False),
                name="key_point_once_per_task",
            ),
            # Two annotators may propose the same text: rejecting the second would reveal the first.
            models.UniqueConstraint(
                fields=["task", "text", "proposed_by"],
                condition=Q(retired_at__isnull=True, accepted_at__isnull=True),
                name="key_point_proposed_once_per_person",
            ),
        ]

    def __str__(self) -> str:
        return self.text
