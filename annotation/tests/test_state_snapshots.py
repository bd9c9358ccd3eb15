"""The states of a large submission: derived again only for the trajectories that had an event."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import progress, state_snapshots, workflow
from annotation.models import Assignment, Event, Label, Person, StateSnapshot, Submission, Trajectory
from annotation.models.events import append
from annotation.models.states import State, with_state
from annotation.tests import testing


@pytest.fixture
def large(db: Any, monkeypatch: pytest.MonkeyPatch) -> Submission:
    monkeypatch.setattr(state_snapshots, "LARGE", 2)
    return testing.bare_submission(12, steps=2)


@pytest.fixture
def people(large: Submission) -> dict[str, Person]:
    return testing.cast(large)


def label_all(people: dict[str, Person], row: Trajectory, verdicts: tuple[int, int, int]) -> None:
    for name, verdict in zip(("alice", "bob", "chen"), verdicts, strict=True):
        workflow.claim_this(people[name], row)
        workflow.submit(people[name], row, testing.content(row, verdict))


def label_without_event(person: Person, row: Trajectory, slot: int) -> None:
    assignment = Assignment.objects.create(trajectory=row, annotator=person, slot=slot, claimed_at=timezone.now())
    Label.objects.create(assignment=assignment, verdict=1, reasoning="Seen.", created_at=timezone.now())


def derive(submission: Submission) -> dict[State, int]:
    found = list(with_state(submission.trajectories.all()).values_list("state", flat=True))
    return {state: found.count(state.value) for state in State if state.value in found}


def shown(submission: Submission) -> dict[State, int]:
    return dict(progress.count_states(submission).states)


def test_states_follow_every_event_of_a_review(large: Submission, people: dict[str, Person]) -> None:
    rows = list(large.trajectories.order_by("position"))
    assert shown(large) == derive(large) == {State.IN_REVIEW: 12}
    label_all(people, rows[0], (1, 1, 1))
    label_all(people, rows[1], (1, 0, 1))
    label_all(people, rows[2], (0, 0, 0))
    assert shown(large) == derive(large) == {State.IN_REVIEW: 9, State.DISPUTE: 1, State.AGREED: 2}
    workflow.flag(people["bob"], rows[2], "Look at the price.")
    assert shown(large) == derive(large) == {State.IN_REVIEW: 9, State.DISPUTE: 1, State.FLAGGED: 1, State.AGREED: 1}
    workflow.open_adjudication(people["carol"], rows[1])
    assert progress.count_states(large).opened == 1
    workflow.decide(people["carol"], rows[1], testing.content(rows[1]))
    assert (shown(large), progress.count_states(large).opened) == (derive(large), 0)
    workflow.reopen(people["mira"], rows[1], "Look again.")
    assert shown(large) == derive(large)
    assert shown(large)[State.REOPENED] == 1
    workflow.revise(people["bob"], rows[0], testing.content(rows[0], 0), "A slip.")
    assert shown(large) == derive(large)
    workflow.revise(people["bob"], rows[0], testing.content(rows[0], 1), "No slip.")
    workflow.draw_spot_checks(people["carol"], large)  # one event for all trajectories that agree
    assert shown(large) == derive(large)
    assert State.AGREED not in shown(large)


def test_look_derives_no_state_of_a_trajectory_without_an_event(large: Submission, people: dict[str, Person]) -> None:
    rows = list(large.trajectories.order_by("position"))
    shown(large)
    for slot, name in enumerate(("alice", "bob", "chen"), 1):
        label_without_event(people[name], rows[5], slot)
    assert shown(large) == {State.IN_REVIEW: 12}
    label_all(people, rows[6], (1, 1, 1))
    assert shown(large) == {State.IN_REVIEW: 11, State.AGREED: 1}


def test_rows_that_changed_without_an_event_are_noticed_after_a_day(
    large: Submission, people: dict[str, Person]
) -> None:
    row = large.trajectories.get(position=5)
    shown(large)
    for slot, name in enumerate(("alice", "bob", "chen"), 1):
        label_without_event(people[name], row, slot)
    StateSnapshot.objects.update(computed_at=timezone.now() - timedelta(days=1, minutes=1))
    assert shown(large) == {State.IN_REVIEW: 11, State.AGREED: 1}


def test_snapshot_of_another_chain_is_not_used(large: Submission, people: dict[str, Person]) -> None:
    shown(large)
    row = large.trajectories.get(position=5)
    for slot, name in enumerate(("alice", "bob", "chen"), 1):
        label_without_event(people[name], row, slot)
    StateSnapshot.objects.update(hash="0" * 64)
    assert shown(large) == derive(large)


def test_snapshot_is_stored_again_after_many_events(
    large: Submission, people: dict[str, Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_snapshots, "STORE_AFTER", 3)
    shown(large)
    label_all(people, large.trajectories.get(position=3), (1, 1, 1))
    assert shown(large) == derive(large)
    stored = StateSnapshot.objects.get()
    assert stored.sequence == Event.objects.filter(submission=large).latest("sequence").sequence
    assert state_snapshots.count(bytes(stored.states))[State.AGREED] == 1


@pytest.mark.parametrize("task_id", [None, 5, ["task_0001"], {"of": "task"}])
def test_event_without_a_readable_task_has_all_states_derived(
    large: Submission, people: dict[str, Person], task_id: Any
) -> None:
    """The events of an audited submission came in somebody's bundle."""
    row = large.trajectories.get(position=5)
    shown(large)
    for slot, name in enumerate(("alice", "bob", "chen"), 1):
        label_without_event(people[name], row, slot)
    append(large, "label_submitted", task_id=task_id)
    assert shown(large) == derive(large)


def test_matrix_lists_the_trajectories_of_a_state_in_their_order(
    client: Client, large: Submission, people: dict[str, Person]
) -> None:
    for position in (7, 2, 9):
        label_all(people, large.trajectories.get(position=position), (1, 0, 1))
    client.force_login(people["mira"])
    page = client.get(reverse("submission-tasks", args=[large.pk]), {"state": "dispute"})
    assert [row["trajectory"].position for row in page.context["matrix"]] == [2, 7, 9]
    page = client.get(reverse("submission-tasks", args=[large.pk]), {"state": "dispute", "q": "task_0007"})
    assert [row["trajectory"].position for row in page.context["matrix"]] == [7]
    assert not list(client.get(reverse("submission-tasks", args=[large.pk]), {"state": "flagged"}).context["matrix"])


def test_submission_with_positions_far_apart_has_no_snapshot(large: Submission, people: dict[str, Person]) -> None:
    """A bundle names the positions of an audited submission: one byte for each could be any amount of memory."""
    large.trajectories.filter(position=11).update(position=2_000_000_000)
    assert shown(large) == {State.IN_REVIEW: 12}
    assert not StateSnapshot.objects.exists()


def test_small_submission_has_no_snapshot(db: Any) -> None:
    small = testing.bare_submission(3)
    testing.cast(small)
    assert shown(small) == {State.IN_REVIEW: 3}
    assert not StateSnapshot.objects.exists()
