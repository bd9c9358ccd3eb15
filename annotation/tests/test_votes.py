"""The votes beside the verdicts of an adjudicator's form: where the labels may be seen, and nowhere else."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows

VOTES = re.compile(r'class="votes" title="([^"]*)">×(\d)')


@shared_rows
def labelled(people: dict[str, Person], submission: Submission) -> list[Trajectory]:
    """A dispute, one failure against two successes, and a unanimous success that alice has flagged."""
    trajectories = list(submission.trajectories.all())
    for verdicts, trajectory in zip(((0, 1, 1), (1, 1, 1)), trajectories, strict=True):
        for name, verdict in zip(("alice", "bob", "chen"), verdicts, strict=True):
            testing.label(people[name], trajectory, verdict)
    workflow.flag(people["alice"], trajectories[1], "Look at the price.")
    return trajectories


@pytest.fixture
def carol(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["carol"])
    return client


def desk(client: Client, trajectory: Trajectory) -> str:
    return client.get(reverse("adjudication", args=[trajectory.pk])).content.decode()


def test_votes_of_a_dispute_are_beside_each_verdict(
    carol: Client, people: dict[str, Person], labelled: list[Trajectory]
) -> None:
    assert VOTES.findall(desk(carol, labelled[0])) == []  # nobody may look before the labels are fixed
    workflow.open_adjudication(people["carol"], labelled[0])
    page = desk(carol, labelled[0])
    found = {re.search(r'value="(\d)"', part)[1]: VOTES.search(part) for part in page.split('class="option ')[1:4]}  # type: ignore[index]
    said = {verdict: (votes[1], votes[2]) for verdict, votes in found.items() if votes}
    assert said == {"0": ("A1", "1"), "1": ("A2, A3", "2"), "2": ("nobody", "0")}


def test_votes_are_in_no_blind_spot_check_and_appear_when_the_decision_is_changed(
    carol: Client, people: dict[str, Person], labelled: list[Trajectory]
) -> None:
    adjudication = workflow.open_adjudication(people["carol"], labelled[1])
    assert adjudication.blind
    page = desk(carol, labelled[1])
    assert 'name="verdict"' in page
    assert "votes" not in page
    workflow.decide(people["carol"], labelled[1], testing.content(labelled[1], 0))
    workflow.open_adjudication(people["carol"], labelled[1], "I misread the price.")
    assert VOTES.findall(desk(carol, labelled[1])) == [("nobody", "0"), ("A1, A2, A3", "3"), ("nobody", "0")]


def test_votes_are_not_in_the_form_of_an_annotator(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    trajectory = submission.trajectories.earliest("pk")
    testing.label(people["alice"], trajectory, 0)
    workflow.claim_this(people["bob"], trajectory)
    client.force_login(people["bob"])
    page = client.get(reverse("trajectory", args=[trajectory.pk])).content.decode()
    assert 'name="verdict"' in page
    assert "votes" not in page
