"""What is kept of people while they work: what they have typed, how long and where they looked, their own phrases."""

from __future__ import annotations

from django.db import models

from annotation.models.reviews import person
from annotation.models.trajectories import Trajectory


class Draft(models.Model):
    """What a person has entered but not submitted. It stays theirs when the lease ends.

    ``version`` counts the saves, so that a second tab that saves over the first is noticed.
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
    """How long a person was active on a trajectory, and which steps they opened.

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
            # Read by the maintainer's page: who is at work.
            models.Index(fields=["last_at"], name="activity_last_at"),
        ]

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s"


class Phrase(models.Model):
    """A wording that a person uses again in their reasoning."""

    person = person(related_name="phrases")
    text = models.CharField(max_length=500)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["person", "text"], name="phrase_once_per_person")]

    def __str__(self) -> str:
        return self.text
