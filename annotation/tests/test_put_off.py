"""Trajectories that an annotator puts off for a day: draft and reservation stay, the queue goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import clock, queue, workflow
from annotation.models import Assignment, Draft, Event, Label, Person, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow.annotating import MOST_PUT_OFF, PUT_OFF
from annotation.workflow.guards import lease


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    return workflow.claim(people["alice"], submission).trajectory


@pytest.fixture
def alice(people: dict[str, Person]) -> Person:
    return people["alice"]


def test_a_trajectory_that_is_put_off_stays_reserved_for_a_day_and_the_queue_goes_on(
    alice: Person, submission: Submission, held: Trajectory
) -> None:
    events = Event.objects.count()
    assignment = workflow.put_off(alice, held)

    left = assignment.lease_expires_at - clock.now()
    assert PUT_OFF - timedelta(minutes=1) < left <= PUT_OFF
    assert queue.find_held(alice, submission) is None
    assert [each.trajectory_id for each in queue.find_put_off(alice, submission)] == [held.pk]
    assert Event.objects.count() == events
    following = workflow.claim(alice, submission)
    assert following is not None
    assert following.trajectory_id != held.pk
    held.refresh_from_db()
    assert held.open_slots == submission.required_labels - 1


def test_the_last_report_of_the_page_does_not_take_it_up_again(alice: Person, held: Trajectory) -> None:
    until = workflow.put_off(alice, held).lease_expires_at

    assert workflow.record_activity(alice, held, 5, [0]) == until
    assert Assignment.objects.get(trajectory=held, annotator=alice).put_off_until == until


def test_work_on_it_extends_a_reservation_that_is_about_to_end(
    alice: Person, held: Trajectory, monkeypatch: Any
) -> None:
    until = workflow.put_off(alice, held).lease_expires_at
    late = until - timedelta(minutes=1)
    monkeypatch.setattr(clock, "now", lambda: late)

    assert workflow.record_activity(alice, held, 5, [0]) == late + lease()
    assert queue.find_held(alice, held.submission).trajectory_id == held.pk  # resumed: no longer put off
    assert not queue.find_put_off(alice, held.submission).exists()


def test_putting_off_again_adds_no_day(alice: Person, held: Trajectory, monkeypatch: Any) -> None:
    until = workflow.put_off(alice, held).lease_expires_at
    monkeypatch.setattr(clock, "now", lambda: until - timedelta(hours=1))

    assert workflow.put_off(alice, held).lease_expires_at == until
    assert Assignment.objects.get(trajectory=held, annotator=alice).lease_expires_at == until


def test_it_is_resumed_where_it_was_left(
    client: Client, alice: Person, submission: Submission, held: Trajectory
) -> None:
    client.force_login(alice)
    fields = {"version": "0", "reasoning": "Half a thought", "verdict": "1"}
    page = client.post(reverse("put-off", args=[held.pk]), fields, follow=True).content.decode()
    assert "Put off until" in page
    assert "Resume" in page
    assert Draft.objects.get(trajectory=held).content["reasoning"] == "Half a thought"
    assert "You put this" in client.get(reverse("trajectory", args=[held.pk])).content.decode()

    page = client.post(reverse("hold", args=[held.pk]), follow=True).content.decode()
    assert "Half a thought" in page
    assert "You put this" not in page
    assert queue.find_held(alice, submission).trajectory_id == held.pk


def test_it_can_be_submitted_without_resuming(alice: Person, held: Trajectory) -> None:
    workflow.put_off(alice, held)
    testing.label(alice, held)

    assert Label.objects.count() == 1
    assert not queue.find_put_off(alice, held.submission).exists()


def test_after_a_day_the_slot_returns_to_the_queue_and_the_draft_stays(
    alice: Person, submission: Submission, held: Trajectory, monkeypatch: Any
) -> None:
    workflow.save_draft(alice, held, {"reasoning": "Half a thought"}, 0)
    end = workflow.put_off(alice, held).lease_expires_at
    monkeypatch.setattr(clock, "now", lambda: end + timedelta(seconds=1))

    assert workflow.return_expired_leases(submission) == 1
    assert not queue.find_put_off(alice, submission).exists()
    assert Draft.objects.get(trajectory=held).content == {"reasoning": "Half a thought"}


def test_only_a_few_can_be_put_off_at_a_time(alice: Person, tmp_path: Any) -> None:
    submission = testing.bare_submission(MOST_PUT_OFF + 1)
    testing.cast(submission)
    rows = []
    for _ in range(MOST_PUT_OFF + 1):
        rows.append(workflow.claim(alice, submission).trajectory)
        if len(rows) <= MOST_PUT_OFF:
            workflow.put_off(alice, rows[-1])

    with pytest.raises(workflow.Conflict, match="You have put off 5 trajectories"):
        workflow.put_off(alice, rows[-1])
    workflow.put_off(alice, rows[0])  # again: it counts once


@pytest.mark.parametrize("name", ["bob", "carol", "mira", "dave"])
def test_nobody_else_puts_it_off(client: Client, people: dict[str, Person], held: Trajectory, name: str) -> None:
    client.force_login(people[name])
    response = client.post(reverse("put-off", args=[held.pk]), {"version": "0"})

    assert response.status_code in {302, 403, 404, 409}
    assert Assignment.objects.get(trajectory=held).put_off_until is None


def test_a_labelled_or_returned_trajectory_cannot_be_put_off(alice: Person, held: Trajectory) -> None:
    testing.label(alice, held)
    with pytest.raises(workflow.Conflict):
        workflow.put_off(alice, held)
