"""Answers of a Batch API that are not as documented, over HTTP: a run goes on, or stops with a reason."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judges import runs
from judges.llm import Call, Endpoint, Generation, Patience, batch
from judges.llm.batch import BatchApi
from judges.llm.collecting import BatchClient
from judges.llm.replies import ReplyBody
from judges.llm.transport import FailedAttempt
from judges.models import ModelBatch
from judges.tests.batching import SUCCESS, Here, poll, short_pauses, work_once, work_to_end
from judges.tests.builders import KEY, Fake, FolderImages, MemoryCallLog, OpenGate
from judges.tests.clients import prompt
from judges.working import waves

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def here(settings: Any, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(SUCCESS)
    with short_pauses(monkeypatch):
        yield Here(tmp_path, fake, trajectories=2)


@pytest.fixture
def api() -> BatchApi:
    return BatchApi(Endpoint("fake", "http://127.0.0.1:9/v1", KEY), Patience())


@pytest.mark.parametrize("answer", ["{}", "[]", "no JSON", '{"id": 7}', '{"id": ""}'])
@pytest.mark.parametrize("verb", ["upload", "create", "get"])
def test_answer_that_is_none_is_asked_for_again(here: Here, verb: str, answer: str) -> None:
    here.fake.batches(times=1, **{verb: answer})
    run = here.start()
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"], here.fake.counts()["batches"]) == ("finished", 4, 2)


def test_submission_is_not_repeated_while_the_endpoint_cannot_say_whether_it_has_the_batch(here: Here) -> None:
    here.fake.batches(create="drop", list=500)
    run = here.start()
    work_to_end(run)
    assert (run.state, "It is not known whether a batch was submitted" in run.stopped) == ("stopped", True)
    assert ModelBatch.objects.get().provider_id == ""
    assert here.fake.counts()["batches"] == 1


def test_results_that_cannot_be_read_now_are_read_later(here: Here) -> None:
    here.fake.batches(content=503)
    run = here.start()
    work_once(run)
    poll(run)
    assert (run.state, ModelBatch.objects.get().ended_at) == ("running", None)
    here.fake.batches(content=None)
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"]) == ("finished", 4)


def test_results_that_are_gone_stop_the_run(here: Here) -> None:
    here.fake.batches(content=404)
    run = here.start()
    work_to_end(run)
    assert (run.state, "cannot be read" in run.stopped, here.fake.counts()["paid"]) == ("stopped", True, 2)
    event = here.submission.events.get(kind="judge_run_stopped").payload
    assert event["reason"] == "The results of a batch of calls could not be read."


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize(
    "fault",
    [
        {"content": "<html>Please log in.</html>"},
        {"content": '{"custom_id": "0-1-1"}\n{"response": {}}\n"text"\n'},
        {"content": "\n"},
        {"content": "{"},
        {"zipped": "cut"},
    ],
)
def test_results_that_are_not_complete_are_read_again_and_not_paid_again(
    here: Here, fault: dict[str, Any], counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waves, "MOST_READS", 3)
    here.fake.batches(counts=counts, **fault)
    run = here.start()
    work_to_end(run)
    assert (run.state, "did not change in 3 polls" in run.stopped, here.fake.counts()["paid"]) == ("stopped", True, 2)
    here.fake.batches(content=None, zipped=False)
    runs.resume(here.mira, run)
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"], run.items.filter(judgment__verdict=1).count()) == ("finished", 4, 2)


def test_results_of_some_calls_are_not_taken_for_all(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "MOST_READS", 3)
    here.fake.batches(hold=True)
    run = here.start()
    work_once(run)
    name = "{}-{}-{}".format(*ModelBatch.objects.get().calls.values_list("item", "attempt", "number")[0])
    reply = {"choices": [{"message": {"content": "success"}}]}
    line = json.dumps({"custom_id": name, "response": {"status_code": 200, "body": reply}})
    here.fake.batches(hold=False, content=line)
    work_to_end(run)
    assert (run.state, "results of 1 of our requests, not of 2" in run.stopped) == ("stopped", True)
    assert (ModelBatch.objects.get().ended_at, here.fake.counts()["paid"]) == (None, 2)
    runs.cancel(here.mira, run)
    poll(run)
    [batch] = ModelBatch.objects.all()
    assert (batch.status, batch.ended_at is None) == ("completed", False)
    assert batch.calls.filter(error="").count() == 1


def test_results_in_gzip_are_decompressed(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "PIECE", 100)
    here.fake.batches(zipped=True)
    run = here.start()
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"], here.fake.counts()["batches"]) == ("finished", 4, 2)


def test_gzip_bomb_is_not_decompressed(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "LARGEST_FILE", 100)
    monkeypatch.setattr(waves, "MOST_READS", 1)
    here.fake.batches(zipped=True)
    run = here.start()
    work_to_end(run)
    assert (run.state, "more than 100 bytes" in run.stopped) == ("stopped", True)


def test_result_of_another_batch_changes_nothing(here: Here) -> None:
    here.fake.batches(hold=True)
    run = here.start()
    work_once(run)
    waiting = ModelBatch.objects.get().calls.filter(reply=None)
    name = "{}-{}-{}".format(*waiting.values_list("item", "attempt", "number")[0])
    forged = {"custom_id": name, "response": {"status_code": 200, "body": {"choices": [{"message": {"content": "x"}}]}}}
    here.fake.batches(hold=False, content=json.dumps(forged))
    other = here.start(fresh=True)
    work_once(other)
    poll(other)
    assert other.batches.filter(ended_at=None).count() < 2
    assert waiting.count() == 2
    here.fake.batches(content=None)
    work_to_end(run)
    assert (run.state, run.items.filter(judgment__verdict=1).count()) == ("finished", 2)


class NoFailures(MemoryCallLog):
    def take_name(self) -> str:
        return "1-1-1"

    async def find_failures(self, call: Call) -> list[str]:
        return []


def test_client_can_be_stopped_while_calls_wait(fake: Fake) -> None:
    async def stop() -> None:
        client = BatchClient(fake.endpoint, "gpt-4o", Generation(), Patience(), OpenGate(), FolderImages())
        asking = asyncio.ensure_future(client.asker(NoFailures(), 1).ask(prompt(), stage="verdict"))
        await client.wait_until_quiet(lambda: [1], lambda: True)
        asking.cancel()  # the item is dropped; its call would wait for ever
        async with asyncio.timeout(30):
            await client.finish()
        await client.close()
        assert asking.cancelled()

    asyncio.run(stop())


@pytest.mark.parametrize(
    ("line", "again", "said"),
    [
        ({"response": None, "error": {"code": "batch_expired", "message": "Too late."}}, True, "Too late."),
        ({"response": None, "error": {"code": "request_timeout"}}, True, "request_timeout"),
        ({"response": {"status_code": 0, "body": ""}, "error": {"message": "Odd."}}, True, "Odd."),
        ({"response": {"status_code": 429, "body": {"error": {"message": "Slow down."}}}}, True, "Slow down."),
        ({"response": {"status_code": 400, "body": {"error": {"message": "No."}}}}, False, "No."),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, True, ""),
        ({"response": {"status_code": 200, "body": None}}, True, ""),
        ({"response": [], "error": []}, True, "neither"),
    ],
)
def test_failed_request_may_be_repeated_as_its_error_says(
    api: BatchApi, line: dict[str, Any], again: bool, said: str
) -> None:
    found = api.read_result(json.dumps({"custom_id": "7-1-2"} | line))
    assert found is not None
    name, came = found
    assert isinstance(came, FailedAttempt)
    assert (name, came.again, said in came.message) == ("7-1-2", again, True)


def test_long_lines_are_skipped_and_the_key_is_hidden(api: BatchApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "LONGEST_LINE", 300)
    reply = {"choices": [{"message": {"content": f"ok {KEY}"}, "finish_reason": "stop"}]}
    good = json.dumps({"custom_id": "a", "response": {"status_code": 200, "body": reply}})
    long = json.dumps({"custom_id": "b", "response": {"status_code": 200, "body": "x" * 1000}})
    [(name, line, came)] = api.read_results(io.BytesIO(f"{long}\n\n{good}\n".encode()))
    assert isinstance(came, ReplyBody)
    assert (name, came.text, KEY in line, KEY in came.raw) == ("a", "ok [key]", False, False)
