"""Alignment of a judge with people: the locked split, optimisations, and looks at the test split.

A part of `judges.models`, which imports it.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.clock import CreatedAtField
from annotation.models import Benchmark, Submission
from annotation.models import triggers as annotation_triggers

annotation_triggers.APPEND_ONLY |= {
    "judges_alignmentsplit": "",
    "judges_alignmenttask": "",
    "judges_lookattest": "",
    "judges_disagreementmark": "",
}
annotation_triggers.FILLED_ONCE["judges_lookattest"] = ("report",)


class Part(models.TextChoices):
    TRAIN = "train", "training"
    DEVELOPMENT = "development", "development"
    TEST = "test", "test"


PART_KNOWN = Q(part__in=["train", "development", "test"])


class AlignmentSplit(models.Model):
    """The split of a benchmark's tasks into training, development and test, drawn once.

    ``seed`` follows from what was committed before, so that nobody chooses the split. A task without a row belongs to
    the training tasks: it was added, or first decided, after the draw. ``digest`` is
    the SHA-256 of the rows, so that a row that was added later is found.
    """

    benchmark = models.OneToOneField(Benchmark, on_delete=models.PROTECT, related_name="alignment_split")
    seed = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = CreatedAtField()

    def __str__(self) -> str:
        return f"split of {self.benchmark}"


class AlignmentTask(models.Model):
    """A task of a split, all of its versions. ``texts`` are the SHA-256 of its normalised texts at the draw."""

    split = models.ForeignKey(AlignmentSplit, on_delete=models.PROTECT, related_name="tasks")
    external_id = models.CharField(max_length=128)
    part = models.CharField(max_length=20, choices=Part)
    texts = models.JSONField(default=list)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["split", "external_id"], name="alignment_task_once"),
            models.CheckConstraint(condition=PART_KNOWN, name="alignment_part_known"),
        ]

    def __str__(self) -> str:
        return f"{self.external_id}: {self.part}"


class Alignment(models.Model):
    """One optimisation of the criteria of ``judge``, in at most ``rounds`` rewritten versions.

    ``submissions`` are those whose verdicts it uses, ``written`` judges whose criteria a maintainer wrote from its
    disagreements. ``max_cost`` (US dollars) and ``max_calls`` limit the paid calls
    of all its runs and of the optimiser. ``stopped`` is the reason if it waits, ``finished`` the reason of its end.
    ``worker`` has it until its heartbeat is old.
    """

    split = models.ForeignKey(AlignmentSplit, on_delete=models.PROTECT, related_name="alignments")
    judge = models.ForeignKey("judges.Judge", on_delete=models.PROTECT, related_name="alignments")
    submissions: models.ManyToManyField[Submission, models.Model] = models.ManyToManyField(
        Submission, related_name="alignments"
    )
    written: models.ManyToManyField[Any, models.Model] = models.ManyToManyField("judges.Judge", related_name="+")
    optimiser = models.CharField(max_length=40)
    rounds = models.PositiveIntegerField()
    max_cost = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    max_calls = models.PositiveIntegerField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = CreatedAtField()
    finished_at = models.DateTimeField(null=True, blank=True)
    finished = models.CharField(max_length=500, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    stopped = models.CharField(max_length=500, blank=True)
    worker = models.CharField(max_length=40, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.CheckConstraint(condition=Q(rounds__gte=1), name="alignment_has_rounds")]

    @property
    def state(self) -> str:
        """Return the first that applies: cancelled, finished, stopped or running."""
        states = {"cancelled": self.cancelled_at, "finished": self.finished_at, "stopped": self.stopped}
        return next((name for name, holds in states.items() if holds), "running")

    def __str__(self) -> str:
        return f"alignment {self.pk} of {self.judge}"


class AlignmentVersion(models.Model):
    """Version ``number`` of the criteria, from 0, the base; each is a judge of its own, written from its ``parent``.

    ``judge`` is null if the optimiser gave no usable text. ``accepted`` is null until development has decided;
    ``figures`` are those of development against the parent, and ``reason`` says why.
    """

    alignment = models.ForeignKey(Alignment, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    judge = models.ForeignKey("judges.Judge", on_delete=models.PROTECT, null=True, related_name="alignment_versions")
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    figures = models.JSONField(null=True)
    accepted = models.BooleanField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    created_at = CreatedAtField()

    class Meta:
        ordering = ["alignment", "number"]
        constraints = [
            models.UniqueConstraint(fields=["alignment", "number"], name="alignment_version_once"),
            models.CheckConstraint(
                condition=Q(number=0) ^ Q(parent__isnull=False), name="alignment_version_has_parent"
            ),
            models.CheckConstraint(
                condition=Q(judge__isnull=False) | Q(accepted=False), name="alignment_version_without_text_lost"
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.alignment}"


class AlignmentRun(models.Model):
    """The run of a version over the tasks of one part in one submission; it is started once.

    ``replaced``: it was cancelled, and another one judges the part. Its calls still count.
    """

    version = models.ForeignKey(AlignmentVersion, on_delete=models.CASCADE, related_name="runs")
    part = models.CharField(max_length=20, choices=Part)
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="+")
    run = models.OneToOneField("judges.JudgeRun", on_delete=models.CASCADE, related_name="alignment_run")
    replaced = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["version", "part", "submission"], condition=Q(replaced=False), name="alignment_run_once"
            ),
            models.CheckConstraint(condition=PART_KNOWN, name="alignment_run_part_known"),
        ]

    def __str__(self) -> str:
        return f"{self.part} of {self.version}"


class LookAtTest(models.Model):
    """A look at the test split: who compared ``version`` with the base judge, and when.

    The row exists before the test tasks are judged. ``report`` is set once, from the figures.
    """

    version = models.ForeignKey(AlignmentVersion, on_delete=models.PROTECT, related_name="looks")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    looked_at = CreatedAtField()
    report = models.JSONField(null=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"look {self.pk} of {self.version}"


class DisagreementMark(models.Model):
    """A maintainer's opinion on a disagreement: are the people right, or the judge? The newest one counts."""

    class Right(models.TextChoices):
        PEOPLE = "people", "people"
        JUDGE = "judge", "judge"

    judgment = models.ForeignKey("judges.Judgment", on_delete=models.PROTECT, related_name="marks")
    right = models.CharField(max_length=10, choices=Right)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    marked_at = CreatedAtField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.CheckConstraint(condition=Q(right__in=["people", "judge"]), name="mark_right_known")]

    def __str__(self) -> str:
        return f"{self.right}, judgment {self.judgment_id}"
