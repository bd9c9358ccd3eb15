"""The trace and the cache of replies, and the thread through which an event loop reaches the database."""

import asyncio
import threading
from decimal import Decimal

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from annotation.tests import testing
from judges.llm import Call, Outcome, Usage
from judges.models import Judge, JudgeRun, ModelCall, ModelTerms, RunItem
from judges.working import call_log
from judges.working.call_log import (
    ItemCallLog,
    ReplyLookup,
    compute_cost,
    insert_calls,
    look_up,
    make_storable,
    name_sample,
)
from judges.working.database import DatabaseThread

TERMS = ModelTerms(model="m", input_price=Decimal(2), cached_price=Decimal("0.5"), output_price=Decimal(10))
USED = Usage(prompt=1000, cached=400, completion=50, reasoning=20)


@pytest.fixture
def item(transactional_db):
    submission = testing.bare_submission(1)
    run = JudgeRun.objects.create(judge=Judge.objects.create(name="careful", scorer="tiny"), submission=submission)
    return RunItem.objects.create(run=run, trajectory=submission.trajectories.get())


def outcome(key="k", reply="{}", **fields):
    call = Call(key=key, stage="look", step=3, request={"model": "m", "messages": [{"content": "hello"}]})
    return Outcome(call, reply, **({"model": "m-1", "finish": "stop", "usage": USED, "latency": 700} | fields))


def asked(item, *steps, attempt=1, sample="1", terms=TERMS):
    """Run steps (functions of a call log) one after another; the call log and what they returned."""

    async def all_of_them(database):
        made = ItemCallLog(item.pk, attempt, sample, database, terms)
        return made, [await step(made) for step in steps]

    with DatabaseThread() as database:
        return asyncio.run(all_of_them(database))


def test_a_paid_call_is_kept_with_its_request_its_reply_and_its_cost(item):
    made, (cost,) = asked(item, lambda book: book.record(outcome(retries=2)))
    by_hand = (600 * 2 + 400 * Decimal("0.5") + 50 * 10) / Decimal(1_000_000)
    row = ModelCall.objects.get()
    assert cost == row.cost == by_hand
    assert (row.item, row.attempt, row.number, row.stage, row.step) == (item, 1, 1, "look", 3)
    assert (row.request, row.reply) == ({"model": "m", "messages": [{"content": "hello"}]}, "{}")
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.reasoning_tokens) == (1000, 400, 50, 20)
    assert (row.latency, row.retries, row.finish, row.model, row.hit) == (700, 2, "stop", "m-1", False)
    assert (made.totals.tokens, made.totals.cost, made.totals.model) == (1050, by_hand, "m-1")


def test_a_hit_has_no_copies_costs_nothing_and_is_worth_what_was_paid(item):
    asked(item, lambda book: book.record(outcome(reply="the body")))
    paid = ModelCall.objects.get()
    made, (found, cost) = asked(
        item,
        lambda book: book.find_reply(outcome().call),
        lambda book: book.record(outcome(reply="the body", hit_of=paid.pk)),
        attempt=2,
        terms=None,  # prices of another day
    )
    assert found == (paid.pk, "the body")
    hit = ModelCall.objects.get(hit=True)
    assert (hit.hit_of, hit.request, hit.reply, hit.cost, hit.prompt_tokens) == (paid, None, None, 0, 1000)
    assert cost == made.totals.cost == paid.cost


def test_a_reply_is_found_under_its_own_key_and_sample_only(item):
    asked(item, lambda book: book.record(outcome()))

    def known(key, sample):
        return asked(item, lambda book: book.find_reply(outcome(key).call), sample=sample)[1][0] is not None

    assert (known("k", "1"), known("k", "2"), known("other", "1")) == (True, False, False)


def test_an_error_is_kept_and_never_found(item):
    made, _ = asked(
        item, lambda book: book.record(outcome(reply=None, error="The endpoint answers 500.", usage=Usage()))
    )
    row = ModelCall.objects.get()
    assert (row.error, row.reply, row.cost) == ("The endpoint answers 500.", None, None)
    assert made.totals.cost == 0
    asked(item, lambda book: book.record(outcome(reply="not JSON", error="Nothing can be read.")))
    assert look_up([ReplyLookup("k", "1")]) == [None]


def test_a_pruned_reply_is_found_no_more(item):
    asked(item, lambda book: book.record(outcome()))
    ModelCall.objects.update(reply=None, request=None, pruned_at=timezone.now())
    assert look_up([ReplyLookup("k", "1")]) == [None]


def test_of_two_replies_to_the_same_call_the_first_counts(item):
    for attempt in (1, 2):
        asked(item, lambda book, attempt=attempt: book.record(outcome(reply=f"body {attempt}")), attempt=attempt)
    assert look_up([ReplyLookup("k", "1")])[0][1] == "body 1"


def test_a_row_whose_commit_was_in_doubt_is_not_written_twice(item):
    rows = [ModelCall(item=item, attempt=1, number=n, stage="s", key="k", made_at=timezone.now()) for n in (1, 2)]
    insert_calls(rows[:1])
    insert_calls(rows)
    assert list(ModelCall.objects.values_list("number", flat=True)) == [1, 2]


