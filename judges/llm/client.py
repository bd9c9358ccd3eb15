"""The client behind `llm.Asker`: slots, retries, limits, repairs and the cache of replies."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from judges.llm import (
    Asker,
    Call,
    CallFailed,
    CallLog,
    Endpoint,
    Gate,
    Generation,
    GivenImage,
    ImageRef,
    Images,
    Outcome,
    Patience,
    Prompt,
    Reply,
    Route,
    SentImage,
)
from judges.llm.apis.base import ReplyBody, UnreadableReply, add_counts
from judges.llm.maps import Maps
from judges.llm.priority_semaphore import PrioritySemaphore, Rank
from judges.llm.replies import build_reply, merge_repair, parse
from judges.llm.wire import Correction, Encoded, Form, build_call, build_request, estimate_tokens

if TYPE_CHECKING:
    from judges.llm.transport import FailedAttempt

log = logging.getLogger(__name__)

PICTURE_BYTES = 32 * 1024 * 1024  # of images in memory for all calls together; a call with more runs alone
SUPPOSED = 512 * 1024  # bytes assumed for an image that was not loaded yet
REMEMBERED = 4096  # images whose size is remembered
LIMITED_WAIT = 4.0  # seconds that all workers wait after a 429 without a time, doubled after each further one
FIRST_WAIT = 0.5  # seconds; the longest wait before the second attempt, doubled before each further one
LAST_WAIT = 60.0
LOOK = 1.0  # seconds between two checks for room
TRIED_REPAIRS = 5  # for each stage; if none of them led to a readable answer, no more are tried


@dataclass(frozen=True, slots=True)
class _Question:
    """One call to make, with everything that its attempts need."""

    call_log: CallLog
    prompt: Prompt
    stage: str
    step: int | None
    schema: Mapping[str, Any] | None
    rank: Rank
    correction: Correction | None = None
    vote: int = 0

    @property
    def pictures(self) -> list[ImageRef]:
        parts = [part for message in self.prompt.messages for part in message]
        return list(dict.fromkeys(part.image for part in parts if isinstance(part, SentImage)))


@dataclass(slots=True)
class _Slot:
    """The resources of a call: a place in the queue, memory for its images until they are sent, a place in flight."""

    door: PrioritySemaphore
    way: PrioritySemaphore
    room: PrioritySemaphore
    rank: Rank
    size: int = 0
    sent: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)
    left: bool = False
    begun: bool = False

    async def begin(self) -> None:
        await self.way.acquire(1, self.rank)
        self.begun = True

    def unload(self) -> None:
        """Free the images; idempotent."""
        self.pictures.clear()
        size, self.size = self.size, 0
        self.room.release(size)

    def leave(self) -> None:
        """Release everything; idempotent."""
        self.unload()
        if not self.left:
            self.left = True
            self.door.release(1)
            self.way.release(int(self.begun))


@dataclass(slots=True)
class _Repairs:
    """Results of repairs in one stage. Until one repair succeeds, only `TRIED_REPAIRS` are tried."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TRIED_REPAIRS))
    helped: bool = False
    in_vain: int = 0

    @property
    def given_up(self) -> bool:
        return not self.helped and self.in_vain >= TRIED_REPAIRS


