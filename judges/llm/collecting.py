"""A client that collects calls in files instead of sending them, for batches.

Calls of all open items wait until no item can continue without a reply; then the files are submitted, and the items
are dropped. Their next attempt finds the replies in the cache. Does not use Django.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any, Literal, Protocol, cast

from judges.llm import Asker, Call, CallLog, Endpoint, Gate, Generation, Images, Patience, Prompt, Reply, Route, batch
from judges.llm.apis.base import ReplyBody
from judges.llm.batch import BatchApi, measure_line, write_line
from judges.llm.client import TRIED_REPAIRS, Client, _Question, _Repairs, _Slot
from judges.llm.maps import Maps
from judges.llm.transport import FailedAttempt
from judges.llm.wire import LONG, SHORT, TOKENS_PER_THOUGHT, Encoded, build_call, estimate_tokens, is_reasoning

OPEN_CALLS = 100_000  # that may wait at once; images in memory have a limit of their own
LOOK = 1.0  # seconds between two checks whether every item waits
TURNS = 3  # of the event loop without a change, after which nothing is about to change


class BatchCallLog(CallLog, Protocol):
    """`CallLog` of an item whose calls go into batches."""

    def take_name(self) -> str:
        """Return the custom id of the item's next call in a batch."""
        ...

    async def find_failures(self, call: Call) -> list[str]:
        """Return the results (lines) with which a call failed in batches since it was last given up, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class CollectedCall:
    """A call in a file, from byte ``start`` to ``end``.

    ``tokens`` is the estimate for its prompt, ``thoughts`` that for the tokens of a reasoning model before its reply.
    """

    name: str
    call_log: BatchCallLog
    call: Call
    tokens: int
    start: int
    end: int
    thoughts: int = 0


def _open_file() -> IO[bytes]:
    return cast("IO[bytes]", tempfile.TemporaryFile())


@dataclass(slots=True)
class CallFile:
    """An unnamed file of calls, which does not survive this process."""

    file: IO[bytes] = field(default_factory=_open_file)
    calls: list[CollectedCall] = field(default_factory=list)
    size: int = 0

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all calls from the file that are not named."""
        if len(names) == len(self.calls):
            return
        chosen = _open_file()
        for call in self.calls:
            if call.name in names:
                self.file.seek(call.start)
                chosen.write(self.file.read(call.end - call.start))
        self.file.close()
        self.file = chosen


