"""Who may do what with a run, in which state, and what the chain says of it; nobody works on these runs."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation import clock, workflow
from annotation.models.events import digest, first_broken
from annotation.tests import testing
from annotation.workflow import Conflict, integrity
from judges import jobs, planning, runs
from judges.models import JudgeRun, Judgment, ModelCall, ModelTerms, RunItem
from judges.ready_judges import RunRefused
from judges.tests.builders import defined_judge, started_run
from judges.tests.tiny import tiny_scorer
from judges.working import call_log, leases
from judges.working.leases import collect_outcomes

pytestmark = pytest.mark.django_db


@pytest.fixture
def here(settings):
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:1/v1"}
    with tiny_scorer():
        submission = testing.bare_submission(3)
        people = testing.cast(submission)
        yield submission, people, defined_judge("tiny", scorer="tiny")


@pytest.fixture
def run(here):
    submission, people, judge = here
    return started_run(people["mira"], submission, judge)


def last_event(submission):
    return submission.events.order_by("sequence").last()


# --- start ---------------------------------------------------------------------------------------------------------


def test_a_start_freezes_the_judge_writes_every_item_and_appends_its_event(here):
    submission, people, judge = here
    assert judge.frozen_at is None
    run = started_run(people["mira"], submission, judge, selection={"limit": 2}, repetitions=2)
    judge.refresh_from_db()
    assert judge.frozen_at is not None
    chosen = [t.pk for t in submission.trajectories.order_by("position")[:2]]
    items = list(run.items.values_list("trajectory", "repetition"))
    assert items == [(pk, repetition) for repetition in (1, 2) for pk in chosen]
    said = last_event(submission)
    assert (said.kind, said.actor, said.actor_pseudonym) == ("judge_run_started", people["mira"], "M1")
    assert said.payload == {
        "run": run.pk,
        "judge": "tiny",
        "fingerprint": judge.fingerprint,
        "test": False,
        "trajectories": 2,
        "repetitions": 2,
        "fresh": False,
        "max_cost": None,
    }
    assert (run.state, run.estimate["trajectories"], run.estimate["calls"]) == ("waiting", 2, 4)


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_a_maintainer_of_the_submission_may_start_or_change_a_run(here, run, name):
    submission, people, judge = here
    verbs = [
        lambda: runs.start(people[name], judge, submission, {}),
        lambda: runs.pause(people[name], run),
        lambda: runs.resume(people[name], run),
        lambda: runs.cancel(people[name], run),
        lambda: runs.retry_failed(people[name], run),
    ]
    before = submission.events.count()
    for verb in verbs:
        with pytest.raises(PermissionDenied):
            verb()
    assert JudgeRun.objects.count() == 1
    assert submission.events.count() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selection": {"task_ids": ["task_0001", "task_9999"]}}, "task_9999"),
        ({"selection": {"level": "impossible"}}, "No trajectories"),
        ({"selection": {"state": "lost"}}, "The state 'lost' does not exist"),
        ({"selection": {"colour": "red"}}, "colour"),
        ({"selection": {"limit": 0}}, "limit"),
        ({"selection": {"limit": "many"}}, "limit"),
        ({"selection": {"task_ids": [7]}}, "task_ids"),
        ({"repetitions": 0}, "1 to 100"),
        ({"repetitions": 101}, "1 to 100"),
        ({"max_cost": Decimal(0)}, "between"),
        ({"max_cost": Decimal("-3")}, "between"),
        ({"max_cost": Decimal("NaN")}, "number of US dollars|between"),
        ({"max_cost": Decimal("1e12")}, "between"),
        ({"max_cost": Decimal(5)}, "needs prices"),
    ],
)
def test_a_run_that_means_nothing_is_refused_with_a_reason_and_nothing_is_kept(here, options, message):
    submission, people, judge = here
    with pytest.raises(RunRefused, match=message):
        started_run(people["mira"], submission, judge, **options)
    judge.refresh_from_db()
    assert judge.frozen_at is None
    assert not JudgeRun.objects.exists()


def test_a_budget_is_taken_when_both_prices_are_known(here):
    submission, people, judge = here
    terms = ModelTerms.objects.create(model="fake-model-1", input_price=1)
    with pytest.raises(RunRefused, match="needs prices"):
        started_run(people["mira"], submission, judge, max_cost=Decimal(5))
    terms.output_price = 2
    terms.save()
    assert started_run(people["mira"], submission, judge, max_cost=Decimal(5)).max_cost == 5


def test_an_endpoint_that_is_not_set_is_said_kindly(here, settings):
    submission, people, judge = here
    settings.JUDGE_ENDPOINTS = {}
    with pytest.raises(RunRefused, match="JUDGE_ENDPOINTS"):
        started_run(people["mira"], submission, judge)


def test_a_judge_of_imported_judgments_cannot_run(here):
    submission, people, judge = here
    judge.scorer = "imported"
    judge.save()
    with pytest.raises(RunRefused, match="imported"):
        started_run(people["mira"], submission, judge)


def test_a_submission_for_practice_can_be_judged(here):
    _, people, judge = here
    practice = testing.bare_submission(1, agent="Practice Agent")
    workflow.join_as_maintainer(practice, people["mira"])
    workflow.configure(people["mira"], practice, practice=True)
    assert started_run(people["mira"], practice, judge).items.count() == 1


# --- choosing ------------------------------------------------------------------------------------------------------


def test_trajectories_are_chosen_in_the_order_of_the_submission(here):
    submission, _, _ = here

    def chosen(**selection):
        return [t.task.external_id for t in planning.choose(submission, selection)]

    every = ["task_0000", "task_0001", "task_0002"]
    assert chosen() == every
    assert chosen(task_ids=["task_0002", "task_0000"]) == ["task_0000", "task_0002"]
    assert chosen(state="in review", level=["easy"]) == every
    assert chosen(state="dispute") == []
    assert chosen(limit=2) == every[:2]


def test_judged_trajectories_can_be_left_out_and_tests_do_not_count_as_judged(here):
    submission, people, judge = here
    judged(started_run(people["mira"], submission, judge, selection={"limit": 1}).items.get())
    judged(started_run(people["mira"], submission, judge, selection={"task_ids": ["task_0001"]}, test=True).items.get())
    left = [t.task.external_id for t in planning.choose(submission, {"unjudged": judge.pk})]
    assert left == ["task_0001", "task_0002"]
    assert planning.plan(judge, submission, {}).already_judged == 1


def judged(item, verdict=1, **fields):
    now = timezone.now()
    RunItem.objects.filter(pk=item.pk).update(done_at=now, taken_at=now - timedelta(seconds=30))
    unscored = "" if verdict is not None else "Nothing was said."
    base = {"verdict": verdict, "unscored": unscored, "made_at": now, "fingerprint": "f"} | fields
    trajectory = item.trajectory
    return Judgment.objects.create(
        judge=item.run.judge,
        item=item,
        trajectory=trajectory,
        task=trajectory.task,
        agent=item.run.submission.agent,
        **base,
    )


# --- every state, every verb ---------------------------------------------------------------------------------------

STATES = {
    "waiting": {},
    "running": {"started_at": 1},
    "paused": {"started_at": 1, "paused_at": 1},
    "stopped": {"started_at": 1, "stopped": "The budget is spent."},
    "cancelled": {"started_at": 1, "cancelled_at": 1},
    "finished": {"started_at": 1, "finished_at": 1},
}
VERBS = {"pause": runs.pause, "resume": runs.resume, "cancel": runs.cancel, "retry": runs.retry_failed}
LEADS_TO = {
    ("waiting", "pause"): "paused",
    ("running", "pause"): "paused",
    ("paused", "resume"): "running",
    ("stopped", "resume"): "running",
    ("waiting", "cancel"): "cancelled",
    ("running", "cancel"): "cancelled",
    ("paused", "cancel"): "cancelled",
    ("stopped", "cancel"): "cancelled",
    ("waiting", "retry"): "waiting",
    ("running", "retry"): "running",
    ("paused", "retry"): "paused",
    ("stopped", "retry"): "stopped",
    ("finished", "retry"): "running",
}
EVENTS = {"pause": "judge_run_paused", "resume": "judge_run_resumed", "cancel": "judge_run_cancelled"}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_taken_or_refused_in_every_state(here, run, state, verb):
    submission, people, _ = here
    times = {name: timezone.now() if value == 1 else value for name, value in STATES[state].items()}
    JudgeRun.objects.filter(pk=run.pk).update(**times)
    first = run.items.first()
    RunItem.objects.filter(pk=first.pk).update(failed_at=timezone.now(), error="No reply.")
    run.refresh_from_db()
    assert run.state == state
    before = submission.events.count()
    if (state, verb) not in LEADS_TO:
        with pytest.raises(Conflict):
            VERBS[verb](people["mira"], run)
        run.refresh_from_db()
        assert (run.state, submission.events.count()) == (state, before)
        return
    VERBS[verb](people["mira"], run)
    assert run.state == LEADS_TO[state, verb]
    said = last_event(submission)
    assert said.kind == EVENTS.get(verb, "judge_run_retried")
    assert said.payload["run"] == run.pk
    assert submission.events.count() == before + 1
    first.refresh_from_db()
    assert (first.failed_at is None) == (verb == "retry")
    assert integrity.problems(submission) == []
    assert first_broken(submission.events.order_by("sequence")) is None


def test_nothing_to_try_again_is_no_event(here, run):
    submission, people, _ = here
    before = submission.events.count()
    assert runs.retry_failed(people["mira"], run) == 0
    assert submission.events.count() == before


def test_the_end_is_written_once_and_only_when_nothing_is_open(here, run):
    submission, _, _ = here
    items = list(run.items.all())
    judged(items[0], verdict=0)
    judged(items[1], verdict=None)
    assert leases.finish_run(run.pk) is False
    RunItem.objects.filter(pk=items[2].pk).update(failed_at=timezone.now(), error="No reply.")
    assert [leases.finish_run(run.pk), leases.finish_run(run.pk)] == [True, False]
    run.refresh_from_db()
    assert run.state == "finished"
    ended = submission.events.filter(kind="judge_run_finished").get().payload
    assert (ended["verdicts"], ended["unscored"], ended["failed"]) == ({"0": 1}, 1, 1)


def test_the_end_tells_what_was_judged_while_it_waited_for_the_lock(here, run, monkeypatch):
    submission, people, _ = here
    items = list(run.items.all())
    judged(items[0], verdict=0)
    RunItem.objects.filter(pk__in=[item.pk for item in items[1:]]).update(failed_at=timezone.now(), error="No reply.")
    lock = leases.lock_submission

    def late(pk):
        """Before the first one has it, somebody tries the failed ones again, and one of them is judged."""
        monkeypatch.setattr(leases, "lock_submission", lock)
        runs.retry_failed(people["mira"], run)
        judged(items[1], verdict=1)
        RunItem.objects.filter(pk=items[2].pk).update(failed_at=timezone.now(), error="No reply.")
        return lock(pk)

    monkeypatch.setattr(leases, "lock_submission", late)
    assert leases.finish_run(run.pk) is True
    ended = submission.events.filter(kind="judge_run_finished").get().payload
    assert (ended["verdicts"], ended["failed"], ended["waiting"]) == ({"0": 1, "1": 1}, 1, 0)
    assert ended["judgments"] == digest(collect_outcomes(run.pk))
    assert ended == {**leases.build_payload(run), **leases.count_outcomes(run.pk), "judgments": ended["judgments"]}


def test_nothing_is_read_for_the_digest_while_the_submission_is_locked(here, run):
    items = list(run.items.all())
    for item in items:
        judged(item, verdict=1)
    with CaptureQueriesContext(connection) as queries:
        assert leases.finish_run(run.pk) is True
    asked = [query["sql"] for query in queries]
    [read] = [number for number, sql in enumerate(asked) if "judged_at" in sql or '"judges_judgment"."made_at"' in sql]
    assert read < next(number for number, sql in enumerate(asked) if "SAVEPOINT" in sql or "BEGIN" in sql)


def test_a_run_stops_once_with_the_first_reason(here, run):
    submission, _, _ = here
    leases.stop_run(run.pk, "The budget of 1 US dollar is spent.", "The budget is spent.")
    leases.stop_run(run.pk, "Something else.", "Else.")
    run.refresh_from_db()
    assert (run.state, run.stopped) == ("stopped", "The budget of 1 US dollar is spent.")
    assert submission.events.get(kind="judge_run_stopped").payload["reason"] == "The budget is spent."


def test_nothing_is_taken_of_a_run_that_is_not_at_work(here, run):
    _, people, _ = here
    runs.pause(people["mira"], run)
    assert leases.claim(run.pk, "w", ()) == []
    runs.resume(people["mira"], run)
    (held,) = leases.claim(run.pk, "w", ())
    assert (held.attempt, held.repetition) == (1, 1)
    run.refresh_from_db()
    assert run.state == "running"


def test_what_was_taken_in_a_commit_in_doubt_is_handed_over_with_the_next(here, run):
    first = leases.claim(run.pk, "w", ())
    both = leases.claim(run.pk, "w", ())
    assert [item.pk for item in both] == [first[0].pk, first[0].pk + 1]
    assert len(leases.claim(run.pk, "w", [item.pk for item in both])) == 1
    assert leases.claim(run.pk, "w", [item.pk for item in run.items.all()]) == []


def test_a_worker_does_not_take_from_itself_what_it_still_works_on(here, run):
    (held,) = leases.claim(run.pk, "w", ())
    # The database was away for longer than a silence, so that nobody could report.
    run.items.filter(pk=held.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    (second,) = leases.claim(run.pk, "w", [held.pk])
    assert second.pk == held.pk + 1
    assert leases.renew("w", [held.pk, second.pk]) == {held.pk, second.pk}
    assert leases.fail(held, "w", "No reply."), "it is held for the same attempt"


# --- workers are called ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("items", "workers"), [(1, 1), (25, 1), (26, 2), (300, 12), (100_000, 16)])
def test_more_items_call_more_workers(items, workers):
    assert leases.count_workers_for(items) == workers


def test_a_start_sends_its_messages_after_the_commit(here, monkeypatch, django_capture_on_commit_callbacks):
    submission, people, judge = here
    sent = []
    monkeypatch.setattr(jobs.work_on, "delay", sent.append)
    with django_capture_on_commit_callbacks(execute=True):
        run = started_run(people["mira"], submission, judge, repetitions=17)
        assert sent == []
    assert sent == [run.pk] * 3


def test_a_start_without_a_broker_stands_and_asks_it_once_only(here, monkeypatch, django_capture_on_commit_callbacks):
    submission, people, judge = here
    asked = []

    def refuse(run):
        asked.append(run)
        raise ConnectionError("no broker")

    monkeypatch.setattr(jobs.work_on, "delay", refuse)
    with django_capture_on_commit_callbacks(execute=True):
        run = started_run(people["mira"], submission, judge, repetitions=17)
    assert (asked, run.items.count()) == ([run.pk], 51)
    JudgeRun.objects.update(called_at=timezone.now() - timedelta(hours=1))
    assert leases.claim_idle_runs() == [run.pk]


def test_a_run_whose_message_was_lost_is_called_again_and_no_more_often_than_needed(here, run, settings):
    settings.JUDGE_SILENCE_SECONDS = 60
    assert leases.claim_idle_runs() == [], "it was called a moment ago"
    JudgeRun.objects.update(called_at=timezone.now() - timedelta(seconds=61))
    assert leases.claim_idle_runs() == [run.pk]
    assert leases.claim_idle_runs() == []


def test_a_run_is_called_for_while_a_dead_worker_holds_it_and_not_while_a_living_one_does(here, run):
    now = timezone.now()
    JudgeRun.objects.update(called_at=None)
    run.items.update(worker="w", taken_at=now, heartbeat_at=now)
    assert leases.claim_idle_runs() == []
    run.items.update(heartbeat_at=now - timedelta(hours=1))
    assert leases.claim_idle_runs() == [run.pk]


def test_few_messages_wait_for_workers_that_never_come(here, run, settings, monkeypatch):
    settings.JUDGE_SILENCE_SECONDS = 60
    assert called_for_in(timedelta(hours=1), monkeypatch) == 8


def test_a_run_with_fewer_workers_than_it_could_have_is_called_for_now_and_then(here, settings, monkeypatch):
    settings.JUDGE_SILENCE_SECONDS = 60
    submission, people, judge = here
    run = started_run(people["mira"], submission, judge, repetitions=17)  # three workers would be called
    first, ahead = run.items.first(), timezone.now() + timedelta(days=1)
    RunItem.objects.filter(pk=first.pk).update(worker="w", taken_at=ahead, heartbeat_at=ahead)
    assert called_for_in(timedelta(hours=1), monkeypatch) == 5


def called_for_in(time, monkeypatch):
    """How often the reconciler calls workers for a run, asked every 15 seconds."""
    began, called = timezone.now(), 0
    for seconds in range(0, int(time.total_seconds()), 15):
        monkeypatch.setattr(clock, "now", lambda after=seconds: began + timedelta(seconds=after))
        called += len(leases.claim_idle_runs())
    return called


@pytest.mark.parametrize("state", ["paused", "stopped", "cancelled", "finished"])
def test_nobody_is_called_for_a_run_that_waits_or_has_ended(here, run, state):
    times = {name: timezone.now() if value == 1 else value for name, value in STATES[state].items()}
    JudgeRun.objects.update(called_at=None, **times)
    assert leases.claim_idle_runs() == []


def test_a_run_whose_last_worker_died_before_the_end_was_written_is_called_for_and_ended(here, run):
    for item in run.items.all():
        judged(item)
    JudgeRun.objects.update(called_at=None)
    assert leases.claim_idle_runs() == [run.pk]
    leases.finish_run(run.pk)
    JudgeRun.objects.update(called_at=None)
    assert leases.claim_idle_runs() == []


# --- standing --------------------------------------------------------------------------------------------------------


def call(item, hit=False, cost="0.01", **fields):
    base = {"attempt": 1, "stage": "verdict", "key": "k", "prompt_tokens": 100, "completion_tokens": 10}
    made = {"made_at": timezone.now(), "hit": hit, "cost": None if cost is None else Decimal(cost)}
    return ModelCall.objects.create(item=item, **(base | made | fields))


def test_a_standing_counts_what_was_done_and_paid(here, run):
    items = list(run.items.all())
    judged(items[0])
    judged(items[1], verdict=None)
    for item in items[:2]:
        call(item)
        call(item, hit=True, cost="0")
    RunItem.objects.filter(pk=items[2].pk).update(heartbeat_at=timezone.now(), taken_at=timezone.now())
    JudgeRun.objects.update(started_at=timezone.now() - timedelta(minutes=1))
    now = runs.load_progress(run)
    assert (now.state, now.total, now.done, now.unscored, now.failed, now.running) == ("running", 3, 2, 1, 0, 1)
    assert (now.calls, now.cache_hits, now.tokens, now.cost) == (2, 2, 220, Decimal("0.02"))
    assert now.rate == pytest.approx(4, rel=0.1)  # two in the half minute since the first was taken
    assert now.seconds_left == pytest.approx(15, rel=0.1)


def test_a_cost_is_unknown_where_no_price_is_and_nothing_where_nothing_was_asked(here, run):
    assert (runs.load_progress(run).cost, runs.load_progress(run).rate) == (0, None)
    call(run.items.first(), cost=None)
    assert runs.load_progress(run).cost is None


@pytest.mark.parametrize("repetitions", [1, 40])
def test_a_standing_takes_five_queries_whatever_the_size(here, repetitions, django_assert_num_queries):
    submission, people, judge = here
    run = started_run(people["mira"], submission, judge, repetitions=repetitions)
    run.items.update(failed_at=timezone.now(), error="No reply.")
    with django_assert_num_queries(5):
        assert runs.load_progress(run).errors == (("No reply.", 3 * repetitions),)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by size, and these tables are small")
def test_what_a_run_has_paid_is_summed_up_without_reading_requests_and_replies(here, run):
    call(run.items.first())
    with CaptureQueriesContext(connection) as queries:
        assert call_log.sum_cost(run.pk) == Decimal("0.01")
        runs.load_progress(run)
    sums = [query["sql"] for query in queries if "SUM(" in query["sql"]]
    assert len(sums) == 2
    for sql in sums:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + sql)
            plan = " ".join(str(row[3]) for row in cursor.fetchall())
        assert "judges_modelcall USING COVERING INDEX model_call_paid" in plan
