"""The limits hold over all workers together, in the database; the budget stops a run."""

import asyncio
import subprocess
import sys
from decimal import Decimal

import pytest
from django.db import OperationalError, connection

from judges.llm import BudgetSpent
from judges.models import ModelTerms, RateWindow
from judges.working import limits
from judges.working.limits import Budget, SharedGate

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]

NAME = "default:careful-model"


class Clock:
    """A clock that stands still but for those who sleep by it."""

    def __init__(self):
        self.now = 1_000_000.0
        self.slept = []

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def store():
    """The database without buckets, before and after."""
    forget()
    yield
    forget()


def forget():
    RateWindow.objects.all().delete()


def gate(clock, requests=None, tokens=None, budget=None, name=NAME):
    terms = ModelTerms(requests_per_minute=requests, tokens_per_minute=tokens)
    return SharedGate(terms, name, budget, clock=clock, sleep=clock.sleep)


def run(play, *gates):
    """Play a coroutine, and close the gates."""

    async def whole():
        try:
            return await play
        finally:
            for one in gates:
                await one.close()

    return asyncio.run(whole())


def admitted(clock, calls, size=1, **limit):
    """How long ``calls`` of ``size`` tokens each wait, one after the other."""
    one = gate(clock, **limit)

    async def play():
        for _ in range(calls):
            await one.admit(size)

    run(play(), one)
    return clock.slept


CHILD = """
import asyncio, sys
import django
from django.conf import settings
database, requests = sys.argv[1:]
settings.DATABASES["default"]["NAME"] = database
django.setup()
from judges.working.limits import SharedGate
from judges.models import ModelTerms

class MustWait(Exception):
    pass

async def sleep(seconds):
    raise MustWait

async def count():
    terms = ModelTerms(requests_per_minute=int(requests), tokens_per_minute=1_000_000)
    gate, made = SharedGate(terms, "default:careful-model", clock=lambda: 1e6, sleep=sleep), 0
    await gate.admit(10)  # so that both take part, however they are scheduled
    made += 1
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        while True:
            await gate.admit(10)
            made += 1
    except MustWait:
        print(made)
    await gate.close()

asyncio.run(count())
"""


def test_two_processes_together_make_exactly_as_many_calls_as_allowed(store, settings):
    command = [sys.executable, "-c", CHILD, str(connection.settings_dict["NAME"]), "150"]
    children = [
        subprocess.Popen(command, cwd=settings.BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 2
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    made = [int(child.communicate(timeout=60)[0]) for child in children]
    assert sum(made) == 150


def test_after_a_minutes_worth_calls_go_evenly(store):
    clock = Clock()
    slept = admitted(clock, 90, requests=60)
    assert len(slept) == 30
    assert slept == pytest.approx([1.0] * 30, abs=1e-3)


def test_the_tokens_of_a_call_count(store):
    assert admitted(Clock(), 3, 400, tokens=1000) == pytest.approx(
        [12.0], abs=1e-3
    )  # the third lacks 200 of 1000 a minute


def test_a_call_larger_than_the_whole_minute_passes_when_the_bucket_is_full_and_the_next_one_pays(store):
    clock = Clock()
    assert admitted(clock, 2, 3000, tokens=1000) == pytest.approx([180.0], abs=1e-3)
    assert clock.now == pytest.approx(1_000_180.0)


def test_both_limits_hold_and_the_stricter_one_decides(store):
    assert admitted(Clock(), 3, 10, requests=2, tokens=1000) == pytest.approx([30.0], abs=1e-3)


def test_a_call_that_used_less_gives_the_rest_back_and_one_that_used_more_pays(store):
    clock = Clock()
    one = gate(clock, tokens=1000)

    async def play():
        await one.admit(1000)
        await one.settle(1000, 100)
        await one.admit(900)
        assert clock.slept == []
        await one.settle(900, 1400)
        await one.settle(1, None)  # a call without usage stays as it was thought
        await one.admit(100)

    run(play(), one)
    assert clock.slept == pytest.approx([36.0], abs=1e-3)  # 500 over and 100 for itself


def test_whoever_comes_later_waits_longer_whichever_worker_it_is(store):
    clock = Clock()
    gates = [gate(clock, requests=60), gate(clock, requests=60)]

    async def play():
        full = {"requests": (60, 60.0)}
        one = {"requests": (60, 1.0)}
        await gates[0]._buckets.take(full)
        return [await gates[n % 2]._buckets.take(one) for n in range(4)]

    assert run(play(), *gates) == pytest.approx([1.0, 2.0, 3.0, 4.0], abs=1e-3)


def test_a_worker_waits_for_one_share_at_a_time(store):
    clock = Clock()
    one = gate(clock, requests=1)
    waiting = []

    async def sleep(seconds):
        waiting.append(seconds)
        await asyncio.Event().wait()

    one._sleep = sleep

    async def play():
        tasks = [asyncio.create_task(one.admit(1)) for _ in range(5)]
        while not waiting:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=0.01)
        left = await one._buckets.take({"requests": (1, 0.0)})
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return left

    # One call was made and one share is taken: a worker that dies here has not used up the minutes of the others.
    assert run(play(), one) == pytest.approx(60.0, abs=1e-3)
    assert len(waiting) == 1


@pytest.mark.parametrize("requests", [1000, None])
def test_a_hold_is_seen_by_the_other_worker(store, requests):
    clock = Clock()
    first, second = gate(clock, requests=requests), gate(clock, requests=requests)

    async def play():
        await first.hold(20)
        await first.hold(5)  # a shorter one does not end it
        await second.admit(1)

    run(play(), first, second)
    assert clock.slept == pytest.approx([20.0], abs=1e-3)


def test_a_hold_that_comes_while_a_call_waits_is_kept(store):
    clock = Clock()
    first, second = gate(clock, requests=1), gate(clock, requests=1)

    async def play():
        await first.admit(1)
        asked = clock.sleep

        async def held_meanwhile(seconds):
            second._sleep = asked
            await first.hold(100)
            await asked(seconds)

        second._sleep = held_meanwhile
        await second.admit(1)

    run(play(), first, second)
    assert clock.slept == pytest.approx([60.0, 40.0], abs=1e-3)


def test_limits_that_were_flushed_count_as_full(store):
    clock = Clock()
    assert admitted(clock, 60, requests=60) == []
    forget()
    assert admitted(clock, 60, requests=60) == []
    assert len(admitted(clock, 1, requests=60)) == 1


def test_other_models_have_limits_of_their_own(store):
    clock = Clock()
    one, other = gate(clock, requests=1), gate(clock, requests=1, name="default:another-model")

    async def play():
        await one.admit(1)
        await other.admit(1)

    run(play(), one, other)
    assert clock.slept == []


def leave(monkeypatch, name, times):
    """The database is away for so many calls of a method."""
    found, left = getattr(limits.Buckets, name), iter(range(times))

    def away(*arguments):
        if next(left, None) is not None:
            raise OperationalError("the server closed the connection")
        return found(*arguments)

    monkeypatch.setattr(limits.Buckets, name, away)


def test_calls_wait_while_the_database_is_away_and_the_log_says_so(store, monkeypatch, caplog):
    leave(monkeypatch, "_take_all", 3)
    clock = Clock()
    one = gate(clock, requests=5)
    run(one.admit(1), one)
    assert clock.slept == pytest.approx([0.1, 0.2, 0.4])
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "Calls are paused while the limits cannot be read",
        "The limits can be read again.",
    ]


