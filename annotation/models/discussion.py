"""Comments on trajectories after the freeze, and questions about the guidelines before it.

They change no state, and no verdict rests on them. So they have no events, and exports and bundles leave them out.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from annotation.models.reviews import person
from annotation.models.trajectories import Submission, Trajectory


class Comment(models.Model):
    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="comments")
    author = person(related_name="comments")
    step = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField()
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["written_at", "pk"]
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="comment_has_a_text")]

    def __str__(self) -> str:
        return self.text


class Question(models.Model):
    """A question to the maintainer. Once answered, everybody who labels or adjudicates reads it, unless ``private``.

    It is no `Report`: that belongs to a trajectory and to the evidence, and promises that only maintainers read it.
    """

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="questions")
    asker = person(related_name="questions")
    text = models.TextField()
    asked_at = models.DateTimeField()
    answer = models.TextField(blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    answered_by = person(null=True, blank=True, related_name="+")
    private = models.BooleanField(default=False)

    class Meta:
        ordering = ["asked_at", "pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="question_has_a_text"),
            models.CheckConstraint(
                condition=Q(answered_at__isnull=True, answer="") | (Q(answered_at__isnull=False) & ~Q(answer="")),
                name="question_answered_with_a_text",
            ),
        ]

    def __str__(self) -> str:
        return self.text
