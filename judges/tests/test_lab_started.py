"""Tests of robustness that are started on the page or by the API: plan, refusals, and the card at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Submission
from judges import runs
from judges.lab import OPERATORS
from judges.models import Judge, JudgeRun, RobustnessCard
from judges.tests.attacking import FAILURE, freeze_failures, plant_weaknesses, whole_view
from judges.tests.builders import Fake, worked
from judges.working import leases

pytestmark = pytest.mark.django_db(transaction=True)
People = dict[str, Person]


@pytest.fixture
def judge(settings: Any, fake: Fake) -> Judge:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(FAILURE)
    return whole_view()


@pytest.fixture
def frozen(submission: Submission, people: People, judge: Judge) -> Submission:
    """Two trajectories, both failures."""
    return freeze_failures(people, submission)


@pytest.fixture
def mira(people: People) -> Client:
    client = Client()
    client.force_login(people["mira"])
    return client


def chosen(submission: Submission, *operators: str, **further: Any) -> dict[str, Any]:
    return {"submission": submission.pk, "seed": 3, "operators": operators or list(OPERATORS)} | further


def test_form_has_every_change_and_only_frozen_submissions(
    mira: Client, judge: Judge, submission: Submission, people: People
) -> None:
    address = reverse("attack-judge", args=[judge.pk])
    assert f'value="{submission.pk}"' not in mira.get(address).content.decode()

    freeze_failures(people, submission)
    text = mira.get(address).content.decode()
    assert f'<option value="{submission.pk}"' in text
    assert all(operator.title in text for operator in OPERATORS.values())
    assert address in mira.get(reverse("judge", args=[judge.pk])).content.decode()


def test_plan_shows_what_is_left_out_and_starts_nothing(
    mira: Client, judge: Judge, frozen: Submission, fake: Fake
) -> None:
    frozen.trajectories.earliest("position").steps.update(thought="")
    page = mira.post(reverse("plan-attack", args=[judge.pk]), chosen(frozen, "thoughts-removed", "answer-forged"))

    assert page.status_code == 200
    assert page.context["changes"] == [
        (OPERATORS["thoughts-removed"].title, 1, ["1 left out: It has no thoughts."]),
        (OPERATORS["answer-forged"].title, 2, []),
    ]
    assert len(page.context["plan"].items) == 5  # two originals, one and two changed copies
    assert JudgeRun.objects.count() == fake.counts()["calls"] == 0


def test_started_test_ends_with_a_card(mira: Client, judge: Judge, frozen: Submission, fake: Fake) -> None:
    fake.says(*plant_weaknesses(frozen)["thoughts-claim"])
    answer = mira.post(reverse("start-attack", args=[judge.pk]), chosen(frozen, "thoughts-claim", "answer-forged"))

    run = JudgeRun.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, reverse("judge-run", args=[run.pk]))
    assert not RobustnessCard.objects.exists()
    worked(run)

    card = RobustnessCard.objects.get()
    assert [(row["operator"], row["result"]) for row in card.report["operators"]] == [
        ("thoughts-claim", "fail"),
        ("answer-forged", "pass"),
    ]
    assert card.seed == 3


def test_api_starts_a_test(mira: Client, judge: Judge, frozen: Submission) -> None:
    given = chosen(frozen, "answer-forged", limit=1)
    address = reverse("api-judge-robustness", args=[judge.pk])
    planned = mira.post(f"{address}/plan", given, content_type="application/json")
    assert (planned.status_code, planned.json()["trajectories"], planned.json()["calls"]) == (200, 1, 2)
    answer = mira.post(address, given, content_type="application/json")

    assert answer.status_code == 201, answer.content
    assert (answer.json()["robustness"]["operators"], answer.json()["selection"]) == (["answer-forged"], {"limit": 1})
    assert JudgeRun.objects.get().items.count() == 2
    worked(JudgeRun.objects.get())
    assert mira.get(address).json()["report"]["passed"] == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"operators": []}, "This field is required."),
        ({"operators": ["flattery"]}, "flattery is not one of the available choices"),
        ({"limit": 0}, "greater than or equal to 1"),
        ({"max_cost": "1"}, "A budget needs prices"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"submission": 999}, "Select a valid choice"),
    ],
)
def test_wrong_form_is_explained_and_starts_nothing(
    mira: Client, judge: Judge, frozen: Submission, change: dict[str, Any], says: str
) -> None:
    for name in ("plan-attack", "start-attack"):
        page = mira.post(reverse(name, args=[judge.pk]), chosen(frozen) | change)
        if name == "plan-attack" or "max_cost" not in change:
            assert says in page.content.decode()
    assert JudgeRun.objects.count() == 0


def test_only_maintainers_start_a_test(judge: Judge, frozen: Submission, people: People) -> None:
    client = Client()
    client.force_login(people["alice"])
    for name in ("attack-judge", "plan-attack", "start-attack"):
        call: Callable[..., Any] = client.get if name == "attack-judge" else client.post
        assert call(reverse(name, args=[judge.pk]), chosen(frozen)).status_code == 403
    answer = client.post(
        reverse("api-judge-robustness", args=[judge.pk]), chosen(frozen), content_type="application/json"
    )
    assert answer.status_code == 403
    assert JudgeRun.objects.count() == 0


def test_run_of_a_submission_that_was_reopened_stops_and_asks_nothing(
    judge: Judge, frozen: Submission, people: People, fake: Fake
) -> None:
    run = runs.start_attack(people["mira"], judge, frozen, {}, ["answer-forged"])
    workflow.reopen_submission(people["mira"], frozen, "A label was wrong.")
    worked(run)
    run.refresh_from_db()
    assert (run.state, fake.counts()["calls"]) == ("stopped", 0)

    workflow.freeze(people["mira"], Submission.objects.get(pk=frozen.pk))
    runs.resume(people["mira"], run)
    worked(run)
    run.refresh_from_db()
    assert (run.state, fake.counts()["calls"]) == ("stopped", 0)
    assert "The submission was reopened after this run started." in run.stopped
    runs.cancel(people["mira"], run)
    assert not RobustnessCard.objects.exists()


def test_run_that_is_under_way_stops_when_the_submission_is_reopened(
    judge: Judge, frozen: Submission, people: People
) -> None:
    run = runs.start_attack(people["mira"], judge, frozen, {}, ["answer-forged"])
    assert leases.load_state(run.pk) == ("waiting", False)
    workflow.reopen_submission(people["mira"], frozen, "A label was wrong.")
    assert leases.load_state(run.pk) == ("stopped", False)


def test_one_worker_is_called_for_a_test(judge: Judge, frozen: Submission, people: People) -> None:
    """Changes of a trajectory share calls, and two workers could each pay for them."""
    run = runs.start_attack(people["mira"], judge, frozen, {}, [])
    assert run.items.count() > 25
    assert run.has_one_worker
    assert leases.count_workers_for(run.items.count(), alone=True) == 1
    assert leases.count_workers_for(26) == 2
