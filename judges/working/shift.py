"""One worker's time at a run: items are taken while there is room for calls, judged, and settled one by one.

Nothing is kept here that a crash would lose: an item that is not settled is taken by somebody else, who finds what was
asked for it in the cache. When the run is paused, or its budget is spent, what was begun goes on to its end and
nothing more is taken; when it is cancelled, everything is dropped at once. A worker that is told to stop drops what
it has but for the calls on their way, whose replies it keeps.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from django.conf import settings

from judges import defining, endpoints
from judges.llm import Asker, BudgetSpent, CallFailed, Client, Endpoint, Generation, NotConfigured, Patience
from judges.models import JudgeRun, ModelTerms
from judges.scorer import Score, Scorer, Subject, parameters_from
from judges.working import holding, ledger
from judges.working.database import AWAY, DatabaseThread
from judges.working.holding import Held
from judges.working.ledger import ItemLedger
from judges.working.limits import Budget, SharedGate
from judges.working.pictures import StoredImages
from judges.working.subjects import subjects_of

LOOK = 2.0  # seconds between two looks at whether the run is still wanted
LONGEST_BEAT = 10.0  # seconds between two reports that this worker lives
COULD_NOT_BEGIN = "A judge worker could not begin."  # what is recorded of it, which leaves in evidence bundles
BUDGET_SPENT = "The budget is spent, or cannot be kept."
NOWHERE = Endpoint("none", "http://no-endpoint.invalid/v1")  # of judges that ask no model

logger = logging.getLogger(__name__)


def work(run_pk: int, worker: str, *, seconds: float, stop_at: Collection[signal.Signals] = ()) -> bool:
    """Judge items of a run until none is left or ``seconds`` have passed; True when there may be more to do.

    Runs an event loop of its own. At one of the signals ``stop_at`` it ends as soon as the calls that are on their way
    have their replies. Raises what the database raises when it stays away; nothing is lost then.
    """
    with DatabaseThread() as database:
        return asyncio.run(_work(database, run_pk, worker, time.monotonic() + seconds, stop_at))


async def _work(
    database: DatabaseThread, run_pk: int, worker: str, until: float, stop_at: Collection[signal.Signals]
) -> bool:
    if not await _wanted(database, run_pk):
        return False
    try:
        ground = await database.run(_ground, run_pk)
    except (NotConfigured, LookupError, ValueError) as reason:
        logger.warning("Run %s waits: %s", run_pk, reason)
        says = str(reason.args[0] if reason.args else reason)
        # Whoever started the run may have all that is missing here, and would look for it in the wrong place.
        await database.run(holding.stop, run_pk, f"A judge worker could not begin: {says}", COULD_NOT_BEGIN)
        return False
    await _one_shift(database, ground, worker, until, stop_at)
    return await _wanted(database, run_pk)


async def _wanted(database: DatabaseThread, run_pk: int) -> bool:
    """Whether there is something to do; a run without anything open is ended."""
    if await database.run(holding.wanted, run_pk):
        return True
    await database.run(holding.end, run_pk)
    return await database.run(holding.wanted, run_pk)  # failed items may be open again


@dataclass(frozen=True, slots=True)
class _Ground:
    """What stays the same during a shift."""

    run: JudgeRun
    scorer: Scorer
    generation: Generation
    endpoint: Endpoint
    terms: ModelTerms | None
    fingerprint: str
    former_endpoint: str


def _ground(run_pk: int) -> _Ground:
    """Raises NotConfigured, or LookupError or ValueError where this machine cannot build the judge."""
    run = JudgeRun.objects.select_related("judge").get(pk=run_pk)
    judge = run.judge
    endpoint = endpoints.endpoint_for(judge.endpoint) if defining.asks(judge) else NOWHERE
    return _Ground(
        run=run,
        scorer=defining.built(judge)[2],
        generation=parameters_from(Generation, judge.generation),
        endpoint=endpoint,
        terms=ModelTerms.objects.filter(endpoint=judge.endpoint, model=judge.model).first(),
        fingerprint=judge.fingerprint,
        former_endpoint=ledger.former_endpoint(endpoint),
    )


async def _one_shift(
    database: DatabaseThread, ground: _Ground, worker: str, until: float, stop_at: Collection[signal.Signals]
) -> None:
    run, judge = ground.run, ground.run.judge
    budget = None if run.max_cost is None else _budget(database, run.pk, run.max_cost)
    gate = SharedGate(ground.terms, f"{judge.endpoint}:{judge.model}", budget)
    patience = Patience(judge.concurrency, judge.timeout, judge.attempts)
    client = Client(ground.endpoint, judge.model, ground.generation, patience, gate, StoredImages())
    try:
        await _Shift(database, ground, worker, client, budget).work(until, stop_at)
    except BaseExceptionGroup as group:
        raise _cause(group) from group
    finally:
        await client.close()
        await gate.close()


def _budget(database: DatabaseThread, run: int, limit: Decimal) -> Budget:
    """With the limit of the run as it is at every look: who begins with a lower one must not stop it again."""

    async def paid() -> Decimal:
        spent, now = await database.run(ledger.spent, run)
        budget.limit = budget.limit if now is None else now
        return spent

    budget = Budget(limit, paid)
    return budget


@dataclass(slots=True)
class _Shift:
    """The items that one worker holds, each in a task of its own; ``settling`` are those that nobody may drop."""

    database: DatabaseThread
    ground: _Ground
    worker: str
    client: Client
    budget: Budget | None
    tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    settling: set[int] = field(default_factory=set)

    async def work(self, until: float, stop_at: Collection[signal.Signals]) -> None:
        """Returns when nothing is held any more; raises a group with one of AWAY when the database stays away."""
        async with asyncio.TaskGroup() as group:
            taking = group.create_task(self._take_items(group, until))
            watching = group.create_task(self._watch(taking, until))
            with _told(stop_at, partial(self._stop, taking)):
                await asyncio.wait([taking])
                while self.tasks:
                    await asyncio.wait(self.tasks.values())
                await self.client.finish()  # what is on its way is paid for: nobody shall ask for it again
            watching.cancel()
        await self.database.run(holding.let_go, self.ground.run.pk, self.worker)

    def _stop(self, taking: asyncio.Task[None]) -> None:
        """The worker is to end: begin nothing more, and drop what is not on its way to the endpoint."""
        taking.cancel()
        self._drop(set(self.tasks))

    # --- taking ----------------------------------------------------------------------------------------------------

    async def _take_items(self, group: asyncio.TaskGroup, until: float) -> None:
        while time.monotonic() < until:
            await self.client.room()
            if len(self.tasks) >= self.ground.run.judge.concurrency:
                await asyncio.wait(self.tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                continue
            held = tuple(self.tasks)
            taken = await self.database.run(holding.take, self.ground.run.pk, self.worker, held)
            if not taken:
                if not held:
                    return
                # The last task to end may open failed items again, even before this answer came.
                if self.tasks:
                    await asyncio.wait(self.tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                continue
            for item in taken:
                self._begin(group, item)

    def _begin(self, group: asyncio.TaskGroup, item: Held) -> None:
        run = self.ground.run
        sample = ledger.sample_of(run.pk, item.repetition, run.fresh)
        calls = ItemLedger(
            item.pk, item.attempt, sample, self.database, self.ground.terms, self.budget, self.ground.former_endpoint
        )
        # Made here, since `room` counts it from now on: else all items would begin before the first one asks.
        task = group.create_task(self._judge(item, calls, self.client.asker(calls, item.pk)))
        self.tasks[item.pk] = task
        task.add_done_callback(partial(self._forget, item.pk))

    def _forget(self, pk: int, task: asyncio.Task[None]) -> None:
        self.tasks.pop(pk, None)
        self.settling.discard(pk)

    async def _watch(self, taking: asyncio.Task[None], until: float) -> None:
        """Report that this worker lives, drop what was taken from it, and notice what became of the run."""
        every = min(LONGEST_BEAT, settings.JUDGE_SILENCE_SECONDS / 3)
        beaten = time.monotonic()
        while True:
            await asyncio.sleep(min(LOOK, every))
            if time.monotonic() - beaten >= every:
                beaten = time.monotonic()
                await self._beat()
            state, limited = await self.database.run(holding.state_of, self.ground.run.pk)
            if state not in ("waiting", "running") or limited != (self.budget is not None) or time.monotonic() >= until:
                taking.cancel()
            if state == "cancelled":
                self._drop(set(self.tasks))

    async def _beat(self) -> None:
        held = set(self.tasks)
        lost = held - await self.database.run(holding.beat, self.worker, held)
        lost &= set(self.tasks)  # some have ended meanwhile
        if lost - self.settling:
            logger.warning("Run %s: others have %s of our items.", self.ground.run.pk, len(lost - self.settling))
        self._drop(lost)

    def _drop(self, items: set[int]) -> None:
        for pk in items - self.settling:
            if pk in self.tasks:
                self.tasks[pk].cancel()

    # --- one item --------------------------------------------------------------------------------------------------

    async def _judge(self, item: Held, calls: ItemLedger, asker: Asker) -> None:
        try:
            subject = await self.database.run(_subject, item.trajectory)
            score = await self.ground.scorer.score(subject, asker)
            self.settling.add(item.pk)
            await self._settle(item, score, calls)
        except Exception as error:
            await self._not_scored(item, _cause(error))
        await self.database.run(holding.end, self.ground.run.pk)

    async def _settle(self, item: Held, score: Score, calls: ItemLedger) -> None:
        said = (item, self.worker, score, calls.worth, self.ground.fingerprint)
        if not await self.database.run(holding.settle, *said):
            logger.warning("Run %s: item %s is settled, or held, by somebody else.", self.ground.run.pk, item.pk)

    async def _not_scored(self, item: Held, error: Exception) -> None:
        """No judgment: the item failed or waits, and never is that a verdict."""
        if isinstance(error, AWAY):
            raise error
        self.settling.add(item.pk)
        if isinstance(error, BudgetSpent):
            await self.database.run(holding.stop, self.ground.run.pk, str(error), BUDGET_SPENT)
            await self.database.run(holding.give_back, item, self.worker)
            return
        said = str(error)
        if not isinstance(error, CallFailed):
            logger.error("Run %s: item %s failed on our side.", self.ground.run.pk, item.pk, exc_info=error)
            said = f"This failed on our side, and is in the log of the worker: {type(error).__name__}: {error}"
        passing = isinstance(error, CallFailed) and error.passing
        await self.database.run(partial(holding.fail, passing=passing), item, self.worker, said)


@contextmanager
def _told(numbers: Collection[signal.Signals], stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` when one of these signals comes; outside of a main thread, where none comes, do nothing."""
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


def _subject(trajectory: int) -> Subject:
    return next(subjects_of([trajectory]))[1]


def _cause(error: BaseException) -> Any:
    """What decides of an error or a group of them: the database, then the budget, then our own mistakes."""
    found = list(_leaves(error))
    for kind in (AWAY, BudgetSpent):
        if first := next((one for one in found if isinstance(one, kind)), None):
            return first
    return next((one for one in found if not isinstance(one, CallFailed)), found[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