def test_without_limits_a_database_that_is_away_stops_nothing(store, monkeypatch):
    leave(monkeypatch, "_read_hold", 1000)
    clock = Clock()
    one = gate(clock)
    run(one.admit(1), one)
    assert clock.slept == []


def test_without_limits_the_buckets_is_looked_at_once_a_second(store):
    clock = Clock()
    one = gate(clock)
    looks = []
    held = one._buckets.read_hold

    async def counted():
        looks.append(clock.now)
        return await held()

    one._buckets.read_hold = counted

    async def play():
        for _ in range(40):
            await one.admit(1)
            clock.now += 0.1

    run(play(), one)
    assert len(looks) == 4


class Paid:
    """What all workers have paid, as the database would sum it up."""

    def __init__(self):
        self.sum, self.asked = Decimal(0), 0

    async def __call__(self):
        self.asked += 1
        await asyncio.sleep(0)  # others go on while a database answers
        return self.sum


def test_a_spent_budget_refuses_and_what_other_workers_pay_counts(store):
    clock, paid = Clock(), Paid()
    one = gate(clock, requests=1000, budget=Budget(Decimal("1.00"), paid, clock))

    async def play():
        await one.admit(1)
        paid.sum = Decimal("1.00")
        await one.admit(1)  # known only at the next look
        clock.now += limits.REFRESH
        with pytest.raises(BudgetSpent, match=r"The budget of 1 US dollars is spent"):
            await one.admit(1)

    run(play(), one)


def test_what_this_worker_pays_counts_at_once_and_the_database_is_asked_before_a_refusal():
    clock, paid = Clock(), Paid()
    budget = Budget(Decimal("1.00"), paid, clock)

    async def play():
        await budget.check()
        budget.pay(Decimal("1.00"))  # counted twice or taken back: the rows know of 0.4
        paid.sum = Decimal("0.40")
        await budget.check()
        paid.sum = Decimal("1.20")
        budget.pay(Decimal("0.80"))
        with pytest.raises(BudgetSpent):
            await budget.check()

    asyncio.run(play())
    assert paid.asked == 3


def test_the_database_is_not_asked_for_every_call():
    clock, paid = Clock(), Paid()
    budget = Budget(Decimal("1.00"), paid, clock)

    async def play():
        await asyncio.gather(*(budget.check() for _ in range(50)))
        budget.pay(None)  # a call without a price

    asyncio.run(play())
    assert paid.asked == 1


@pytest.mark.parametrize("requests", [0, 1000])
def test_one_look_refuses_all_calls_that_wait(store, requests):
    clock, paid = Clock(), Paid()
    one = gate(clock, requests=requests, budget=Budget(Decimal("1.00"), paid, clock))

    async def play():
        await one.admit(1)
        clock.now += limits.REFRESH
        paid.sum = Decimal("1.00")
        outcomes = await asyncio.gather(*(one.admit(1) for _ in range(20)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [BudgetSpent] * 20
        assert paid.asked == 2
        paid.sum = Decimal("0.50")  # the next call is not refused by an earlier look
        await one.admit(1)

    run(play(), one)


def test_a_budget_that_is_spent_while_a_call_waits_refuses_it(store):
    clock, paid = Clock(), Paid()
    one = gate(clock, requests=1, budget=Budget(Decimal("1.00"), paid, clock))

    async def play():
        await one.admit(1)
        paid.sum = Decimal("2.00")
        with pytest.raises(BudgetSpent):
            await one.admit(1)

    run(play(), one)
    assert clock.slept == pytest.approx([60.0], abs=1e-3)
