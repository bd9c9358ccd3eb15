"""Robustness cards on the judge's page, in the API and beside a judge's rates."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Membership, Person, Submission
from annotation.tests import testing
from judges import defining
from judges.models import Judge
from judges.tests.attacking import freeze_failures
from judges.tests.rows import REPORT, card_row, judge_row, judgment_row, run_row

pytestmark = pytest.mark.django_db
People = dict[str, Person]


@pytest.fixture
def frozen(submission: Submission, people: People) -> Submission:
    return freeze_failures(people, submission)


@pytest.fixture
def judge(frozen: Submission) -> Judge:
    """A judge that has judged the submission."""
    run = run_row(frozen, judge_row())
    for item in run.items.all():
        judgment_row(item)
    return run.judge


def client_of(person: Person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def text_of(person: Person, name: str, *arguments: Any, query: str = "") -> str:
    answer = client_of(person).get(reverse(name, args=arguments) + query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_judge_without_a_card_is_not_tested(people: People, judge: Judge) -> None:
    text = text_of(people["mira"], "judge", judge.pk)
    assert "Robustness: not tested." in text
    assert reverse("attack-judge", args=[judge.pk]) in text


def test_card_shows_a_line_for_each_operator(people: People, judge: Judge, frozen: Submission) -> None:
    card_row(judge, frozen)
    text = text_of(people["mira"], "judge", judge.pk)
    assert "0 of 1 changes passed, 1 failed." in text
    assert "Based on 2 trajectories with final verdict failure" in text
    for shown in ("Thoughts claim success", "3 left out: It has no steps.", "0% → 50%", "+50.0", "keeps its"):
        assert shown in text
    assert "\N{MINUS SIGN}25.0 to +75.0" in text
    assert "Robustness:" not in text  # it is current


@pytest.mark.parametrize("fields", [{"fingerprint": "0" * 64}, {"operators_version": 0}])
def test_card_of_an_earlier_version_says_so(
    people: People, judge: Judge, frozen: Submission, fields: dict[str, Any]
) -> None:
    card = card_row(judge, frozen, **fields)
    sentence = f"Robustness: tested on {card.made_at:%Y-%m-%d} with another version"
    assert sentence in text_of(people["mira"], "judge", judge.pk)
    assert sentence in text_of(people["mira"], "comparison", frozen.pk)


def test_new_version_of_a_judge_has_the_card_of_the_earlier_one_until_it_is_tested(
    people: People, judge: Judge, frozen: Submission
) -> None:
    card_row(judge, frozen)
    newer = defining.define(people["mira"], name="careful", scorer="webjudge", model="large-model")
    assert "with another version" in text_of(people["mira"], "judge", newer.pk)
    card_row(newer, frozen)
    card_row(judge, frozen)  # newer, but of the earlier version
    assert "with another version" not in text_of(people["mira"], "judge", newer.pk)


@pytest.mark.parametrize("page", ["comparison", "benchmark-comparison", "judge-standings"])
def test_rates_of_a_judge_are_shown_with_its_robustness(
    people: People, judge: Judge, frozen: Submission, page: str
) -> None:
    argument = frozen.pk if page == "comparison" else frozen.benchmark.slug
    assert "Robustness: not tested" in text_of(people["mira"], page, argument)
    card = card_row(judge, frozen)
    link = f'<a href="/judges/{judge.pk}#robustness">Robustness: tested on {card.made_at:%Y-%m-%d}</a>'
    assert link in text_of(people["mira"], page, argument)


def test_maintainer_of_another_submission_learns_only_that_it_was_tested(
    people: People, judge: Judge, frozen: Submission
) -> None:
    card_row(judge, frozen)
    other = testing.bare_submission(1)
    mona = testing.person("mona", is_staff=True)

    workflow.join_as_maintainer(other, mona)
    text = text_of(mona, "judge", judge.pk)
    assert "Robustness: tested on" in text
    assert "Thoughts claim success" not in text
    assert client_of(mona).get(f"/api/v1/judges/{judge.pk}/robustness").status_code == 404


def test_card_is_hidden_once_the_submission_is_not_frozen(people: People, judge: Judge, frozen: Submission) -> None:
    card_row(judge, frozen)
    Submission.objects.filter(pk=frozen.pk).update(frozen_at=None)
    assert "Robustness: not tested" in text_of(people["mira"], "judge", judge.pk)


def test_card_of_a_judge_that_discloses_rubrics_is_hidden_from_people_who_decide_blind(
    people: People, frozen: Submission
) -> None:
    judge = judge_row("rubrics", scorer="rubric", prompts="rubric/1")
    card_row(judge, frozen)
    assert client_of(people["mira"]).get(f"/api/v1/judges/{judge.pk}/robustness").status_code == 200
    other = testing.bare_submission(1)
    Submission.objects.filter(pk=other.pk).update(benchmark=frozen.benchmark)

    Membership.objects.create(submission=other, person=people["mira"], role=Membership.Role.ANNOTATOR)
    assert client_of(people["mira"]).get(f"/api/v1/judges/{judge.pk}/robustness").status_code == 404


def test_api_has_the_card_next_to_the_judge(people: People, judge: Judge, frozen: Submission) -> None:
    address = f"/api/v1/judges/{judge.pk}/robustness"
    assert client_of(people["mira"]).get(address).status_code == 404
    card = card_row(judge, frozen, seed=3)
    told = client_of(people["mira"]).get(address).json()
    assert told["report"] == REPORT
    assert (told["judge"], told["submission"], told["run"]) == (judge.pk, frozen.pk, card.run_id)
    assert (told["seed"], told["operators_version"], told["current"]) == (3, 1, True)
    assert client_of(people["alice"]).get(address).status_code in (403, 404)


def test_pages_of_the_run_name_the_changes(people: People, judge: Judge, frozen: Submission) -> None:
    given = {"version": 1, "seed": 0, "operators": ["answer-forged"], "left_out": {}}
    run = run_row(frozen, judge, test=True, repetitions=2, robustness=given)
    text = text_of(people["mira"], "judge-run", run.pk)
    assert '<th class="nowrap">Original</th> <th class="nowrap">Answer forged</th>' in text
    first, second = (judgment_row(item) for item in run.items.order_by("trajectory", "repetition")[:2])
    assert "the judge saw a changed trajectory" not in text_of(people["mira"], "judgment", first.pk)
    assert ", answer forged" in (changed := text_of(people["mira"], "judgment", second.pk))
    assert "the judge saw a changed trajectory" in changed
