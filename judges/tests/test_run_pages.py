"""Judge runs on pages: planned before they start, watched, paused, ended, and for maintainers only."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Person, Submission
from annotation.tests import testing
from judges import defining, run_table, runs
from judges.models import Judge, JudgeRun, Judgment, RunItem
from judges.tests import rows
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.tests.pages import read_page

People = dict[str, Person]
ACTS = ("pause-judge-run", "resume-judge-run", "cancel-judge-run", "retry-judge-run")


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:9/v1"}
    return testing.submission(tmp_path / "package", trajectories=3)


@pytest.fixture
def mira(people: People) -> Client:
    client = Client()
    client.force_login(people["mira"])
    return client


@pytest.fixture
def judge(submission: Submission) -> Judge:
    defining.set_terms(None, endpoint="default", model="fake-model-1", input_price=Decimal(1), output_price=Decimal(4))
    return defined_judge()


def get(client: Client, name: str, pk: int, *, htmx: bool = False, code: int = 200, **query: Any) -> str:
    response = client.get(reverse(name, args=[pk]), query, headers={"HX-Request": "true"} if htmx else {})
    assert response.status_code == code, response.content.decode()
    return read_page(response)


def plan_of(client: Client, submission: Submission, code: int = 200, **given: Any) -> str:
    response = client.post(reverse("plan-judge-run", args=[submission.pk]), {"repetitions": 1} | given)
    assert response.status_code == code, response.content.decode()
    return read_page(response)


# --- a run is planned before it starts -------------------------------------------------------------------------------


def test_the_plan_tells_calls_pictures_tokens_cost_and_time_and_starts_nothing(
    mira: Client, submission: Submission, judge: Judge
) -> None:
    page = plan_of(mira, submission, judge=judge.pk, repetitions=2)
    assert re.search(r"<dt>Trajectories</dt><dd>3, 2 times each", page)
    assert re.search(r"<dt>Calls</dt><dd>6 to 12<", page)
    assert re.search(r"<dt>Images</dt><dd>6", page)
    assert re.search(r"<dt>Tokens, about</dt><dd>[\d,]+ to [\d,]+ in, 1,800 to 3,600 out", page)
    assert re.search(r"<b>0\.0\d+ to 0\.0\d+ USD</b>", page)
    assert re.search(r"<dt>Time, about</dt><dd>\d+ s", page)
    assert JudgeRun.objects.count() == 0


def test_a_plan_without_an_endpoint_says_why_it_cannot_start_and_has_no_button_for_it(
    mira: Client, submission: Submission, judge: Judge, settings: Any
) -> None:
    assert ">Start<" in plan_of(mira, submission, judge=judge.pk)
    settings.JUDGE_ENDPOINTS = {}
    page = plan_of(mira, submission, judge=judge.pk)
    assert re.search(r"<dt>Calls</dt><dd>3", page)
    assert "in the environment of the web server and of the workers" in page
    assert ">Start<" not in page


def test_starting_takes_what_was_planned_and_leads_to_the_run(
    mira: Client, submission: Submission, judge: Judge
) -> None:
    given = {"judge": judge.pk, "repetitions": 2, "max_cost": "1.50", "task_ids": "task_0000, task_0002", "fresh": "on"}
    plan = plan_of(mira, submission, **given)
    hidden = dict(re.findall(r'<input type="hidden" name="(?!csrf)(\w+)" value="([^"]*)">', plan))
    assert hidden == {name: str(value) for name, value in given.items()}
    response = mira.post(reverse("start-judge-run", args=[submission.pk]), hidden)
    run = JudgeRun.objects.get()
    assert response["Location"] == reverse("judge-run", args=[run.pk])
    assert (run.repetitions, run.max_cost, run.fresh) == (2, Decimal("1.5"), True)
    chosen = run.items.order_by("pk").values_list("trajectory__task__external_id", "repetition")
    assert sorted(chosen) == [("task_0000", 1), ("task_0000", 2), ("task_0002", 1), ("task_0002", 2)]


def test_only_what_the_judge_has_not_judged_can_be_chosen(mira: Client, submission: Submission, judge: Judge) -> None:
    rows.judgment_row(rows.run_row(submission, judge).items.order_by("pk")[0])
    page = plan_of(mira, submission, judge=judge.pk, unjudged="on")
    assert re.search(r"<dt>Trajectories</dt><dd>2", page)
    page = plan_of(mira, submission, judge=judge.pk, limit=1, unjudged="on")
    assert re.search(r"<dt>Trajectories</dt><dd>1", page)


@pytest.mark.parametrize("seed", [0, 7])
def test_a_random_sample_is_planned_started_and_shown_with_its_seed(
    mira: Client, submission: Submission, judge: Judge, seed: int
) -> None:
    given = {"judge": judge.pk, "repetitions": 1, "limit": 2, "seed": seed}
    plan = plan_of(mira, submission, **given)
    assert re.search(rf"<dt>Trajectories</dt><dd>2, a random sample with seed {seed}<", plan)
    hidden = dict(re.findall(r'<input type="hidden" name="(?!csrf)(\w+)" value="([^"]*)">', plan))
    mira.post(reverse("start-judge-run", args=[submission.pk]), hidden)
    run = JudgeRun.objects.get()
    assert run.selection == {"limit": 2, "seed": seed}
    assert f"random sample of 2, seed {seed}<" in get(mira, "judge-run", run.pk)
    assert f"random sample, seed {seed}<" in get(mira, "judge-runs", submission.pk)


def test_no_sample_is_shown_where_none_was_drawn(mira: Client, submission: Submission, judge: Judge) -> None:
    assert "random sample with" not in plan_of(mira, submission, judge=judge.pk, limit=2)
    run = rows.run_row(submission, judge)
    assert "random sample" not in get(mira, "judge-run", run.pk)
    assert "random sample, seed" not in get(mira, "judge-runs", submission.pk)


def test_a_list_of_tasks_may_be_long(mira: Client, submission: Submission, judge: Judge) -> None:
    ids = " ".join(f"{number:032x}" for number in range(500))
    page = plan_of(mira, submission, 409, judge=judge.pk, task_ids=ids)
    assert "has no trajectory for 0000" in page
    assert "and 497 more" in page


def test_the_plan_asked_for_as_a_link_leads_to_the_runs(mira: Client, submission: Submission) -> None:
    response = mira.get(reverse("plan-judge-run", args=[submission.pk]))
    assert response["Location"] == reverse("judge-runs", args=[submission.pk])


@pytest.mark.parametrize(
    ("given", "says", "code"),
    [
        ({"repetitions": "1"}, "Judge", 400),
        ({"judge": "1", "repetitions": "0"}, "greater than or equal to 1", 400),
        ({"judge": "1", "repetitions": "101"}, "less than or equal to 100", 400),
        ({"judge": "1", "repetitions": "1", "max_cost": "-1"}, "Budget in USD", 400),
        ({"judge": "1", "repetitions": "1", "state": "banana"}, "banana", 400),
        ({"judge": "1", "repetitions": "1", "limit": "many"}, "whole number", 400),
        ({"judge": "1", "repetitions": "1", "limit": "2", "seed": "-1"}, "greater than or equal to 0", 400),
        ({"judge": "1", "repetitions": "1", "limit": "2", "seed": "4294967296"}, "less than or equal to", 400),
        ({"judge": "1", "repetitions": "1", "limit": "2", "seed": "luck"}, "whole number", 400),
        ({"judge": "1", "repetitions": "1", "seed": "0"}, "it needs a limit", 409),
        ({"judge": "99999999999999999999", "repetitions": "1"}, "Select a valid choice", 400),
        ({"judge": "1", "repetitions": "1", "task_ids": "task_9999"}, "has no trajectory for task_9999", 409),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason_and_keeps_what_was_typed(
    mira: Client, submission: Submission, judge: Judge, given: dict[str, str], says: str, code: int
) -> None:
    given = {name: str(judge.pk) if value == "1" and name == "judge" else value for name, value in given.items()}
    page = plan_of(mira, submission, code, **given)
    assert says in page.split('class="summary"')[1]
    assert mira.post(reverse("start-judge-run", args=[submission.pk]), given).status_code == code
    assert JudgeRun.objects.count() == 0


def test_a_budget_without_prices_is_pointed_out_before_the_start(mira: Client, submission: Submission) -> None:
    judge = defined_judge("unpriced", model="unknown-model")
    page = plan_of(mira, submission, judge=judge.pk, max_cost="2")
    assert "A budget needs prices" in page
    assert ">Start<" not in page


def test_without_an_endpoint_the_page_says_so_kindly(
    mira: Client, submission: Submission, judge: Judge, settings: Any
) -> None:
    settings.JUDGE_ENDPOINTS = {}
    assert "No endpoint is configured" in get(mira, "judge-runs", submission.pk)
    response = mira.post(reverse("start-judge-run", args=[submission.pk]), {"judge": judge.pk, "repetitions": 1})
    assert response.status_code == 409
    assert "JUDGE_ENDPOINTS" in response.content.decode()


def test_without_a_judge_the_page_leads_to_the_judges(mira: Client, submission: Submission) -> None:
    page = get(mira, "judge-runs", submission.pk)
    assert "There is no judge to run yet" in page
    assert reverse("judges") in page


# --- the list --------------------------------------------------------------------------------------------------------


def test_the_list_shows_state_progress_unscored_failed_and_cost(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    items = list(run.items.order_by("pk"))
    rows.judgment_row(items[0])
    rows.judgment_row(items[1], None)
    RunItem.objects.filter(pk=items[2].pk).update(failed_at=timezone.now(), error="The endpoint is gone.")
    rows.call_row(items[0], cost=Decimal("0.25"))
    page = get(mira, "judge-runs", submission.pk)
    row = page.split(f">run {run.pk}</a>")[1].split("</tr>")[0]
    cells = [re.sub(r"<[^>]+>|\s+", " ", cell).strip() for cell in row.split("<td")[1:]]
    assert [cell.split(">", 1)[1].strip() for cell in cells[2:6]] == ["2 of 3", "1", "1", "0.2500 USD"]


def test_the_list_asks_the_database_no_more_often_for_many_runs(
    mira: Client, submission: Submission, django_assert_max_num_queries: Any
) -> None:
    for _ in range(12):
        rows.judgment_row(rows.run_row(submission).items.order_by("pk")[0])
    with django_assert_max_num_queries(16):
        get(mira, "judge-runs", submission.pk)


def test_a_test_of_a_judge_is_in_no_list(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission, test=True)
    assert f">run {run.pk}<" not in get(mira, "judge-runs", submission.pk)
    assert ">test<" in get(mira, "judge-run", run.pk)


# --- one run ---------------------------------------------------------------------------------------------------------


def test_the_part_that_moves_asks_for_itself_until_the_run_has_ended(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    assert 'hx-trigger="every 2s"' in get(mira, "judge-run-standing", run.pk, htmx=True)
    JudgeRun.objects.filter(pk=run.pk).update(paused_at=timezone.now())
    assert 'hx-trigger="every 10s"' in get(mira, "judge-run-standing", run.pk, htmx=True)
    JudgeRun.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    assert "hx-trigger" not in get(mira, "judge-run-standing", run.pk, htmx=True)


def test_the_buttons_are_replaced_only_when_they_change(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    assert "hx-swap-oob" not in get(mira, "judge-run-standing", run.pk, htmx=True, acts="goes")
    JudgeRun.objects.filter(pk=run.pk).update(paused_at=timezone.now())
    part = get(mira, "judge-run-standing", run.pk, htmx=True, acts="goes")
    assert "hx-swap-oob" in part
    assert ">Resume<" in part
    assert ">Pause<" not in part


def test_the_part_that_moves_followed_as_a_link_is_the_page(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    response = mira.get(reverse("judge-run-standing", args=[run.pk]))
    assert response["Location"] == reverse("judge-run", args=[run.pk])


def test_nobody_at_work_is_said_with_what_to_do(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    assert "No worker is active" not in get(mira, "judge-run", run.pk)  # a worker may just be on its way
    long_ago = timezone.now() - timedelta(hours=1)
    JudgeRun.objects.filter(pk=run.pk).update(started_at=long_ago)
    page = get(mira, "judge-run", run.pk)
    assert "No worker is active" in page
    assert "--queues webverdict-judges" in page
    run.items.filter(pk=run.items.order_by("pk")[0].pk).update(taken_at=long_ago, heartbeat_at=timezone.now())
    assert "No worker is active" not in get(mira, "judge-run", run.pk)
    JudgeRun.objects.filter(pk=run.pk).update(paused_at=timezone.now())
    run.items.update(heartbeat_at=long_ago)
    assert "No worker is active" not in get(mira, "judge-run", run.pk)


def test_errors_are_grouped_with_what_to_do(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    run.items.update(failed_at=timezone.now(), error="The endpoint answered 401: <b>bad key</b>.")
    page = get(mira, "judge-run", run.pk)
    assert "3 ×" in page
    assert "401: &lt;b&gt;bad key&lt;/b&gt;" in page
    assert "Check the endpoint and its key" in page
    assert ">Retry failed items<" in page


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("The endpoint answered 429: slow down.", "concurrency"),
        ("No reply within 120 s: timed out.", "time-out"),
        ("The picture abcdef is gone from the store.", "image store"),
        ("The endpoint answered 503.", "answers again"),
        ("The endpoint answered 404: model not found.", "model's name"),
        ("Something else.", "cause is fixed"),
    ],
)
def test_every_error_comes_with_an_advice(error: str, advice: str) -> None:
    assert advice in run_table.find_advice(error)


# --- its judgments ---------------------------------------------------------------------------------------------------


def test_trajectories_whose_verdicts_differ_among_repetitions_come_first(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission, repetitions=2)
    for item in run.items.select_related("trajectory"):
        rows.judgment_row(item, item.repetition - 1 if item.trajectory.position == 2 else 1)
    page = get(mira, "judge-run", run.pk)
    assert re.findall(r'id="task-\d+">(task_\d+)<', page) == ["task_0002", "task_0000", "task_0001"]
    assert page.count('<span class="chip warn">flips</span>') == 1
    assert "1 of 3 trajectories flips" in page
    assert re.findall(r'id="task-\d+">(task_\d+)<', get(mira, "judge-run", run.pk, show="flips")) == ["task_0002"]


def test_an_unscored_repetition_is_no_flip(submission: Submission) -> None:
    run = rows.run_row(submission, repetitions=2)
    for item in run.items.all():
        rows.judgment_row(item, 1 if item.repetition == 1 else None)
    assert run_table.count_flips(run) == 0


@pytest.mark.parametrize(
    ("show", "tasks"),
    [
        ("success", ["task_0000"]),
        ("failure", []),
        ("unscored", ["task_0001"]),
        ("failed", ["task_0002"]),
        ("waiting", []),
        ("nonsense", ["task_0000", "task_0001", "task_0002"]),
    ],
)
def test_the_table_is_narrowed(mira: Client, submission: Submission, show: str, tasks: list[str]) -> None:
    run = rows.run_row(submission)
    items = list(run.items.order_by("pk"))
    rows.judgment_row(items[0])
    rows.judgment_row(items[1], None)
    RunItem.objects.filter(pk=items[2].pk).update(failed_at=timezone.now(), error="gone")
    page = get(mira, "judge-run", run.pk, show=show)
    assert re.findall(r'id="task-\d+">(task_\d+)<', page) == tasks


def test_the_table_links_to_the_judgments_and_says_why_there_is_none(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    made = rows.judgment_row(run.items.order_by("pk")[0], None, mark="<i>")
    page = get(mira, "judge-run", run.pk)
    assert f'href="{reverse("judgment", args=[made.pk])}"' in page
    assert "&lt;i&gt;The model refused: no." in page
    assert "<i>" not in page


def test_the_page_of_a_run_asks_the_database_no_more_often_for_many_rows(
    mira: Client, submission: Submission, django_assert_max_num_queries: Any
) -> None:
    run = rows.run_row(submission, repetitions=10)
    for item in run.items.all():
        rows.judgment_row(item)
    with django_assert_max_num_queries(24):
        get(mira, "judge-run", run.pk)


# --- verbs -----------------------------------------------------------------------------------------------------------


def test_a_run_is_paused_resumed_with_a_higher_budget_and_cancelled(
    mira: Client, people: People, submission: Submission, judge: Judge
) -> None:
    run = started_run(people["mira"], submission, judge, max_cost=Decimal(1))
    mira.post(reverse("pause-judge-run", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "paused"
    mira.post(reverse("resume-judge-run", args=[run.pk]), {"max_cost": "2.5"})
    run.refresh_from_db()
    assert (run.state, run.max_cost) == ("waiting", Decimal("2.5"))
    mira.post(reverse("cancel-judge-run", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert "cannot be resumed" not in get(mira, "judge-run", run.pk)


def test_a_verb_that_the_state_forbids_is_explained(mira: Client, submission: Submission) -> None:
    run = rows.run_row(submission)
    JudgeRun.objects.filter(pk=run.pk).update(cancelled_at=timezone.now())
    for name in ACTS:
        response = mira.post(reverse(name, args=[run.pk]))
        assert response.status_code == 409, name
        assert "cancelled" in response.content.decode()


def test_a_budget_that_is_no_number_changes_nothing(
    mira: Client, people: People, submission: Submission, judge: Judge
) -> None:
    run = started_run(people["mira"], submission, judge, max_cost=Decimal(1))
    runs.pause(people["mira"], run)
    response = mira.post(reverse("resume-judge-run", args=[run.pk]), {"max_cost": "much"}, follow=True)
    assert "The budget is invalid" in response.content.decode()
    run.refresh_from_db()
    assert run.state == "paused"


@pytest.mark.django_db(transaction=True)
def test_failed_items_are_retried_from_the_page(
    fake: Fake, mira: Client, people: People, submission: Submission, settings: Any
) -> None:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says({"match": "task", "status": 401, "error": {"message": "wrong key"}})
    run = started_run(people["mira"], submission, defined_judge(attempts=1))
    worked(run)
    assert run.items.filter(failed_at__isnull=False).count() == 3
    page = get(mira, "judge-run", run.pk)
    assert "Check the endpoint and its key" in page
    fake.reset()
    mira.post(reverse("retry-judge-run", args=[run.pk]))
    worked(run)
    assert (run.state, Judgment.objects.filter(verdict__isnull=False).count()) == ("finished", 3)
    assert "finished" in get(mira, "judge-run", run.pk)


# --- who -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("who", "code"), [("alice", 403), ("carol", 403), ("dave", 404)])
def test_only_maintainers_reach_the_runs(
    people: People, submission: Submission, judge: Judge, who: str, code: int
) -> None:
    run = rows.run_row(submission, judge)
    client = Client()
    client.force_login(people[who])
    assert client.get(reverse("judge-runs", args=[submission.pk])).status_code == code
    given = {"judge": judge.pk, "repetitions": 1}
    for name in ("plan-judge-run", "start-judge-run"):
        assert client.post(reverse(name, args=[submission.pk]), given).status_code == code
    for name in ("judge-run", "judge-run-standing"):
        assert client.get(reverse(name, args=[run.pk]), headers={"HX-Request": "true"}).status_code == 404
    for name in ACTS:
        assert client.post(reverse(name, args=[run.pk])).status_code == 404
    assert JudgeRun.objects.count() == 1
