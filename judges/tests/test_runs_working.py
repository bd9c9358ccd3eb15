"""A worker at a run: real HTTP to the fake endpoint, real rows, real pictures."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from annotation import workflow
from annotation.models import Event
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.workflow import integrity
from judges import runs
from judges.models import Judgment, ModelCall, ModelTerms, RunItem
from judges.ready_judges import RunRefused
from judges.tests.builders import defined_judge, started_run, worked
from judges.tests.tiny import tiny_scorer

pytestmark = pytest.mark.django_db(transaction=True)

SUCCESS = {"reply": "All was done, so: success"}


@pytest.fixture
def here(settings, fake, tmp_path):
    """Three trajectories with two pictures each, a maintainer, a judge that makes three calls for each."""
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(SUCCESS)
    with tiny_scorer():
        submission = testing.submission(tmp_path, trajectories=3, steps=2)
        people = testing.cast(submission)
        yield submission, people["mira"], defined_judge("tiny", scorer="tiny")


def events(submission):
    return list(submission.events.filter(kind__startswith="judge_run").values_list("kind", flat=True))


def test_every_trajectory_gets_one_judgment_with_everything_that_was_said(here, fake):
    submission, mira, judge = here
    fake.says({"match": "shop 1 ", "reply": "The cart is empty: failure"}, SUCCESS)
    run = started_run(mira, submission, judge)
    assert worked(run) is False
    assert run.state == "finished"
    made = {j.trajectory.task.external_id: j for j in Judgment.objects.select_related("trajectory__task", "agent")}
    assert {task: j.verdict for task, j in made.items()} == {"task_0000": 1, "task_0001": 0, "task_0002": 1}
    first = made["task_0000"]
    assert (first.judge, first.fingerprint, first.agent) == (judge, judge.fingerprint, submission.agent)
    assert first.response == first.explanation == "All was done, so: success"
    assert first.evidence == {"key_points": [], "steps": [], "notes": {"word": "success"}}
    assert (first.model, first.tokens, first.cost) == ("fake-model-1", 3 * 1260, None)
    assert fake.counts()["calls"] == 9


def test_every_call_leaves_a_row_with_its_request_and_its_raw_reply(here, fake):
    submission, mira, judge = here
    worked(started_run(mira, submission, judge, selection={"limit": 1}))
    rows = list(ModelCall.objects.order_by("stage", "step"))
    assert [(row.stage, row.step, row.attempt) for row in rows] == [
        ("look", 0, 1),
        ("look", 1, 1),
        ("verdict", None, 1),
    ]
    picture = str(rows[0].request)
    assert "base64" not in picture
    assert "Step 0 of" in picture
    assert '"fake-model-1"' in rows[2].reply
    assert (rows[2].prompt_tokens, rows[2].completion_tokens, rows[2].sample, rows[2].error) == (1200, 60, "1", "")


def test_a_second_run_of_the_same_judge_pays_nothing_and_is_worth_the_same(here, fake):
    submission, mira, judge = here
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)
    worked(started_run(mira, submission, judge))
    again = started_run(mira, submission, judge)
    worked(again)
    assert fake.counts()["calls"] == 9
    first, second = Judgment.objects.filter(trajectory__position=0).order_by("pk")
    assert first.cost == second.cost == Decimal("0.009")  # three calls of 1,200 x 2 + 60 x 10 dollars for a million
    assert first.tokens == second.tokens
    hits = ModelCall.objects.filter(item__run=again)
    assert {(hit.hit, hit.cost, hit.request, hit.reply) for hit in hits} == {(True, 0, None, None)}
    assert all(hit.hit_of.reply for hit in hits)
    now = runs.load_progress(again)
    assert (now.calls, now.cache_hits, now.cost, now.tokens) == (0, 9, Decimal(0), 0)


def test_repetitions_are_samples_of_their_own_and_are_not_paid_twice_across_runs(here, fake):
    submission, mira, judge = here
    run = started_run(mira, submission, judge, repetitions=2)
    worked(run)
    assert fake.counts()["calls"] == 18
    assert sorted(run.items.values_list("judgment__repetition", flat=True)) == [1, 1, 1, 2, 2, 2]
    worked(started_run(mira, submission, judge, repetitions=3))
    assert fake.counts()["calls"] == 27


def test_a_fresh_run_pays_again_and_only_once(here, fake):
    submission, mira, judge = here
    worked(started_run(mira, submission, judge))
    fresh = started_run(mira, submission, judge, fresh=True)
    worked(fresh)
    assert fake.counts()["calls"] == 18
    # An attempt at an item of a fresh run finds what the earlier attempt was told.
    RunItem.objects.filter(run=fresh, trajectory__position=0).update(failed_at=timezone.now(), done_at=None)
    runs.retry_failed(mira, fresh)
    worked(fresh, worker="another")
    assert fake.counts()["calls"] == 18


def test_no_usable_reply_is_unscored_and_no_reply_is_a_failed_item_that_can_be_tried_again(here, fake):
    submission, mira, judge = here
    fake.says(
        {"match": ["Judge.", "shop 0 "], "message": {"role": "assistant", "content": None, "refusal": "I will not."}},
        {"match": ["Judge.", "shop 1 "], "status": 400, "error": {"message": "You cannot ask that."}},
        SUCCESS,
    )
    run = started_run(mira, submission, judge)
    worked(run)
    assert run.state == "finished"
    by_task = {item.trajectory.position: item for item in run.items.select_related("trajectory", "judgment")}
    assert by_task[0].judgment.verdict is None
    assert "I will not." in by_task[0].judgment.unscored
    assert by_task[1].failed_at is not None
    assert "You cannot ask that." in by_task[1].error
    assert not Judgment.objects.filter(item=by_task[1]).exists()
    now = runs.load_progress(run)
    assert (now.done, now.unscored, now.failed) == (2, 1, 1)
    assert now.errors == ((by_task[1].error, 1),)

    fake.says(SUCCESS)
    before = fake.counts()["calls"]
    assert runs.retry_failed(mira, run) == 1
    assert run.state == "running"
    worked(run)
    assert fake.counts()["calls"] == before + 1  # the two looks were kept
    assert runs.load_progress(run).failed == 0
    assert events(submission)[-3:] == ["judge_run_finished", "judge_run_retried", "judge_run_finished"]


def test_a_scorer_that_makes_a_mistake_of_its_own_fails_one_item_and_is_logged(here, fake, caplog):
    submission, mira, _ = here
    judge = defined_judge("clumsy", scorer="tiny", parameters={"mistake": "task_0001"})
    run = started_run(mira, submission, judge)
    worked(run)
    now = runs.load_progress(run)
    assert (now.state, now.done, now.failed) == ("finished", 2, 1)
    assert "ZeroDivisionError: a scorer's own mistake" in now.errors[0][0]
    assert "Traceback" in caplog.text


def test_a_spent_budget_stops_the_run_and_a_higher_one_ends_it(here, fake):
    submission, mira, _ = here
    judge = defined_judge("thrifty", scorer="tiny", concurrency=1)
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)
    run = started_run(mira, submission, judge, max_cost=Decimal("0.01"))  # a call costs 0.003
    assert worked(run) is False
    assert run.state == "stopped"
    assert "budget of 0.01 US dollars is spent" in run.stopped
    paid = fake.counts()["calls"]
    assert paid in (4, 5)  # the one that spends it, and one that was on its way
    now = runs.load_progress(run)
    assert (now.done, now.failed, now.running, now.cost) == (1, 0, 0, paid * Decimal("0.003"))
    assert not run.items.filter(taken_at__isnull=False, done_at__isnull=True).exists()
    with pytest.raises(RunRefused, match="higher"):
        runs.resume(mira, run)
    runs.resume(mira, run, Decimal(1))
    worked(run)
    assert run.state == "finished"
    assert fake.counts()["calls"] == 9
    assert events(submission) == [
        "judge_run_started",
        "judge_run_stopped",
        "judge_run_resumed",
        "judge_run_finished",
    ]


def test_a_budget_that_cannot_be_kept_stops_the_run(here, fake):
    submission, mira, judge = here
    ModelTerms.objects.create(model="fake-model-1", input_price=2, output_price=10)
    fake.says(SUCCESS | {"usage": {}})
    run = started_run(mira, submission, judge, max_cost=Decimal(1))
    worked(run)
    assert run.state == "stopped"
    assert "does not report its token usage" in run.stopped
    recorded = submission.events.get(kind="judge_run_stopped").payload
    assert recorded["reason"] == "The budget is spent, or its use cannot be measured."


def test_what_a_dead_worker_held_is_taken_over_and_its_calls_are_hits(here, fake, settings):
    submission, mira, judge = here
    worked(started_run(mira, submission, judge, selection={"limit": 1}))
    run = started_run(mira, submission, judge, selection={"limit": 1}, fresh=True)
    sample = f"{run.pk}/1"
    earlier = ModelCall.objects.filter(stage="look")
    run.items.update(
        worker="dead", attempt=1, taken_at=timezone.now(), heartbeat_at=timezone.now() - timedelta(seconds=30)
    )
    for row in earlier:  # as the dead worker left them
        row.pk, row.item, row.sample = None, run.items.get(), sample
        row.save()
    assert worked(run) is False
    assert fake.counts()["calls"] == 3
    assert not Judgment.objects.filter(item__run=run).exists(), "the worker may live"
    settings.JUDGE_SILENCE_SECONDS = 20
    worked(run)
    assert fake.counts()["calls"] == 4
    item = run.items.get()
    assert (item.attempt, item.worker) == (2, "the worker")
    assert item.judgment.tokens == 3 * 1260


def test_a_worker_that_comes_back_from_the_dead_changes_nothing(here, fake, settings):
    submission, mira, judge = here
    run = started_run(mira, submission, judge, selection={"limit": 1})
    from judges.scorer import Score
    from judges.working import leases
    from judges.working.call_log import CallTotals

    (zombie,) = leases.claim(run.pk, "zombie", ())
    run.items.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    worked(run)
    said = run.items.get().judgment
    assert leases.settle(zombie, "zombie", Score(None, unscored="late"), CallTotals(), "x") is False
    assert leases.fail(zombie, "zombie", "late") is False
    leases.release(zombie, "zombie")
    assert leases.renew("zombie", [zombie.pk]) == set()
    item = run.items.get()
    assert (item.judgment, item.failed_at, item.worker) == (said, None, "the worker")
    assert Judgment.objects.count() == 1


def test_the_chain_holds_and_the_submission_can_be_judged_after_its_freeze(here, fake):
    submission, mira, judge = here
    people = {name: testing.person(name) for name in ("alice", "bob", "chen", "carol", "mira")}
    worked(started_run(mira, submission, judge))
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["carol"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(mira, submission)
    worked(started_run(mira, submission, judge, fresh=True))
    submission.refresh_from_db()
    assert integrity.problems(submission) == []
    assert first_broken(Event.objects.filter(submission=submission)) is None
    ended = submission.events.filter(kind="judge_run_finished").last().payload
    assert ended["verdicts"] == {"1": 3}
    assert (ended["unscored"], ended["failed"], ended["fingerprint"]) == (0, 0, judge.fingerprint)


def test_texts_that_a_database_refuses_are_kept_without_what_it_refuses(here, fake):
    submission, mira, judge = here
    fake.says({"reply": "a\x00b \ud800 success"})
    run = started_run(mira, submission, judge, selection={"limit": 1})
    worked(run)
    assert run.items.get().judgment.response == "a\ufffdb ? success"


def test_a_picture_that_the_store_has_lost_fails_the_item_with_its_reason(here, fake):
    from django.core.files.storage import default_storage

    submission, mira, judge = here
    lost = submission.trajectories.get(position=0).steps.first().screenshot.sha256
    for name in (f"originals/{lost[:2]}/{lost}", f"renditions/judge/{lost[:2]}/{lost}"):
        default_storage.delete(name)
    run = started_run(mira, submission, judge)
    worked(run)
    now = runs.load_progress(run)
    assert (now.done, now.failed) == (2, 1)
    assert lost[:12] in now.errors[0][0]


def test_damaged_picture_fails_the_item_with_its_reason(here, fake):
    from pathlib import Path

    from django.core.files.storage import default_storage

    submission, mira, judge = here
    damaged = submission.trajectories.get(position=0).steps.first().screenshot.sha256
    default_storage.delete(f"renditions/judge/{damaged[:2]}/{damaged}")
    path = Path(default_storage.path(f"originals/{damaged[:2]}/{damaged}"))
    data = bytearray(path.read_bytes())
    data[-20] ^= 1  # in the checksum of a PNG, or behind the pixels: it can still be decoded
    path.write_bytes(data)
    run = started_run(mira, submission, judge)
    worked(run)
    now = runs.load_progress(run)
    assert (now.done, now.failed) == (2, 1)
    assert damaged[:12] in now.errors[0][0]
    assert "damaged" in now.errors[0][0]


def test_a_machine_without_the_endpoint_lets_the_run_wait_and_says_so(here, fake, settings):
    submission, mira, judge = here
    run = started_run(mira, submission, judge)
    settings.JUDGE_ENDPOINTS = {"home-of-mira": fake.url}
    worked(run)
    assert run.state == "stopped"
    assert "JUDGE_ENDPOINTS. Known: home-of-mira" in run.stopped
    assert run.stopped.startswith("A judge worker could not start: ")  # and not the shell that has started it
    recorded = submission.events.get(kind="judge_run_stopped").payload  # which leaves in bundles
    assert recorded == {"run": run.pk, "judge": str(judge), "reason": "A judge worker could not start."}
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    runs.resume(mira, run)
    worked(run)
    assert run.state == "finished"
