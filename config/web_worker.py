"""gunicorn's worker with threads, protected from slow clients and busy threads.

A connection takes a thread once its first bytes have arrived. Then the server waits for the request `GRACE` seconds in
total, and longer for each byte received. The main thread never waits for a client. `/healthz` has its own thread.
"""

from __future__ import annotations

import errno
import math
import selectors
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

GRACE = 10.0  # seconds of waiting for a request, with its body
REST = 2.0  # seconds of waiting for the rest of an ignored body, and for its sender to close the connection
LEAST_RATE = 16 * 1024  # bytes per second in the long run; a package of 4 GiB may take three days
PROBE = b"GET /healthz "


class TimedSocket:
    """Socket that can be read until waiting has taken ``grace`` seconds, and one more for each ``rate`` bytes."""

    def __init__(self, connection: socket.socket, grace: float = GRACE, rate: float = LEAST_RATE) -> None:
        self._socket, self._left, self._rate = connection, grace, rate

    def recv(self, size: int) -> bytes:
        """Read bytes; raise ConnectionResetError after the time, which gunicorn handles like a client that left."""
        started = time.monotonic()
        self._socket.settimeout(max(self._left, 0.001))
        try:
            data = self._socket.recv(size)
        except TimeoutError:
            self._left = 0.0
            raise ConnectionResetError(errno.ECONNRESET, "The request arrived too slowly.") from None
        finally:
            self._socket.settimeout(None)
        self._left += len(data) / self._rate - (time.monotonic() - started)
        return data


class Worker(ThreadWorker):
    def init_process(self) -> None:
        self.probes = ThreadPoolExecutor(1, thread_name_prefix="healthz")
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        if not conn.initialized and not conn.data_ready:
            self._wait_for_data(conn)
        elif _is_probe(conn):
            done = self.probes.submit(self.handle, conn)
            done.add_done_callback(lambda future: self.method_queue.defer(self.finish_request, conn, future))
        else:
            super().enqueue_req(conn)

    def _wait_for_data(self, conn: Any) -> None:
        """Poll for data, as `finish_request` does for a connection whose thread got none."""
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + GRACE
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def handle(self, conn: Any) -> Any:
        conn.sock.setblocking(True)
        conn.init()
        if not conn.is_http2:
            conn.parser.unreader.sock = TimedSocket(conn.sock)
        keep = super().handle(conn)
        if not keep:
            _end(conn)
        return keep

    def _keepalive_after(self, conn: Any, keepalive: Any) -> bool:
        conn.parser.unreader.sock = TimedSocket(conn.sock, REST, math.inf)
        return bool(super()._keepalive_after(conn, keepalive))


def _end(conn: Any) -> None:
    """Let the sender of a body read the response before its connection is closed.

    Closing it earlier would reset the connection while the client sends, so the client or a proxy would lose the
    response. `finish_request` waits in the same way, two seconds in the main thread, which would delay all other
    clients. After this function it has no reason to wait.
    """
    request = getattr(conn.parser, "mesg", None)
    with suppress(OSError):
        if request and request.method not in ("GET", "HEAD"):
            conn.sock.shutdown(socket.SHUT_WR)
            rest = TimedSocket(conn.sock, REST, math.inf)
            while rest.recv(64 * 1024):
                pass
    with suppress(OSError):
        conn.sock.shutdown(socket.SHUT_RD)


def _is_probe(conn: Any) -> bool:
    try:
        return bool(conn.sock.recv(len(PROBE), socket.MSG_PEEK | socket.MSG_DONTWAIT) == PROBE)
    except (OSError, ValueError):  # the client has left; TLS does not support peeking
        return False
