"""Rate limits that all workers share, in the database, and the budget of a run.

Limits are token buckets, as at endpoints: the amount of a full minute may be used at once, then it refills evenly. A
caller takes its share at once and gets the time to wait until it is available, so workers do not poll. Each worker
waits for at most one share: workers take turns, and a killed worker leaves at most one share unused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from django.db import Error as DatabaseError
from django.db import connections, transaction

from annotation import clock as database_clock
from judges import quotas
from judges.llm import BudgetSpent, QuotaSpent
from judges.models import ModelTerms, RateWindow

REFRESH = 2.0  # seconds between two reads of the total cost of all workers
QUOTA_REFRESH = 10.0  # seconds; it sums the calls of all runs of a benchmark
LOOK = 1.0  # seconds between two checks for a hold if there are no limits
LONGEST_RETRY = 5.0  # seconds between two attempts to reach the database
AWAY = (OSError, DatabaseError)

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Requests and tokens per minute; 0 means no limit."""

    requests: int = 0
    tokens: int = 0

    def list_amounts(self, tokens: float) -> dict[str, tuple[int, float]]:
        """Return the limit and the amount of one call, by name of the bucket."""
        both = {"requests": (self.requests, 1.0), "tokens": (self.tokens, float(tokens))}
        return {name: pair for name, pair in both.items() if pair[0]}