class BatchClient(Client):
    """`Client` that collects new calls until their item is dropped.

    Failures of an item's call count over all batches.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        generation: Generation,
        patience: Patience,
        gate: Gate,
        images: Images,
        *,
        maps: Endpoint | None = None,
    ) -> None:
        # The client itself makes one attempt: repeated ones are in later batches.
        super().__init__(
            endpoint, model, generation, replace(patience, concurrency=OPEN_CALLS, attempts=1), gate, images
        )
        self.maps = Maps(maps, patience)
        self.api = BatchApi(endpoint, patience)
        self._most_failures = patience.attempts
        self._repairs = defaultdict(lambda: _Repairs(places=_CountedSemaphore(TRIED_REPAIRS, self._count_blocked)))
        self._asks: Counter[int] = Counter()
        self._equal: Counter[tuple[str, str]] = Counter()
        self._waiting: list[asyncio.Future[None]] = []
        self._writing = asyncio.Lock()
        self._blocked = 0
        self._is_dropping = False
        self._moved = asyncio.Event()
        self.files: list[CallFile] = []
        self.problem: OSError | None = None

    @property
    def is_full(self) -> bool:
        """Return True if a file is full, or cannot be written."""
        return len(self.files) > 1 or self.problem is not None

    def asker(self, call_log: CallLog, order: int) -> Asker:
        return _CountedAsker(super().asker(call_log, order), partial(self._count_ask, order))

    async def close(self) -> None:
        await self.drop()
        await self.api.close()
        await super().close()

    def notify(self) -> None:
        self._moved.set()

    async def wait_until_quiet(self, items: Callable[[], Collection[int]], has_time: Callable[[], bool]) -> None:
        """Return when each of ``items`` waits for calls, when there is no more time, or when a file cannot be written.

        ``items`` returns the order of each asker that is in use.
        """
        quiet = 0
        while has_time() and self.problem is None and quiet < TURNS:
            if self._is_quiet(items()):
                quiet += 1
                await asyncio.sleep(0)
                continue
            quiet = 0
            self._moved.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._moved.wait()

    def _is_quiet(self, items: Collection[int]) -> bool:
        asked = sum(self._asks[order] for order in items)
        return all(self._asks[order] for order in items) and asked <= len(self._waiting) + self._blocked

    async def finish(self) -> None:
        """End every waiting call without a reply: none of them would end by itself. No item may ask meanwhile."""
        self._is_dropping = True
        for waiting in self._waiting:
            waiting.cancel()
        await super().finish()
        self._is_dropping = False
        self._waiting.clear()

    async def drop(self) -> None:
        """End every waiting call without a reply, and forget the files. No item may ask meanwhile."""
        await self.finish()
        for each in self.files:
            each.file.close()
        self.files, self.problem = [], None

    async def _post(self, call_log: CallLog, call: Call, turn: _Slot) -> tuple[ReplyBody | FailedAttempt, int]:
        log = cast("BatchCallLog", call_log)
        if failed := await self._find_failure(log, call):
            return failed, 0
        if (too_large := await self._collect(log, call, turn)) is not None:
            return too_large, 0
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self.notify()
        if self._is_dropping:
            waiting.cancel()
        await waiting
        raise AssertionError("A waiting call is only ever cancelled.")

    async def _find_failure(self, call_log: BatchCallLog, call: Call) -> FailedAttempt | None:
        """Return the last failure of a call, None if it was not sent yet or may be sent again."""
        lines = await call_log.find_failures(call)
        found = self.api.read_result(lines[-1]) if lines else None
        if found is None or isinstance(found[1], ReplyBody):
            return None
        return None if found[1].again and len(lines) < self._most_failures else found[1]

    async def _collect(self, call_log: BatchCallLog, call: Call, turn: _Slot) -> FailedAttempt | None:
        """Write a call to the last file, and free its images. If that fails, `problem` says why."""
        content, name = Encoded(call.request, turn.pictures), call_log.take_name()
        length = measure_line(name, content)
        if length > batch.MOST_BYTES:
            return FailedAttempt(f"The request has {length:,} bytes, more than a batch may have.", again=False)
        async with self._writing:
            try:
                await self._write(call_log, call, name, content, length)
            except OSError as error:
                self.problem = error
        turn.unload()
        return None

    async def _write(self, call_log: BatchCallLog, call: Call, name: str, content: Encoded, length: int) -> None:
        chosen = self._choose_file(length)
        await write_line(chosen.file, name, content)
        chosen.file.flush()
        start, chosen.size = chosen.size, chosen.size + length
        thoughts = (
            TOKENS_PER_THOUGHT if self._form.reasoning and self._form.generation.reasoning_effort != "none" else 0
        )
        tokens = estimate_tokens(call.request)
        chosen.calls.append(CollectedCall(name, call_log, call, tokens, start, chosen.size, thoughts))

    def _choose_file(self, length: int) -> CallFile:
        last = self.files[-1] if self.files else None
        if last is None or last.size + length > batch.MOST_BYTES or len(last.calls) >= batch.MOST_CALLS:
            self.files.append(CallFile())
        return self.files[-1]

    async def _attempt(self, question: _Question, call: Call, turn: _Slot, made: int) -> ReplyBody | FailedAttempt:
        """As `Client`, but a reply is also found if the call was made before the model was known to reason.

        Every wave asks all calls of an item again, in an order that may differ.
        """
        if (shorter := self._shorten(question, call)) is not None:
            try:
                known = await self._look_up(question.call_log, shorter)
            except BaseException:
                turn.leave()
                raise
            if known is not None and not known.cut:
                turn.leave()
                return known
        return await super()._attempt(question, call, turn, made)

    def _shorten(self, question: _Question, call: Call) -> Call | None:
        generation, length = self._form.generation, self._form.length
        if generation.max_tokens or is_reasoning(self._form.model, generation) or call.request.get(length) != LONG:
            return None
        request = {**call.request, length: SHORT}
        return build_call(self._endpoint, request, question.stage, question.step, question.vote)

    @asynccontextmanager
    async def _lock_call(self, question: _Question, call: Call, turn: _Slot) -> AsyncIterator[None]:
        same = (call.key, question.call_log.sample)
        async with AsyncExitStack() as stack:
            # The equal call before this one keeps the lock until both are dropped, unless it fails.
            if self._equal[same]:
                turn.unload()
            self._equal[same] += 1
            stack.callback(self._forget_equal, same)
            self._count_blocked(1)
            try:
                await stack.enter_async_context(super()._lock_call(question, call, turn))
            finally:
                self._count_blocked(-1)
            await self._load(question, turn)
            yield

    def _forget_equal(self, same: tuple[str, str]) -> None:
        self._equal[same] -= 1
        if not self._equal[same]:
            del self._equal[same]

    def _count_blocked(self, change: int) -> None:
        self._blocked += change
        self.notify()

    def _count_ask(self, order: int, change: int) -> None:
        self._asks[order] += change
        self.notify()


class _CountedSemaphore(asyncio.Semaphore):
    def __init__(self, value: int, count: Callable[[int], None]) -> None:
        super().__init__(value)
        self._count = count

    async def acquire(self) -> Literal[True]:
        self._count(1)
        try:
            return await super().acquire()
        finally:
            self._count(-1)


class _CountedAsker:
    """`Asker` that reports the beginning (1) and the end (-1) of each question."""

    def __init__(self, asker: Asker, count: Callable[[int], None]) -> None:
        self._asker, self._count = asker, count

    async def ask(
        self,
        prompt: Prompt,
        *,
        stage: str,
        step: int | None = None,
        schema: Mapping[str, Any] | None = None,
        vote: int = 0,
    ) -> Reply:
        self._count(1)
        try:
            return await self._asker.ask(prompt, stage=stage, step=step, schema=schema, vote=vote)
        finally:
            self._count(-1)

    async def find_route(self, origin: str, destination: str, mode: str) -> Route | str:
        return await self._asker.find_route(origin, destination, mode)
