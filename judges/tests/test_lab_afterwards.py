"""What follows an attack on a judge: the evidence bundle, a new budget, a reopening, a changed task."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.http import Http404

from annotation import workflow
from annotation.models import Person, Submission
from evaluations.tests.audited import bundle
from evaluations.tests.checks import check
from evaluations.verifier.findings import Result
from judges import access, defining, robustness, runs
from judges.lab import VERSION
from judges.models import JudgeRun, Judgment, RobustnessCard
from judges.tests import rows
from judges.tests.attacking import FAILURE, attack, freeze_failures, whole_view
from judges.tests.builders import Fake, worked
from judges.working import leases

pytestmark = pytest.mark.django_db(transaction=True)
People = dict[str, Person]


@pytest.fixture
def frozen(submission: Submission, people: People, settings: Any, fake: Fake) -> Submission:
    """Two trajectories of three steps, both failures."""
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(FAILURE)
    return freeze_failures(people, submission)


def started(person: Person, submission: Submission, *operators: str, **judge: Any) -> JudgeRun:
    return runs.start_attack(person, whole_view(**judge), submission, {}, operators)


def failures(submission: Submission, folder: Path) -> list[str]:
    """What the verifier finds wrong with a bundle."""
    return [finding.name for finding in check(str(bundle(submission, folder))) if finding.result is Result.FAIL]


def reopen_and_freeze(people: People, submission: Submission) -> Submission:
    workflow.reopen_submission(people["mira"], submission, "A label was wrong.")
    return workflow.freeze(people["mira"], submission)


def test_bundle_verifies_after_an_attack_that_left_a_trajectory_out(frozen: Submission, tmp_path: Path) -> None:
    frozen.trajectories.earliest("position").steps.update(thought="")
    report = attack(whole_view(), frozen, "--operators", "thoughts-removed,answer-forged")
    assert report["operators"][0]["not_applicable"] == {"It has no thoughts.": 1}
    assert failures(frozen, tmp_path) == ["imported"]  # this test has changed the thoughts


def test_cancelled_attack_leaves_a_bundle_that_verifies(frozen: Submission, people: People, tmp_path: Path) -> None:
    frozen.trajectories.earliest("position").steps.update(thought="")
    runs.cancel(people["mira"], started(people["mira"], frozen, "thoughts-removed"))
    assert failures(frozen, tmp_path) == ["imported"]  # this test has changed the thoughts


def test_budget_of_a_continued_attack_holds_whatever_its_state(frozen: Submission, people: People, fake: Fake) -> None:
    defining.set_terms(None, endpoint="default", model="fake-model-1", input_price=Decimal(1), output_price=Decimal(4))
    run = started(people["mira"], frozen, "answer-forged", concurrency=1)
    assert (run.state, run.max_cost) == ("waiting", None)
    given = ["judge_lab", str(run.judge), "--submission", str(frozen.pk), "--operators", "answer-forged"]
    with pytest.raises(CommandError, match="budget"):
        call_command(*given, "--max-cost", "0.0001", stdout=io.StringIO())
    assert fake.counts()["calls"] == 1
    assert (JudgeRun.objects.get().pk, JudgeRun.objects.get().max_cost) == (run.pk, Decimal("0.0001"))


def test_card_of_a_reopened_submission_does_not_count_and_its_run_is_not_continued(
    frozen: Submission, people: People
) -> None:
    judge = whole_view()
    attack(judge, frozen, "--operators", "answer-forged")
    assert robustness.find_standing(people["mira"], judge).current
    waiting = started(people["mira"], frozen, "task-reworded")
    again = reopen_and_freeze(people, frozen)
    assert robustness.find_standing(people["mira"], judge).card is None
    report = attack(waiting.judge, again, "--operators", "task-reworded")
    assert report["run"] != waiting.pk
    assert robustness.find_standing(people["mira"], waiting.judge).current


def test_attack_on_an_open_submission_shows_nobody_its_failures(frozen: Submission, people: People) -> None:
    run = started(people["mira"], frozen, "answer-forged")
    worked(run)
    assert access.find_run(people["mira"], run.pk) == run
    workflow.reopen_submission(people["mira"], frozen, "A label was wrong.")
    with pytest.raises(Http404):
        access.find_run(people["mira"], run.pk)
    with pytest.raises(Http404):
        access.find_judgment(people["mira"], Judgment.objects.latest("pk").pk)
    assert robustness.find_standing(people["mira"], run.judge).card is None


def test_judgment_of_a_changed_trajectory_names_the_change(frozen: Submission, people: People, client: Any) -> None:
    run = started(people["mira"], frozen, "answer-forged")
    worked(run)
    client.force_login(people["mira"])
    found = client.get(f"/api/v1/judge-runs/{run.pk}/judgments").json()["results"]
    assert {(row["repetition"], row["change"]) for row in found} == {(1, "Original"), (2, "Answer forged")}
    assert client.get(f"/api/v1/judge-runs/{run.pk}").json()["robustness"]["operators"] == ["answer-forged"]


def test_task_that_changed_while_a_run_waited_fails_with_the_reason(frozen: Submission, people: People) -> None:
    frozen.trajectories.earliest("position").steps.update(thought="")
    run = started(people["mira"], frozen, "thoughts-removed")
    frozen.trajectories.latest("position").steps.update(thought="")
    worked(run)
    (item,) = run.items.filter(failed_at__isnull=False)
    assert item.error == (
        "The task has changed since the run was started. It has no thoughts. Cancel the run, and start another one."
    )


def test_run_with_an_operator_that_no_longer_exists_finishes_without_a_card(frozen: Submission) -> None:
    given = {"version": VERSION - 1, "operators": ["gone"], "seed": 1, "left_out": {}}
    run = rows.run_row(frozen, whole_view(), repetitions=2, robustness=given)
    for item in run.items.all():
        rows.judgment_row(item, 0)

    assert leases.finish_run(run.pk)

    run.refresh_from_db()
    assert run.finished_at is not None
    assert not RobustnessCard.objects.exists()
