"""Rate limits in a run: every worker waits, and items that failed by a limit are retried at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Event, Person, Submission
from annotation.tests import testing
from judges import runs
from judges.llm import client as llm_client
from judges.models import JudgeRun
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.tests.clients import Desk
from judges.tests.tiny import tiny_scorer
from judges.working import leases, worker
from judges.working.database import DatabaseThread
from judges.working.limits import SharedGate

pytestmark = pytest.mark.django_db(transaction=True)
NOW = 1_790_000_000.0


@pytest.fixture
def here(settings: Any, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that starts a run over three trajectories of one call each, with two attempts at each call."""
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    monkeypatch.setattr(llm_client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(llm_client, "LIMITED_WAIT", 0.001)
    submission = testing.submission(tmp_path, trajectories=3, steps=1)
    mira = testing.cast(submission)["mira"]
    with tiny_scorer():
        yield lambda: started_run(mira, submission, defined_judge("tiny", scorer="tiny", attempts=2))


def test_a_limited_worker_makes_every_other_worker_wait(fake: Fake, settings: Any, transactional_db: None) -> None:
    settings.REDIS_URL = (
        ""  # the database: a connection to Redis belongs to one event loop, and each question has its own
    )
    fake.says({"status": 429, "headers": {"x-ratelimit-reset-tokens": "30s"}, "times": 1}, {"reply": "ok"})
    slept: list[float] = []
    clock = [NOW]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    def gate() -> SharedGate:
        return SharedGate(None, "default:some-model", clock=lambda: clock[0], sleep=sleep)

    first, other = gate(), gate()
    desk = Desk(fake, gate=first, now=NOW)
    assert desk.ask().text == "ok"
    assert slept == [pytest.approx(30.0)]  # this worker's next attempt

    clock[0] = NOW
    slept.clear()
    asyncio.run(other.admit(1))
    assert slept == [pytest.approx(30.0)]
    for each in (first, other):
        asyncio.run(each.close())


def test_items_that_failed_by_a_limit_are_retried_once_at_the_end(here: Any, fake: Fake) -> None:
    fake.says({"match": "shop 1 ", "status": 429, "times": 2}, {"reply": "All done: success"})
    run = here()
    assert worked(run) is False
    now = runs.load_progress(run)
    assert (run.state, now.done, now.failed) == ("finished", 3, 0)
    assert run.retried_at is not None
    kinds = list(Event.objects.filter(kind__startswith="judge_run").values_list("kind", flat=True))
    assert kinds == ["judge_run_started", "judge_run_finished"]


def test_item_that_fails_again_stays_failed(here: Any, fake: Fake) -> None:
    fake.says({"match": "shop 1 ", "status": 503, "name": "down"}, {"reply": "All done: success"})
    run = here()
    assert worked(run) is False
    now = runs.load_progress(run)
    assert (run.state, now.done, now.failed) == ("finished", 2, 1)
    assert fake.counts()["by_rule"]["down"] in (4, 5, 6, 7, 8)  # two attempts, twice, at one call or both of them


class LateAnswers(DatabaseThread):
    """What `take` found is told once every item that was being judged has ended."""

    async def run(self, function: Any, *arguments: Any) -> Any:
        answer = await super().run(function, *arguments)
        if function is leases.claim:
            judging = [task for task in asyncio.all_tasks() if task.get_coro().__name__ == "_judge"]  # type: ignore[union-attr]
            if judging:
                await asyncio.wait(judging)
        return answer


def test_worker_tries_failed_item_again_when_it_learns_late_that_nothing_was_free(
    here: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "DatabaseThread", LateAnswers)
    fake.says({"match": "shop 1 ", "status": 503}, {"reply": "All done: success"})
    run = here()
    assert worked(run) is False
    assert (run.state, runs.load_progress(run).failed) == ("finished", 1)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_item_with_a_permanent_error_is_not_retried(here: Any, fake: Fake, status: int) -> None:
    fake.says({"match": "shop 1 ", "status": status, "name": "never"}, {"reply": "All done: success"})
    run = here()
    worked(run)
    assert (run.state, runs.load_progress(run).failed, run.retried_at) == ("finished", 1, None)
    assert fake.counts()["by_rule"]["never"] <= 2


def test_items_of_a_paused_run_are_not_tried_again_by_themselves(here: Any) -> None:
    run = here()
    for number in range(3):
        [item] = leases.claim(run.pk, "a worker", ())
        if number == 2:
            runs.pause(Person.objects.get(username="mira"), run)
        assert leases.fail(item, "a worker", "The endpoint answered 503.", passing=True)
    assert leases.finish_run(run.pk)
    assert JudgeRun.objects.get(pk=run.pk).state == "finished"
    assert Submission.objects.get().events.last().kind == "judge_run_finished"
