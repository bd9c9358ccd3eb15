"""The next adjudication: the choice from the queue, without loading all of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.signals import post_init
from django.utils import timezone

from annotation import queue, workflow
from annotation.models import Adjudication, Person, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows

VERDICTS = [(1, 1, 1), (1, 2, 1), (0, 1, 1), (0, 1, 2), (0, 1, 0), (0, 2, 1)]


@shared_rows
def waiting() -> tuple[Submission, dict[str, Person]]:
    """Six that wait: a flagged one, and disputes of each kind."""
    submission = testing.bare_submission(6, agent="Hard Agent")
    people = testing.cast(submission)
    rows = list(submission.trajectories.order_by("position"))
    for row, said in zip(rows, VERDICTS, strict=True):
        for name, verdict in zip(("alice", "bob", "chen"), said, strict=True):
            workflow.claim_this(people[name], row)
            fields = {"failure_step": 0} if verdict == 0 else {}
            workflow.submit(people[name], row, testing.content(row, verdict, **fields))
    workflow.flag(people["bob"], rows[0], "Look at the price.")
    return submission, people


def places(rows: list[Any]) -> list[int]:
    return [row.position for row in rows]


def test_next_has_the_order_of_the_queue(waiting: Any) -> None:
    submission, people = waiting
    assert places(queue.next_to_adjudicate(people["carol"], submission)) == [3, 5, 2, 4, 1, 0]
    assert places(queue.load_queue(submission)) == [3, 5, 2, 4, 1, 0]


def test_next_is_of_the_kind_that_was_asked_for(waiting: Any) -> None:
    submission, people = waiting
    assert places(queue.next_to_adjudicate(people["carol"], submission, "opposed")) == [2, 4]


def test_next_puts_trajectories_opened_by_others_last_and_own_ones_first(waiting: Any, settings: Any) -> None:
    submission, people = waiting
    workflow.open_adjudication(people["carol"], submission.trajectories.get(position=2))
    assert places(queue.next_to_adjudicate(people["carol"], submission, "flagged")) == [2, 0]
    other = testing.person("cora")
    workflow.add_member(people["mira"], submission, other, "adjudicator")
    assert places(queue.next_to_adjudicate(other, submission)) == [3, 5, 4, 1, 0]
    settings.ADJUDICATION_MINUTES = 0
    assert places(queue.next_to_adjudicate(other, submission)) == [3, 5, 4, 1, 0, 2]


def test_next_offers_what_can_be_taken_over_when_a_colleague_has_opened_more_than_the_choices(
    waiting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission, people = waiting
    monkeypatch.setattr(queue, "MOST_CHOICES", 2)
    for row in submission.trajectories.all():
        workflow.open_adjudication(people["carol"], row)
    opened_yesterday = Adjudication.objects.filter(trajectory__position=0)
    opened_yesterday.update(opened_at=timezone.now() - timedelta(days=1))
    other = testing.person("cora")
    workflow.add_member(people["mira"], submission, other, "adjudicator")
    assert places(queue.next_to_adjudicate(other, submission)) == [0]


def test_next_loads_no_more_trajectories_than_it_offers(waiting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    submission, people = waiting
    monkeypatch.setattr(queue, "MOST_CHOICES", 2)
    loaded: list[int] = []

    def count(instance: Trajectory, **_: Any) -> None:
        loaded.append(instance.pk)

    post_init.connect(count, sender=Trajectory)
    try:
        found = queue.next_to_adjudicate(people["carol"], submission)
    finally:
        post_init.disconnect(count, sender=Trajectory)
    assert places(found) == [3, 5]
    assert sorted(loaded) == sorted(row.pk for row in found)
