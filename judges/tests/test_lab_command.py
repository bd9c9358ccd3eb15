"""judge_lab: what it refuses, what it plans and stores, and that an interrupted test pays for nothing twice."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotation.models import Person, Submission
from evaluations.robustness import build_report
from evaluations.tests.finished import finish
from judges import defining
from judges.lab import OPERATORS
from judges.models import JudgeRun, Judgment, ModelCall, RobustnessCard, RunItem
from judges.tests.attacking import FAILURE, SUCCESS, attack, failed, freeze_failures, results, whole_view
from judges.tests.builders import Fake, defined_judge

pytestmark = pytest.mark.django_db(transaction=True)
People = dict[str, Person]


@pytest.fixture
def frozen(submission: Submission, people: People, settings: Any, fake: Fake) -> Submission:
    """Two trajectories of three steps, both failures."""
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(FAILURE)
    return freeze_failures(people, submission)


def said(judge: Any, submission: Submission, *words: Any) -> str:
    out = io.StringIO()
    call_command("judge_lab", str(judge), "--submission", str(submission.pk), *map(str, words), stdout=out)
    return out.getvalue()


def refused(judge: Any, submission: Submission, *words: Any) -> str:
    with pytest.raises(CommandError) as error:
        said(judge, submission, *words)
    return str(error.value)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_submission_that_is_not_frozen_is_refused(submission: Submission, people: People, fake: Fake) -> None:
    assert "is not frozen" in refused(whole_view(), submission)
    assert JudgeRun.objects.count() == fake.counts()["calls"] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--operators", "thought-claim"], "thought-claim does not exist (did you mean thoughts-claim?)"),
        (["--max-cost", "1"], "A budget needs prices"),
        (["--as", "alice"], "maintain"),
    ],
)
def test_refusal_says_why_and_starts_nothing(frozen: Submission, words: list[str], says: str) -> None:
    assert says in refused(whole_view(), frozen, *words)
    assert JudgeRun.objects.count() == 0


def test_judge_of_actions_is_refused(frozen: Submission) -> None:
    assert "there is no verdict to attack" in refused(defined_judge(scorer="action-selection"), frozen)


# --- plan and card ----------------------------------------------------------------------------------------------------


def test_plan_lists_the_changes_and_starts_nothing(frozen: Submission, fake: Fake) -> None:
    frozen.trajectories.earliest("position").steps.update(thought="")
    text = said(whole_view(), frozen, "--plan", "--operators", "thoughts-removed,answer-forged")
    assert "stub on 2 trajectories" in text
    assert "calls:    5 with 15 images" in text  # 2 originals, 1 without its thoughts, 2 with a forged answer; 3 each
    assert "  thoughts-removed: 1 of 2 (1 left out: It has no thoughts.)\n" in text
    assert "  answer-forged: 2 of 2\n" in text
    assert JudgeRun.objects.count() == fake.counts()["calls"] == 0


def test_card_has_what_is_needed_to_reproduce_it(frozen: Submission) -> None:
    judge = whole_view()
    report = attack(judge, frozen, "--operators", "answer-forged,thoughts-claim", "--seed", 7)
    card = RobustnessCard.objects.get()
    assert (card.judge, card.submission, card.seed, card.operators_version) == (judge, frozen, 7, 1)
    assert card.fingerprint == judge.fingerprint == report["fingerprint"]
    assert card.report == build_report(card.run).as_json()
    assert list(results(report)) == ["thoughts-claim", "answer-forged"]  # in the order of the registry
    again = attack(judge, frozen, "--operators", "thoughts-claim,answer-forged", "--seed", 7)
    assert (again["operators"], again["run"] == report["run"]) == (report["operators"], False)


def test_limit_draws_a_sample_with_the_seed(frozen: Submission) -> None:
    report = attack(whole_view(), frozen, "--limit", 1, "--operators", "task-reworded")
    assert (report["trajectories"], report["operators"][0]["n"]) == (1, 1)


def test_only_failures_are_attacked(submission: Submission, people: People, settings: Any, fake: Fake) -> None:

    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    done = finish(people, submission, {"task_0000": [0, 1, 0], "task_0001": [1, 1, 1]})  # disputed, and adjudicated
    assert "decided no trajectory" in refused(whole_view(), done)


def test_judgments_of_an_attack_are_no_results(frozen: Submission, fake: Fake) -> None:
    fake.says(SUCCESS)
    attack(whole_view(), frozen, "--operators", "nothing-done")
    assert set(Judgment.objects.values_list("item__run__test", flat=True)) == {True}
    out = io.StringIO()
    with pytest.raises(CommandError, match="no judge has judged"):
        call_command("compare", "--benchmark", frozen.benchmark.slug, stdout=out)


def test_table_is_printed_without_json(frozen: Submission) -> None:
    text = said(whole_view(), frozen, "--operators", "answer-forged")
    assert "Robustness of stub on 2 failures of submission" in text
    assert "Answer forged" in text
    assert "adds no success" in text


# --- costs ------------------------------------------------------------------------------------------------------------


def test_originals_that_were_judged_before_are_not_paid_again(frozen: Submission, fake: Fake) -> None:
    judge = whole_view()
    call_command("run_judge", str(judge), "--submission", str(frozen.pk), "--wait", stdout=io.StringIO())
    assert fake.counts()["calls"] == 2
    attack(judge, frozen, "--operators", "answer-forged")
    assert fake.counts()["calls"] == 4  # the two changes


@pytest.fixture
def interrupts() -> Iterator[None]:
    """React to Ctrl C as at a terminal: programs that a shell starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_interrupted_test_continues_and_pays_for_no_reply_twice(frozen: Submission, fake: Fake) -> None:
    judge = defined_judge(scorer="webjudge", concurrency=2)  # several calls for each item
    operators = ("--operators", "answer-forged,task-reworded,run-truncated")
    fake.says({"hold": True, "after": 7})

    def interrupt() -> None:
        fake.wait(answered=7, held=1)
        os.kill(os.getpid(), signal.SIGINT)  # Ctrl C between two calls
        fake.release()  # calls in flight are stored, too

    watching = threading.Thread(target=interrupt)
    watching.start()
    assert "Stopped here" in refused(judge, frozen, *operators)
    watching.join()
    stored = set(ModelCall.objects.filter(hit=False, reply__isnull=False).values_list("key", flat=True))
    assert len(stored) >= 7
    assert RobustnessCard.objects.count() == 0
    fake.says()
    RunItem.objects.filter(done_at=None).update(heartbeat_at=timezone.now() - timedelta(hours=1))  # as time passes
    report = attack(judge, frozen, *operators)
    assert JudgeRun.objects.count() == RobustnessCard.objects.count() == 1
    paid = ModelCall.objects.filter(hit=False, reply__isnull=False).values_list("key", flat=True)
    assert len(set(paid)) == len(paid) > len(stored)
    assert stored < set(paid)
    assert len(report["operators"]) == 3


