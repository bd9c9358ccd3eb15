"""Answers of an adjudicator to those who flagged a trajectory."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Event, FlagAnswer, Person, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows

ANSWER = "Free delivery counts as the price shown in the cart."


@shared_rows
def flagged(people: dict[str, Person], submission: Submission) -> Trajectory:
    """All agree, and alice has flagged it: it is judged blind."""
    testing.label_all(people, submission, {"task_0000": [1, 1, 1]})
    trajectory = submission.trajectories.get(position=0)
    workflow.flag(people["alice"], trajectory, "Does delivery count?")
    return trajectory


def decide(people: dict[str, Person], flagged: Trajectory) -> None:
    workflow.open_adjudication(people["carol"], flagged)
    workflow.decide(people["carol"], flagged, testing.content(flagged, 1))


def see(client: Client, person: Person, name: str, pk: int) -> str:
    client.force_login(person)
    return client.get(reverse(name, args=[pk])).content.decode()


def answer(client: Client, person: Person, flagged: Trajectory, text: str = ANSWER) -> int:
    client.force_login(person)
    return client.post(reverse("answer-flags", args=[flagged.pk]), {"answer": text}).status_code


def test_who_flagged_reads_the_answer_and_nobody_else_does(
    client: Client, people: dict[str, Person], submission: Submission, flagged: Trajectory
) -> None:
    decide(people, flagged)
    assert "Does delivery count?" in see(client, people["carol"], "adjudicate", submission.pk)
    assert 'name="answer"' in see(client, people["carol"], "adjudication", flagged.pk)
    events = Event.objects.count()
    assert answer(client, people["carol"], flagged) == 302

    assert Event.objects.count() == events
    assert "Flags to answer" not in see(client, people["carol"], "adjudicate", submission.pk)
    for name in ("trajectory", "work"):
        target = flagged.pk if name == "trajectory" else submission.pk
        assert ANSWER in see(client, people["alice"], name, target)
        assert ANSWER not in see(client, people["bob"], name, target)


def test_a_later_flag_is_open_again_and_its_author_does_not_read_the_earlier_answer(
    client: Client, people: dict[str, Person], submission: Submission, flagged: Trajectory
) -> None:
    decide(people, flagged)
    answer(client, people["carol"], flagged)
    workflow.flag(people["bob"], flagged, "And the tax?")

    assert "And the tax?" in see(client, people["carol"], "adjudicate", submission.pk)
    assert ANSWER not in see(client, people["bob"], "work", submission.pk)
    assert ANSWER not in see(client, people["bob"], "trajectory", flagged.pk)


def test_a_blind_decision_comes_before_the_answer(
    client: Client, people: dict[str, Person], flagged: Trajectory
) -> None:
    workflow.open_adjudication(people["carol"], flagged)

    assert 'name="answer"' not in see(client, people["carol"], "adjudication", flagged.pk)
    assert answer(client, people["carol"], flagged) == 409
    assert not FlagAnswer.objects.exists()


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("mira", 403), ("dave", 404)])
def test_only_an_adjudicator_answers(
    client: Client, people: dict[str, Person], flagged: Trajectory, name: str, status: int
) -> None:
    decide(people, flagged)

    assert answer(client, people[name], flagged) == status


def test_an_empty_answer_and_one_after_the_freeze_are_refused(
    client: Client, people: dict[str, Person], submission: Submission, flagged: Trajectory
) -> None:
    decide(people, flagged)
    assert answer(client, people["carol"], flagged, "  ") == 400
    testing.adjudicate_all(people["carol"], submission)
    workflow.draw_spot_checks(people["carol"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)

    assert answer(client, people["carol"], flagged) == 409
    assert 'name="answer"' not in see(client, people["carol"], "adjudication", flagged.pk)
    assert not FlagAnswer.objects.exists()
