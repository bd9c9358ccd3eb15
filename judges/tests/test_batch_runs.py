"""A run in batches: the same judgments as a standard run, in waves, at half the price, each call paid once."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from judges import runs
from judges.llm import batch, client, collecting
from judges.models import Judgment, ModelBatch, ModelCall, ModelTerms
from judges.tests.batching import SUCCESS, Here, list_calls, poll, short_pauses, work_once, work_to_end
from judges.tests.builders import Fake, defined_judge, started_run, worked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

PRICES = {"input_price": 2, "output_price": 10}  # 1,200 and 60 tokens: 0.0024 + 0.0006 = 0.003, in a batch 0.0015


@pytest.fixture
def here(settings: Any, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(SUCCESS)
    with short_pauses(monkeypatch):
        yield Here(tmp_path, fake, trajectories=4)


def said(run: Any) -> list[tuple[Any, ...]]:
    made = Judgment.objects.filter(item__run=run).order_by("item__trajectory__position")
    return list(made.values_list("verdict", "explanation", "fingerprint", "tokens"))


def test_run_goes_in_waves_and_judges_as_a_standard_run(here: Here) -> None:
    ModelTerms.objects.create(model="fake-model-1", **PRICES)
    run = here.start()
    work_to_end(run)
    counts = here.fake.counts()
    # One batch with the screenshots of all items, then one with their verdicts.
    assert (run.state, counts["sizes"], counts["paid"], counts["uploads"]) == ("finished", [4, 4], 8, 2)
    standard = started_run(here.mira, here.submission, here.judge, fresh=True)
    worked(standard)
    assert said(run) == said(standard)
    assert len(said(run)) == 4
    progress = runs.load_progress(run)
    assert (progress.calls, progress.cache_hits, progress.cost) == (8, 0, Decimal("0.012"))
    assert set(Judgment.objects.filter(item__run=run).values_list("cost", flat=True)) == {Decimal("0.003")}
    assert runs.load_progress(standard).cost == Decimal("0.024")
    # Each call is in the trace once, and a later standard run finds its reply.
    assert list_calls(run) == [("look", 0, False, True)] * 4 + [("verdict", None, False, True)] * 4
    later = started_run(here.mira, here.submission, here.judge)
    before = here.fake.counts()["calls"]
    worked(later)
    assert (later.state, here.fake.counts()["calls"]) == ("finished", before)


def test_run_of_a_hundred_items_makes_one_batch_for_each_stage(here: Here, tmp_path: Path) -> None:
    many = Here(tmp_path / "many", here.fake, trajectories=100)
    run = many.start(judge=here.judge)
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, counts["sizes"], counts["paid"]) == ("finished", [100, 100], 200)
    assert Judgment.objects.filter(item__run=run, verdict=1).count() == 100


def test_no_batch_is_made_for_what_is_in_the_cache(here: Here) -> None:
    worked(started_run(here.mira, here.submission, here.judge))
    run = here.start()
    work_to_end(run)
    assert (run.state, here.fake.counts()["batches"], len(said(run))) == ("finished", 0, 4)


def test_no_worker_waits_for_a_batch_that_is_not_ready(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    from judges.working import batches

    monkeypatch.setattr(batches, "FIRST_POLL", 60.0)
    here.fake.batches(hold=True)
    run = here.start()
    assert worked(run, seconds=600) is False  # it has ended long before
    assert not run.items.exclude(worker="").exists()
    assert here.fake.counts()["sizes"] == [4]
    assert worked(run, seconds=600) is False
    assert here.fake.counts()["polls"] == 0


def test_identical_calls_are_in_a_batch_once(here: Here) -> None:
    same = "A task that two trajectories have."
    for trajectory in here.submission.trajectories.filter(position__in=(0, 1)).select_related("task"):
        trajectory.task.text = same
        trajectory.task.save(update_fields=["text"])
    run = here.start()
    work_to_end(run)
    bodies = ModelCall.objects.filter(item__run=run, hit=False).count()
    assert here.fake.counts()["paid"] == bodies == ModelCall.objects.values("key").distinct().count()
    assert (run.state, len(said(run))) == ("finished", 4)


def make_equal(here: Here, number: int) -> None:
    """Give the first trajectories the same task and the same screenshot, so that their calls are equal."""
    screenshot = here.submission.trajectories.get(position=0).steps.get().screenshot_id
    for trajectory in here.submission.trajectories.filter(position__lt=number):
        type(trajectory).objects.filter(pk=trajectory.pk).update(task_text="A task that several trajectories have.")
        trajectory.steps.update(screenshot=screenshot)


def test_identical_screenshots_that_do_not_fit_into_memory_stall_no_wave(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PICTURE_BYTES", 1)  # one call with images at a time
    make_equal(here, 3)
    run = here.start()
    work_to_end(run)
    # The first wave has both different calls. Equal calls of several items can be in later batches again.
    assert (run.state, here.fake.counts()["sizes"][0], len(said(run))) == ("finished", 2, 4)


def test_call_that_waited_for_an_equal_one_has_its_image_when_that_fails(here: Here) -> None:
    make_equal(here, 2)
    here.fake.says({"status": 400, "error": {"message": "The picture is not readable."}, "times": 1}, SUCCESS)
    run = here.start(selection={"limit": 2})
    work_to_end(run)
    assert (run.state, here.fake.counts()["sizes"]) == ("finished", [1, 1, 1])
    # The item whose call failed fails, unless the other one asks first in the second wave: then both use its reply.
    failed = list(run.items.filter(failed_at__isnull=False))
    assert all("The picture is not readable." in one.error for one in failed)
    assert (len(failed), len(said(run))) in {(1, 1), (0, 2)}


def test_files_are_cut_at_their_limit(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MOST_CALLS", 3)
    run = here.start()
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, counts["paid"], sorted(counts["sizes"])) == ("finished", 8, [1, 1, 3, 3])


def test_files_are_cut_at_their_size(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    work_to_end(here.start(selection={"limit": 1}))
    look, verdict = here.fake.counts()["upload_bytes"]
    monkeypatch.setattr(batch, "MOST_BYTES", look + verdict)  # a look has an image: two of them do not fit
    run = here.start(fresh=True)
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"]) == ("finished", 2 + 8)
    assert here.fake.counts()["sizes"].count(1) >= 2 + 4
    assert max(here.fake.counts()["upload_bytes"]) <= look + verdict


def test_call_that_is_larger_than_a_file_fails_with_a_reason(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MOST_BYTES", 100)
    run = here.start(selection={"limit": 1})
    work_to_end(run)
    item = run.items.get()
    assert (run.state, "more than a batch may have" in item.error, here.fake.counts()["uploads"]) == (
        "finished",
        True,
        0,
    )


def test_only_as_many_items_are_open_as_fit_into_memory(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    from judges.working import worker

    monkeypatch.setattr(worker, "OPEN_ITEMS", 3)
    here.fake.batches(hold=True)
    run = here.start()
    work_once(run)
    assert here.fake.counts()["sizes"] == [3, 1]  # the second does not wait for the first
    here.fake.batches(hold=False)
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"]) == ("finished", 8)


# --- failures of calls -----------------------------------------------------------------------------------------------


def test_requests_of_an_expired_batch_are_asked_again_but_not_those_that_were_answered(here: Here) -> None:
    here.fake.batches(end=["expired", "completed"], answers=3)
    run = here.start()
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, counts["paid"], len(said(run))) == ("finished", 8, 4)
    # The call that was not answered, together with the verdicts of the other three; then its verdict.
    assert (counts["sizes"], counts["statuses"]) == ([4, 4, 1], ["expired", "completed", "completed"])


def test_call_that_expires_too_often_fails_its_item_for_now(here: Here) -> None:
    here.fake.batches(end="expired", answers=0)
    run = here.start(selection={"limit": 1})
    work_to_end(run)
    item = run.items.get()
    assert (run.state, item.passing, here.fake.counts()["paid"]) == ("finished", True, 0)
    assert "expired" in item.error
    # Two attempts of the judge, and the same again when the run retries its failed items.
    assert here.fake.counts()["sizes"] == [1, 1, 1, 1]
    here.fake.batches(end="completed", answers=None)
    assert runs.retry_failed(here.mira, run) == 1
    work_to_end(run)
    assert (run.state, len(said(run))) == ("finished", 1)


def test_errors_of_single_requests_are_handled_as_in_a_standard_run(here: Here) -> None:
    here.fake.says(
        {"match": "shop 0", "status": 400, "error": {"message": "The picture is not readable."}},
        {"match": "shop 1", "status": 500, "times": 1},
        SUCCESS,
    )
    run = here.start()
    work_to_end(run)
    failed = run.items.get(failed_at__isnull=False)
    assert (run.state, "The picture is not readable." in failed.error, failed.passing) == ("finished", True, False)
    assert len(said(run)) == 3
    assert here.fake.counts()["paid"] == 6


def test_refused_parameter_is_learned_once_and_remembered_by_later_workers(here: Here) -> None:
    here.fake.says(
        {"raw": '"seed"', "status": 400, "error": {"message": "Unsupported parameter: seed", "param": "seed"}}, SUCCESS
    )
    run = here.start()
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, len(said(run)), counts["paid"], counts["sizes"]) == ("finished", 4, 8, [4, 4, 4])


def test_model_that_turns_out_to_reason_is_not_paid_twice(here: Here) -> None:
    thought = {"prompt_tokens": 1200, "completion_tokens": 60, "completion_tokens_details": {"reasoning_tokens": 40}}
    here.fake.says(SUCCESS | {"usage": thought})
    run = here.start()
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, counts["paid"], counts["sizes"]) == ("finished", 8, [4, 4])
    lengths = ModelCall.objects.filter(item__run=run).order_by("pk").values_list("request__max_tokens", flat=True)
    assert list(lengths) == [2048] * 4 + [16384] * 4


def test_lines_that_are_no_results_are_ignored(here: Here) -> None:
    here.fake.batches(garbage=True)
    run = here.start()
    work_to_end(run)
    assert (run.state, len(said(run)), here.fake.counts()["paid"]) == ("finished", 4, 8)


def test_key_in_a_result_is_hidden(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-secret-of-this-test-42"
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", key)
    here.fake.says(
        {"match": "shop 0", "status": 400, "error": {"message": f"Bad key {key}"}}, {"reply": f"{key} success"}
    )
    run = here.start()
    work_to_end(run)
    assert len(said(run)) == 3
    stored = [*ModelCall.objects.values_list("reply", "error"), *run.items.values_list("error")]
    assert "[key]" in str(stored)
    assert key not in str(stored)


# --- failures of batches ---------------------------------------------------------------------------------------------


def test_endpoint_without_batches_stops_the_run(here: Here) -> None:
    here.fake.batches(supported=False)
    run = here.start()
    work_to_end(run)
    assert run.state == "stopped"
    assert "does not support batches: " in run.stopped
    assert "start a standard run." in run.stopped
    assert not ModelBatch.objects.exists()
    assert not ModelCall.objects.exists()
    event = here.submission.events.get(kind="judge_run_stopped").payload
    assert event["reason"] == "A batch of calls could not be submitted."


@pytest.mark.parametrize(("status", "uploads"), [(400, 0), (503, 0)])
def test_refused_upload_stops_the_run_and_resuming_tries_again(here: Here, status: int, uploads: int) -> None:
    here.fake.batches(upload=status)
    run = here.start()
    work_to_end(run)
    assert (run.state, str(status) in run.stopped, here.fake.counts()["uploads"]) == ("stopped", True, uploads)
    assert not ModelCall.objects.exists()
    here.fake.batches(upload=None)
    runs.resume(here.mira, run)
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"]) == ("finished", 8)


def test_upload_is_repeated_after_a_temporary_error(here: Here) -> None:
    here.fake.batches(upload=503, times=1)
    run = here.start()
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"]) == ("finished", 8)


@pytest.mark.parametrize("forgets", [False, True])
def test_submission_whose_answer_is_lost_is_found_again(here: Here, forgets: bool) -> None:
    here.fake.batches(create="drop", times=1, forgets=forgets)
    run = here.start()
    work_to_end(run)
    counts = here.fake.counts()
    assert (run.state, counts["paid"], counts["batches"]) == ("finished", 8, 2)


def test_batch_that_fails_its_validation_stops_the_run_with_the_reason(here: Here) -> None:
    here.fake.batches(end="failed")
    run = here.start()
    work_to_end(run)
    assert (run.state, "The fake finds it wrong." in run.stopped) == ("stopped", True)
    assert (here.fake.counts()["paid"], ModelCall.objects.count()) == (0, 0)
    here.fake.batches(end="completed")
    runs.resume(here.mira, run)
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"]) == ("finished", 8)


def test_full_disk_stops_the_run_before_anything_is_submitted(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(collecting, "write_line", fail)
        run = here.start()
        work_to_end(run)
    assert (run.state, "No space left on device" in run.stopped, "Free some space" in run.stopped) == (
        "stopped",
        True,
        True,
    )
    assert (here.fake.counts()["uploads"], ModelBatch.objects.count()) == (0, 0)
    assert not run.items.exclude(worker="").exists()
    runs.resume(here.mira, run)
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"]) == ("finished", 8)


# --- budgets ---------------------------------------------------------------------------------------------------------


def test_budget_is_checked_with_the_estimate_of_a_batch(here: Here) -> None:
    ModelTerms.objects.create(model="fake-model-1", **PRICES)
    # A look is estimated with 1,100 tokens for the image and some of the text, and 300 of the reply: half of
    # 0.0022 + 0.003 = 0.0026, and some more. So 0.006 pays for two.
    run = here.start(max_cost=Decimal("0.006"))
    work_to_end(run)
    assert (run.state, here.fake.counts()["sizes"]) == ("stopped", [2])
    assert "0.0060 US dollars" in run.stopped
    event = here.submission.events.get(kind="judge_run_stopped").payload
    assert event["reason"] == "The budget is spent, or its use cannot be measured."
    poll(run)  # also of a stopped run, the results are stored
    assert runs.load_progress(run).cost == Decimal("0.003")
    runs.resume(here.mira, run, Decimal(1))
    work_to_end(run)
    assert (run.state, here.fake.counts()["paid"], runs.load_progress(run).cost) == ("finished", 8, Decimal("0.012"))


def test_budget_counts_the_thoughts_of_a_reasoning_model(here: Here) -> None:
    ModelTerms.objects.create(model="fake-model-1", **PRICES)
    judge = defined_judge("thinker", scorer="tiny", generation={"reasoning": "yes"})
    # With 1,200 tokens for thoughts, a look is estimated with 0.006 more than without: 0.0086 and some more.
    run = here.start(judge=judge, max_cost=Decimal("0.0086"))
    work_to_end(run)
    assert (run.state, here.fake.counts()["sizes"]) == ("stopped", [])
    runs.cancel(here.mira, run)
    run = here.start(judge=judge, max_cost=Decimal("0.0096"))
    work_to_end(run)
    assert (run.state, here.fake.counts()["sizes"]) == ("stopped", [1])


def test_budget_is_checked_with_the_mean_cost_if_that_is_larger_than_the_estimate(here: Here) -> None:
    ModelTerms.objects.create(model="fake-model-1", **PRICES)
    # Half of 1,200 tokens at 2 and 20,000 at 10 dollars per million: 0.0012 + 0.1 for each look.
    here.fake.says(SUCCESS | {"usage": {"prompt_tokens": 1200, "completion_tokens": 20_000}})
    run = here.start(max_cost=Decimal("0.6"))
    work_to_end(run)
    # 0.4048 is spent, and 0.1952 pay for one more call of 0.1012.
    assert (run.state, here.fake.counts()["sizes"]) == ("stopped", [4, 1])
    assert "would cost about 0.1012 US dollars" in run.stopped


def test_calls_quota_is_kept(here: Here) -> None:
    here.submission.benchmark.quota_calls = 3
    here.submission.benchmark.save(update_fields=["quota_calls"])
    run = here.start()
    work_to_end(run)
    assert (run.state, here.fake.counts()["sizes"]) == ("stopped", [3])
    assert "has room for 0" in run.stopped


def test_endpoint_that_counts_no_tokens_ends_a_run_with_a_budget(here: Here) -> None:
    ModelTerms.objects.create(model="fake-model-1", **PRICES)
    here.fake.says(SUCCESS | {"usage": {}})
    run = here.start(max_cost=Decimal(1))
    work_to_end(run)
    assert (run.state, "does not report its token usage" in run.stopped) == ("stopped", True)
    assert here.fake.counts()["sizes"] == [4]


def test_judge_without_a_model_needs_no_service(here: Here) -> None:
    judge = defined_judge("network", scorer="network-trace", model="")
    with pytest.raises(runs.RunRefused, match="asks no model"):
        here.start(judge=judge)
    with pytest.raises(runs.RunRefused, match="'turbo' does not exist"):
        started_run(here.mira, here.submission, here.judge, service="turbo")