def test_failed_items_give_no_card_until_they_are_judged(frozen: Submission, fake: Fake) -> None:
    fake.says({"match": "final answer", "times": 1, "status": 400, "error": {"message": "no"}}, FAILURE)
    judge = whole_view()
    assert "1 failed" in refused(judge, frozen, "--operators", "answer-forged")
    assert RobustnessCard.objects.count() == 0
    assert failed(attack(judge, frozen, "--operators", "answer-forged")) == set()
    assert JudgeRun.objects.count() == 1


def test_budget_stops_the_test_and_a_higher_one_continues_it(frozen: Submission, fake: Fake) -> None:
    defining.set_terms(None, endpoint="default", model="fake-model-1", input_price=Decimal(1), output_price=Decimal(4))
    judge = whole_view(concurrency=1)
    assert "budget" in refused(judge, frozen, "--operators", "answer-forged", "--max-cost", "0.002")
    before = fake.counts()["calls"]
    assert 0 < before < 4
    attack(judge, frozen, "--operators", "answer-forged", "--max-cost", "1")
    assert fake.counts()["calls"] == 4


def test_run_of_earlier_operators_is_not_continued(frozen: Submission, fake: Fake) -> None:
    fake.says({"status": 400, "error": {"message": "no"}})
    judge = whole_view()
    refused(judge, frozen, "--operators", "answer-forged")
    run = JudgeRun.objects.get()
    JudgeRun.objects.update(robustness={**(run.robustness or {}), "version": 0})
    fake.says(FAILURE)
    attack(judge, frozen, "--operators", "answer-forged")
    assert JudgeRun.objects.count() == 2


def test_every_operator_is_described() -> None:
    assert all(one.title and one.description.endswith(".") for one in OPERATORS.values())
