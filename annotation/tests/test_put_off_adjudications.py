"""Trajectories that an adjudicator puts off for a day: draft and reservation stay, the queue goes on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import clock, queue, workflow
from annotation.models import Adjudication, Draft, Event, Membership, Person, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow.annotating import MOST_PUT_OFF, PUT_OFF


@shared_rows
def disputes(people: dict[str, Person], submission: Submission) -> list[Trajectory]:
    """Both trajectories are disputes; carol has opened the first."""
    rows = list(submission.trajectories.order_by("position"))
    for row in rows:
        for name, verdict in zip(("alice", "bob", "chen"), (0, 1, 1), strict=True):
            testing.label(people[name], row, verdict)
    workflow.open_adjudication(people["carol"], rows[0])
    return rows


@pytest.fixture
def carol(people: dict[str, Person]) -> Person:
    return people["carol"]


@pytest.fixture
def other(people: dict[str, Person], submission: Submission) -> Person:
    """A second adjudicator."""
    erin = testing.person("erin")
    workflow.add_member(people["mira"], submission, erin, Membership.Role.ADJUDICATOR)
    return erin


def test_put_off_trajectory_stays_reserved_for_a_day_and_the_queue_continues(
    carol: Person, submission: Submission, disputes: list[Trajectory]
) -> None:
    events = Event.objects.count()
    until = workflow.put_off_adjudication(carol, disputes[0])
    assert PUT_OFF - timedelta(minutes=1) < until - clock.now() <= PUT_OFF
    assert queue.next_to_adjudicate(carol, submission) == [disputes[1]]
    assert queue.count_waiting(carol, submission) == (0, 1, 1)
    assert Event.objects.count() == events


def test_nobody_takes_over_a_put_off_trajectory_before_the_day_is_over(
    carol: Person, other: Person, submission: Submission, disputes: list[Trajectory], monkeypatch: Any, settings: Any
) -> None:
    settings.ADJUDICATION_MINUTES = 1
    Adjudication.objects.update(opened_at=clock.now() - timedelta(hours=9))
    until = workflow.put_off_adjudication(carol, disputes[0])
    assert disputes[0] not in queue.next_to_adjudicate(other, submission)
    with pytest.raises(workflow.Conflict, match="Another adjudicator"):
        workflow.open_adjudication(other, disputes[0])
    monkeypatch.setattr(clock, "now", lambda: until + timedelta(seconds=1))
    assert disputes[0] in queue.next_to_adjudicate(other, submission)
    assert workflow.open_adjudication(other, disputes[0]).adjudicator == other


def test_put_off_trajectory_is_resumed_with_its_draft_and_step(
    client: Client, carol: Person, submission: Submission, disputes: list[Trajectory]
) -> None:
    client.force_login(carol)
    fields = {"version": "0", "reasoning": "Half a thought", "verdict": "1"}
    page = client.post(reverse("put-off-adjudication", args=[disputes[0].pk]), fields, follow=True).content.decode()
    assert "Put off until" in page
    assert "Trajectories that you put off" in page
    assert "Opened by you" not in page
    assert Draft.objects.get(trajectory=disputes[0]).content["reasoning"] == "Half a thought"
    assert "You put this" in client.get(reverse("adjudication", args=[disputes[0].pk])).content.decode()

    page = client.post(reverse("open-adjudication", args=[disputes[0].pk]), follow=True).content.decode()
    assert "Half a thought" in page
    assert "You put this" not in page
    assert queue.count_waiting(carol, submission) == (1, 1, 0)


def test_nobody_takes_over_what_was_just_resumed(
    client: Client, carol: Person, other: Person, submission: Submission, disputes: list[Trajectory], monkeypatch: Any
) -> None:
    until = workflow.put_off_adjudication(carol, disputes[0])
    Adjudication.objects.update(opened_at=until - PUT_OFF)
    resumed = until - timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: resumed)
    client.force_login(carol)
    client.post(reverse("open-adjudication", args=[disputes[0].pk]))
    assert disputes[0] not in queue.next_to_adjudicate(other, submission)
    with pytest.raises(workflow.Conflict, match="Another adjudicator"):
        workflow.open_adjudication(other, disputes[0])
    assert workflow.decide(carol, disputes[0], testing.content(disputes[0])).active_seconds is None  # not measured


def test_what_was_resumed_long_ago_can_be_taken_over(
    carol: Person, other: Person, submission: Submission, disputes: list[Trajectory], monkeypatch: Any, settings: Any
) -> None:
    workflow.put_off_adjudication(carol, disputes[0])
    workflow.open_adjudication(carol, disputes[0])
    later = clock.now() + timedelta(minutes=settings.ADJUDICATION_MINUTES, seconds=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert disputes[0] in queue.next_to_adjudicate(other, submission)
    assert workflow.open_adjudication(other, disputes[0]).adjudicator == other


def test_putting_it_off_again_adds_no_day(carol: Person, disputes: list[Trajectory], monkeypatch: Any) -> None:
    until = workflow.put_off_adjudication(carol, disputes[0])
    monkeypatch.setattr(clock, "now", lambda: until - timedelta(minutes=5))
    assert workflow.put_off_adjudication(carol, disputes[0]) == until
    assert Adjudication.objects.get().put_off_until == until
    workflow.open_adjudication(carol, disputes[0])
    assert workflow.put_off_adjudication(carol, disputes[0]) == until - timedelta(minutes=5) + PUT_OFF


def test_put_off_trajectory_is_work_on_home_when_nothing_else_waits(
    client: Client, carol: Person, disputes: list[Trajectory]
) -> None:
    workflow.put_off_adjudication(carol, disputes[0])
    workflow.open_adjudication(carol, disputes[1])
    workflow.decide(carol, disputes[1], testing.content(disputes[1]))
    client.force_login(carol)
    (work,) = client.get(reverse("home")).context["waiting"]
    assert (work.action, work.count, work.note) == ("Resume", 1, "1 trajectory put off by you")


def test_put_off_trajectory_can_be_decided_without_resuming(carol: Person, disputes: list[Trajectory]) -> None:
    workflow.put_off_adjudication(carol, disputes[0])
    assert workflow.decide(carol, disputes[0], testing.content(disputes[0])).put_off_until is None


def test_only_a_few_can_be_put_off_at_a_time(
    carol: Person, disputes: list[Trajectory], people: dict[str, Person], tmp_path: Path
) -> None:
    submission = testing.submission(tmp_path / "many", MOST_PUT_OFF + 1, steps=2, agent="Many Agent")
    testing.cast(submission)
    testing.label_all(people, submission, {f"task_{n:04d}": [0, 1, 1] for n in range(MOST_PUT_OFF + 1)})
    rows = list(submission.trajectories.order_by("position"))
    for row in rows:
        workflow.open_adjudication(carol, row)
    for row in rows[:-1]:
        workflow.put_off_adjudication(carol, row)
    with pytest.raises(workflow.Conflict, match="You have put off 5 trajectories"):
        workflow.put_off_adjudication(carol, rows[-1])
    workflow.put_off_adjudication(carol, rows[0])  # again: it counts once
    workflow.put_off_adjudication(carol, disputes[0])  # of another submission


@pytest.mark.parametrize("name", ["alice", "mira", "dave", "erin"])
def test_nobody_else_can_put_a_trajectory_off(
    client: Client, people: dict[str, Person], other: Person, disputes: list[Trajectory], name: str
) -> None:
    client.force_login((people | {"erin": other})[name])
    response = client.post(reverse("put-off-adjudication", args=[disputes[0].pk]), {"version": "0"})
    assert response.status_code in {403, 404, 409}
    assert Adjudication.objects.get().put_off_until is None


def test_unopened_trajectory_cannot_be_put_off(carol: Person, disputes: list[Trajectory]) -> None:
    with pytest.raises(workflow.Conflict):
        workflow.put_off_adjudication(carol, disputes[1])
    workflow.decide(carol, disputes[0], testing.content(disputes[0]))
    with pytest.raises(workflow.Conflict):
        workflow.put_off_adjudication(carol, disputes[0])
