"""Judge items of a run until the deadline: claim them while there is room for calls, and settle them one by one.

A crash loses nothing: an item that is not settled is claimed by another worker, which finds the replies in the cache.
When the run is paused, or its budget is spent, claimed items are finished and no more are claimed; when it is
cancelled, they are dropped at once. A worker that is told to stop drops its items, except calls in flight, whose
replies it stores.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings

from annotation.outages import Outage, find_outage
from judges import lab, quotas
from judges.lab import NotApplicable
from judges.llm import Asker, BudgetSpent, CallFailed, Endpoint, QuotaSpent
from judges.llm.client import Client
from judges.models import JudgeRun, Service
from judges.ready_judges import ReadyJudge, RunRefused, find_endpoint, find_maps_endpoint, prepare
from judges.scorer import Score, Subject
from judges.working import batches, call_log, leases
from judges.working.batches import OPEN_ITEMS, SHORT_WAIT, BatchedCallLog, BatchStopped
from judges.working.call_log import CallTotals, ItemCallLog
from judges.working.database import AWAY, DatabaseThread
from judges.working.leases import LeasedItem
from judges.working.limits import Budget, Quota, SharedGate
from judges.working.subjects import StoredImages, load_item_subject

if TYPE_CHECKING:
    from judges.working.waves import Waves

LOOK = 2.0  # seconds between two checks of the run's state
STORE_PAUSES = (1.0, 2.0, 5.0, 10.0, *[30.0] * 20)  # seconds between attempts to read files of an item
FLEX_SECONDS = 900.0  # a call with the flex service may take 15 minutes, as OpenAI states
LONGEST_BEAT = 10.0  # seconds between two heartbeats
COULD_NOT_BEGIN = "A judge worker could not start."  # the reason in the event, which is part of evidence bundles
BUDGET_SPENT = "The budget is spent, or its use cannot be measured."
QUOTA_SPENT = "A quota of the benchmark is used up."

logger = logging.getLogger(__name__)


def work(run_pk: int, worker: str, *, seconds: float, stop_at: Collection[signal.Signals] = ()) -> bool:
    """Judge items of a run until none is left or ``seconds`` have passed; return True if more may be left.

    Runs its own event loop. At one of the signals ``stop_at`` it ends as soon as the calls in flight have their
    replies. Raises the database's error if the database stays unavailable; nothing is lost then.
    """
    with DatabaseThread() as database:
        return asyncio.run(_work(database, run_pk, worker, time.monotonic() + seconds, stop_at))


async def _work(
    database: DatabaseThread, run_pk: int, worker: str, until: float, stop_at: Collection[signal.Signals]
) -> bool:
    if not await _has_work(database, run_pk) and not await database.run(batches.is_due, run_pk):
        return False
    try:
        run, ready, endpoint, maps = await database.run(_load, run_pk)
    except RunRefused as reason:
        logger.warning("Run %s waits: %s", run_pk, reason)
        # The machine on which the run was started may have everything that this one lacks.
        await database.run(leases.stop_run, run_pk, f"A judge worker could not start: {reason}", COULD_NOT_BEGIN)
        return False
    budget = None if run.max_cost is None else _build_budget(database, run.pk, run.max_cost)
    shared = [build_quota(database, run.submission.benchmark_id, kind) for kind in quotas.KINDS]
    # Limits per minute are those of single calls; a batch has others.
    terms = None if run.service == Service.BATCH else ready.terms
    gate = SharedGate(terms, f"{run.judge.endpoint}:{run.judge.model}", budget, *shared)
    client, waves = _build_client(database, run, ready, endpoint, maps, gate, worker)
    former = await database.run(call_log.find_former_endpoint, endpoint)
    try:
        await _Worker(database, run, ready, former, worker, client, budget, shared, waves).work(until, stop_at)
    except BaseExceptionGroup as group:
        raise _find_cause(group) from group
    finally:
        await client.close()
        await gate.close()
    return await _has_work(database, run_pk)


async def _has_work(database: DatabaseThread, run_pk: int) -> bool:
    """Return True if an item can be judged now. Finish the run if it has no open item."""
    if await database.run(leases.has_free_items, run_pk):
        return True
    await database.run(leases.finish_run, run_pk)
    return await database.run(leases.has_free_items, run_pk)  # failed items may be open again


def _build_client(
    database: DatabaseThread,
    run: JudgeRun,
    ready: ReadyJudge,
    endpoint: Endpoint,
    maps: Endpoint | None,
    gate: SharedGate,
    worker: str,
) -> tuple[Client, Waves | None]:
    # They import the SDK, as in `Client`.
    from judges.llm.collecting import BatchClient  # noqa: PLC0415
    from judges.working.waves import Waves  # noqa: PLC0415

    given = (endpoint, run.judge.model, ready.generation)
    if run.service == Service.BATCH:
        collecting = BatchClient(*given, ready.patience, gate, StoredImages(), maps=maps)
        return collecting, Waves(database, run, ready.terms, ready.patience.attempts, worker, collecting)
    if run.service == Service.FLEX:
        patience = replace(ready.patience, timeout=max(ready.patience.timeout, FLEX_SECONDS))
        return Client(*given, patience, gate, StoredImages(), maps=maps, further={"service_tier": "flex"}), None
    return Client(*given, ready.patience, gate, StoredImages(), maps=maps), None


def _load(run_pk: int) -> tuple[JudgeRun, ReadyJudge, Endpoint, Endpoint | None]:
    """Load a run; raise RunRefused if this machine cannot build its judge, or the endpoint is not configured."""
    run = JudgeRun.objects.select_related("judge", "submission").defer("submission__import_report").get(pk=run_pk)
    if run.robustness is not None and run.robustness["version"] != lab.VERSION:
        raise RunRefused("This run needs another version of the changes. Cancel it, and start a new one.")
    if run.is_outdated:
        raise RunRefused(
            "The submission was reopened after this run started. Cancel the run. Freeze the submission, then start a "
            "new run."
        )
    return run, prepare(run.judge), find_endpoint(run.judge), find_maps_endpoint()


def _build_budget(database: DatabaseThread, run: int, limit: Decimal) -> Budget:
    """Return a budget that follows the limit of the run: a worker that started with a lower one must not stop it."""

    async def paid() -> Decimal:
        spent, now = await database.run(call_log.load_spending, run)
        budget.limit = budget.limit if now is None else now
        return spent

    budget = Budget(limit, paid)
    return budget


def build_quota(database: DatabaseThread, benchmark: int, kind: str) -> Quota:
    return Quota(kind, lambda: database.run(quotas.load_quota, benchmark, kind))


@dataclass(slots=True)
class _Worker:
    """The items leased to one worker, each in its own task; ``settling`` ones must not be dropped."""

    database: DatabaseThread
    run: JudgeRun
    ready: ReadyJudge
    former_endpoint: str
    worker: str
    client: Client
    budget: Budget | None
    quotas: list[Quota]
    waves: Waves | None
    tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    settling: set[int] = field(default_factory=set)

    async def work(self, until: float, stop_at: Collection[signal.Signals]) -> None:
        """Judge items until none is leased; raise a group with one of AWAY if the database stays unavailable."""
        async with asyncio.TaskGroup() as group:
            waves = self.waves
            claiming = self._claim_items(group, until) if waves is None else self._work_in_waves(group, until, waves)
            taking = group.create_task(claiming)
            watching = group.create_task(self._watch(taking, until))
            with _handle_signals(stop_at, partial(self._stop, taking)):
                await asyncio.wait([taking])
                while self.tasks:
                    await asyncio.wait(self.tasks.values())
                await self.client.finish()  # calls in flight are paid for: they must not be repeated
            watching.cancel()
        await self.database.run(leases.release_all, self.run.pk, self.worker)

    def _stop(self, taking: asyncio.Task[None]) -> None:
        """Stop the worker: start no more items, and drop everything except calls in flight."""
        taking.cancel()
        self._drop(set(self.tasks))

    # --- claiming --------------------------------------------------------------------------------------------------

    async def _claim_items(self, group: asyncio.TaskGroup, until: float) -> None:
        while time.monotonic() < until:
            await self.client.wait_for_room()
            if len(self.tasks) >= self.run.judge.concurrency:
                await asyncio.wait(self.tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                continue
            held = tuple(self.tasks)
            taken = await self.database.run(leases.claim, self.run.pk, self.worker, held)
            if not taken:
                if not held:
                    return
                # The last task to end may open failed items again, even before this result arrived.
                if self.tasks:
                    await asyncio.wait(self.tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                continue
            for item in taken:
                self._begin(group, item)

    async def _work_in_waves(self, group: asyncio.TaskGroup, until: float, waves: Waves) -> None:
        """Claim items until all of them wait for calls, submit the calls, and drop the items; repeat."""
        client = waves.client
        try:
            while not self._is_over(until, waves):
                await waves.poll()
                while len(self.tasks) < OPEN_ITEMS and not client.is_full and not self._is_over(until, waves):
                    taken = await self.database.run(leases.claim, self.run.pk, self.worker, tuple(self.tasks))
                    for item in taken:
                        self._begin(group, item)
                    if not taken:
                        break
                if not self.tasks:
                    wait = await waves.measure_wait()
                    if wait is None or wait > min(SHORT_WAIT, until - time.monotonic()):
                        return
                    await asyncio.sleep(wait)
                    continue
                await client.wait_until_quiet(lambda: self.tasks, lambda: not self._is_over(until, waves))
                refused = await waves.submit()
                await self._drop_all(waves)
                if refused is not None:
                    await self._stop_run(refused)
        except BatchStopped as stopped:
            await self.database.run(leases.stop_run, self.run.pk, str(stopped), stopped.recorded)
        finally:
            await self._drop_all(waves)

    @staticmethod
    def _is_over(until: float, waves: Waves) -> bool:
        return time.monotonic() >= until or waves.is_stopping

    async def _drop_all(self, waves: Waves) -> None:
        """Drop every item that is not settled; those whose calls were not submitted wait again."""
        while self.tasks:
            self._drop(set(self.tasks))
            await asyncio.wait(self.tasks.values())
        await waves.client.drop()
        await self.database.run(leases.release_all, self.run.pk, self.worker)

    def _begin(self, group: asyncio.TaskGroup, item: LeasedItem) -> None:
        # The repetitions of a run that attacks the judge are different requests, or none is needed.
        repetition = item.repetition if self.run.robustness is None else 1
        sample = call_log.name_sample(self.run.pk, repetition, self.run.fresh)
        budgets = [*self.quotas, *([self.budget] if self.budget else [])]
        log = ItemCallLog if self.waves is None else BatchedCallLog
        former, service = self.former_endpoint, self.run.service
        calls = log(item.pk, item.attempt, sample, self.database, self.ready.terms, budgets, former, service)
        # Created here, so that `wait_for_room` counts it: otherwise all items would start before the first one asks.
        task = group.create_task(self._judge(item, calls, self.client.asker(calls, item.pk)))
        self.tasks[item.pk] = task
        task.add_done_callback(partial(self._forget, item.pk))

    def _forget(self, pk: int, task: asyncio.Task[None]) -> None:
        self.tasks.pop(pk, None)
        self.settling.discard(pk)

    async def _watch(self, taking: asyncio.Task[None], until: float) -> None:
        """Send heartbeats, drop lost items, and follow the state of the run."""
        every = min(LONGEST_BEAT, settings.JUDGE_SILENCE_SECONDS / 3)
        beaten = time.monotonic()
        while True:
            await asyncio.sleep(min(LOOK, every))
            if time.monotonic() - beaten >= every:
                beaten = time.monotonic()
                await self._renew_leases()
            state, limited = await self.database.run(leases.load_state, self.run.pk)
            if state not in ("waiting", "running") or limited != (self.budget is not None) or time.monotonic() >= until:
                taking.cancel() if self.waves is None else self.waves.stop()
            if state == "cancelled":
                self._drop(set(self.tasks))

    async def _renew_leases(self) -> None:
        if self.waves is not None:
            await self.waves.keep()
        held = set(self.tasks)
        lost = held - await self.database.run(leases.renew, self.worker, held)
        lost &= set(self.tasks)  # some have ended meanwhile
        if lost - self.settling:
            logger.warning("Run %s: other workers have %s of our items.", self.run.pk, len(lost - self.settling))
        self._drop(lost)

    def _drop(self, items: set[int]) -> None:
        for pk in items - self.settling:
            if pk in self.tasks:
                self.tasks[pk].cancel()

    # --- one item --------------------------------------------------------------------------------------------------

    async def _judge(self, item: LeasedItem, calls: ItemCallLog, asker: Asker) -> None:
        try:
            subject = await self._load_subject(item)
            score = await self._score(item, subject, calls, asker)
            self.settling.add(item.pk)
            await self._settle(item, score, calls)
        except Exception as error:
            await self._handle_failure(item, _find_cause(error))
        await self.database.run(leases.finish_run, self.run.pk)

    async def _load_subject(self, item: LeasedItem) -> Subject:
        try:
            which = (item.trajectory, item.repetition, self.run.robustness)
            return await self.database.run(load_item_subject, *which, self.ready.members)
        except NotApplicable as reason:
            raise CallFailed(
                f"The task has changed since the run was started. {reason} Cancel the run, and start another one."
            ) from reason

    async def _score(self, item: LeasedItem, subject: Subject, calls: ItemCallLog, asker: Asker) -> Score:
        """Return the score. While the file store is away, try again: replies are stored, so none is paid for twice."""
        for seconds in STORE_PAUSES:
            try:
                return await self.ready.scorer.score(subject, asker)
            except Exception as error:
                if not _is_store_away(_find_cause(error)):
                    raise
                logger.warning("Run %s: item %s waits for the file store.", self.run.pk, item.pk)
                await asyncio.sleep(seconds)
                calls.totals = CallTotals()  # the replies so far come again, from the cache
        return await self.ready.scorer.score(subject, asker)

    async def _settle(self, item: LeasedItem, score: Score, calls: ItemCallLog) -> None:
        said = (item, self.worker, score, calls.totals, self.run.judge.fingerprint)
        if not await self.database.run(leases.settle, *said):
            logger.warning("Run %s: item %s is settled or leased by another worker.", self.run.pk, item.pk)

    async def _handle_failure(self, item: LeasedItem, error: Exception) -> None:
        """Fail or release the item: an error never becomes a verdict."""
        if isinstance(error, AWAY):
            raise error
        self.settling.add(item.pk)
        if isinstance(error, BudgetSpent):
            await self._stop_run(error)
            await self.database.run(leases.release, item, self.worker)
            return
        said = str(error)
        if not isinstance(error, CallFailed):
            logger.error("Run %s: item %s failed on the server.", self.run.pk, item.pk, exc_info=error)
            said = f"Server error; the worker's log has the details: {type(error).__name__}: {error}"
        passing = isinstance(error, CallFailed) and (error.passing or _is_store_away(error))
        await self.database.run(partial(leases.fail, passing=passing), item, self.worker, said)

    async def _stop_run(self, spent: BudgetSpent) -> None:
        recorded = QUOTA_SPENT if isinstance(spent, QuotaSpent) else BUDGET_SPENT
        await self.database.run(leases.stop_run, self.run.pk, str(spent), recorded)


@contextmanager
def _handle_signals(numbers: Collection[signal.Signals], stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` at one of these signals; do nothing outside the main thread, since only that one gets signals."""
    loop = asyncio.get_running_loop()
    listening = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in numbers if listening}
    for number in before:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _is_store_away(error: Exception) -> bool:
    return find_outage(error) is Outage.STORE


def _find_cause(error: BaseException) -> Any:
    """Return the deciding error of a group: of the database, then of the budget, then our own."""
    found = list(_flatten(error))
    for kind in (AWAY, BudgetSpent):
        if first := next((one for one in found if isinstance(one, kind)), None):
            return first
    return next((one for one in found if not isinstance(one, CallFailed)), found[0])


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _flatten(inner)
    else:
        yield error