class Client:
    """Client of one model at one endpoint; one for each worker job and event loop.

    At most ``patience.concurrency`` calls are in flight, the most urgent first: later stages before earlier ones, then
    smaller orders, so that trajectories are finished one after another. ``further`` fields are sent with every request,
    but change no reply: they are neither in the key of a call nor in its trace.
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
        further: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        # Importing the SDK takes most of a second. Web servers ask no model, so they do not import it.
        from judges.llm.transport import Transport  # noqa: PLC0415

        self._transport = Transport(endpoint, patience, clock)
        self._endpoint, self._sleep, self._further = endpoint, sleep, dict(further or {})
        self._form = Form(model, generation)
        self._patience, self._gate, self._images = patience, gate, images
        self.maps = Maps(maps, patience, sleep)
        calls = max(1, patience.concurrency)
        # A few more calls are prepared than may be in flight, so that no place is empty while images are loaded.
        self._door, self._way = PrioritySemaphore(calls + max(2, calls // 4)), PrioritySemaphore(calls)
        self._room = PrioritySemaphore(PICTURE_BYTES)
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._ranks: dict[str, int] = {}
        self._same: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = weakref.WeakValueDictionary()
        self._sending: set[asyncio.Task[ReplyBody | FailedAttempt]] = set()
        self._silent: weakref.WeakSet[_Asker] = weakref.WeakSet()
        self._repairs: defaultdict[str, _Repairs] = defaultdict(_Repairs)
        self._open = self._in_flight = self._peak = 0
        self._change = asyncio.Event()

    def asker(self, call_log: CallLog, order: int) -> Asker:
        """Return the asker of one item; among calls of a stage a smaller ``order`` is served first."""
        asker = _Asker(self, call_log, order)
        self._silent.add(asker)
        weakref.finalize(asker, self._change.set)  # an item may end without having asked anything
        return asker

    async def wait_for_room(self) -> None:
        """Wait until fewer than ``concurrency`` calls are waiting or in flight, so that another item may start.

        A started item that has not asked yet counts as one call.
        """
        while self._open + len(self._silent) >= self._way.size:
            self._change.clear()
            try:
                async with asyncio.timeout(LOOK):  # wait_for loses a cancellation in Python 3.11
                    await self._change.wait()
            except TimeoutError:
                if not self._open:  # silent items have ended by now; only their memory is not free yet
                    return

    @property
    def in_flight_peak(self) -> int:
        return self._peak

    async def close(self) -> None:
        """Wait for the calls in flight, store their replies, and close the transport."""
        await self.finish()
        await self._transport.close()

    async def finish(self) -> None:
        """Wait until no call is in flight; replies without a waiting caller are stored as well."""
        await asyncio.gather(*self._sending, return_exceptions=True)

    def rank(self, stage: str, asked: int) -> int:
        """Return the rank of a stage: the largest number of stages that any item asked before it."""
        self._ranks[stage] = max(self._ranks.get(stage, 0), asked)
        return self._ranks[stage]

    def mark_asked(self, asker: _Asker) -> None:
        self._silent.discard(asker)

    async def answer(self, question: _Question) -> Reply:
        self._open += 1
        try:
            body = await self._request_body(question)
            return build_reply(body, question.schema, self._form.output)
        finally:
            self._open -= 1
            self._change.set()

    async def repair(self, question: _Question, first: Reply) -> Reply:
        """Return an unreadable reply after one repair, or unchanged if the repairs of its stage fail.

        Without this limit, a model that ignores the required form would double the cost.
        """
        repairs = self._repairs[question.stage]
        async with nullcontext() if repairs.helped else repairs.places:
            if repairs.given_up:
                return first
            shown = Correction(first.text, first.problem)
            second = await self.answer(replace(question, stage=f"{question.stage}.repair", correction=shown))
            repairs.helped |= second.data is not None
            repairs.in_vain += second.data is None
            if repairs.given_up and repairs.in_vain == TRIED_REPAIRS:
                log.warning(
                    "%s ignores the required answer format (%s): answers are read as text.",
                    self._form.model,
                    question.stage,
                )
            return merge_repair(first, second)

    async def _request_body(self, question: _Question) -> ReplyBody:
        """Return a body, repeating attempts; raise CallFailed after the last one, which is then in the trace."""
        made = failed = 0
        while True:
            turn, call = await self._prepare(question)
            came = await self._attempt(question, call, turn, made)
            if isinstance(came, ReplyBody):
                self._form.notice(came.thought)
                if came.cut and self._build_call(question, turn).key != call.key:
                    continue  # the thoughts reached the length limit, which is higher for the next call
                return came
            made += 1
            if came.refused and self._learn_refusal(question, call, turn, came):
                continue
            failed += 1
            if not came.again or failed >= self._patience.attempts:
                await question.call_log.record(Outcome(call, retries=made - 1, error=came.message))
                raise CallFailed(came.message, passing=came.again)
            await self._pause(came, failed)

    async def _prepare(self, question: _Question) -> tuple[_Slot, Call]:
        """Wait for a slot and for memory, load the images, and build the call: its key depends on the images."""
        await self._door.acquire(1, question.rank)
        turn = _Slot(self._door, self._way, self._room, question.rank)
        try:
            await self._load(question, turn)
            return turn, self._build_call(question, turn)
        except BaseException:
            turn.leave()
            raise

    async def _load(self, question: _Question, turn: _Slot) -> None:
        """Load images into memory. If they do not fit with their true size, drop them and wait for room."""
        images, loaded = question.pictures, list[bytes]()
        while images and not turn.pictures:
            loaded.clear()
            size = sum(self._sizes.get(image.digest, SUPPOSED) for image in images)
            await self._room.acquire(size, question.rank)
            turn.size = size
            loaded += await asyncio.gather(*(self._load_bytes(image) for image in images))
            for image, data in zip(images, loaded, strict=True):
                self._remember(image, data)
            true = sum(map(len, loaded))
            if true > size and not self._room.extend(size, true - size):
                self._room.release(size)
                turn.size = 0
                continue
            self._room.release(max(0, size - true))
            turn.size = true
            turn.sent = {
                image.digest: hashlib.sha256(data).hexdigest() for image, data in zip(images, loaded, strict=True)
            }
            turn.pictures = dict(zip(turn.sent.values(), loaded, strict=True))

    async def _load_bytes(self, image: ImageRef) -> bytes:
        return image.data if isinstance(image, GivenImage) else await self._images.load(image)

    def _remember(self, image: ImageRef, data: bytes) -> None:
        self._sizes[image.digest] = len(data)
        self._sizes.move_to_end(image.digest)
        while len(self._sizes) > REMEMBERED:
            self._sizes.popitem(last=False)

    def _build_call(self, question: _Question, turn: _Slot) -> Call:
        request = build_request(
            self._form, question.prompt, turn.sent, question.schema, question.correction, question.vote
        )
        return build_call(self._endpoint, request, question.stage, question.step, question.vote, self._form.api.name)

    @asynccontextmanager
    async def _lock_call(self, question: _Question, call: Call, turn: _Slot) -> AsyncIterator[None]:
        """Allow one of several equal calls at a time: the others then find its reply."""
        same = (call.key, question.call_log.sample)
        lock = self._same.setdefault(same, asyncio.Lock())
        async with lock:
            yield

    async def _attempt(self, question: _Question, call: Call, turn: _Slot, made: int) -> ReplyBody | FailedAttempt:
        """Return a stored reply, or make one attempt to get one. Release the slot in any case."""
        sending = None
        try:
            async with self._lock_call(question, call, turn):
                if (known := await self._look_up(question.call_log, call)) is not None:
                    return known
                tokens = estimate_tokens(call.request)
                await self._gate.admit(tokens)
                await turn.begin()
                sending = asyncio.ensure_future(self._send(question.call_log, call, turn, tokens, made))
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)
                # A call in flight is paid for: it completes and is stored even if nobody waits for it any more.
                return await asyncio.shield(sending)
        finally:
            if sending is None:
                turn.leave()

    async def _look_up(self, call_log: CallLog, call: Call) -> ReplyBody | None:
        found = await call_log.find_reply(call)
        if found is None:
            return None
        try:
            body = parse(found[1], self._form.api.name)
        except UnreadableReply:
            return None
        await call_log.record(Outcome(call, body.raw, body.model, body.finish, body.usage, hit_of=found[0]))
        return body

    async def _send(
        self, call_log: CallLog, call: Call, turn: _Slot, tokens: int, made: int
    ) -> ReplyBody | FailedAttempt:
        """Make one attempt, and write a reply to the trace immediately.

        A call counts as in flight until that row is written: a crash cannot lose more replies than those in flight.
        """
        used = None
        try:
            came, latency = await self._post(call_log, call, turn)
            if isinstance(came, ReplyBody):
                used = add_counts(came.usage.prompt, came.usage.completion)
                await call_log.record(
                    Outcome(call, came.raw, came.model, came.finish, came.usage, latency=latency, retries=made)
                )
            elif came.unpaid:
                used = 0
            return came
        finally:
            turn.leave()
            await self._gate.settle(tokens, used)

    async def _post(self, call_log: CallLog, call: Call, turn: _Slot) -> tuple[ReplyBody | FailedAttempt, int]:
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        began = time.monotonic()
        try:
            body = {**call.request, **self._further}
            came = await self._transport.post(Encoded(body, turn.pictures, self._form.api.name), turn.unload)
            return came, round((time.monotonic() - began) * 1000)
        finally:
            self._in_flight -= 1

    def _learn_refusal(self, question: _Question, call: Call, turn: _Slot, refused: FailedAttempt) -> bool:
        """Return True if the request changes: a refused parameter is not sent to the endpoint again."""
        self._form.learn(call.request, refused.param, refused.message)
        return self._build_call(question, turn).key != call.key

    async def _pause(self, fault: FailedAttempt, failed: int) -> None:
        """Wait with full jitter, so that calls that failed together are not repeated together.

        After a rate limit every worker waits for the time that the endpoint states, or for a growing time.
        """
        wait = fault.wait or 0.0
        if fault.limited and fault.wait is None:
            wait = min(LAST_WAIT, LIMITED_WAIT * 2 ** (failed - 1))
        if wait:
            await self._gate.hold(wait)
        longest = FIRST_WAIT if wait else min(LAST_WAIT, FIRST_WAIT * 2 ** (failed - 1))
        await self._sleep(wait + random.uniform(0, longest))  # noqa: S311 - no secret


class _Asker:
    """`Asker` for one item."""

    def __init__(self, client: Client, call_log: CallLog, order: int) -> None:
        self._client, self._call_log, self._order = client, call_log, order
        self._stages: list[str] = []

    async def ask(
        self,
        prompt: Prompt,
        *,
        stage: str,
        step: int | None = None,
        schema: Mapping[str, Any] | None = None,
        vote: int = 0,
    ) -> Reply:
        self._client.mark_asked(self)
        if stage not in self._stages:
            self._stages.append(stage)
        rank = (-self._client.rank(stage, self._stages.index(stage)), self._order)
        question = _Question(self._call_log, prompt, stage, step, schema, rank, vote=vote)
        first = await self._client.answer(question)
        return await self._client.repair(question, first) if first.problem else first

    async def find_route(self, origin: str, destination: str, mode: str) -> Route | str:
        return await self._client.maps.find_route(self._call_log, origin, destination, mode)
