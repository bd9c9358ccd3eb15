"""Data about people at work and in practice: drafts, active time, phrases and answers."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from annotation.clock import CreatedAtField
from annotation.models.reviews import VERDICTS, person
from annotation.models.trajectories import Trajectory
from annotation.records import Verdict


class Draft(models.Model):
    """Input that a person has not submitted yet. It stays theirs when the lease ends.

    ``version`` counts the changes, to detect that a second tab would overwrite the first.
    """

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="drafts")
    author = person(related_name="drafts")
    content = models.JSONField(default=dict)
    version = models.PositiveIntegerField(default=1)
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trajectory", "author"], name="one_draft_per_author")]

    def __str__(self) -> str:
        return f"draft {self.version}"


class Activity(models.Model):
    """Active time of a person on a trajectory, and the steps they opened.

    A second counts while the page is visible and something was pressed, moved, typed or scrolled in the last
    60 seconds; the server never counts more than the time since the last report (``last_at``). ``steps`` are the
    numbers of the steps that were shown, sorted.
    """

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="activities")
    person = person(related_name="activities")
    seconds = models.FloatField(default=0)
    steps = models.JSONField(default=list)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trajectory", "person"], name="one_activity_per_person")]
        indexes = [
            # Serves "Active now" on the path of a submission.
            models.Index(fields=["last_at"], name="activity_last_at"),
        ]

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s"


class Phrase(models.Model):
    person = person(related_name="phrases")
    text = models.CharField(max_length=500)
    made_at = CreatedAtField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["person", "text"], name="phrase_once_per_person")]

    def __str__(self) -> str:
        return self.text


class Affiliation(models.Model):
    """A declared link to an organisation. Until it ends, the person does not evaluate the organisation's agents."""

    person = person(related_name="affiliations")
    organisation = models.CharField(max_length=200)
    declared_at = CreatedAtField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.organisation


class KnownAnswer(models.Model):
    """The right label of a trajectory and the reasons, entered by a maintainer.

    In a practice set it is shown after the answer. In a submission under review it makes the trajectory a gold item,
    which only the maintainer can distinguish from the others. ``findings`` maps the key point's id (text) to its
    finding.
    """

    trajectory = models.OneToOneField(Trajectory, on_delete=models.CASCADE, related_name="known_answer")
    verdict = models.PositiveSmallIntegerField(choices=VERDICTS)
    failure_step = models.PositiveIntegerField(null=True, blank=True)
    failure_type = models.CharField(max_length=40, blank=True)
    cause = models.CharField(max_length=40, blank=True)
    findings = models.JSONField(default=dict)
    explanation = models.TextField()
    author = person(related_name="+")
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=[v.value for v in Verdict]), name="answer_verdict_known"),
            models.CheckConstraint(condition=~Q(explanation=""), name="answer_explained"),
        ]

    def __str__(self) -> str:
        return f"{self.get_verdict_display()} is correct"


class PracticeAnswer(models.Model):
    """The answer of a newcomer in round ``round`` of a practice set, and whether the verdict was right."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="practice_answers")
    person = person(related_name="practice_answers")
    round = models.PositiveIntegerField(default=1)
    content = models.JSONField(default=dict)
    verdict = models.PositiveSmallIntegerField(choices=VERDICTS)
    right = models.BooleanField()
    answered_at = models.DateTimeField()

    class Meta:
        ordering = ["round", "answered_at"]
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "person", "round"], name="practised_once_a_round"),
            models.CheckConstraint(condition=Q(verdict__in=[v.value for v in Verdict]), name="practice_verdict_known"),
        ]

    def __str__(self) -> str:
        return "right" if self.right else "wrong"
