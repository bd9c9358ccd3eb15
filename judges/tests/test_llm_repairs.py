"""A call is repeated after an answer in the wrong form, while such repeats succeed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from annotation.tests import testing
from judges import planning
from judges.llm import Patience, Reply
from judges.models import Judgment
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.tests.clients import FITS, SCHEMA, Desk

AGAIN = "could not be used"  # stands in every request for another form of the same answer
ITEMS = 30
FEW = range(5, 10)  # five in vain, and at most four that had begun before the fifth ended


def ask_many(fake: Fake) -> list[Reply]:
    async def work(desk: Desk) -> list[Reply]:
        return await asyncio.gather(*(desk.asks(f"task {n}", order=n, schema=SCHEMA) for n in range(ITEMS)))

    return Desk(fake, patience=Patience(concurrency=16, attempts=2)).run(work)


def test_a_model_that_ignores_the_form_is_asked_again_a_few_times_only(fake: Fake) -> None:
    fake.says({"match": AGAIN, "reply": "Status: success", "name": "again"}, {"reply": "Status: success"})
    replies = ask_many(fake)
    assert fake.counts()["calls"] - ITEMS in FEW
    assert {reply.text for reply in replies} == {"Status: success"}
    assert all(reply.problem for reply in replies)


def test_a_stage_in_which_it_helps_goes_on_when_another_is_given_up(fake: Fake) -> None:
    fake.says({"match": [AGAIN, "look"], "reply": "unclear"}, {"match": AGAIN, "reply": FITS}, {"reply": "unclear"})

    async def work(desk: Desk) -> None:
        asked = [
            desk.asks(f"{stage} {n}", stage=stage, schema=SCHEMA) for n in range(ITEMS) for stage in ("look", "say")
        ]
        await asyncio.gather(*asked)

    Desk(fake, patience=Patience(concurrency=16, attempts=2)).run(work)
    assert fake.counts()["calls"] - (ITEMS + ITEMS + ITEMS) in FEW


def test_a_model_that_gives_the_form_when_it_is_asked_again_always_is(fake: Fake) -> None:
    fake.says({"match": AGAIN, "reply": FITS}, {"reply": "Status: success"})
    assert all(reply.data for reply in ask_many(fake))
    assert fake.counts()["calls"] == 2 * ITEMS


def test_a_model_that_gives_the_form_at_the_fifth_time_is_asked_on(fake: Fake) -> None:
    fake.says(
        {"match": AGAIN, "reply": "no", "times": 4}, {"match": AGAIN, "reply": FITS}, {"reply": "Status: failure"}
    )
    assert sum(reply.data is not None for reply in ask_many(fake)) == ITEMS - 4
    assert fake.counts()["calls"] == 2 * ITEMS


@pytest.mark.django_db(transaction=True)
def test_the_calls_of_a_run_stay_within_its_plan_and_its_verdicts_are_read_as_text(
    fake: Fake, settings: Any, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    submission = testing.submission(tmp_path / "package", trajectories=12)
    mira = testing.cast(submission)["mira"]
    fake.says({"reply": "Status: success"})
    judge = defined_judge()
    planned = planning.plan(judge, submission, {})
    assert (planned.calls, planned.calls_high) == (12, 24)
    worked(started_run(mira, submission, judge))
    assert fake.counts()["calls"] - 12 in FEW
    assert set(Judgment.objects.values_list("verdict", flat=True)) == {1}
