"""Planned samples: a seeded draw of the trajectories of a submission that people label, made before the first label."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q

from annotation.models.reviews import person
from annotation.models.trajectories import Submission, Trajectory

LONGEST_STRATUM = 200


class SamplePlan(models.Model):
    """The terms and the draw of a planned sample. It never changes; a submission has at most one.

    ``secret`` is the seed that the chain had committed to before; ``seed`` is the SHA-256 of it and of the digest of
    all terms, so that nobody can choose the draw. ``goal`` is what the planner was asked, ``judge`` names the judge
    whose verdicts the items have (empty without one), ``labels`` is the number to draw by stratum. ``rule`` says when
    labelling may stop. See `annotation.workflow.sampling`.
    """

    class Estimand(models.TextChoices):
        RUNS = "runs"
        AGENT = "agent"

    submission = models.OneToOneField(Submission, on_delete=models.PROTECT, related_name="sample_plan")
    goal = models.JSONField()
    judge = models.JSONField()
    labels = models.JSONField()
    estimand = models.CharField(max_length=8, choices=Estimand.choices)
    rule = models.JSONField()
    secret = models.CharField(max_length=80)
    seed = models.CharField(max_length=64)
    planned_by = person(related_name="+")
    planned_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(estimand__in=["runs", "agent"]), name="plan_estimand_known"),
        ]

    def __str__(self) -> str:
        return f"sample plan of {self.submission_id}"


class PlannedItem(models.Model):
    """A trajectory of the population: its stratum, the judge's verdict on it, and the probability of the draw.

    ``position`` is the place in the order of labelling, from 0; null: not drawn.
    """

    plan = models.ForeignKey(SamplePlan, on_delete=models.PROTECT, related_name="items")
    trajectory = models.OneToOneField(Trajectory, on_delete=models.PROTECT, related_name="planned_item")
    stratum = models.CharField(max_length=LONGEST_STRATUM)
    judged = models.PositiveSmallIntegerField(null=True, blank=True)
    probability = models.FloatField()
    position = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "position"], name="planned_position_once"),
            models.CheckConstraint(condition=Q(probability__gt=0, probability__lte=1), name="planned_with_a_chance"),
            models.CheckConstraint(condition=~Q(stratum=""), name="planned_in_a_stratum"),
        ]

    def __str__(self) -> str:
        return self.stratum


def is_left_out() -> Exists:
    """Return the condition for rows whose trajectory a plan did not draw, so that nobody labels it."""
    return Exists(PlannedItem.objects.filter(trajectory=OuterRef("pk"), position__isnull=True))


def find_to_label(trajectories: models.QuerySet[Any]) -> models.QuerySet[Any]:
    """Leave out the trajectories that a plan did not draw; without a plan, all are to be labelled."""
    return trajectories.filter(~is_left_out())
