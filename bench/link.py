"""Forward connections to another port of this machine: `python -m bench.link PORT TARGET`.

Faults of a server whose data must survive are faults of the link to it. After SIGUSR1, each answer comes `DELAY`
seconds late; SIGUSR2 ends this.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

DELAY = 4.0  # seconds


class Link:
    def __init__(self, target: int) -> None:
        self.target, self.delay = target, 0.0
        self.ready = asyncio.Event()

    def set_delay(self, seconds: float) -> None:
        self.delay = seconds

    async def serve(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self.set_delay, DELAY)
        loop.add_signal_handler(signal.SIGUSR2, self.set_delay, 0.0)
        async with await asyncio.start_server(self._forward, "127.0.0.1", port) as server:
            self.ready.set()
            await server.serve_forever()

    async def _forward(self, asked: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            answered, ask = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            answer.close()
            return
        await asyncio.gather(self._copy(asked, ask, late=False), self._copy(answered, answer, late=True))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, late: bool) -> None:
        with suppress(OSError):
            while data := await source.read(2**20):
                if late:
                    await asyncio.sleep(self.delay)
                target.write(data)
                await target.drain()
        target.close()


if __name__ == "__main__":
    asyncio.run(Link(int(sys.argv[2])).serve(int(sys.argv[1])))
