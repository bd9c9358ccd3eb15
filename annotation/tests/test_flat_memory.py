"""Pages about all trajectories of a submission: what each further trajectory costs in memory."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import quality, queue
from annotation.models import Assignment, Label, Person, Submission
from annotation.tests import testing
from annotation.tests.memory import LARGE, SMALL, bytes_for_each
from annotation.tests.shared_rows import shared_rows


@shared_rows
def sizes() -> list[Submission]:
    """Two submissions with disputed labels of three people, measured and hasty."""
    return [disputed(size) for size in (SMALL, LARGE)]


def disputed(size: int) -> Submission:
    submission = testing.bare_submission(size, steps=4, agent=f"Agent of {size}")
    people = testing.cast(submission)
    now = timezone.now()
    rows = list(submission.trajectories.all())
    for slot, name in enumerate(("alice", "bob", "chen"), 1):
        held = Assignment.objects.bulk_create(
            Assignment(trajectory=row, annotator=people[name], slot=slot, claimed_at=now) for row in rows
        )
        Label.objects.bulk_create(
            Label(
                assignment=one,
                verdict=slot % 2 + 1,
                cause="blocked" if slot % 2 else "",
                reasoning="Seen.",
                created_at=now,
                active_seconds=300 + number,
                steps_seen=[0],
            )
            for number, one in enumerate(held)
        )
    return submission


def test_quality_holds_numbers_of_each_trajectory_and_no_rows(
    sizes: list[Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three labels: two numbers of 8 bytes for the medians and one for the hint, and what sorting takes."""
    monkeypatch.setattr(quality, "AT_ONCE", 50)
    assert bytes_for_each(sizes, lambda one: quality.report(one).hints[:50]) < 300


def test_queue_of_an_adjudicator_loads_the_page_that_is_shown(
    client: Client, sizes: list[Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it waits: one number of some 45 bytes for each, twice while they are sorted."""
    monkeypatch.setattr(queue, "AT_ONCE", 50)
    client.force_login(Person.objects.get(username="carol"))
    assert bytes_for_each(sizes, lambda one: client.get(reverse("adjudicate", args=[one.pk]))) < 300
