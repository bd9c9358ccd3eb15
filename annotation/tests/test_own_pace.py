"""An annotator's own pace and results on gold items; nothing about colleagues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import training, workflow
from annotation.models import Activity, KnownAnswer, Person, Submission
from annotation.tests import testing

SECONDS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]


@pytest.fixture
def submission(db: Any, tmp_path: Path) -> Submission:
    """Ten trajectories of three steps, all gold items; the right verdict is failure at the first two and the last."""
    made = testing.submission(tmp_path / "ten", trajectories=10)
    testing.cast(made)
    for trajectory in made.trajectories.order_by("position"):
        verdict = 0 if trajectory.position in (0, 1, 9) else 1
        workflow.set_known_answer(testing.person("mira"), trajectory, testing.content(trajectory, verdict))
    return made


@pytest.fixture
def people(submission: Submission) -> dict[str, Person]:
    return {name: testing.person(name) for name in ("alice", "bob", "mira")}


def label(person: Person, submission: Submission, count: int, factor: int = 1) -> None:
    """Label ``count`` trajectories as successes, each with its time; two of three steps are opened."""
    for trajectory, seconds in zip(submission.trajectories.order_by("position")[:count], SECONDS, strict=False):
        workflow.claim_this(person, trajectory)
        Activity.objects.update_or_create(
            trajectory=trajectory,
            person=person,
            defaults={"seconds": factor * seconds, "steps": [0, 1], "last_at": timezone.now()},
        )
        workflow.submit(person, trajectory, testing.content(trajectory))


def open_labels(submission: Submission) -> None:
    now = timezone.now()
    Submission.objects.filter(pk=submission.pk).update(frozen_at=now, opened_at=now)
    submission.refresh_from_db()


def text_of(client: Client, person: Person, submission: Submission) -> str:
    client.force_login(person)
    return " ".join(client.get(reverse("work", args=[submission.pk])).content.decode().split())


def test_pace_counts_only_own_labels(client: Client, people: dict[str, Person], submission: Submission) -> None:
    label(people["alice"], submission, 10)
    label(people["bob"], submission, 10, factor=100)
    pace = training.load_own_pace(people["alice"], submission)
    assert pace is not None
    assert (pace.labels, pace.seconds, pace.opened_percent) == (10, 55, 67)
    text = text_of(client, people["alice"], submission)
    assert "The median active time of your 10 labels is 55 s. You opened 67% of the steps (median)." in text


def test_results_on_gold_items_stay_hidden_until_the_labels_are_opened(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    label(people["alice"], submission, 10)
    assert "Known answers" not in text_of(client, people["alice"], submission)
    Submission.objects.filter(pk=submission.pk).update(frozen_at=timezone.now())
    assert "Known answers" not in text_of(client, people["alice"], submission)
    open_labels(submission)
    text = text_of(client, people["alice"], submission)
    # Of 10 to 50 s, the first two are wrong; of 60 to 100 s, the last one.
    assert "Known answers: 3 of 5 verdicts were right where you were faster, 4 of 5 where you were not." in text


def test_few_labels_and_few_gold_items_give_no_figure(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    label(people["alice"], submission, 10)
    label(people["bob"], submission, 4)
    KnownAnswer.objects.filter(trajectory__position=0).delete()  # four items are left below the median
    open_labels(submission)
    assert training.load_own_pace(people["bob"], submission) is None
    assert "Your pace" not in text_of(client, people["bob"], submission)
    pace = training.load_own_pace(people["alice"], submission)
    assert pace is not None
    assert (pace.faster, pace.slower) == (None, None)


def test_pace_takes_one_query(
    people: dict[str, Person], submission: Submission, django_assert_num_queries: Any
) -> None:
    label(people["alice"], submission, 5)
    with django_assert_num_queries(1):
        training.load_own_pace(people["alice"], submission)