class Budget:
    """Budget of a run over all its workers; calls in flight can exceed it.

    ``paid`` sums the cost in the database; it is called every REFRESH seconds, and always before a call is refused:
    once for all calls that wait. In between, `pay` adds the cost of this worker. ``looks`` counts these sums.
    """

    refresh = REFRESH

    def __init__(
        self, limit: Decimal, paid: Callable[[], Awaitable[Decimal]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self._paid, self._clock = paid, clock
        self._known, self._own, self._owed = Decimal(0), Decimal(0), Decimal(0)
        self._looked: float | None = None
        self._turn = asyncio.Lock()
        self._has_paid = False  # since the last sum
        self.looks = 0

    def measure(self, cost: Decimal | None) -> Decimal | None:
        """Return what a paid call with this cost uses up, for `owe` and `pay`."""
        return cost

    def owe(self, cost: Decimal | None) -> None:
        """Count a reply at once, until `pay` counts its written row: no check may miss it in between."""
        self._owed += cost or Decimal(0)
        self._has_paid = True

    def pay(self, cost: Decimal | None) -> None:
        """Count the cost of a call; to be called when its row is written."""
        self._own += cost or Decimal(0)
        self._has_paid = True

    async def check(self, looks: int | None = None) -> None:
        """Raise BudgetSpent if the budget is spent. ``looks`` is the count when the call began to wait; default: now.

        A later sum is enough to refuse the call, unless this worker has paid since.
        """
        looks = self.looks if looks is None else looks
        if self._is_stale():
            async with self._turn:
                if self._is_stale():
                    await self._refresh()
        if self._is_spent():
            async with self._turn:
                if self.looks == looks or self._has_paid:
                    await self._refresh()
            if self._is_spent():
                raise self._build_refusal()

    def _is_spent(self) -> bool:
        return self._known + self._own + self._owed >= self.limit

    def _build_refusal(self) -> BudgetSpent:
        return BudgetSpent(f"The budget of {self.limit.normalize():f} US dollars is spent.")

    def _is_stale(self) -> bool:
        return self._looked is None or self._clock() - self._looked >= self.refresh

    async def _refresh(self) -> None:
        # Cost that is paid while the database sums may count twice until the next refresh, but is never missed.
        before, self._has_paid = self._own, False
        self._known = await self._paid()
        self._own -= before
        self._looked = self._clock()
        self.looks += 1


class Quota(Budget):
    """A quota of a benchmark, of calls or of cost. ``load`` returns the quota and what all runs have used of it."""

    refresh = QUOTA_REFRESH

    def __init__(self, kind: str, load: Callable[[], Awaitable[tuple[Decimal, Decimal]]]) -> None:
        super().__init__(quotas.UNLIMITED, self._load_used)
        self.kind, self._load = kind, load

    async def _load_used(self) -> Decimal:
        self.limit, used = await self._load()
        return used

    def measure(self, cost: Decimal | None) -> Decimal | None:
        return Decimal(1) if self.kind == quotas.CALLS else cost

    def _build_refusal(self) -> QuotaSpent:
        return QuotaSpent(quotas.describe_spent(self.kind, self.limit, self._known + self._own + self._owed))


class SharedGate:
    """`llm.Gate` for one worker; ``name`` identifies the endpoint and the model of the limits.

    ``clock`` (Unix time) and ``sleep`` are for tests.
    """

    def __init__(
        self,
        terms: ModelTerms | None,
        name: str,
        budget: Budget | None = None,
        *other_budgets: Budget,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        requests = terms.requests_per_minute if terms else None
        tokens = terms.tokens_per_minute if terms else None
        self._limits = RateLimits(requests or 0, tokens or 0)
        self._budgets = [each for each in (budget, *other_budgets) if each is not None]
        self._sleep, self._clock = sleep, clock or time.time
        self._buckets = Buckets(name, clock)
        self._turn = asyncio.Lock()
        self._held_until, self._looked = 0.0, 0.0

    async def admit(self, tokens: int) -> None:
        looks = [budget.looks for budget in self._budgets]
        wanted = self._limits.list_amounts(tokens)
        if wanted:
            async with self._turn:
                await self._wait(lambda: self._buckets.take(wanted), looks)
        else:
            await self._wait(self._remaining_hold, looks)

    async def settle(self, estimated: int, used: int | None) -> None:
        if used is None or used == estimated or not self._limits.tokens:
            return
        try:
            await self._buckets.take({"tokens": (self._limits.tokens, float(used - estimated))})
        except AWAY as error:
            log.warning("The token limit could not be corrected: %s", error)

    async def hold(self, seconds: float) -> None:
        self._held_until = max(self._held_until, self._clock() + seconds)
        try:
            await self._buckets.hold(seconds)
        except AWAY as error:
            log.warning("The other workers could not be told to wait for %.0f s: %s", seconds, error)

    async def close(self) -> None:
        with suppress(*AWAY):
            await self._buckets.close()

    async def _wait(self, first: Callable[[], Awaitable[float]], looks: list[int]) -> None:
        """Wait for the time that the buckets state, and for a hold that started meanwhile."""
        for budget, before in zip(self._budgets, looks, strict=True):
            await budget.check(before)
        seconds = await self._ask_buckets(first)
        while seconds > 0:
            await self._sleep(seconds)
            for budget in self._budgets:
                await budget.check()  # others paid meanwhile
            seconds = max(await self._ask_buckets(self._buckets.read_hold), self._held_until - self._clock())

    async def _ask_buckets(self, ask: Callable[[], Awaitable[float]]) -> float:
        """Repeat until the database answers: without an answer calls would exceed the limit."""
        delay = 0.1
        while True:
            try:
                answer = await ask()
            except AWAY as error:
                if not self._limits.list_amounts(0):
                    return 0.0
                if delay == 0.1:
                    log.warning("Calls are paused while the limits cannot be read: %s", error)
                await self._sleep(delay)
                delay = min(delay * 2, LONGEST_RETRY)
            else:
                if delay > 0.1:
                    log.warning("The limits can be read again.")
                return answer

    async def _remaining_hold(self) -> float:
        """Return the remaining seconds of a hold: our own at once, another worker's within LOOK seconds."""
        now = self._clock()
        if now < self._looked or now - self._looked >= LOOK:
            self._looked = now
            self._held_until = max(self._held_until, now + await self._buckets.read_hold())
        return self._held_until - now


class Buckets:
    """The buckets of one endpoint and model in the database; each change is one transaction in a separate thread.

    Every method may raise one of AWAY; times are in seconds. ``clock`` returns Unix time; default: the database's.
    """

    def __init__(self, name: str, clock: Callable[[], float] | None = None) -> None:
        self._name, self._clock = name, clock or (lambda: database_clock.now().timestamp())
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="limits")

    async def take(self, wanted: dict[str, tuple[int, float]]) -> float:
        """Take amounts from buckets; return how long to wait until they are available. Negative amounts are put back.

        More than the whole bucket is available when the bucket is full; the next caller waits for the rest.
        """
        return await self._run(lambda: self._take_all(wanted))

    async def hold(self, seconds: float) -> None:
        await self._run(lambda: self._hold(seconds))

    async def read_hold(self) -> float:
        return await self._run(lambda: self._read_hold(self._clock()))

    async def close(self) -> None:
        await self._run(connections.close_all)
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, _run_reconnected, work)

    def _take_all(self, wanted: dict[str, tuple[int, float]]) -> float:
        now = self._clock()  # before the transaction: it may have to ask the database
        with transaction.atomic():
            rows = self._lock_rows({name: limit for name, (limit, _) in wanted.items()}, now)
            waits = [_take_from_row(rows[name], limit, amount, now) for name, (limit, amount) in wanted.items()]
            RateWindow.objects.bulk_update(rows.values(), ["left", "at"])
            return max([self._read_hold(now), *waits])

    def _hold(self, seconds: float) -> None:
        until = self._clock() + seconds
        with transaction.atomic():
            row = self._lock_rows({"hold": 0}, 0.0)["hold"]
            row.at = max(row.at, until)
            row.save()

    def _read_hold(self, now: float) -> float:
        row = RateWindow.objects.filter(name=f"{self._name}:hold").first()
        return max(0.0, row.at - now) if row else 0.0

    def _lock_rows(self, full: dict[str, float], now: float) -> dict[str, RateWindow]:
        """Lock and return the rows of these buckets; create missing ones as full."""
        names = {f"{self._name}:{name}": name for name in full}
        found = RateWindow.objects.select_for_update().filter(name__in=names).order_by("name")
        rows = {names[row.name]: row for row in found}
        if len(rows) == len(full):
            return rows
        missing = [RateWindow(name=row, left=full[name], at=now) for row, name in names.items() if name not in rows]
        RateWindow.objects.bulk_create(missing, ignore_conflicts=True)  # another worker may create them too
        return self._lock_rows(full, now)


def _take_from_row(row: RateWindow, limit: float, amount: float, now: float) -> float:
    """Take an amount from a bucket; return the seconds until it is available."""
    at = max(now, row.at)
    left = min(limit, row.left + (at - row.at) * limit / 60)
    row.left, row.at = min(limit, left - amount), at
    return max(0.0, (min(amount, limit) - left) * 60 / limit)


def _run_reconnected(work: Callable[[], T]) -> T:
    """Run ``work``; after a database error close the connections, so that the next call opens new ones."""
    try:
        return work()
    except DatabaseError:
        connections.close_all()
        raise
