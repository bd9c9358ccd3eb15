"""All database access of an event loop, through one thread with its own connection.

Django's ORM would block the loop. Requests that wait at the same time are batched if possible: twenty lookups are one
query, twenty rows one insert. If the database is unavailable for a while, requests wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection, connections

PATIENCE = 60.0  # seconds that a database may be away, as for a restart
LONGEST_WAIT = 2.0  # seconds between two attempts to reach it
AWAY = (OperationalError, InterfaceError)

A = TypeVar("A")
T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Request:
    """A waiting call: ``function`` takes a list of arguments, and ``argument`` is one of them."""

    function: Callable[[list[Any]], list[Any]]
    argument: Any
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]


class DatabaseThread:
    """Thread that runs functions; a context manager that ends the thread and closes its connection.

    A function opens its own transaction and must be safe to repeat. After one of AWAY it is repeated until ``patience``
    seconds have passed; then the error is raised. After an uncertain commit, the same commit may happen twice.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._orders: SimpleQueue[_Request | None] = SimpleQueue()
        self._ended = threading.Event()
        self._given_up = False
        self._thread = threading.Thread(target=self._serve, name="judge-database", daemon=True)

    def __enter__(self) -> DatabaseThread:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._orders.put(None)
        self._thread.join()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        bound = partial(function, *arguments)
        made: T = await self.run_batched(lambda _: [bound()], None)
        return made

    async def run_batched(self, function: Callable[[list[A]], list[T]], argument: A) -> T:
        """Return the result for ``argument`` of a function that takes many at once and returns results in their order.

        Callers with the same function share a call of it; if it fails, each gets its own call.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._orders.put(_Request(function, argument, loop, answer))
        return await answer

    def _serve(self) -> None:
        try:
            while (first := self._orders.get()) is not None:
                for orders in _group([first, *self._collect_waiting()]):
                    self._fill(orders)
        finally:
            connections.close_all()

    def _collect_waiting(self) -> Iterable[_Request]:
        while True:
            try:
                order = self._orders.get_nowait()
            except Empty:
                return
            if order is None:
                self._orders.put(None)  # for the loop of `_serve`, after the earlier requests
                return
            yield order

    def _fill(self, orders: list[_Request]) -> None:
        try:
            results = self._run_with_retries(orders)
        except Exception as error:
            if len(orders) > 1 and not isinstance(error, AWAY):
                for order in orders:  # one of them is at fault, the others may succeed
                    self._fill([order])
                return
            _deliver([(order, None, error) for order in orders])
        else:
            _deliver([(order, result, None) for order, result in zip(orders, results, strict=True)])

    def _run_with_retries(self, orders: list[_Request]) -> list[Any]:
        # After ``patience`` seconds without the database, the other waiting requests fail at once.
        until, wait = time.monotonic() + (0.0 if self._given_up else self.patience), 0.1
        while True:
            try:
                results = orders[0].function([order.argument for order in orders])
            except AWAY as error:
                connection.close()
                if time.monotonic() >= until or self._ended.is_set():
                    self._given_up = True
                    raise
                logger.warning("The database does not answer; retrying: %s", " ".join(str(error).split()))
            else:
                self._given_up = False
                return results
            self._ended.wait(wait)
            wait = min(wait * 2, LONGEST_WAIT)


def _group(orders: list[_Request]) -> list[list[_Request]]:
    groups: dict[Callable[[list[Any]], list[Any]], list[_Request]] = {}
    for order in orders:
        groups.setdefault(order.function, []).append(order)
    return list(groups.values())


def _deliver(answers: list[tuple[_Request, Any, Exception | None]]) -> None:
    """Wake the callers; ignore those of a loop that has ended."""
    try:
        answers[0][0].loop.call_soon_threadsafe(_settle, answers)
    except RuntimeError:
        logger.debug("An event loop ended before its answer arrived.")


def _settle(answers: list[tuple[_Request, Any, Exception | None]]) -> None:
    for order, result, error in answers:
        if order.answer.done():  # its caller was cancelled
            continue
        if error is None:
            order.answer.set_result(result)
        else:
            order.answer.set_exception(error)
