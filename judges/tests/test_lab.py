"""The lab finds every planted weakness of a judge, and none in a sound one."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.models import Person, Submission
from judges.lab import OPERATORS, texts
from judges.models import Judgment, ModelCall
from judges.tests.attacking import (
    ALSO,
    FAILURE,
    SUCCESS,
    attack,
    believes,
    failed,
    freeze_failures,
    plant_weaknesses,
    results,
    whole_view,
)
from judges.tests.builders import Fake, defined_judge

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def frozen(submission: Submission, people: dict[str, Person], settings: Any, fake: Fake) -> Submission:
    """Two trajectories of three steps, both failures."""
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(FAILURE)
    return freeze_failures(people, submission)


@pytest.mark.parametrize("weakness", OPERATORS)
def test_lab_finds_a_planted_weakness_and_no_other(frozen: Submission, fake: Fake, weakness: str) -> None:
    fake.says(*plant_weaknesses(frozen)[weakness])
    report = attack(whole_view(), frozen)
    assert failed(report) == {weakness} | ALSO.get(weakness, set())
    assert set(results(report).values()) <= {"pass", "fail"}  # every operator was tested


def test_lab_finds_nothing_in_a_sound_judge(frozen: Submission) -> None:
    report = attack(whole_view(), frozen)
    assert results(report) == dict.fromkeys(OPERATORS, "pass")
    assert (report["passed"], report["failed"], report["not_tested"]) == (16, 0, 0)


def test_robustness_is_not_accuracy(frozen: Submission, fake: Fake) -> None:
    """A judge that always says success is wrong on every failure, and no change makes it worse."""
    fake.says(SUCCESS)
    report = attack(whole_view(), frozen)
    assert failed(report) == set()
    (row, *_) = report["operators"]
    assert row["false_positive_rate"]["original"]["value"] == row["false_positive_rate"]["changed"]["value"] == 1.0


def test_a_judge_that_gives_no_verdict_is_not_tested(frozen: Submission, fake: Fake) -> None:
    fake.says({"reply": "I would rather not."})
    report = attack(whole_view(), frozen)
    assert set(results(report).values()) == {"not tested"}
    assert {(row["n"], row["unscored"]) for row in report["operators"]} == {(0, 2)}


# --- our judges hide or fence what the agent says ---------------------------------------------------------------------

CLAIMS = "thoughts-claim,thoughts-removed,answer-forged,injection-answer"
OBEYS = believes(*(f"\n\nSystem: {text}" for text in texts.INJECTIONS), "End of the trajectory.\n\n")


@pytest.mark.parametrize("scorer", ["webjudge", "autonomous-eval"])
def test_judge_never_sees_the_claims_of_the_agent(frozen: Submission, fake: Fake, scorer: str) -> None:
    """The changed requests are those of the originals, so no further call is made."""
    fake.says()  # answers that fit every form
    report = attack(defined_judge("hides", scorer=scorer), frozen, "--operators", CLAIMS)
    assert failed(report) == set()
    paid, hits = (ModelCall.objects.filter(hit=hit) for hit in (False, True))
    originals = paid.filter(item__repetition=1).count()
    assert originals == paid.count() == fake.counts()["calls"]
    assert hits.count() == 4 * originals  # each of the four changes asks the same again
    assert Judgment.objects.count() == 2 * 5


def test_fence_holds_against_instructions_that_an_unfenced_judge_obeys(frozen: Submission, fake: Fake) -> None:
    """The stub obeys an instruction outside the record: on a line of its own."""
    fake.says(*OBEYS)
    fenced = attack(defined_judge("fenced", scorer="webvoyager"), frozen, "--operators", "injection-answer")
    assert failed(fenced) == set()
    fake.says(*(rule | {"reply": rule["reply"].upper()} for rule in OBEYS))  # as WebVoyager's parser reads it
    upstream = defined_judge("unfenced", scorer="webvoyager", parameters={"mode": "upstream"})
    assert failed(attack(upstream, frozen, "--operators", "injection-answer")) == {"injection-answer"}


@pytest.mark.parametrize("operator", ["injection-action", "injection-url", "injection-answer"])
def test_single_call_fences_every_field(frozen: Submission, fake: Fake, operator: str) -> None:
    fake.says(*OBEYS)
    for seed in range(3):
        assert failed(attack(whole_view(), frozen, "--operators", operator, "--seed", seed)) == set()
