"""A clock that dates the demo's work to the hours before the demo is loaded.

The working times are simulated from the length of the texts. The names of the demo's benchmarks state this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db.models import Max
from django.utils import timezone
from django.utils.timezone import now as real_now

from annotation import clock, workflow
from annotation.models import Event, Person, Trajectory

WORKED = timedelta(hours=12)  # before the demo is loaded; all its work takes less time
TICK = timedelta(milliseconds=10)  # between two readings of the clock
CHARACTERS = 25.0  # read in a second, about 300 words a minute
PICTURE = 4.0  # seconds for a screenshot
LEAST = 20.0  # seconds
LONGEST_REPORT = 60.0  # seconds of work in one report of activity
PACE = {"alice": 1.0, "bob": 0.85, "chen": 1.2, "carol": 1.1}  # carol reads the labels as well


class PastClock:
    """A clock in the past that advances only with simulated work, never beyond the real time."""

    def __init__(self, begins: datetime) -> None:
        self._time = begins

    def now(self) -> datetime:
        self._time += TICK
        return min(self._time, real_now())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make this process, and every workflow function in it, use this clock."""
        before = timezone.now, clock.now
        timezone.now = clock.now = self.now
        try:
            yield
        finally:
            timezone.now, clock.now = before

    def work(self, person: Person, trajectory: Trajectory) -> None:
        """Simulate that the person reads every step of a reserved trajectory, and report the time as a desk does."""
        steps = list(trajectory.steps.values_list("index", flat=True))
        left = reading_seconds(person.username, trajectory)
        while left > 0:
            seconds = min(left, LONGEST_REPORT)
            self._time += timedelta(seconds=seconds)
            workflow.record_activity(person, trajectory, seconds, steps)
            left -= seconds


def begin(benchmarks: list[str]) -> PastClock:
    """Return a clock that starts after the last event of these benchmarks, or `WORKED` ago."""
    events = Event.objects.filter(submission__benchmark__slug__in=benchmarks)
    last = events.aggregate(last=Max("at"))["last"]
    return PastClock(max(filter(None, (last, real_now() - WORKED))))


def reading_seconds(username: str, trajectory: Trajectory) -> float:
    """Return the reading time of this person for this trajectory: by its length and their pace, varied by up to 15%."""
    steps = list(trajectory.steps.values_list("action", "thought"))
    texts = [trajectory.task_text, trajectory.final_answer, *(text for step in steps for text in step)]
    seconds = sum(len(text or "") for text in texts) / CHARACTERS + PICTURE * len(steps)
    drawn = hashlib.sha256(f"{username} {trajectory.task.external_id}".encode()).digest()[0] / 255
    return max(LEAST, seconds) * PACE.get(username, 1.0) * (0.85 + 0.3 * drawn)
