"""Planned samples: a seeded draw of the trajectories of a submission that people label, made before the first label."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Exists, F, OuterRef, Q

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

    NOT_SENT = "A planned sample cannot be sent: the published format needs a label for each trajectory."

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


class SampleStop(models.Model):
    """An early stop of labelling: only the first ``labelled`` places of the order count."""

    plan = models.OneToOneField(SamplePlan, on_delete=models.PROTECT, related_name="stop")
    labelled = models.PositiveIntegerField()
    stopped_by = person(related_name="+")
    stopped_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(labelled__gt=0), name="stopped_after_a_label")]

    def __str__(self) -> str:
        return f"stop of the {self.plan}"


# Items that nobody labels. Without a stop the second condition is null, so it does not hold.
LEFT_OUT = Q(position__isnull=True) | Q(position__gte=F("plan__stop__labelled"))


def is_left_out() -> Exists:
    """Return the condition for rows whose trajectory is not in the sample, so that nobody labels it."""
    return Exists(PlannedItem.objects.filter(LEFT_OUT, trajectory=OuterRef("pk")))


def find_to_label(trajectories: models.QuerySet[Any]) -> models.QuerySet[Any]:
    """Leave out the trajectories that are not in the sample; without a plan, all are to be labelled."""
    return trajectories.filter(~is_left_out())