@pytest.mark.parametrize(
    ("usage", "terms", "cost"),
    [
        (USED, None, None),
        (USED, ModelTerms(input_price=Decimal(2)), None),
        (Usage(), TERMS, None),
        (Usage(prompt=1000, completion=0), TERMS, Decimal("0.002")),
        (Usage(prompt=10, cached=99, completion=0), TERMS, Decimal("0.000005")),
        (Usage(prompt=-1, completion=5), TERMS, None),
        (Usage(prompt=2**40, completion=5), TERMS, None),
        (
            Usage(prompt=1000, cached=1000, completion=0),
            ModelTerms(input_price=Decimal(2), output_price=Decimal(1)),
            Decimal("0.002"),
        ),
    ],
)
def test_a_cost_is_known_where_prices_and_counts_are(usage, terms, cost):
    assert compute_cost(terms, usage) == cost


def test_counts_that_no_column_holds_are_left_out(item):
    asked(item, lambda book: book.record(outcome(usage=Usage(prompt=2**80, completion=-4), latency=None)))
    row = ModelCall.objects.get()
    assert (row.prompt_tokens, row.completion_tokens, row.cost) == (None, None, None)


def test_replies_that_a_database_refuses_are_kept_without_what_it_refuses(item):
    asked(item, lambda book: book.record(outcome(reply="a\x00b \udc80", finish="\x00" * 50)))
    assert ModelCall.objects.get().reply == "a\ufffdb ?"


def test_json_is_storable_whatever_a_model_wrote():
    strange = {"\x00": ["\ud800", float("nan"), float("inf"), 1.5, None, True], "a": ("b",)}
    assert make_storable(strange) == {"\ufffd": ["?", None, None, 1.5, None, True], "a": ["b"]}


def test_samples_of_fresh_runs_meet_nobody_else():
    assert (name_sample(7, 2, False), name_sample(7, 2, True), name_sample(8, 2, True)) == ("2", "7/2", "8/2")


# --- the thread ------------------------------------------------------------------------------------------------------


def in_thread(work, **options):
    """Run ``work`` (a coroutine function of the thread); what it returned."""

    async def main(database):
        return await work(database)

    with DatabaseThread(**options) as database:
        return asyncio.run(main(database))


def test_what_waits_at_the_same_moment_is_done_together():
    shares, busy = [], threading.Event()

    def double(numbers):
        shares.append(list(numbers))
        return [2 * number for number in numbers]

    async def work(database):
        first = asyncio.ensure_future(database.run(busy.wait))
        await asyncio.sleep(0)
        others = [asyncio.ensure_future(database.run_batched(double, number)) for number in range(20)]
        await asyncio.sleep(0)
        busy.set()
        await first
        return await asyncio.gather(*others)

    assert in_thread(work) == [2 * number for number in range(20)]
    assert shares == [list(range(20))]


def test_one_that_fails_takes_no_other_with_it():
    def check(numbers):
        if 3 in numbers:
            raise ValueError("not three")
        return numbers

    async def work(database):
        made = [database.run_batched(check, number) for number in range(5)]
        return await asyncio.gather(*made, return_exceptions=True)

    said = in_thread(work)
    assert [one for one in said if isinstance(one, int)] == [0, 1, 2, 4]
    assert str(said[3]) == "not three"


def test_a_database_that_comes_back_is_waited_for():
    tries = []

    def away():
        tries.append(1)
        if len(tries) < 3:
            raise OperationalError("the server is starting up")
        return "back"

    async def work(database):
        return await database.run(away)

    assert in_thread(work) == "back"
    assert len(tries) == 3


def test_a_database_that_stays_away_is_given_up_and_nobody_else_waits_as_long():
    tries = [0, 0]

    def away(number):
        tries[number] += 1
        raise OperationalError("gone")

    async def work(database):
        made = [database.run(away, 0), database.run(away, 1)]
        return await asyncio.gather(*made, return_exceptions=True)

    assert [type(one) for one in in_thread(work, patience=0.05)] == [OperationalError] * 2
    assert tries == [2, 1]


@pytest.mark.postgresql
def test_a_connection_that_the_server_ends_is_opened_again(item):
    def own_pid():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return cursor.fetchone()[0]

    def end(pid):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

    async def work(database):
        pid = await database.run(own_pid)
        await asyncio.to_thread(end_elsewhere, pid)
        return pid, await database.run(own_pid)

    def end_elsewhere(pid):
        try:
            end(pid)
        finally:
            connection.close()

    before, after = in_thread(work)
    assert before != after


def test_the_thread_closes_its_connection(transactional_db):
    seen = []

    async def work(database):
        def use():
            connection.ensure_connection()
            seen.append(connection.connection)

        await database.run(use)

    in_thread(work)
    with pytest.raises(Exception, match="closed"):
        seen[0].cursor()


def test_what_a_run_paid_is_summed_without_hits(item):
    asked(item, lambda book: book.record(outcome()))
    paid = ModelCall.objects.get()
    asked(
        item, lambda book: book.find_reply(outcome().call), lambda book: book.record(outcome(hit_of=paid.pk)), attempt=2
    )
    assert call_log.sum_cost(item.run_id) == paid.cost
