"""Answers of a Batch API that are not as documented, over HTTP: a run goes on, or stops with a reason."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judges.llm import Endpoint, Patience, batch
from judges.llm.batch import BatchApi
from judges.llm.replies import ReplyBody
from judges.llm.transport import FailedAttempt
from judges.models import ModelBatch
from judges.tests.batching import SUCCESS, Here, poll, short_pauses, work_once, work_to_end
from judges.tests.builders import KEY, Fake

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


def test_file_of_results_without_results_fails_its_calls(here: Here) -> None:
    here.fake.batches(content='{"custom_id": "1-1-1"}\n{"response": {}}\n"text"\n')
    run = here.start(selection={"limit": 1})
    work_to_end(run)
    item = run.items.get()
    assert (run.state, item.passing) == ("finished", True)
    assert "ended (completed) without a result of the request" in item.error


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
