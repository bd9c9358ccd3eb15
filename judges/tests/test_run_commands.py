"""run_judge and prune_calls: the plan first, exit codes that scripts can trust, and work without any worker."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import workflow
from annotation.models import Person, Submission
from annotation.tests import testing
from judges import defining
from judges.models import JudgeRun, Judgment, ModelCall
from judges.tests import rows
from judges.tests.builders import Fake, defined_judge

People = dict[str, Person]


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:9/v1"}
    return testing.submission(tmp_path / "package", trajectories=3)


@pytest.fixture
def people(submission: Submission) -> People:
    people = testing.cast(submission)
    defining.set_terms(None, endpoint="default", model="fake-model-1", input_price=Decimal(1), output_price=Decimal(4))
    defined_judge()
    return people


def said(*words: Any) -> str:
    out = io.StringIO()
    call_command("run_judge", *map(str, words), stdout=out)
    return out.getvalue()


def refused(*words: Any) -> tuple[int, str]:
    with pytest.raises(CommandError) as error:
        said(*words)
    return error.value.returncode, str(error.value)


# --- run_judge -------------------------------------------------------------------------------------------------------


def test_the_plan_is_printed_before_the_run_starts(people: People, submission: Submission) -> None:
    text = said("careful", "--submission", submission.pk, "--repeat", 2, "--max-cost", "1.5", "--limit", 2)
    run = JudgeRun.objects.get()
    assert "careful on 2 trajectories, 2 times each" in text
    assert "calls:    4 with 4 images" in text
    assert text.rstrip().endswith(f"run {run.pk} has started.")
    assert (run.items.count(), run.max_cost, run.created_by) == (4, Decimal("1.5"), people["mira"])


def test_a_plan_alone_starts_nothing(people: People, submission: Submission) -> None:
    assert "cost:     about 0.0" in said("careful", "--submission", submission.pk, "--plan")
    assert JudgeRun.objects.count() == 0


def test_plan_names_the_service_and_groups_digits(people: People, submission: Submission) -> None:
    text = said("careful", "--submission", submission.pk, "--plan", "--service", "flex")
    assert "service:  flex, half the price" in text
    assert re.search(r"tokens:   about \d{1,3},\d{3} ", text)


def test_plan_of_a_judge_without_a_model_has_no_tokens(people: People, submission: Submission) -> None:
    defining.define(None, name="network", scorer="network-trace")
    text = said("network", "--submission", submission.pk, "--plan")
    assert "tokens:   none" in text
    assert "about 0 in" not in text


def test_what_is_judged_can_be_chosen(people: People, submission: Submission) -> None:
    said("careful@1", "--submission", submission.pk, "--task-id", "task_0002", "--task-id", "task_0000", "--fresh")
    run = JudgeRun.objects.get()
    assert sorted(run.items.values_list("trajectory__task__external_id", flat=True)) == ["task_0000", "task_0002"]
    assert run.fresh


def test_a_random_sample_is_kept_with_its_seed(people: People, submission: Submission) -> None:
    said("careful", "--submission", submission.pk, "--limit", 2, "--seed", 0)
    run = JudgeRun.objects.get()
    assert run.selection == {"limit": 2, "seed": 0}
    assert run.items.count() == 2


@pytest.mark.django_db(transaction=True)
def test_with_wait_the_command_works_on_the_run_itself(
    fake: Fake, people: People, submission: Submission, settings: Any
) -> None:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    text = said("careful", "--submission", submission.pk, "--wait")
    assert "is finished: 3 of 3 judged" in text
    assert "\r" not in text
    assert Judgment.objects.count() == 3
    assert fake.counts()["calls"] == 3


@pytest.mark.django_db(transaction=True)
def test_what_failed_is_an_exit_code_1_with_the_reasons(
    fake: Fake, people: People, submission: Submission, settings: Any, capsys: Any
) -> None:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says({"match": "task", "status": 401, "error": {"message": "wrong key"}})
    code, text = refused("careful", "--submission", submission.pk, "--wait")
    assert (code, "3 failed" in text) == (1, True)
    assert "failed: 3 x" in capsys.readouterr().err


@pytest.mark.django_db(transaction=True)
def test_a_budget_that_is_spent_ends_the_command_with_the_reason(
    fake: Fake, people: People, submission: Submission, settings: Any
) -> None:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    defined_judge(concurrency=1)
    code, text = refused("careful", "--submission", submission.pk, "--wait", "--max-cost", "0.0001")
    assert (code, "budget" in text) == (1, True)
    assert JudgeRun.objects.get().state == "stopped"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nobody", "--submission", "ID"], 2, "The judge nobody does not exist. Known: careful."),
        (["careful", "--submission", "999999"], 2, "Submission 999999 does not exist"),
        (["careful", "--submission", "ID", "--as", "zoe"], 2, "zoe is not an active person"),
        (["careful", "--submission", "ID", "--task-id", "task_9"], 1, "no trajectory for task_9"),
        (["careful", "--submission", "ID", "--max-cost", "0"], 1, "The budget must be between"),
        (["careful", "--submission", "ID", "--seed", "0"], 1, "it needs a limit"),
        (["careful", "--submission", "ID", "--repeat", "1000"], 1, "1 to 100 repetitions"),
    ],
)
def test_a_refusal_says_why_and_starts_nothing(
    people: People, submission: Submission, words: list[str], code: int, says: str
) -> None:
    given = [str(submission.pk) if word == "ID" else word for word in words]
    returned, text = refused(*given)
    assert says in text
    assert returned == code
    assert JudgeRun.objects.count() == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["careful", "--submission", "1", "--limit", "0"], "--limit: '0' is not a whole number of at least 1"),
        (
            ["careful", "--submission", "1", "--limit", "2", "--seed", "x"],
            "--seed: 'x' is not a whole number from 0 to",
        ),
        (
            ["careful", "--submission", "1", "--limit", "2", "--seed", "4294967296"],
            "--seed: '4294967296' is not a whole",
        ),
        (["careful", "--submission", "1", "--max-cost", "lots"], "--max-cost: 'lots' is not an amount in US dollars"),
        (["careful"], "--submission"),
    ],
)
def test_wrong_usage_says_what_is_wrong(db: Any, words: list[str], says: str) -> None:
    with pytest.raises(CommandError) as error:  # the parser, which exits with 2 on a command line
        said(*words)
    assert says in str(error.value)


def test_with_two_maintainers_the_command_asks_in_whose_name(people: People, submission: Submission) -> None:
    workflow.add_member(people["mira"], submission, testing.person("nora"), "maintainer")
    assert "--as USERNAME" in refused("careful", "--submission", submission.pk)[1]
    said("careful", "--submission", submission.pk, "--as", "nora")
    created_by = JudgeRun.objects.get().created_by
    assert created_by is not None
    assert created_by.username == "nora"


def test_who_is_no_maintainer_starts_nothing(people: People, submission: Submission) -> None:
    code, text = refused("careful", "--submission", submission.pk, "--as", "alice")
    assert (code, "maintainer" in text) == (1, True)
    assert JudgeRun.objects.count() == 0


# --- prune_calls -----------------------------------------------------------------------------------------------------


def pruned(*words: str) -> str:
    out = io.StringIO()
    call_command("prune_calls", *words, stdout=out)
    return out.getvalue()


def test_old_calls_are_emptied_and_keep_their_tokens_and_cost(submission: Submission) -> None:
    item = rows.run_row(submission).items.order_by("pk")[0]
    old = rows.call_row(item, made_at=datetime(2026, 1, 1, tzinfo=UTC))
    new = rows.call_row(item)
    assert pruned("--before", "2026-01-02") == "Emptied: 1 call. If you repeat these calls, you pay for them again.\n"
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.request, old.reply, old.prompt_tokens, old.cost) == (None, None, 1000, Decimal("0.0005"))
    assert old.pruned_at is not None
    assert (new.pruned_at, new.reply is None) == (None, False)
    assert pruned("--before", "2026-01-02").startswith("Emptied: 0 calls.")


def test_only_the_calls_of_one_run_are_emptied(submission: Submission) -> None:
    one, two = (rows.run_row(submission) for _ in range(2))
    for run in (one, two):
        rows.call_row(run.items.order_by("pk")[0])
    pruned("--before", "2999-01-01T00:00", "--run", str(one.pk))
    assert ModelCall.objects.filter(pruned_at__isnull=False).values_list("item__run", flat=True).get() == one.pk


@pytest.mark.parametrize("words", [["--before", "soon"], ["--before", "2026-02-31"], []])
def test_a_date_that_is_none_is_wrong_usage(db: Any, words: list[str]) -> None:
    with pytest.raises(CommandError) as error:  # the parser, which exits with 2 on a command line
        pruned(*words)
    assert "--before" in str(error.value)


def test_a_run_that_is_none_is_wrong_usage(db: Any) -> None:
    with pytest.raises(CommandError, match="Judge run 7 does not exist") as error:
        pruned("--before", "2026-01-01", "--run", "7")
    assert error.value.returncode == 2
