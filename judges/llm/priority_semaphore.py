"""A semaphore with priorities and amounts."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

Rank = tuple[int, ...]  # the smallest is served first


class PrioritySemaphore:
    """Limit of an amount in use at once. A request for more than ``size`` waits until nothing else is in use.

    A large request at the head of the queue blocks those behind it, so that small ones cannot overtake it for ever.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = self.peak = 0
        self._line: list[tuple[Rank, int, int, asyncio.Future[None]]] = []
        self._number = count()

    async def acquire(self, amount: int, rank: Rank) -> None:
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._line, (rank, next(self._number), amount, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(amount)  # it was granted in the moment of the cancellation
            self._serve()
            raise

    def extend(self, held: int, amount: int) -> bool:
        """Take ``amount`` in addition to ``held``; return False and take nothing if others leave no room for it."""
        if self.used > held and self.used + amount > self.size:
            return False
        self._use(amount)
        return True

    def release(self, amount: int) -> None:
        self.used -= amount
        self._serve()

    def _use(self, amount: int) -> None:
        self.used += amount
        self.peak = max(self.peak, self.used)

    def _serve(self) -> None:
        while self._line:
            _, _, amount, turn = self._line[0]
            if not turn.done():
                if self.used and self.used + amount > self.size:
                    return
                self._use(amount)
                turn.set_result(None)
            heapq.heappop(self._line)
